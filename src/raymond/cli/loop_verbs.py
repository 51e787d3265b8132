"""What loops have in common on the command line: status, stop, resume."""

import json
import sys

import click
from click.core import ParameterSource

from raymond import pasted
from raymond.cli import background, foreground, loop_questions, loop_resuming, moves, prompt
from raymond.cli.flags import LimitFlags, ResumeFlags, ShowFlags
from raymond.control import inside, runs
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.foreign_text import said
from raymond.loops import abandonment, ending, loop_status, neighbours, opening, resuming, starting
from raymond.loops.loop_run import LoopRun
from raymond.loops.opening import Place
from raymond.loops.settings import RALPH, SESSION, STORIES, TASKS, UNITS
from raymond.loops.starting import Found

_HEEDED = frozenset(
    ["yes", "docs", "cd", *(one for one in LimitFlags.__struct_fields__), *(one for one in ShowFlags.__struct_fields__)]
)
"""Flags that count for a loop that is resumed as well."""
_NAMES = {SESSION: "continuous session", RALPH: "ralph loop", TASKS: "task loop", STORIES: "story loop"}


def tell(text: str) -> None:
    """Say something on the way."""
    print(said(text, sys.stderr), file=sys.stderr)


def name_of(loop: str) -> str:
    """The loop in words."""
    return _NAMES.get(loop, f"{loop} loop")


def find(loop: str, docs: str) -> tuple[Place, Found | None]:
    """Where this is, and the loop that is or was here."""
    place = starting.place_here(docs, needs_git=loop != RALPH, has_plans=loop in (TASKS, STORIES))
    return place, starting.look(runs.here(), place.documents, loop)


def move_to_worktree(place: Place, id: str, docs: str, *, has_plans: bool = False) -> Place:
    """Make a worktree for a loop and go there; where this is then."""
    for line in neighbours.unmerged(place):
        tell(line)
    where = opening.move_to_worktree(place.repository, id)
    tell(f"working in {where}; type raymond commands for this loop there")
    return starting.place_here(docs, has_plans=has_plans)


def status(loop: str, docs: str, *, as_json: bool) -> int:
    """Show the loop of this directory, and say where those are that were started here in worktrees."""
    place, found = find(loop, docs)
    if found is None or found.loop is None:
        if as_json:
            print(json.dumps({"loop": loop, "status": None, "state": found.state if found else None}))
        else:
            print(f"no active {name_of(loop)}")
            if found:
                tell(f"its state file says {found.status}, but its journal is not here")
            elif last := starting.last(runs.here(), place.documents, loop):
                tell(f"raymond status {pasted.word(last.id, 'ID')} shows the last one")
    else:
        print(
            json.dumps(loop_status.document(found)) if as_json else loop_status.text(found, sys.stdout),
            end="\n" if as_json else "",
        )
    for line in () if as_json else (*neighbours.beside(place, loop), *neighbours.seen(place, loop)):
        print(said(line, sys.stdout))
    return 0


def stop(loop: str, docs: str) -> int:
    """Let the loop end after the item it is at."""
    place, found = find(loop, docs)
    if found is None or found.loop is None or found.loop.run.is_over:
        _say_none(place, loop)
        return 0
    inside.check_person(f"{loop} stop")
    id = found.loop.id
    if not found.is_driven:
        print(f"{id} is not running: raymond {loop} resume continues it, raymond cancel {id} ends it for good")
        return 0
    starting.stop(found.loop)
    number = found.loop.ledger.open.get("iteration")
    first = f"{UNITS[loop].capitalize()} {number} ends first" if number else "It is between two items"
    print(f"Stopping {id}. {first}; raymond {loop} status shows it.")
    return 0


def resume(loop: str, docs: str, given: ResumeFlags, *, yes: bool) -> int | None:
    """Take up the loop that was cut off; None when there is none that could be."""
    starting.check_alone(runs.here())
    place, found = find(loop, docs)
    if found and found.is_unconcluded:
        return conclude(found, given.show)
    if found is None or found.status in ("complete", "failed"):
        return None
    if found.loop and found.loop.run.is_over:
        tell(f"the loop {found.loop.id} has used up what it may do: raymond {loop} start goes on with the rest")
        return 0
    code = take_up(place, found, loop, given, yes=yes, answers=True)
    return 0 if code is None else code


