"""Handing: a loop whose items are done by somebody who asks for them, such as a program that has agents of its own."""

import json
import os
import textwrap
from time import time
from typing import Any

import msgspec

from raymond.control import steer
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.language.refusal import Refusal
from raymond.loops import documents, ending, failing, spawning, summary
from raymond.loops.documents import LEARNINGS, LOGS
from raymond.loops.formats import foreign_text, state_file
from raymond.loops.ledger import Entry, Ledger
from raymond.loops.loop_run import HANDED, LoopRun
from raymond.loops.narrator import Narrator
from raymond.loops.step import FAILS, Step, tag
from raymond.machine.agent import ASKING, Agent
from raymond.redaction import Secrets
from raymond.system import processes
from raymond.system.files import replace

WORKFLOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "handed")
"""The workflow of such a loop."""
HAND, PARK = "HAND.py", "PARK.py"
_GO = (PARK, "GO.py")
_TOLD = "end"
"""What it says when somebody was told how the loop has ended."""
_CONCLUDED = 60.0
"""Seconds after which nobody is taken to write down any more how a loop has ended."""
_MOST = (1 << 20) - (16 << 10)
"""Bytes of an answer, with what stands for characters that mean something where it is written."""
_REASON = 500
"""Characters of why an item did not count."""


# In a step


def is_asked_for(step: Step) -> bool:
    """Whether somebody has asked for an item since the last one ended; whoever starts a loop asks for the first."""
    outcomes = json.loads(step.text("results") or "[]")
    return step.visit == 1 or any(one["state"] in _GO for one in outcomes)


def limit(step: Step, ledger: Ledger) -> None:
    """End the loop if its time is used up."""
    if step.settings.deadline and time() >= step.settings.deadline and not ledger.ended:
        ledger.ended, ledger.why = "exhausted", "the time is used up"


# Outside


def handed(loop: LoopRun) -> Agent | None:
    """The agent whose item somebody has, or is to have."""
    found = (one for one in _asking(loop) if one.state == HAND and not one.question.startswith(FAILS))
    return next(found, None)


def parked(loop: LoopRun) -> Agent | None:
    """The agent that waits until somebody asks for the next item."""
    return next((one for one in _asking(loop) if one.state == PARK), None)


def question(loop: LoopRun) -> str:
    """What a person is asked before it can go on; empty when nobody is."""
    own = {one.id for one in (handed(loop), parked(loop)) if one}
    return next((one.question for one in _asking(loop) if one.id not in own), "")


def _asking(loop: LoopRun) -> list[Agent]:
    """The agents that wait for an answer; a loop that was cancelled has none."""
    return [] if loop.run.is_over else [one for one in loop.run.agents.values() if one.status == ASKING]


def is_ending(loop: LoopRun) -> bool:
    """Whether the process that drove it to its end still writes down how it ended."""
    if not loop.run.is_over or time() - loop.run.now > _CONCLUDED:
        return False
    try:
        found = state_file.read(documents.beginning(loop.documents.state(loop.loop)) or "{}")
    except state_file.Broken:
        return False
    is_open = found.get("workflow_id") == loop.id and found.get("status") in ("running", "stopping")
    pid = found.get("pid")
    return is_open and isinstance(pid, int) and processes.alive(pid, processes.start_time(pid))


def is_out(loop: LoopRun, worker: Agent) -> bool:
    """Whether this attempt at the item was handed out before."""
    return loop.is_out(worker)


def hand_out(loop: LoopRun, worker: Agent) -> None:
    """Note that it is, before anybody hears of it: nobody can have it twice by accident."""
    replace(loop.file(HANDED), _mark(worker).encode(), durable=True)


def take_back(loop: LoopRun) -> None:
    """Note that nobody has it after all, because nobody could be told."""
    replace(loop.file(HANDED), b"")


def is_told(loop: LoopRun) -> bool:
    """Whether somebody was told how the loop has ended."""
    return documents.read(loop.file(HANDED)).strip() == _TOLD


def note_told(loop: LoopRun) -> None:
    """Note that somebody was: whoever asks again wants a new loop."""
    replace(loop.file(HANDED), _TOLD.encode())


