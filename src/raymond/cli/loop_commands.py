"""The commands that loops have besides their start, with those of internal mode: `next` and `record`.

In internal mode, another program has the items of a loop done by agents of its own.
"""

import contextlib
import io
import json
import os
import sys
import textwrap
from time import monotonic, sleep, time
from typing import Any

from raymond.cli import driving, flags, loop_start, loop_verbs, texts
from raymond.cli.by_click import Group
from raymond.cli.command import argument, option
from raymond.cli.flags import ResumeFlags, ShowFlags, StartFlags
from raymond.cli.loop_start import DOCS, Start
from raymond.cli.values import Value
from raymond.control import inside, request, runs
from raymond.control.handle import RunHandle
from raymond.control.settings import duration
from raymond.errors import Error, RunDriven, UsageError
from raymond.faces.foreign_text import said
from raymond.language.refusal import Refusal
from raymond.loops import attempt, ending, finding, person, report, starting
from raymond.loops.formats.foreign_text import cut
from raymond.loops.loop_run import LoopRun
from raymond.loops.next_item import LEASE
from raymond.loops.settings import RALPH, STORIES, TASKS
from raymond.loops.telling import Narrator
from raymond.redaction import Secrets

FROM_CHECKOUT = "Take over what you edited in the checkout."

_Document = dict[str, Any]
_WITHOUT = {"pause", "closing", "workflow", "yes", "create_tasks"}
"""Settings of loops that are about agents and scripts that Raymond starts."""
_CONTINUING = frozenset(["docs", "as_json", "resumes", "wait", "starts"])
"""Flags of `next` that are not only for a loop that begins."""
_OPENS = "`raymond docs plans` says what a loop works through"
_WAIT = 60.0
"""Seconds to wait for checks: Claude Code gives a command two minutes."""
_POLL = 0.05
_REASON = 500
"""Characters of why an item did not count."""
_SAID = 100_000
"""Characters of what an agent said that are taken: the end of it, which has the markers."""
_WAITS = 3
"""The exit code when a person has to decide first."""


def add_to(group: Group, loop: str, workflow: str) -> None:
    """Give the group of a loop these commands; `workflow` is what `eject` copies."""

    @group.define("status")
    @DOCS
    @option("--json", "as_json", is_flag=True, help="One JSON document.")
    def status(docs: str, as_json: bool) -> int:
        """Show what the loop is doing, what it did and what is left."""
        return loop_verbs.status(loop, docs, as_json=as_json)

    unit = "iteration" if loop == RALPH else "item"

    @group.define("stop", help=f"Let the loop end after the {unit} it is at.")
    @DOCS
    def stop(docs: str) -> int:
        return loop_verbs.stop(loop, docs, end_between_items)

    @group.define("resume", grouped=True)
    @flags.continuing(DOCS, option("--yes", is_flag=True, help="Do not ask."))
    def resume(given: ResumeFlags, docs: str) -> int:
        """Continue the loop that was paused or cut off."""
        return loop_verbs.resume(loop, docs, given)

    if loop in (TASKS, STORIES):

        @group.define("edit")
        @DOCS
        @option("--from-checkout", is_flag=True, required=True, help=FROM_CHECKOUT)
        def edit(docs: str, from_checkout: bool) -> int:
            """Let what you edited in the checkout count for the loop that has begun."""
            inside.check_by_hand(f"{loop} edit")
            return person.take_over(loop_verbs.for_person(loop, docs)[1], loop_verbs.tell)

    @group.define("eject")
    @argument("folder", metavar="DIR")
    def eject(folder: str) -> int:
        """Copy the workflow of the loop to DIR, to change it; start --workflow DIR runs it."""
        print(person.eject(workflow, folder))
        return 0


# Internal mode


