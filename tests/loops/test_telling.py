"""A loop is told to people in sentences and on their own clock, and to programs in the lines of its log."""

import re
from pathlib import Path

import pytest

from looping import Night
from typist import Typist

TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"
RED = "echo '=== 1 failed, 3 passed ==='; exit 1\n"
AGENT = "echo 42 > answer.txt; if [ -e two.txt ]; then echo Hm.; else echo ITERATION_COMPLETE; fi; touch two.txt"
TOLD = """\
Session 1 of 5: Write the answer
The agent ended its turn, and says it is done
Running the check: sh check.sh
Check green
Session 1 is done, committed as COMMIT (SPAN)
Session 2 of 5: Write the other
The agent ended its turn
Running the check: sh two.sh
Check red: 1 failed, 3 passed
The agent ended its turn
Running the check: sh two.sh
Check red: 1 failed, 3 passed
Session 2 failed (SPAN): `sh two.sh` ended with exit code 1: === 1 failed, 3 passed ===
"""


def told(text: str) -> str:
    """What lines say, without their times, commits and spans; what comes before and after the items left out."""
    plain = [re.sub(r"^\[?[\dT:Z-]+\]? ", "", line) for line in text.replace("\r", "").splitlines()]
    plain = [re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", re.sub(r"\d+s\b", "SPAN", line)) for line in plain]
    kept = [line for line in plain if line.startswith(("Session", "The agent", "Running the check:", "Check"))]
    return "".join(f"{line}\n" for line in kept)


@pytest.mark.slow
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_terminal_has_one_clock_and_plain_sentences(tmp_path: Path, term: str) -> None:
    night = Night(tmp_path, TWO, AGENT, **{"two.sh": RED})
    start = ("continuous-session", "start", "--id", "n", "--pause", "0s", "--attempts", "1")
    person = Typist(night.room, *start, columns=120, TERM=term, TZ="Asia/Tokyo")
    shown = person.sees("# continuous-session n\n")
    assert person.end() == 1
    if term == "dumb":
        assert told(shown) == TOLD
    for line in TOLD.splitlines()[1:5:2]:
        assert line in shown
    assert "Verification" not in shown
    assert "gate is red (" not in shown, "a second telling of the same"
    assert not re.search(r"\dT\d\d:\d\d:\d\dZ", shown), "no time on another clock"
    log = (night.path / ".raymond/logs/continuous-session.log").read_text("utf-8")
    assert re.search(r"^\[20[\dT:-]+Z\] ralph-loop: Implementation complete$", log, re.MULTILINE)
    assert re.search(r"^\[20[\dT:-]+Z\] ralph-loop: Verification FAILED \(exit 1\)$", log, re.MULTILINE)


@pytest.mark.slow
def test_the_bar_is_full_when_a_short_queue_is_done(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert night.loop().code == 0
    person = Typist(night.room, "continuous-session", "status")
    person.sees("████████████████████ 1/1")
    assert person.end() == 0