def _mark(worker: Agent) -> str:
    return f"{worker.id} {worker.asks}"


def answer(loop: LoopRun, agent: Agent, text: str) -> None:
    """Answer what the loop asks; refused if somebody else has."""
    face = Narrator(loop.project.tree, loop.loop, lambda _: None)
    told = steer.answer(loop.project, loop.id, agent.id, text, question=agent.asks, face=face)
    if isinstance(told, Refusal):
        raise UsageError(told.reason, hint=told.hint or f"raymond {loop.loop} status")


def message(text: str) -> str:
    """What whoever did the item said: without secrets, and as they said it, if all of it was indented on its way."""
    return Secrets.of(os.environ).clean(textwrap.dedent(text).strip())


def end_of(text: str) -> str:
    """The end of it, which has the markers: as much as a run takes for an answer, and a step can hand on."""
    while (size := max(len(msgspec.json.encode(text)), len(tag("goto", "", {"input": text}).encode()))) > _MOST:
        text = text[len(text) * (size - _MOST) // size + 1 :]
    return text


def item(loop: LoopRun, worker: Agent) -> dict[str, Any]:
    """An item for whoever is to do it."""
    given, settings = worker.variables or {}, loop.settings
    source = given.get("source", "")
    log = loop.documents.shown(LOGS, source) if source else ""
    return {
        "status": "item",
        "workflow_id": loop.id,
        "session": int(given.get("iteration") or 0),
        "most": settings.most or None,
        "attempt": (worker.visits or {}).get(HAND, 1),
        "item": {
            "title": given.get("title", ""),
            "details": given.get("details", ""),
            "check": given.get("check") or None,
            "timeout": given.get("check_timeout", ""),
        },
        "log": log or None,
        "log_text": documents.beginning(loop.documents.path(LOGS, source)) if source else "",
        "learnings": documents.beginning(loop.documents.path(LEARNINGS)),
        "limits": {"sessions": settings.most or None, "attempts": settings.attempts, "until": _until(loop)},
        "prompt": spawning.prompt(loop, given, worker.visit.input),
    }


def _until(loop: LoopRun) -> str | None:
    from raymond.loops.state import instant

    return instant(loop.settings.deadline) if loop.settings.deadline else None


def done(loop: LoopRun) -> dict[str, Any]:
    """How the loop ended."""
    return {
        "status": "done",
        "workflow_id": loop.id,
        "ended": summary.how(loop),
        "exit_code": ending.code_of(loop),
        "summary": summary.text(loop),
    }


def recorded(loop: LoopRun, entry: Entry) -> dict[str, Any]:
    """What became of an item."""
    left = summary.remaining(loop)
    return {
        "status": "recorded",
        "workflow_id": loop.id,
        "title": entry.title,
        "verdict": entry.verdict,
        "counts": entry.is_done,
        "commit": entry.commit or None,
        "reason": foreign_text.cut(entry.error, _REASON) if entry.error else "",
        "log": entry.log,
        "remaining": len(left),
        "next": not loop.run.is_over,
    }


def again(loop: LoopRun, worker: Agent) -> dict[str, Any]:
    """The item did not count, and is handed out once more."""
    return {
        "status": "again",
        "workflow_id": loop.id,
        "title": (worker.variables or {}).get("title", ""),
        "attempt": (worker.visits or {}).get(HAND, 1),
        "reason": foreign_text.cut(worker.visit.input.removesuffix(failing.STAYS), _REASON),
        "remaining": len(summary.remaining(loop)),
        "next": True,
    }


def checking(loop: LoopRun) -> dict[str, Any]:
    """The item is looked at by a process in the background."""
    return {"status": "checking", "workflow_id": loop.id, "title": loop.ledger.open.get("title", "")}


def waiting(loop: LoopRun) -> dict[str, Any]:
    """A person has to decide first."""
    asked = question(loop)
    how = f"raymond answer {loop.id} continue" if asked else summary.next_command(loop, is_driven=False)
    return {"status": "waiting", "workflow_id": loop.id, "question": asked or summary.how(loop), "command": how}


def again_read(loop: LoopRun) -> LoopRun:
    """The loop as it is now."""
    return LoopRun(loop.project, RunHandle(loop.project, loop.id).read())