def add_internal_mode(group: Group, loop: str) -> None:
    """Give the group of a loop these commands."""
    as_json = option("--json", "as_json", is_flag=True, help="One JSON document.")
    waits = option("--wait", type=Value(duration), default=_WAIT, metavar="TIME", help="Wait for checks (60s).")
    options = (
        as_json,
        waits,
        option("--resume", "resumes", is_flag=True, help="Hand out an item again that is open."),
        option("--start", "starts", is_flag=True, help="If no loop is open, begin one, with these flags:"),
        option("--id", "id_", default="", metavar="ID", help="Name the loop; the id must be new."),
        option("--max-time", type=Value(duration), metavar="TIME", help="Begin no item after this long, e.g. 2h."),
        *loop_start.own_flags(loop, _WITHOUT),
    )

    def next_(as_json: bool, wait: float, resumes: bool, starts: bool, **given: Any) -> int:
        """Hand out the next item of a loop to the program that asks for it."""
        if not starts and (typed := loop_verbs.unheeded(_CONTINUING)):
            hint = f"raymond {loop} next --start {typed[0]} ..."
            raise UsageError(f"{typed[0]} is for a loop that begins", hint=hint)
        there = _find(loop, given["docs"])
        if starts and (there is None or there.run.is_over):
            deadline = 0.0 if given["max_time"] is None else time() + given["max_time"]
            flags_ = StartFlags(run={"id": given["id_"], "workspace": "copy", "budget": 0.0})
            start = Start(loop, flags_, given | {"yes": True}, _OPENS)
            with contextlib.redirect_stdout(io.StringIO()) as told:
                begun = start.begin(internal=True, deadline=deadline, pause=0.0)
            if isinstance(begun, int):
                nothing = {"status": "done", "ended": "nothing to do", "summary": told.getvalue()}
                return _print(nothing, as_json=as_json)
            there = LoopRun(begun.project, begun.read())
        else:
            there = _found(loop, given["docs"])
            if ignored := loop_verbs.unheeded(_CONTINUING):
                loop_verbs.tell(f"the loop goes on with the settings it has: {', '.join(ignored)} does not count")
            _ask(there, resumes=resumes)
        return _print(_settled(there, wait, "next --resume"), as_json=as_json)

    for decorate in reversed(options):
        next_ = decorate(next_)
    group.define("next", grouped=True, hidden=True)(next_)

    @group.define("record", hidden=True)
    @loop_start.DOCS
    @as_json
    @waits
    @option("--failed", metavar="REASON", help="The agent did not end; this uses up one attempt.")
    def record(docs: str, as_json: bool, wait: float, failed: str | None) -> int:
        """Check and record an item; what its agent said last comes on standard input."""
        there = _found(loop, docs)
        _take(there, _reply(failed))
        return _print(_settled(there, wait, "record"), as_json=as_json)


# What is asked for


def _find(loop: str, docs: str) -> LoopRun | None:
    """The loop here that another program works through: the last one if none is open."""
    checkout, found = loop_verbs.find(loop, docs)
    there = found.loop if found and found.loop else finding.last(runs.here(), checkout, loop)
    if there and not there.settings.internal and not there.run.is_over:
        hint = f"raymond {loop} status shows it, raymond cancel {there.id} ends it"
        raise UsageError(f"{there.id} has agents of its own, and has not ended", hint=hint)
    return there if there and there.settings.internal else None


def _found(loop: str, docs: str) -> LoopRun:
    if there := _find(loop, docs):
        return there
    raise UsageError(f"no active {loop_verbs.name_of(loop)}", hint=f"raymond {loop} next --start begins one")


def _ask(loop: LoopRun, *, resumes: bool) -> None:
    """Ask for the next item. One that is open, or a loop that was cut off, is only for a program that `resumes`."""
    if loop.rests and not _is_driven(loop):
        starting.check_alone(loop.project, loop.checkout, loop.settings, loop.id)
        _answer(loop, "continue")
    elif not (resumes or loop.needs_person or loop.run.is_over):
        takes, again = (finding.command(loop, verb) for verb in ("record", "next --resume"))
        what = f"an item is open: {_title(loop)}" if loop.leased else "the loop is at work, or was cut off"
        raise UsageError(what, hint=f"{takes} takes what became of an item; {again} hands it out again")


def _take(loop: LoopRun, reply: str) -> None:
    """Take what became of the item that is open; without a word, it is waited for."""
    if loop.leased and reply and not _is_driven(loop):
        _answer(loop, reply)
    elif reply and (loop.run.is_over or not loop.ledger.open):
        raise UsageError("no item is open", hint=finding.command(loop, "next"))
    elif reply and loop.needs_person:
        raise UsageError("a person has to decide first", hint=finding.command(loop, "status"))
    elif reply:
        hint = f"{finding.command(loop, 'record')} --wait 90s says what became of it"
        raise UsageError("the last item is being checked", hint=hint)
    elif _attempt(loop) == 1 or not (loop.ledger.entries or loop.ledger.open):
        hint = f"{finding.command(loop, 'record')} <<'END' with what was said, or record --failed REASON"
        raise UsageError("there is nothing on standard input: what became of the item?", hint=hint)


def end_between_items(loop: LoopRun) -> str:
    """End it between two items, where it was asked to stop; how that went, in words."""
    _answer(loop, "continue")
    return _text(_settled(loop, _WAIT, "record"))


