"""The state file is small however long texts are, and `status --json` has all of them."""

from typing import Any

import msgspec

from builders import Play
from raymond.faces import documents
from raymond.machine.agent import Outcome, Whole

LONG = "x" * 20_000
NOTE = "\n[3,616 more characters: `raymond status --json` has them]"
CUT = "x" * 16_384 + NOTE
REFERRED = "x" * 1000 + "\n[19,000 more characters: `raymond status --json` has them]"
"""A long result is not held in memory."""
FILES = {"START.md": "", "A.md": "", "B.md": ""}


def whole(outcome: Outcome) -> str:
    """As if it were read from its file."""
    assert (outcome.length, len(outcome.long)) == (20_000, 64)
    return LONG


def texts(whole: Whole | None) -> list[Any]:
    """Every text of a run that somebody else has written."""
    play = Play(FILES, metadata={"given": LONG})
    play.say(f"<fork next='B' mine='{LONG}' input='{LONG}'>A</fork>")
    play.say(f"<ask next='B'>{LONG}</ask>")
    forked = msgspec.json.decode(documents.state_file(play.run, whole=whole))["agents"][1]
    play.say(f"<result>{LONG}</result>", "main_a1")
    state = msgspec.json.decode(documents.state_file(play.run, whole=whole))
    assert documents.outcome(play.run, whole=whole)["results"] == state["results"]
    main = state["agents"][0]
    assert main["question"] == LONG, "nobody decides about half a question"
    found = [state["metadata"]["given"], forked["variables"]["mine"], forked["pending_result"]]
    return [*found, state["results"]["main_a1"]]


def test_no_text_in_the_state_file_is_longer_than_it_holds() -> None:
    assert texts(None) == [CUT, CUT, CUT, REFERRED]


def test_every_text_is_whole_where_somebody_asks_for_it() -> None:
    assert texts(whole) == [LONG] * 4


def test_the_result_of_the_run_is_whole_for_programs() -> None:
    play = Play(FILES)
    play.say(f"<result>{LONG}</result>")
    told = documents.outcome(play.run)
    assert (told["result"], told["results"]) == (LONG, {"main": LONG})


def test_what_failed_says_why_in_the_length_there_is() -> None:
    play = Play(FILES)
    play.fail("setup", error=LONG)
    error = msgspec.json.decode(documents.state_file(play.run))["agents"][0]["error"]
    assert error == f"{LONG[:4093]}..."
