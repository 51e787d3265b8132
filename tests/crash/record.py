"""Keep a journal for ever: run the rich workflow and write it, with neutral paths, into tests/journals.

`cd tests && ../.venv/bin/python -m crash.record` makes the journal of the version in hand and what it must fold to. Do
that once for a release, and never again: a journal that has to be made anew is a journal that could not be read.
"""

import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import get_args

import msgspec

from crash import runs
from raymond import __version__
from raymond.machine.events import Decision, Event
from raymond.machine.evolve import apply
from raymond.machine.run import Run
from raymond.store import home as homes
from raymond.store import journal
from raymond.views.status import run_status

JOURNALS = Path(__file__).resolve().parent.parent / "journals"


def line(body: bytes) -> bytes:
    """A line of a journal: its JSON with the checksum of what stands before it."""
    body = body.rstrip(b"\n").removesuffix(b"}")
    return b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))


def bare(text: bytes) -> bytes:
    """The JSON of a line without its checksum."""
    return text[: text.rindex(b',"sum":"')] + b"}"


def account(decisions: list[Decision]) -> dict[str, object]:
    """What a journal must say for ever: where every agent stood after each decision, and how it ended."""
    run = Run()
    steps = []
    for decision in decisions:
        apply(run, decision)
        touched = dict.fromkeys(event.agent for event in decision.events if hasattr(event, "agent"))
        steps.append({name: _stands(run, name) for name in touched})
    ended = {name: list(outcome) for name, outcome in runs.outcomes(run).items()}
    return {
        "status": run_status(run),
        "iterations": run.iterations,
        "cost": round(run.cost, 6),
        "tokens": [run.tokens_in, run.tokens_out],
        "outcomes": ended,
        "after_each_decision": steps,
    }


def _stands(run: Run, name: str) -> str:
    agent = run.agents.get(name)
    return f"{agent.state} {agent.status}" if agent else "ended"


def vocabulary() -> dict[str, dict[str, object]]:
    """Every event with its fields and their defaults; what has none is required.

    A field that has its default is left out of the line, so a default is part of every journal that was ever written.
    """
    return {kind.__name__: _fields(kind) for kind in get_args(Event)}


def _fields(kind: type) -> dict[str, object]:
    return {
        one.name: "required"
        if one.required
        else {"default": msgspec.to_builtins(one.default_factory())}
        if one.default_factory is not msgspec.NODEFAULT
        else {"default": msgspec.to_builtins(one.default)}
        for one in msgspec.structs.fields(kind)
    }


def main() -> None:
    """Make the journal and the account of this version."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "project")
        os.environ[homes.VARIABLE] = f"{folder}/home"
        project = runs.project_in(place)
        id = runs.begin(project, runs.RICH, id="rich", input="the world")
        runs.finish(project, id)
        os.chdir(JOURNALS)
        data = Path(project.run(id).journal).read_bytes()
        told = account(journal.decisions(project.run(id)))
    name = ".".join(__version__.split(".")[:2])
    neutral = [bare(one) for one in data.splitlines()]
    for real, shown in ((str(place), "/project"), (str(runs.RICH), "/project/rich")):
        neutral = [one.replace(real.encode(), shown.encode()) for one in neutral]
    Path(f"{name}-rich.jsonl").write_bytes(b"".join(line(one) for one in neutral))
    Path(f"{name}-rich.json").write_bytes(_pretty(told))
    Path(f"{name}-events.json").write_bytes(_pretty(vocabulary()))


def _pretty(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


if __name__ == "__main__":
    main()