def conclude(found: Found, show: ShowFlags) -> int:
    """Write down how a loop ended whose process was killed before it could."""
    assert found.loop is not None
    return ending.tell(found.loop.project, found.loop.run, as_json=show.as_json)


def resume_or_say(loop: str, docs: str, given: ResumeFlags, *, yes: bool) -> int:
    """The same, or say that there is none."""
    code = resume(loop, docs, given, yes=yes)
    if code is None:
        _say_none(starting.place_here(docs, needs_git=False), loop)
    return code or 0


def _say_none(place: Place, loop: str) -> None:
    """Say that there is no such loop here, and where there is one."""
    print(f"no active {name_of(loop)}")
    for line in neighbours.beside(place, loop):
        tell(line)


def introduce(handle: RunHandle) -> None:
    """Say who answers, what may be spent, and what agents may not do."""
    start = handle.start
    budget = f"${start.budget:.2f} ({start.budget_from})" if start.budget else "no budget"
    tell(f"{handle.id}: answered by {start.backend}, budget {budget}")
    is_denied = start.permission_mode in ("", "acceptEdits") and not start.skip_permissions
    if start.backend == "claude" and is_denied and not any(one.startswith("Bash") for one in start.allowed_tools):
        tell("agents may edit files, but Bash is denied under acceptEdits; --allow-tool Bash allows it")


def take_up(
    place: Place, found: Found, loop: str, given: ResumeFlags, *, yes: bool, answers: bool = False
) -> int | None:
    """Ask whether to resume what was found, and do so; None when a new loop is to begin.

    `answers`: whoever asks for it has seen that the loop waits for a person, and wants it to go on.
    """
    if found.is_elsewhere:
        host = found.state.get("host")
        raise UsageError(
            f"the state file says that process {found.state.get('pid')} on {host} runs a loop here",
            hint=f"look there; if it is gone, remove {place.documents.state(loop)}",
        )
    if found.loop is not None and found.loop.run.is_over:
        tell(f"the loop {found.loop.id} has reached its limit: a new one goes on with the rest")
        return None
    status = found.status if found.status in resuming.QUESTIONS else "running"
    question = resuming.QUESTIONS[status].format(unit=UNITS[loop], session=found.session, most=found.most or "any")
    if not loop_questions.agrees(question, yes=yes):
        if answers:
            tell("nothing was resumed; everything stays as it is")
            return 1
        _give_up(place, found, loop)
        return None
    if found.loop is None:
        starting.archive(place.documents, loop)
        return None
    handle = RunHandle(found.loop.project, found.loop.id)
    if status == "stopping" and not abandonment.is_committing(found.loop):
        return _mark_complete(found.loop, given.show)
    _tell_unheeded()
    if resuming.waits(found.loop) and not (answers or prompt.can_ask()):
        tell(f"it waits for a person: raymond {loop} resume, or raymond answer {handle.id} continue")
        return 3
    loop_resuming.prepare(handle)
    if status != "stopping":
        starting.go_on(found.loop)
    moves.ask(handle, given)
    resuming.answer(found.loop)
    return (background.start if given.show.detach else foreground.drive)(handle, given.show)


def _tell_unheeded() -> None:
    """Say which flags were typed that are about a loop that begins, and do not count for one that is resumed."""
    context = click.get_current_context()
    options = [one for one in context.command.params if isinstance(one, click.Option) and one.name]
    typed = [one for one in options if context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE]
    if ignored := [max(one.opts, key=len) for one in typed if one.name not in _HEEDED]:
        do = "does" if len(ignored) == 1 else "do"
        tell(f"the loop is resumed with the settings it has: {', '.join(ignored)} {do} not apply")


def _give_up(place: Place, found: Found, loop: str) -> None:
    """End the loop that was found for good, so that a new one can begin."""
    if found.loop and not found.loop.run.is_over:
        saved = abandonment.give_up(found.loop)
        tell(f"the loop {found.loop.id} is ended for good: raymond logs {found.loop.id}")
        if saved:
            tell(f"what its interrupted session has changed is kept in {saved}, and taken out of the tree")
    if kept := starting.archive(place.documents, loop):
        tell(f"its state file is kept as {place.documents.shown(kept)}")


def _mark_complete(loop: LoopRun, show: ShowFlags) -> int:
    resuming.check(loop)
    abandonment.stop(loop)
    return ending.tell(loop.project, RunHandle(loop.project, loop.id).read(), as_json=show.as_json)
