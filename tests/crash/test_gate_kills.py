"""`kill -9` of the driver at every boundary of seal, work, gate and twin: nothing counts twice."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Live, Room, until

pytestmark = pytest.mark.slow

CHECK = "grep -q right answer.txt || { echo expected right; exit 1; }\n"
FLOW = {
    "START.md": (
        "---\ngate: sh tests/check.sh\ngate_reruns: 0\non_review: SEEN\n---\nWrite it, then <result>done</result>.\n"
    ),
    "SEEN.sh": "echo x > seen; echo '<result>seen</result>'",
    "workflow.yaml": "backend: mine\n",
}
EVENTS = 11
"""Decisions of such a run, at least: start, seal, turn, hold, gate, turn, hold, gate, move, script, end."""
TAKEN_UP = ("RunResumed", "StepInterrupted", "StepStarted")
"""Decisions that a resumed run makes before it has got any further."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A project whose agent edits the check."""
    room = Room(tmp_path)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text(CHECK)
    (room.path / "agent").write_text("cat > prompt; echo true > tests/check.sh; echo '<result>done</result>'\n")
    room.settings(f'[backends.mine]\ncommand = ["bash", "{room.path}/agent"]\ncost = 0.01\n')
    yield room
    room.clear()


def decisions(room: Room, *, that_move: bool) -> int:
    """How many the journal has, once there is one; those that `that_move` do not only take up what was cut off."""
    home = Path(room.environment.get("RAYMOND_HOME", room.home))
    found = next(home.glob("*/*/runs/r/journal.jsonl"), None)
    lines = found.read_bytes().split(b"\n")[1:-1] if found else []
    types = [one["type"] for line in lines for one in json.loads(line)["events"]]
    return sum(not that_move or type not in TAKEN_UP for type in types)


def has_more(room: Room, than: int, live: Live, that_move: bool) -> bool | None:
    return decisions(room, that_move=that_move) > than or live.process.poll() is not None or None


def test_a_driver_that_is_killed_again_and_again_loses_nothing(room: Room) -> None:
    """One run, killed by turns as soon as it is taken up and when it has moved: a visit may be cut off four times."""
    args = ["run", room.flow(FLOW), "--id", "r"]
    for number in range(2 * EVENTS):
        that_move = number % 2 == 1
        before = decisions(room, that_move=that_move)
        with room.start(*args) as live:
            until(functools.partial(has_more, room, before, live, that_move), "another decision")
            live.process.kill()
            live.process.wait()
        args = ["resume", "r"]
    done = room.raymond("resume", "r")
    assert (done.returncode, done.stdout) in [(0, "seen\n"), (2, "")], done.stderr
    assert room.raymond("status", "r").stdout.startswith("r: completed")
    assert (room.path / "seen").read_text() == "x\n"
    assert (room.path / "tests" / "check.sh").read_text() == "true\n"
    told = [json.loads(line) for line in room.raymond("logs", "r", "--json").stdout.splitlines()]
    assert [one["verdict"] for one in told if one["type"] == "GateEnded"] == ["review", "review"]
    counted = [one["type"] for one in told if one["type"] in ("TransitionHeld", "StepFinished")]
    assert (counted.count("TransitionHeld"), counted.count("StepFinished")) == (2, 3)
