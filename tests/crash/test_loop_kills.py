"""A loop that is killed with -9 at any of its decisions leaves, when it is resumed, what the unbroken loop leaves.

The driver is killed as it is about to write the decision: those before are on disk, and what follows from them has
begun. Every scenario of a loop that is one command and comes to its end has such points. RAYMOND_KILLS=all tries every
one; without it, each test takes one by chance, and prints the RAYMOND_SEED that repeats it.

A kill adds nothing to what is left: only a loop that pauses writes a summary, and commits it, before its end.
"""

import os
import random
import re
import shlex
from pathlib import Path

import pytest

from crash.tracing import check_strace
from scenario import LOOPS, LoopScenario

ALL = os.environ.get("RAYMOND_KILLS") == "all"
SEED = int(os.environ.get("RAYMOND_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
PARTS = 8 if ALL else 1
"""Each tries another part of the points of a scenario."""
DRIVER, EVERYTHING = "its driver", "everything"
"""What is killed: of a driver that is killed alone, the agent and the check work on."""


def _comes_to_its_end(folder: Path) -> bool:
    typed = (folder / "commands.txt").read_text("utf-8").splitlines()
    expected = folder / "expected.txt"
    told = expected.read_text("utf-8") if expected.exists() else ""
    return len(typed) == 1 and "- Ended: " in told and "- Ended: paused" not in told


SCENARIOS = sorted(folder.name for folder in LOOPS.iterdir() if _comes_to_its_end(folder))


class Killed:
    """A scenario whose driver is killed."""

    def __init__(self, name: str, path: Path) -> None:
        path.mkdir()
        self.scenario = LoopScenario(name, path)
        self.room = self.scenario.room
        self.journal = self.room.folder("n") / "journal.jsonl"
        self.expected = (self.scenario.folder / "expected.branch.txt").read_text("utf-8")
        self.code = int((self.scenario.folder / "expected.txt").read_text("utf-8").rsplit("exit ", 1)[1])

    def start(self, *inject: str) -> tuple[int, int]:
        """Start the loop under strace: its exit code, and how often it wrote to its journal."""
        trace = self.room.path.parent / "trace"
        strace = ["strace", "-qq", "-o", str(trace), "-P", str(self.journal), "-e", "trace=write", *inject]
        [command] = self.scenario.commands
        done = self.room.execute(*strace, *self.room.argv(*shlex.split(command)))
        return done.returncode, trace.read_text("utf-8").count("write(")

    def kill_at(self, write: int, victims: str) -> None:
        """Kill the driver as it makes this write to the journal, or everything that it has started too; then resume."""
        code, _ = self.start("-e", f"inject=write:signal=KILL:when={write}")
        if victims == EVERYTHING:
            self.room.clear()
        if code == -9:  # otherwise two decisions were made in one write, and it has ended before
            code = self.room.raymond("resume", "n").returncode
        assert code == self.code

    def check(self, victims: str) -> None:
        """It leaves what the unbroken loop leaves."""
        expected, left = self.expected, self.scenario.left()
        if victims == EVERYTHING:
            expected, left = _without_costs(expected), _without_costs(left)
        assert left == expected
        assert self.scenario.git("rev-parse", "raymond/n") == self.scenario.git("rev-parse", "refs/raymond/n/tip")
        assert self.scenario.git("fsck", "--strict") == ""
        self.room.nothing_runs()


def _without_costs(text: str) -> str:
    """A turn that was killed runs again and is paid again."""
    return re.sub(r"(?m)^- Cost: .*", "- Cost: MORE", text)


def survive(name: str, victims: str, write: int, path: Path) -> None:
    """Kill a loop at a write to its journal, and resume it."""
    print(f"RAYMOND_SEED={SEED}: {victims} killed at write {write}; everything is in {path}")
    killed = Killed(name, path)
    try:
        killed.kill_at(write, victims)
        killed.check(victims)
    finally:
        killed.room.clear()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_loop_killed_at_any_decision_leaves_what_the_unbroken_one_leaves(
    name: str, part: int, tmp_path: Path
) -> None:
    check_strace()
    unbroken = Killed(name, tmp_path / "unbroken")
    code, writes = unbroken.start()
    assert code == unbroken.code
    points = [(write, victims) for write in range(1, writes + 1) for victims in (DRIVER, EVERYTHING)]
    for write, victims in points[part::PARTS] if ALL else [random.Random(f"{SEED} {name}").choice(points)]:
        survive(name, victims, write, tmp_path / f"{write} {victims}")


def test_a_loop_killed_when_it_has_committed_makes_no_second_commit(tmp_path: Path) -> None:
    check_strace()
    survive("ralph", EVERYTHING, 18, tmp_path / "ralph")


def test_every_kind_of_loop_is_killed() -> None:
    assert {"ralph", "session", "stories", "tasks"} <= set(SCENARIOS)
