"""Whole workflows: every folder in scenarios/ that holds a `workflow` is run, and what is told and journaled compared.

commands.txt   what is typed, one command of raymond in each line; WORKFLOW stands for the folder
expected.txt   what the terminal shows: `$ command`, stderr as it is, stdout after `> `, and the exit code
expected.jsonl the journal: kind, agent, state and the like of every event

UPDATE_SCENARIOS=1 writes the expected files anew; look at the difference before you keep it.
"""

import os
import re
import shlex
from pathlib import Path

import msgspec
import pytest

from pace import mostly_slow
from raymond.machine.events import Event
from running import Room

FOLDER = Path(__file__).parent / "scenarios"
SCENARIOS = sorted(path.name for path in FOLDER.iterdir() if (path / "workflow").is_dir())
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


def shown(room: Room, command: str) -> str:
    """What a terminal shows of one command, without what differs from run to run."""
    workflow = str(room.path.parent / "workflow")
    done = room.raymond(*shlex.split(command.replace("WORKFLOW", workflow)))
    told = "".join(f"> {line}\n" for line in done.stdout.splitlines())
    text = f"$ raymond {command}\n{done.stderr}{told}exit {done.returncode}\n"
    text = text.replace(str(room.path), "ROOM").replace(workflow, "WORKFLOW")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"(gate (?:passed|is red) )\(\d+(\.\d)?(ms|s)\b", r"\1(SPAN", text)
    return re.sub(r"(after |for |, )\d+(\.\d)?(ms|s)\b", r"\1SPAN", text)


def journaled(event: Event) -> bytes:
    fields = msgspec.to_builtins(event)
    return msgspec.json.encode({name: fields[name] for name in KEPT if name in fields}) + b"\n"


def compare(path: Path, found: str) -> None:
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8"), f"{path} says something else"


@pytest.mark.parametrize("name", mostly_slow(SCENARIOS, daily=8))
def test_a_scenario_tells_and_journals_what_is_expected(name: str, tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "workflow").symlink_to(FOLDER / name / "workflow")
    commands = FOLDER / name / "commands.txt"
    typed = commands.read_text("utf-8").splitlines() if commands.exists() else [f"run WORKFLOW --id {name}"]
    try:
        told = "\n".join(shown(room, command) for command in typed)
    finally:
        room.clear()
    compare(FOLDER / name / "expected.txt", told)
    compare(FOLDER / name / "expected.jsonl", b"".join(map(journaled, room.events(name))).decode())


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 6
