"""How a loop words what others said: cut after a word and marked, and no document where a sentence is wanted."""

import signal
from pathlib import Path

import pytest

from looping import WAIT, Night
from raymond.loops.formats.foreign_text import cut
from running import until


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("as it is", 8, "as it is"),
        ("two\nlines of words", 12, "two lines..."),
        ("two lines of words", 13, "two lines..."),
        ("two lines of words", 15, "two lines of..."),
        ("onewordthatnobodyreads", 10, "oneword..."),
        ("a wordthatnobodyreads", 10, "a wordt..."),
    ],
)
def test_a_text_is_cut_after_a_word_and_marked(text: str, most: int, shown: str) -> None:
    assert cut(text, most) == shown
    assert len(shown) <= most


@pytest.mark.slow
def test_a_loop_that_was_paused_in_its_first_item_says_that_one_was_begun(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}")
    with night.room.start("continuous-session", "start", "--id", "n", "--max-sessions", "0") as live:
        until((tmp_path / "on").exists, "the agent")
        live.signal(signal.SIGINT)
        live.sees("Ctrl-C again")
        live.signal(signal.SIGINT)
        live.process.wait()
        for line in (
            "Ended: paused with Ctrl-C",
            "Sessions used: 1 (no limit)",
            "Success rate: an item was begun, and none has ended",
        ):
            assert f"- {line}\n" in live.out
    assert "Session:  1 (no limit)\n" in night.loop(verb="status").out
