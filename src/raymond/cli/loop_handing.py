"""`next` and `record`: work through a loop from inside of another program, whose agents do the items."""

import json
import sys
from collections.abc import Callable
from time import monotonic, sleep, time
from typing import Any

import click

from raymond.cli import background, flags, loop_driving, loop_flags, loop_group, loop_start, loop_verbs, texts
from raymond.cli.flags import Duration
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.foreign_text import said
from raymond.loops import ending, handing, markers, starting
from raymond.loops.loop_run import LoopRun
from raymond.loops.opening import Place

_LEFT_OUT = ("--docs", "--pause", "--pause-on-fail", "--worktree", "--summary-prompt", "--workflow", "--yes")
"""Flags of loops that mean nothing where somebody else does the items."""
_WAIT = 60.0
"""Seconds that `record` waits for the check: most are faster, and Claude Code waits for two minutes."""
_POLL = 0.05
_ROUNDS = 3
"""How often a loop is driven to the next item: it may have been killed in between."""
_HEEDED = frozenset(["docs", "as_json", "resumes"])
"""Flags of `next` that count for a loop that is there."""
_AGAIN = "run `next` to get it again"
_WAITING = 3
"""The exit code when a person has to decide first."""

Settle = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes settings of flags."""
Starter = Callable[[Place, dict[str, Any]], RunHandle | str]
"""Starts a new loop; or says why there is nothing to do."""


def add_to(group: click.Group, loop: str, own: tuple[Any, ...], settings: Settle) -> None:
    """Give the group of a loop these commands; `own` are flags that only it has, of which `settings` makes settings."""
    several = [one for one in (*own, *loop_flags.COMMON) if not set(flags.option(one).opts) & set(_LEFT_OUT)]
    options = (
        loop_group.DOCS,
        click.option("--json", "as_json", is_flag=True, help="One JSON document, with the prompt for a sub-agent."),
        click.option("--resume", "resumes", is_flag=True, help="Hand out an item again that is open."),
        click.option("--max-time", type=Duration(), metavar="TIME", help="After this, no more items begin."),
        click.option("--id", "id_", default="", metavar="ID", help="The id of a new loop."),
        *several,
    )

    def start(place: Place, given: dict[str, Any]) -> RunHandle | str:
        return loop_start.hand(loop, place, given, {**settings(given), "deadline": deadline(given["max_time"])})

    def next_(docs: str, as_json: bool, resumes: bool, **given: Any) -> int:
        """Hand out the next item to another program; starts the loop if there is none."""
        return _next(loop, docs, start, {"docs": docs, **given}, as_json=as_json, resumes=resumes)

    for decorate in reversed(options):
        next_ = decorate(next_)
    group.command("next")(next_)

    @group.command("record")
    @loop_group.DOCS
    @click.option("--json", "as_json", is_flag=True, help="One JSON document.")
    @click.option("--failed", metavar="REASON", help="The item was not done: this uses up one attempt.")
    @click.option(
        "--wait", type=Duration(), default=_WAIT, metavar="TIME", help="How long to wait for the check (60s)."
    )
    def record(docs: str, as_json: bool, failed: str | None, wait: float) -> int:
        """Check and record what became of the item; what was said about it comes on standard input."""
        return _record(loop, docs, failed, wait, as_json=as_json)


# next


def _next(loop: str, docs: str, start: Starter, given: dict[str, Any], *, as_json: bool, resumes: bool) -> int:
    if sys.__stdout__ is None:
        raise UsageError("standard output is closed, so nobody would get the item", hint="run next with an output")
    place, there = _found(loop, docs)
    if there is None and resumes:
        raise loop_verbs.none(place, loop)
    if there is None or (there.run.is_over and not resumes and _is_past(there)):
        begun = start(place, given)
        if isinstance(begun, str):
            return _print({"status": "done", "ended": "nothing to do", "summary": begun}, as_json=as_json)
        return _hand_out(_advanced(loop_driving.driven(begun)), as_json=as_json)
    if there.run.is_over:
        return _hand_out(there, as_json=as_json)
    _check_idle(there)
    starting.check_alone(there.project, there.id)
    starting.check_open(there.project, there.id)
    worker = handing.handed(there)
    if worker and handing.is_out(there, worker) and not resumes:
        title = (worker.variables or {}).get("title", "")
        hint = f"raymond {loop} record takes what became of it; raymond {loop} next --resume hands it out again"
        raise UsageError(f"an item is open: {title}", hint=hint)
    loop_verbs.tell_unheeded(_HEEDED)
    return _hand_out(_advanced(there), as_json=as_json)


def _is_past(loop: LoopRun) -> bool:
    """Whether whoever asks wants another loop: they know how this one ended, or say how the other is to begin.

    One that somebody has stopped goes on for nobody: the program that works through it has to hear that first.
    """
    return handing.is_told(loop) or (loop.ledger.ended == "stopped" and bool(loop_verbs.unheeded(_HEEDED)))


def _advanced(loop: LoopRun) -> LoopRun:
    """Drive the loop until an item is open, a person is asked, or it has ended."""
    for _ in range(_ROUNDS):
        if loop.run.is_over or handing.handed(loop) or handing.question(loop):
            break
        if parked := handing.parked(loop):
            handing.answer(loop, parked, "continue")
        loop = loop_driving.driven(RunHandle(loop.project, loop.id))
    return loop


def _hand_out(loop: LoopRun, *, as_json: bool) -> int:
    """Print the item that is open now, or how the loop has ended."""
    if loop.run.is_over:
        code = _print(handing.done(loop), as_json=as_json)
        handing.note_told(loop)
        return code
    worker = handing.handed(loop)
    if worker is None:
        return _print(handing.waiting(loop), as_json=as_json)
    document, was_out = handing.item(loop, worker), handing.is_out(loop, worker)
    handing.hand_out(loop, worker)
    try:
        return _print(document, as_json=as_json)
    except OSError:
        if not was_out:
            handing.take_back(loop)
        raise


# record


def _record(loop: str, docs: str, failed: str | None, wait: float, *, as_json: bool) -> int:
    place, there = _found(loop, docs, waits=True)
    reply = _reply(failed)
    if there is None:
        raise loop_verbs.none(place, loop)
    worker = handing.handed(there)
    is_new = worker is not None and not runs.is_driven(there.project.run(there.id))
    if is_new and worker and not handing.is_out(there, worker):
        raise _none_open(there, _AGAIN)
    if is_new and worker and not reply:
        hint = f"raymond {loop} record <<'END' with what was said, or record --failed REASON"
        raise UsageError("there is nothing on standard input: what became of the item?", hint=hint)
    if not is_new and reply:
        if there.ledger.open:
            raise _checked(there)
        raise _none_open(there, "what became of the last one is recorded")
    if is_new and worker:
        handing.answer(there, worker, reply)
    return _settle(there, wait, as_json=as_json)


def _none_open(loop: LoopRun, why: str) -> UsageError:
    return UsageError(f"no item is open: {why}", hint=f"raymond {loop.loop} next --json")


def _reply(failed: str | None) -> str:
    """What was said about the item; empty when nothing was."""
    if failed is not None:
        if not failed.strip():
            raise UsageError("--failed needs a reason", hint="record --failed 'the sub-agent was interrupted'")
        return handing.message(f"{failed.strip()}\n\n{markers.NOT_DONE}\n{markers.FAILED}")
    if sys.stdin.isatty():
        return ""
    text, is_cut = texts.end_of_stdin(texts.SENT)
    said = handing.message(text)
    kept = handing.end_of(said)
    if is_cut or kept != said:
        loop_verbs.tell(f"the message is too long: only the end of it counts, up to {texts.SENT >> 20} MiB")
    return kept


def _settle(loop: LoopRun, wait: float, *, as_json: bool) -> int:
    """Let a process in the background look at the item, and say what became of it if that does not take long."""
    until, is_launched = monotonic() + wait, False
    while True:
        is_driven = runs.is_driven(loop.project.run(loop.id))
        loop = handing.again_read(loop)
        if not is_driven and not handing.is_ending(loop):
            if (found := _became(loop)) is not None:
                return _print(found, as_json=as_json)
            if is_launched:
                return _print(handing.waiting(loop), as_json=as_json)
            _launch(loop)
            is_launched = True
        if monotonic() >= until:
            return _print(handing.checking(loop), as_json=as_json)
        sleep(_POLL)


def _became(loop: LoopRun) -> dict[str, Any] | None:
    """What became of the item that was last; None while somebody has to look at it."""
    if worker := handing.handed(loop):
        found = handing.again(loop, worker)
        if found["attempt"] == 1 and not handing.is_out(loop, worker):
            raise _none_open(loop, _AGAIN)  # whoever asked for it was killed
        return found
    if handing.question(loop):
        return handing.waiting(loop)
    if loop.ledger.open or not (handing.parked(loop) or loop.run.is_over):
        return None
    if not loop.ledger.entries:
        raise _none_open(loop, "none was handed out yet")
    return handing.recorded(loop, loop.ledger.entries[-1])


def _launch(loop: LoopRun) -> None:
    handle = RunHandle(loop.project, loop.id)
    failed = background.launch(handle, loop_driving.QUIET)
    if failed and not failed.is_driven and not handle.read().is_over:
        raise UsageError(failed.trouble.removeprefix("error: "))


# both


def _found(loop: str, docs: str, *, waits: bool = False) -> tuple[Place, LoopRun | None]:
    """Where this is, and the loop that is open here; one that has its own agents is left to itself.

    `waits`: whoever asks waits for a process that still writes down how the loop has ended.
    """
    place, found = loop_verbs.find(loop, docs)
    there = found.loop if found else None
    if found and there and found.is_unconcluded:
        if not handing.is_ending(there):
            ending.conclude(there)
        elif not waits:
            raise _checked(there)
    if there and not there.settings.internal and not there.run.is_over:
        hint = f"raymond {loop} status shows it, raymond {loop} resume continues it, raymond cancel {there.id} ends it"
        raise UsageError(f"{there.id} has agents of its own, and has not ended", hint=hint)
    return place, there if there and there.settings.internal else None


def _check_idle(loop: LoopRun) -> None:
    """Refuse while an item is looked at, or is to be looked at by the next who asks what became of it."""
    worker = loop.worker
    is_being = worker is not None and worker.state != handing.HAND and not handing.question(loop)
    if is_being or runs.is_driven(loop.project.run(loop.id)):
        raise _checked(loop)


def _checked(loop: LoopRun) -> UsageError:
    hint = f"raymond {loop.loop} record --wait 90s says what became of it"
    return UsageError("the last item is being checked", hint=hint)


def deadline(max_time: float | None) -> float:
    """When no more items begin; 0 for never."""
    return time() + max_time if max_time else 0.0


def _print(document: dict[str, Any], *, as_json: bool) -> int:
    lines = [json.dumps(document)] if as_json else [said(one, sys.stdout) for one in _text(document).splitlines()]
    sys.stdout.write("".join(f"{one}\n" for one in lines))
    sys.stdout.flush()
    return _WAITING if document["status"] == "waiting" else 0


def _text(document: dict[str, Any]) -> str:
    """The same for people."""
    match document["status"]:
        case "item":
            return str(document["prompt"]).rstrip("\n")
        case "done":
            return str(document["summary"]).rstrip("\n")
        case "checking":
            return f"checking: {document['title']}"
        case "waiting":
            return f"waits for a person: {document['question']}\n{document['command']}"
        case status:
            verdict = document.get("verdict", status)
            why = f": {document['reason']}" if document["reason"] else ""
            return f"{document['title']}: {verdict}{why}"
