"""`raymond continuous-session`: work through the next steps of a project, each in a fresh session."""

import json
import os
import sys
from typing import Any

import click
from msgspec.structs import replace

from raymond import pasted
from raymond.cli import background, choice, flags, foreground, loop_flags, loop_group, loop_questions, loop_verbs
from raymond.cli import run as runs_of
from raymond.cli.count import Count
from raymond.cli.flags import StartFlags
from raymond.control import inside, runs
from raymond.errors import UsageError
from raymond.faces import words
from raymond.faces.foreign_text import said
from raymond.loops import documents, learning, opening, starting
from raymond.loops.documents import LOGS
from raymond.loops.opening import Agenda, Place
from raymond.loops.selection import PROPOSED
from raymond.loops.settings import SESSION, Settings

_OWN = (
    click.option("--max-sessions", type=Count(0), default=5, metavar="N", help="Items at most (5; 0 for no limit)."),
    click.option("--require-verify", is_flag=True, help="Pass over items without a check."),
    click.option("--from-session", metavar="FILE", help="Begin with the queue of this session log, not of the newest."),
    *loop_flags.COMMON,
)


@click.group("continuous-session", context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
def command() -> None:
    """Work through the `## Next Steps` of the newest session log: one item per fresh session, each one checked, then
    committed.
    """


@command.command("start")
@flags.looping(_OWN, loop_flags.WITHOUT)
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    given, options, _ = runs_of.choose(given)
    foreground.check(given.show, dry=given.dry_run)
    id = starting.new_id(SESSION, given.id_)
    starting.check_new(id)
    options.id = id
    place = starting.place_here(own["docs"])
    checkout = ""
    if own["worktree"] and not given.dry_run:
        checkout, place = place.repository.top, loop_verbs.move_to_worktree(place, id, own["docs"])
    starting.check_alone(runs.here())
    if not given.dry_run:
        place.repository.exclude(place.documents.excluded())
    found = starting.look(runs.here(), place.documents, SESSION)
    if found and found.is_unconcluded and not given.dry_run:
        loop_verbs.conclude(found, given.show)
    if found and found.status not in ("complete", "failed") and not given.dry_run:
        code = loop_verbs.take_up(place, found, SESSION, flags.as_resumption(given), yes=own["yes"])
        if code is not None:
            return code
    settings = loop_flags.settings(
        SESSION,
        own,
        most=own["max_sessions"],
        require_verify=own["require_verify"],
        strict=options.strict,
        source=own["from_session"] or "",
        checkout=checkout,
    )
    if not given.dry_run:
        _recover_log(place)
    settings, agenda = starting.prepare(place, settings)
    _warn(agenda, strict=options.strict)
    if given.dry_run and given.show.as_json:
        print(json.dumps(opening.plan(place, settings, agenda)))
        return 0
    if not agenda.selection.ready:
        return _nothing(place, agenda)
    if given.dry_run:
        return _show(place, settings, agenda)
    opening.branch_for(place, id, settings)  # refused before anything is committed or put away
    checks = [one.verification.command for one in agenda.selection.ready if one.verification.command]
    loaded = starting.load(own["workflow"] or starting.WORKFLOW, options, checks, SESSION)
    settings = _settled(place, id, settings, own["on_dirty"])
    if found:
        starting.archive(place.documents, SESSION)
    handle = starting.begin(loaded, options, settings)
    most = f", at most {settings.most}" if settings.most else ""
    count = words.many(len(agenda.selection.ready), "item")
    loop_verbs.tell(f"{handle.id}: {count} in {_source(place, agenda)}{most}")
    loop_verbs.introduce(handle)
    choice.warn_of_reach(handle)
    choice.warn_of_company(handle)
    return (background.start if given.show.detach else foreground.drive)(handle, given.show)


def _recover_log(place: Place) -> None:
    name, text = starting.lost_log(place, runs.here())
    if name:
        documents.write(place.documents.path(LOGS, name), text)
        loop_verbs.tell(f"{place.documents.shown(LOGS, name)} was gone: written anew from its commit")


def _settled(place: Place, id: str, settings: Settings, on_dirty: str) -> Settings:
    """The settings with the branch that is checked out now, and whether the tree has changes that stay there."""
    told, rest = opening.settle(place, id, on_dirty, loop_questions.asker())
    if told:
        loop_verbs.tell(told)
    before = place.repository.branch()
    settings = opening.branch_out(place, id, replace(settings, is_dirty=rest == "continue"))
    if settings.branch != before:
        loop_verbs.tell(f"working on the branch {settings.branch}; {before or 'HEAD'} stays as it is")
    if rest == "commit":
        loop_verbs.tell(opening.commit_rest(place))
    return settings


def _source(place: Place, agenda: Agenda) -> str:
    return place.documents.shown("session_logs", agenda.source)


def _warn(agenda: Agenda, *, strict: bool) -> None:
    for doubt in agenda.queue.doubts:
        told = f"{agenda.source}:{doubt.line}: {doubt.message}"
        if strict:
            raise UsageError(
                told, hint="raymond continuous-session edit opens the queue; without --strict, this only warns"
            )
        loop_verbs.tell(f"warning: {told}")


def _nothing(place: Place, agenda: Agenda) -> int:
    where = _source(place, agenda)
    why = "has no `## Next Steps`" if agenda.queue.section is None else "has nothing that can be worked on"
    print(f"nothing to do: {where} {why}")
    for one in [*agenda.selection.blocked, *agenda.selection.passed]:
        print(said(f"  {one.item.title}: {one.reason}", sys.stdout))
    for item in agenda.selection.proposed:
        print(said(f"  {item.title}: {PROPOSED}", sys.stdout))
    loop_verbs.tell("hint: raymond continuous-session edit opens it")
    return 0


def _show(place: Place, settings: Settings, agenda: Agenda) -> int:
    """What would be done."""
    most = settings.most or len(agenda.selection.ready)
    print(f"queue:  {_source(place, agenda)}")
    for number, item in enumerate(agenda.selection.ready, 1):
        check = item.verification.command or "no check"
        later = "" if number <= most else " (not in this run: --max-sessions)"
        print(said(f"  {number}. {item.title}: {check}{later}", sys.stdout))
    for one in [*agenda.selection.blocked, *agenda.selection.passed]:
        print(said(f"  -  {one.item.title}: {one.reason}", sys.stdout))
    for item in agenda.selection.proposed:
        print(said(f"  -  {item.title}: {PROPOSED}", sys.stdout))
    print(f"branch: {opening.branch_of(place, settings) or 'a new branch raymond/ID'}")
    if filters := place.repository.filters():
        print(said(f"dirty:  not looked at: {filters[0]} of this repository would run", sys.stdout))
    elif dirt := opening.dirt_of(place):
        print(said(f"dirty:  {opening.few(dirt)}: start asks what to do, or needs --on-dirty", sys.stdout))
    print("nothing was started")
    return 0


@command.command("edit")
@loop_group.DOCS
def edit(docs: str) -> int:
    """Open the queue in your editor; also while an agent works, and then it counts for the next item."""
    inside.check_by_hand("continuous-session edit")
    place, _ = loop_verbs.find(SESSION, docs)
    return learning.edit(place.documents, lambda: loop_verbs.find(SESSION, docs)[1], _edit, loop_verbs.tell)


def _edit(path: str) -> None:
    try:
        click.edit(filename=path)
    except (click.ClickException, ValueError) as error:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or str(error).partition(":")[0]
        is_here = path.startswith(f"{os.getcwd()}/")
        file = f", or edit {pasted.name(os.path.relpath(path))}" if is_here else ", or try again when no agent works"
        what = f"the editor {pasted.name(editor)} failed, or is not installed"
        raise UsageError(what, hint=f"set EDITOR or VISUAL{file}") from None


@command.command("learn")
@click.argument("text")
@loop_group.DOCS
def learn(text: str, docs: str) -> int:
    """Tell every later session TEXT, through docs/critical-learnings.md."""
    inside.check_by_hand("continuous-session learn")
    if not text.strip():
        raise UsageError("there is nothing to learn", hint="raymond continuous-session learn 'The API needs a retry'")
    place, found = loop_verbs.find(SESSION, docs)
    print(learning.learn(place.documents, found, text))
    return 0


loop_group.add_to(command, SESSION, starting.WORKFLOW)
