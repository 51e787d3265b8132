"""The state file is small however long texts are, and `status --json` has all of them."""

import sys
from typing import Any

import msgspec

from builders import Play
from raymond.faces import documents

LONG = "x" * 20_000
NOTE = "\n[3,616 more characters: `raymond status --json` has them]"
CUT = "x" * 16_384 + NOTE
FILES = {"START.md": "", "A.md": "", "B.md": ""}


def texts(longest: int) -> list[Any]:
    """Every text of a run that somebody else has written."""
    play = Play(FILES, metadata={"given": LONG})
    play.say(f"<fork next='B' mine='{LONG}' input='{LONG}'>A</fork>")
    play.say(f"<ask next='B'>{LONG}</ask>")
    forked = msgspec.json.decode(documents.state_file(play.run, longest=longest))["agents"][1]
    play.say(f"<result>{LONG}</result>", "main_a1")
    state = msgspec.json.decode(documents.state_file(play.run, longest=longest))
    main = state["agents"][0]
    assert main["question"] == LONG, "nobody decides about half a question"
    found = [state["metadata"]["given"], state["results"]["main_a1"]]
    return [*found, forked["variables"]["mine"], forked["pending_result"]]


def test_no_text_in_the_state_file_is_longer_than_it_holds() -> None:
    assert texts(documents.LONGEST_TEXT) == [CUT] * 4


def test_every_text_is_whole_where_somebody_asks_for_it() -> None:
    assert texts(sys.maxsize) == [LONG] * 4


def test_what_failed_says_why_in_the_length_there_is() -> None:
    play = Play(FILES)
    play.fail("setup", error=LONG)
    error = msgspec.json.decode(documents.state_file(play.run))["agents"][0]["error"]
    assert error.endswith("`raymond status --json` has them]")
    assert len(error) < 17_000
