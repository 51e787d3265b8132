"""What a person is asked about a loop: no answer changes nothing, and nonsense is no answer."""

import signal
from pathlib import Path

import pytest

from looping import WAIT, Night, killed
from running import until
from typist import Typist

pytestmark = pytest.mark.slow
RESUME = ("continuous-session", "resume")
START = ("continuous-session", "start", "--id", "m", "--pause", "0s")
LEFT = "not answered; everything stays as it is"
CTRL_C, CTRL_D = "\x03", "\x04"


def standing(night: Night) -> tuple[str, ...]:
    """Everything that an unanswered question may not change."""
    head = night.git("for-each-ref"), night.git("branch", "--show-current"), night.git("status", "--porcelain")
    state = night.path / "docs/.continuous-session-state.json"
    return (
        *head,
        state.read_text("utf-8") if state.exists() else "",
        str([len(night.room.events(id)) for id in night.room.project.ids()]),
    )


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("args", [RESUME, START], ids=["resume", "start"])
def test_a_question_that_is_left_changes_nothing(tmp_path: Path, args: tuple[str, ...], key: str) -> None:
    night = Night(tmp_path)
    killed(night)
    before = standing(night)
    person = Typist(night.room, *args)
    person.sees(r"Resume\? \[Y/n\] ")
    person.type(key)
    person.sees(rf"\n{LEFT}\n")
    assert person.end() == 130
    assert standing(night) == before


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D], ids=["Ctrl-C", "Ctrl-D"])
def test_what_an_interrupted_session_changed_stays_if_nothing_is_said(tmp_path: Path, key: str) -> None:
    night = Night(tmp_path, agent=f"echo half > half.txt; touch $TEST_ROOM/../half\n{WAIT}")
    with night.room.start(*START) as live:
        until((tmp_path / "half").exists, "the agent")
        live.signal(signal.SIGTERM)
        live.signal(signal.SIGTERM)
        assert live.process.wait(60) == 128 + signal.SIGTERM
    before = standing(night)
    person = Typist(night.room, *RESUME, "--budget", "5")
    person.sees(r"Resume from session 1\? \[Y/n\] ")
    person.type("y\n")
    person.sees(r"continue, discard\s+or\s+commit\? \[continue\] ")
    person.type(key)
    person.sees(rf"\n{LEFT}\n")
    assert person.end() == 130
    assert standing(night) == before


def test_nonsense_is_asked_about_again_and_no_leaves_a_loop_as_it_is(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    before = standing(night)
    person = Typist(night.room, *RESUME)
    for nonsense in ("maybe", "nonsense", "2"):
        person.sees(r"Resume\? \[Y/n\] ")
        person.type(f"{nonsense}\n")
    person.sees(r"Resume\? \[Y/n\] ")
    person.type("no\n")
    person.sees("nothing was resumed; everything stays as it is")
    assert person.end() == 1
    assert standing(night) == before


def test_no_at_a_start_ends_the_old_loop_and_says_where_everything_is(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    person = Typist(night.room, *START, columns=200)
    person.sees(r"Resume\? \[Y/n\] ")
    person.type("n\n")
    person.sees("the loop n is ended for good: raymond logs n\n")
    kept = "refs/raymond/n/1.interrupted"
    person.sees(f"what its interrupted session has changed is kept in {kept}\n")
    shown = person.sees(r"its state file is kept as (docs/\.continuous-session-state\.json\.\S+)\n")
    assert person.end() == 0
    assert (night.path / shown.split()[-1]).exists()
    assert night.git("show", f"{kept}:half.txt") == "half"
    assert not (night.path / "half.txt").exists()
    assert (night.state["workflow_id"], night.subjects[1]) == ("m", "feat: write the answer")
    assert night.room.raymond("resume", "n").stderr.startswith("n was cancelled: nothing to resume")
