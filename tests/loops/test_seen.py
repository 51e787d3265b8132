"""A loop on a terminal: what is seen of it, and how a person goes on."""

from pathlib import Path

import pytest

from looping import Night
from terminals import in_tmux, terminal

pytestmark = [pytest.mark.slow, in_tmux]
START = ("continuous-session", "start", "--id", "n", "--pause", "0s")
QUEUE = "".join(f"{n}. [VERIFY: test -f f{n}] Write file {n}\n" for n in range(1, 6))
HELD = """
n=$(ls f? 2> /dev/null | wc -l); touch f$((n + 1))
[ $n != 1 ] || until [ -e $TEST_ROOM/../go ]; do sleep 0.01; done
echo ITERATION_COMPLETE
"""
"""Does one item after the other, and holds at the second."""


def test_the_live_view_shows_queue_item_check_and_commits(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, HELD)
    with terminal(night.room, *START, "--max-sessions", "50") as pane:
        lines = pane.sees(r"session 2 of 50 · ██░{8} 1 done · 0 failed · 3 in the queue")
        at = next(n for n, line in enumerate(lines) if line.startswith("session 2 of 50"))
        made = night.git("rev-parse", "raymond/n")
        assert lines[at - 1].startswith("n · running · ")
        assert lines[at + 1 : at + 5] == [
            "item     Write file 2",
            "check    test -f f2",
            f"commits  1: {made[:12]}",
            "then     Write file 3; Write file 4; Write file 5",
        ]
        (tmp_path / "go").touch()
        lines = pane.sees("code 0")
    assert not any(line.startswith(("session ", "item  ", "check  ")) for line in lines), "the block is gone"
    assert len(night.subjects) == 7


def test_enter_goes_on_after_a_failure_and_other_words_are_refused(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE.replace("test -f f1", "false"), "touch f2 f3 f4 f5; echo ITERATION_COMPLETE")
    with terminal(night.room, *START, "--pause-on-fail", "--attempts", "1", "--max-sessions", "2") as pane:
        pane.sees(r"Press enter to continue or Ctrl\+C to abort\.\.\.|.*Press enter to continue or .*")
        pane.sees(">")
        pane.type("maybe", "Enter")
        pane.sees(".*not sent: `maybe` is not one of: 1 continue, 2 stop")
        pane.type("Enter")
        pane.sees(".* < continue")
        pane.sees("code 1")
    assert [one["title"] for one in night.state["completedItems"]] == ["Write file 2"]


def test_a_person_stops_after_a_failure(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE.replace("test -f f1", "false"), "echo '</ask>'; echo ITERATION_FAILED")
    with terminal(night.room, *START, "--pause-on-fail", "--attempts", "1") as pane:
        pane.sees(">")
        pane.type("stop", "Enter")
        pane.sees("code 1")
    assert night.state["completedItems"] == []
    assert "\nstopped: by a person\n" in night.room.raymond("continuous-session", "status").stdout
