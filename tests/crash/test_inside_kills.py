"""A step that works isolated is killed, from outside, at each of the processes that it consists of."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash import nothing_lost, runs, torture, workshop
from crash.nothing_lost import Expected
from crash.torture import Command, end, told, until
from crash.workshop import Workshop
from pace import mostly_slow
from raymond.machine.events import StepFailed, StepFinished
from raymond.store import journal
from raymond.workspace.place import Place
from raymond.workspace.slot import Slot

WAIT = "while [ ! -e go ]; do sleep 0.02; done\n"
VICTIMS = ("outer", "init", "command")
"""What holds the lock, the first process inside, and what the step is to run."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return workshop.unbroken(tmp_path_factory.mktemp("unbroken"))[0]


class Waiting(Workshop):
    """Its END.sh waits for a file `go` in the tree; with `turn`, its turn takes longer than any test at first."""

    def __init__(self, folder: Path, *, turn: bool = False) -> None:
        super().__init__(folder)
        self.is_turn = turn
        script = workshop.STATES["END_sh"].replace("note end\n", f"{'' if turn else WAIT}rm -f go\nnote end\n")
        runs.workflow(self.flow, END_sh=script)
        if turn:
            long = '{text: "never", delay: 300s, writes: {turned: "by a turn\\n"}}'
            done = workshop.STATES["replies"].removeprefix("WORK.md: ").strip()
            runs.workflow(self.flow, replies=f"WORK.md: [[{long}, {done}]]\n")

    def inside(self) -> dict[str, int]:
        """The processes of the step that waits; empty until it does."""
        parts = {_part(pid): pid for pid in self.marked()}
        found = {part: pid for part, pid in parts.items() if part in VICTIMS}
        waits = b"fake_claude" if self.is_turn else b"END.sh"
        is_there = "command" in found and waits in told(found["command"], "cmdline")
        return found if is_there and len(found) == len(VICTIMS) and self._has_begun() else {}

    def _has_begun(self) -> bool:
        return "END.sh" in self.notes() or self.is_turn

    def go(self) -> None:
        """Let the script go on."""
        assert self.person is not None
        Path(self.person.slot.tree, "go").write_text("", "utf-8")


def _part(pid: int) -> str:
    """What a process is to its step."""
    numbers = [line.split()[1:] for line in told(pid, "status").decode().splitlines() if line.startswith("NSpid")]
    parents = [line.split()[1] for line in told(pid, "status").decode().splitlines() if line.startswith("PPid")]
    if not numbers or not parents:
        return "gone"
    if len(numbers[0]) == 1:
        return "outer"
    if numbers[0][-1] == "1":
        return "init"
    above = [line.split()[-1] for line in told(int(parents[0]), "status").decode().splitlines() if "NSpid" in line]
    return "command" if above == ["1"] else "other"


def waiting(place: Waiting, command: Command) -> dict[str, int]:
    """The processes of the step that waits."""
    found: dict[str, int] = until(lambda: command.ended or place.inside(), "a step inside")
    assert not command.ended, command.wait().err
    return found


def gone(pids: dict[str, int]) -> None:
    """All of them end."""
    until(lambda: not any(map(torture.alive, pids.values())), "the end of what is inside")


@pytest.mark.parametrize("victim", mostly_slow(VICTIMS))
def test_a_script_that_is_killed_has_failed_and_runs_again_when_resumed(
    victim: str, expected: Expected, tmp_path: Path
) -> None:
    place = Waiting(tmp_path)
    command = place.begin()
    pids = waiting(place, command)
    end(pids[victim])
    done = command.wait()
    gone(pids)
    nothing_lost.check_words(done)
    assert done.code == 1, done.err
    [failed] = [event for event in events(place) if isinstance(event, StepFailed)]
    assert (failed.kind, failed.error) == ("crash", "was ended by signal 9")
    assert place.person is not None
    slot = Path(place.person.slot.path)
    left = [str(path) for form in ("report*", "*.plan", "work/*", "inside/*") for path in slot.glob(form)]
    assert left == [], "nothing of the step is left there"
    place.go()
    done = place.resume().wait()
    nothing_lost.check(place, expected, [done], paid_once=True)


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_turn_that_is_killed_is_taken_again_and_counts_once(victim: str, expected: Expected, tmp_path: Path) -> None:
    place = Waiting(tmp_path, turn=True)
    command = place.begin()
    pids = waiting(place, command)
    end(pids[victim])
    done = command.wait()
    assert not any(map(torture.alive, pids.values()))
    assert done.code == 0, done.err
    [failed] = [event for event in events(place) if isinstance(event, StepFailed)]
    assert failed.kind == "crash"
    nothing_lost.check(place, expected, [done])


