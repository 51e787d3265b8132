"""What the commands of loops do: status, stop, resume, and what makes a loop ready to go on."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator

import click
from click.core import ParameterSource

from raymond import pasted
from raymond.cli import driving, moves, prompt
from raymond.cli.flags import CONTINUED, ResumeFlags, ShowFlags
from raymond.control import inside, runs
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.foreign_text import said
from raymond.loops import ending, finding, loop_status, preflight, resuming, starting
from raymond.loops.documents import PLANS, RECORDS, SUMMARIES, Documents, Folder
from raymond.loops.finding import Found
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH, SESSION, STORIES, TASKS, UNITS

_HEEDED = CONTINUED | {"yes", "docs", "cd"}
"""Flags that count for a loop that is resumed as well."""
_NAMES = {SESSION: "continuous session", RALPH: "ralph loop", TASKS: "task loop", STORIES: "story loop"}


def prepare(run: RunHandle, *, asks: bool = True) -> None:
    """Refuse where another loop is in the way; let a person say what becomes of an interrupted session.

    Nothing is done about a run that another process drives, that has ended, or whose directory is gone: whoever takes
    its lock says so.
    """
    folded = None if runs.is_driven(run.project.run(run.id)) else run.read()
    if folded is None or folded.is_over or not os.path.isdir(folded.start.cwd):
        return
    loop = LoopRun(run.project, folded)
    starting.check_alone(run.project, loop.checkout, loop.settings, loop.id)
    resuming.check(loop)
    resuming.save(loop, prompt.asker() if asks else None, tell)


@contextlib.contextmanager
def prepared(run: RunHandle) -> Iterator[None]:
    """The same for one of several that are resumed in the background: the checkout is left to the next one then."""
    try:
        prepare(run, asks=False)
        yield
    finally:
        starting.let_go()


def tell(text: str) -> None:
    """Say something on the way."""
    print(said(text, sys.stderr), file=sys.stderr)


def name_of(loop: str) -> str:
    """The loop in words."""
    return _NAMES.get(loop, f"{loop} loop")


def find(loop: str, docs: str) -> tuple[Folder, Found | None]:
    """The documents here, and the loop that is or was here."""
    owned = (SUMMARIES,) if loop == RALPH else (*RECORDS, *(PLANS if loop in (TASKS, STORIES) else ()))
    checkout = preflight.folder_here(docs, needs_git=loop != RALPH, owned=owned)
    return checkout, finding.look(runs.here(), checkout, loop)


def status(loop: str, docs: str, *, as_json: bool) -> int:
    """Show the loop of this directory."""
    checkout, found = find(loop, docs)
    if found is None or found.loop is None:
        if as_json:
            print(json.dumps({"loop": loop, "status": None, "state": found.state if found else None}))
        else:
            print(f"no active {name_of(loop)}")
            if found:
                tell(foreign(found))
            elif last := finding.last(runs.here(), checkout, loop):
                tell(f"raymond status {pasted.word(last.id, 'ID')} shows the last one")
    else:
        print(
            json.dumps(loop_status.document(found)) if as_json else loop_status.text(found, sys.stdout),
            end="\n" if as_json else "",
        )
    for line in () if as_json else finding.beside(runs.here(), checkout, loop, finding.own(found)):
        print(said(line, sys.stdout))
    return 0


def for_person(loop: str, docs: str) -> tuple[Folder, LoopRun | None]:
    """The documents here, and the loop on whose branch they count."""
    checkout, _ = find(loop, docs)
    return checkout, finding.for_person(runs.here(), checkout, loop)


def foreign(found: Found) -> str:
    """What a state file is whose journal is not here."""
    id, host = found.state.get("workflow_id") or "a loop", found.state.get("host") or "another machine"
    return f"the state file says {found.status}, but it was written by {id} on {host}, whose journal is not here"


def stop(loop: str, docs: str, end: Callable[[LoopRun], str]) -> int:
    """Let the loop of this directory end after the item it is at."""
    checkout, found = find(loop, docs)
    if found is None or found.loop is None or found.loop.run.is_over:
        _say_none(checkout, loop)
        return 0
    return stop_it(found.loop, end)


def stop_it(loop: LoopRun, end: Callable[[LoopRun], str]) -> int:
    """Let a loop end after the item it is at; `end` is for one that another program has not asked to go on."""
    inside.check_person(f"{loop.loop} stop")
    id, name = loop.id, loop.loop
    if loop.run.is_over:
        print(f"{id} has ended")
        return 0
    if not runs.is_driven(loop.project.run(id)) and not loop.settings.internal:
        print(f"{id} is not running: raymond {name} resume continues it, raymond cancel {id} ends it for good")
        return 0
    starting.stop(loop)
    if loop.rests:
        print(end(loop))
        return 0
    opened = loop.ledger.open
    first = f"{UNITS[name].capitalize()} {opened.number} ends first" if opened else "It is between two items"
    print(f"Stopping {id}. {first}; raymond {name} status shows it.")
    return 0


def resume(loop: str, docs: str, given: ResumeFlags) -> int:
    """Take up the loop that was cut off, or say that there is none."""
    checkout, found = find(loop, docs)
    if found and found.is_unconcluded:
        return conclude(found, given.show)
    is_over = found is None or found.loop is None or found.loop.run.is_over
    if found is None or found.status == "complete" or (found.status == "failed" and is_over):
        _say_none(checkout, loop)
        return 0
    if found.loop and is_over:
        tell(f"the loop {found.loop.id} has used up what it may do: raymond {loop} start goes on with the rest")
        return 0
    if found.loop is None:
        raise UsageError(foreign(found), hint=f"raymond {loop} start goes on with what the documents here say")
    return take_up(found, loop, given, answers=True) or 0


def conclude(found: Found, show: ShowFlags) -> int:
    """Write down how a loop ended whose process was killed before it could."""
    assert found.loop is not None
    return ending.tell(found.loop.project, found.loop.run, as_json=show.as_json)


def _say_none(checkout: Documents, loop: str) -> None:
    """Say that there is no such loop here, and where there is one."""
    print(f"no active {name_of(loop)}")
    for line in finding.beside(runs.here(), checkout, loop):
        tell(line)


def introduce(handle: RunHandle) -> None:
    """Say who answers, what may be spent, and what agents may not do."""
    start = handle.start
    budget = f"${start.budget:.2f} ({start.budget_from})" if start.budget else "no budget"
    tell(f"{handle.id}: answered by {start.backend}, budget {budget}")
    is_denied = start.permission_mode in ("", "acceptEdits") and not start.skip_permissions
    if start.backend == "claude" and is_denied and not any(one.startswith("Bash") for one in start.allowed_tools):
        tell("agents may edit files, but Bash is denied under acceptEdits; --allow-tool Bash allows it")


def take_up(found: Found, loop: str, given: ResumeFlags, *, answers: bool = False) -> int | None:
    """Ask whether to resume what was found, and do so; None when a new loop is to begin.

    `answers`: whoever asks for it has seen that the loop waits for a person, and wants it to go on.
    """
    if found.loop and found.loop.settings.internal and not found.loop.run.is_over:
        hint = f"raymond {loop} next --resume goes on with it, raymond cancel {found.loop.id} ends it for good"
        raise UsageError(f"{found.loop.id} is worked through by another program (internal mode)", hint=hint)
    if found.is_elsewhere:
        host = found.state.get("host")
        raise UsageError(
            f"the state file says that process {found.state.get('pid')} on {host} runs a loop here",
            hint=f"look there; if it is gone, remove {found.checkout.state(loop)}",
        )
    if found.loop is not None and found.loop.run.is_over:
        tell(f"the loop {found.loop.id} has reached its limit: a new one goes on with the rest")
        return None
    if found.loop is None:
        tell(foreign(found))
        give_up(found, loop)
        return None
    if found.is_driven:
        starting.check_alone(found.loop.project, found.checkout, found.loop.settings)
    status = found.status if found.status in resuming.QUESTIONS else "running"
    question = resuming.QUESTIONS[status].format(unit=UNITS[loop], session=found.session, most=found.most or "any")
    if not prompt.agrees(question, yes=given.yes):
        if answers:
            tell("nothing was resumed; everything stays as it is")
            return 1
        give_up(found, loop)
        return None
    handle = RunHandle(found.loop.project, found.loop.id)
    if status == "stopping" and not resuming.is_committing(found.loop):
        return _mark_complete(found.loop, given.show)
    _tell_unheeded()
    if resuming.waits(found.loop) and not (answers or prompt.can_ask()):
        tell(f"it waits for a person: raymond {loop} resume, or raymond answer {handle.id} continue")
        return 3
    prepare(handle)
    if status != "stopping":
        starting.go_on(found.loop)
    moves.request_for(handle, given)
    resuming.answer(found.loop)
    return driving.go(handle, given.show)


def unheeded(heeded: Collection[str]) -> list[str]:
    """The flags that were typed, but for those with these names."""
    context = click.get_current_context()
    options = [one for one in context.command.params if isinstance(one, click.Option) and one.name]
    typed = [one for one in options if context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE]
    return [max(one.opts, key=len) for one in typed if one.name not in heeded]


def _tell_unheeded() -> None:
    """Say which flags were typed that are about a loop that begins, and do not count for one that is resumed."""
    if ignored := unheeded(_HEEDED):
        do = "does" if len(ignored) == 1 else "do"
        tell(f"the loop is resumed with the settings it has: {', '.join(ignored)} {do} not apply")


def give_up(found: Found, loop: str) -> None:
    """End the loop that was found for good, so that a new one can begin."""
    if found.loop and not found.loop.run.is_over:
        saved = resuming.give_up(found.loop)
        tell(f"the loop {found.loop.id} is ended for good: raymond logs {found.loop.id}")
        if saved:
            tell(f"what its interrupted session has changed is kept in {saved}")
    if kept := finding.archive(found.checkout, loop):
        tell(f"its state file is kept as {found.checkout.shown(kept)}")


def _mark_complete(loop: LoopRun, show: ShowFlags) -> int:
    resuming.check(loop)
    resuming.stop(loop)
    return ending.tell(loop.project, RunHandle(loop.project, loop.id).read(), as_json=show.as_json)
