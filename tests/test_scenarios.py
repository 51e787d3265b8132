"""Whole workflows and loops: every folder in scenarios/ is run, and what is told and left is compared.

commands.txt         what is typed, one command of raymond in each line, or `! ` and a command for a shell
expected.txt         what the terminal shows: `$ command`, stderr as it is, stdout after `> `, and the exit code

Of a workflow (scenarios/NAME):
workflow/            the workflow; WORKFLOW stands for the folder in a command
expected.jsonl       the journal: kind, agent, state and the like of every event

Of a loop (scenarios/loops/NAME):
files/               the repository as it begins
agent.sh             what an agent does: $1 is the attempt, the file $PROMPT its prompt, $TEST_ROOM the checkout;
                     of a scenario that is one command, it does the same again when it is killed and begins anew
expected.branch.txt  what is there at the end: commits, the files that differ, checkout, references, state files

UPDATE_SCENARIOS=1 writes the expected files anew; look at the difference before you keep it.
"""

from pathlib import Path

import msgspec
import pytest

from pace import mostly_slow
from raymond.machine.events import Event
from running import Room
from scenario import FOLDER, LOOPS, LoopScenario, compare, plain, shown

RUNS = sorted(path.name for path in FOLDER.iterdir() if (path / "workflow").is_dir())
DAILY = ("ralph", "session", "stories", "tasks")
"""One scenario of every loop."""
OF_LOOPS = sorted((path.name for path in LOOPS.iterdir()), key=lambda name: (name not in DAILY, name))
KEPT = (
    "type",
    "agent",
    "parent",
    "step",
    "turn",
    "attempt",
    "backend",
    "tag",
    "kind",
    "limit",
    "amount",
    "tools",
    "state",
    "then",
    "again",
    "status",
)
"""Fields of an event that are the same in every run."""


def journaled(event: Event) -> bytes:
    fields = msgspec.to_builtins(event)
    return msgspec.json.encode({name: fields[name] for name in KEPT if name in fields}) + b"\n"


@pytest.mark.parametrize("name", mostly_slow(RUNS, daily=8))
def test_a_run_tells_and_journals_what_is_expected(name: str, tmp_path: Path) -> None:
    room = Room(tmp_path)
    workflow = tmp_path / "workflow"
    workflow.symlink_to(FOLDER / name / "workflow")
    commands = FOLDER / name / "commands.txt"
    typed = commands.read_text("utf-8").splitlines() if commands.exists() else [f"run WORKFLOW --id {name}"]
    try:
        told = "\n".join(shown(room, command, str(workflow)) for command in typed)
    finally:
        room.clear()
    compare(FOLDER / name / "expected.txt", told)
    compare(FOLDER / name / "expected.jsonl", b"".join(map(journaled, room.events(name))).decode())


@pytest.mark.parametrize("name", mostly_slow(OF_LOOPS, daily=len(DAILY)))
def test_a_loop_tells_and_leaves_what_is_expected(name: str, tmp_path: Path) -> None:
    scenario = LoopScenario(name, tmp_path)
    try:
        told = [plain(shown(scenario.room, command)) for command in scenario.commands]
    finally:
        scenario.room.clear()
    compare(scenario.folder / "expected.txt", "\n".join(told))
    compare(scenario.folder / "expected.branch.txt", scenario.left())


def test_there_are_scenarios() -> None:
    assert len(RUNS) >= 6
    assert set(DAILY) <= set(OF_LOOPS)