def events(place: Waiting) -> list[object]:
    return [event for decision in journal.decisions(place.project.run("r")) for event in decision.events]


@pytest.mark.slow
def test_a_script_of_a_driver_that_was_killed_is_gone_before_it_runs_again(expected: Expected, tmp_path: Path) -> None:
    place = Waiting(tmp_path)
    command = place.begin()
    pids = waiting(place, command)
    command.kill()
    assert place.inside() == pids, "the script goes on"
    command = place.resume()
    again: dict[str, int] = until(lambda: command.ended or (place.inside() != pids and place.inside()), "another one")
    assert not command.ended, command.wait().err
    assert not any(torture.alive(pid) for pid in pids.values()), "the old one is gone"
    assert again.keys() == pids.keys()
    place.go()
    nothing_lost.check(place, expected, [command.wait()], paid_once=True)


def test_a_turn_of_a_driver_that_was_killed_is_followed_to_its_end_and_nobody_takes_half_of_it(
    expected: Expected, tmp_path: Path
) -> None:
    place = Waiting(tmp_path, turn=True)
    start = workshop.STATES["START_sh"].replace("note end\n", "mkfifo pipe\nnote end\n")
    reply = workshop.STATES["replies"].replace("}}", ', pipe: "x"}}')
    runs.workflow(place.flow, START_sh=start, replies=reply)
    command = place.begin()
    pids = waiting(place, command)
    assert place.person is not None
    until(lambda: place.person and place.person.read("turned"), "half of the turn")
    command.kill()
    applied = place.start("apply", "r").wait()
    tree = place.person.slot.tree
    assert applied.code == 1
    assert applied.err == f"error: a step is still at work in {tree}\nhint: wait for it, or stop the run\n"
    assert not place.person.is_there(place.person.tip), "nothing was taken"
    assert place.inside() == pids, "the turn goes on"
    command = place.resume()
    assert Path(tree, "pipe").read_text("utf-8") == "x"  # which lets the turn go on
    nothing_lost.check(place, expected, [command.wait()], paid_once=True)
    finished = [event for event in events(place) if isinstance(event, StepFinished)]
    assert len(finished) == 3
    assert not [event for event in events(place) if isinstance(event, StepFailed)]


@pytest.mark.slow
def test_a_step_waits_while_a_person_brings_work_home(expected: Expected, tmp_path: Path) -> None:
    """The moment between two steps, in which `apply` may take the tree for itself."""
    place = Waiting(tmp_path)
    command = place.begin()
    waiting(place, command)
    assert place.person is not None
    slot = place.person.slot
    command.kill()
    place.start("stop", "r", "--now").wait()
    with slot.alone(patience=torture.PATIENCE):
        command = place.resume()
        until(lambda: command.ended or _waits_for(slot.lock), "a step that waits")
        assert not command.ended, command.wait().err
        place.go()
    nothing_lost.check(place, expected, [command.wait()], paid_once=True)


def _waits_for(lock: str) -> bool:
    """Whether a process waits for a lock of this file."""
    number = os.stat(lock).st_ino
    lines = Path("/proc/locks").read_text("ascii").splitlines()
    return any("->" in line and f":{number} " in line for line in lines)


def test_a_step_counts_as_ended_when_everything_inside_is_gone(tmp_path: Path) -> None:
    """The process that the driver knows is killed alone: the kernel takes its time to end what is inside."""
    slot = Slot(f"{tmp_path}/1")
    slot.prepare()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"]) as inside:
        began = Path(f"/proc/{inside.pid}/stat").read_text("ascii").rpartition(")")[2].split()[19]
        Path(slot.inside, "7").write_text(f"{inside.pid} {began}\n", "ascii")
        assert Place(str(tmp_path), "/", "r", "/", "isolated").refusal("7", -9) is None
        assert not torture.alive(inside.pid)