def _answer(loop: LoopRun, text: str) -> None:
    """Answer what the loop asks the program."""
    agent, face = loop.leased or loop.rests, Narrator(loop.project, loop.id, loop.loop)
    assert agent is not None
    told = request.answer(loop.project, loop.id, agent.id, text, question=agent.asks, face=face)
    if isinstance(told, Refusal):
        raise UsageError(told.reason, hint=told.hint or f"raymond {loop.loop} status")


def _reply(failed: str | None) -> str:
    """What was said about the item; empty when nothing was."""
    if failed is not None and not failed.strip():
        raise UsageError("--failed needs a reason", hint="record --failed 'the sub-agent was interrupted'")
    told = "" if failed or sys.stdin.isatty() else texts.stdin()
    # All of it may have been indented on its way.
    text = f"{attempt.BROKEN}{failed.strip()}" if failed else textwrap.dedent(told).strip()[-_SAID:]
    return Secrets.of(os.environ).clean(text)


# What comes of it


def _settled(loop: LoopRun, wait: float, again: str) -> _Document:
    """Let a process in the background go on with the loop until it waits; `again` is the verb that asks later."""
    until, is_launched = monotonic() + wait, False
    while True:
        is_driven = _is_driven(loop)
        loop = LoopRun(loop.project, RunHandle(loop.project, loop.id).read())
        if not is_driven:
            if loop.run.is_over:
                if ending.is_concluded(loop):
                    return _document(loop)
            elif loop.leased or loop.rests or loop.needs_person or (is_launched and loop.run.stop):
                return _document(loop)
            elif not is_launched:
                _launch(loop)
                is_launched = True
            else:
                until = 0.0  # its process was killed
        if monotonic() >= until:
            command = f"{finding.command(loop, again)} --json --wait 90s"
            return {"status": "checking", "workflow_id": loop.id, "title": _title(loop), "command": command}
        sleep(_POLL)


def _is_driven(loop: LoopRun) -> bool:
    return runs.is_driven(loop.project.run(loop.id))


def _launch(loop: LoopRun) -> None:
    handle = RunHandle(loop.project, loop.id)
    try:
        driving.launch(handle, ShowFlags(quiet=True))
    except RunDriven:
        pass
    except Error:
        if not handle.read().is_over:
            raise


def _document(loop: LoopRun) -> _Document:
    about: _Document = {"workflow_id": loop.id}
    if loop.run.is_over:
        about |= _last(loop) | {"ended": report.how(loop), "exit_code": ending.code_of(loop)}
        return {"status": "done", **about, "summary": report.text(loop)}
    if loop.leased:
        return {"status": "item", **about, **_item(loop)}
    if loop.rests:
        return {"status": "recorded", **about, **_last(loop), "remaining": len(report.remaining(loop))}
    question = loop.asking.question if loop.asking else report.how(loop)
    return {"status": "waiting", **about, "question": question, "command": report.next_of_loop(loop, is_driven=False)}


def _last(loop: LoopRun) -> _Document:
    """What became of the last item."""
    if not loop.ledger.entries:
        return {}
    entry = loop.ledger.entries[-1]
    about = {"title": entry.title, "verdict": entry.verdict, "counts": entry.is_done, "commit": entry.commit or None}
    return {**about, "reason": cut(entry.error, _REASON) if entry.error else "", "log": entry.log}


def _item(loop: LoopRun) -> _Document:
    opened, agent, attempt = loop.ledger.open, loop.leased, _attempt(loop)
    assert opened is not None
    assert agent is not None
    return {
        "session": opened.number,
        "most": loop.settings.most or None,
        "attempt": attempt,
        "title": opened.title,
        "check": opened.check or None,
        "reason": cut(agent.visit.input, _REASON) if attempt > 1 else "",
        "folder": loop.place.outside(loop.run.start.cwd),
        "prompt": agent.question,
    }


def _attempt(loop: LoopRun) -> int:
    """How often the item that is open was handed out."""
    return (loop.leased.visits or {}).get(LEASE, 1) if loop.leased else 0


def _title(loop: LoopRun) -> str:
    return loop.ledger.open.title if loop.ledger.open else ""


def _print(document: _Document, *, as_json: bool) -> int:
    print(json.dumps(document) if as_json else _text(document), flush=True)
    return _WAITS if document["status"] == "waiting" else 0


def _text(document: _Document) -> str:
    """The same for people."""
    keys = ("title", "status", "verdict", "reason", "question", "command")
    whole = document.get("prompt") or document.get("summary")
    told = whole or "\n".join(f"{key}: {document[key]}" for key in keys if document.get(key))
    return "\n".join(said(one, sys.stdout) for one in told.splitlines())
