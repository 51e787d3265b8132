"""`raymond resume`: take up a run that was stopped, parked or killed."""

import os
import sys
import uuid
from time import time
from typing import Any

import click
from msgspec.structs import replace

from raymond.cli import background, flags, foreground, target
from raymond.control import config
from raymond.control.preflight import check, check_start
from raymond.errors import Error, JournalError, UsageError
from raymond.faces import errors
from raymond.language.workflow import bare
from raymond.machine import workflow_change
from raymond.machine.events import Decision, RunStarted
from raymond.machine.requests import Request
from raymond.store import journal, loader, lock
from raymond.store.project import Project
from raymond.store.sources import keep
from raymond.views import words
from raymond.views.status import run_status

_MOVES = ("goto", "result", "retry", "give_up")


@click.command("resume")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--all", "every", is_flag=True, help="Every run whose driver is dead, in the background.")
@click.option("--dry-run", is_flag=True, help="With --all: list them, take up none.")
@click.option("--latest", "renew", is_flag=True, help="Go on with today's files instead of those it began with.")
@click.option(
    "--map", "renamed", multiple=True, metavar="OLD=NEW", help="With --latest: a state that has another name."
)
@click.option("--restart", is_flag=True, help="End turns that still run instead of following them.")
@click.option("--now", "at_once", is_flag=True, help="Try a backend that is closed by a limit at once.")
@click.option("--fresh", is_flag=True, help="Agents that failed or paused try again without their conversation.")
@click.option("--agent", metavar="A", help="Do one of these with agent A, then go on:")
@click.option("--goto", metavar="STATE", help="- send it to STATE (--input gives it an input),")
@click.option("--result", metavar="TEXT|@FILE|-", help="- let it return TEXT,")
@click.option("--retry", is_flag=True, help="- let it try again,")
@click.option("--give-up", is_flag=True, help="- let it fail for good.")
@click.option("--input", "input_", metavar="TEXT|@FILE|-", help="With --goto: what the state gets as {{input}}.")
@click.option("--force", is_flag=True, help="Take the lock although another host has not given it back.")
@flags.taking_up
def command(id_: str, **given: Any) -> int:
    """Take up run ID where it was; failed and paused agents try again."""
    _check(id_, given)
    if given["every"]:
        return _every(given)
    project, id = target.run(id_, changes=True)
    foreground.check(given)
    if (given["renew"] or given["detach"] or _limits(given)) and not given["agent"]:
        run = journal.read(project, id).run
        if run.ended == "completed":
            return foreground.tell_ended(run, given)
    if given["renew"]:
        _renew(project, id, given)
    handed = _hand_over(project, id, given)
    if handed:
        print(handed, file=sys.stderr)
        return 0
    how = {"restart": given["restart"], "force": given["force"]}
    if given["detach"]:
        return background.start(project, id, given, **how)
    return foreground.drive(project, id, given, **how)


def _check(id_: str, given: dict[str, Any]) -> None:
    moves = [name for name in _MOVES if given[name] not in (None, False)]
    if moves and not given["agent"]:
        raise UsageError(f"--{moves[0].replace('_', '-')} needs to know whose", hint="--agent main")
    if given["agent"] and len(moves) != 1:
        raise UsageError("--agent needs one of --goto, --result, --retry, --give-up")
    if given["input_"] is not None and given["goto"] is None:
        raise UsageError("--input goes with --goto", hint="raymond resume ID --agent main --goto STATE --input TEXT")
    if given["every"] and (id_ or given["agent"] or given["renew"] or _limits(given)):
        raise UsageError("--all is for every run, not for one", hint="raymond resume --all")
    if given["dry_run"] and not given["every"]:
        raise UsageError("--dry-run goes with --all", hint="raymond resume --all --dry-run")
    if given["renamed"] and not given["renew"]:
        raise UsageError("--map goes with --latest", hint="raymond resume ID --latest --map OLD=NEW")


def _hand_over(project: Project, id: str, given: dict[str, Any]) -> str | None:
    """New limits and moves of an agent; what to say when another process drives the run and has got them."""
    left = None
    if given["agent"]:
        left = target.hand_over(project, id, _move(given), force=given["force"])
    limits = _limits(given)
    if limits:
        flags.configuration(project.root, given)  # the policy file may be against it
        changed = Request(id=str(uuid.uuid4()), kind="limits", **limits)
        left = target.hand_over(project, id, changed, force=given["force"])
    return left


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    names = ("budget", "max_iterations", "max_time", "max_turns")
    found: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    return found | ({"allowed_tools": list(given["allow_tools"])} if given["allow_tools"] else {})


def _move(given: dict[str, Any]) -> Request:
    who = {"id": str(uuid.uuid4()), "agent": given["agent"]}
    if given["goto"] is not None:
        return Request(kind="move", state=given["goto"], text=flags.text(given["input_"] or "", "--input"), **who)
    if given["result"] is not None:
        return Request(kind="result", text=flags.text(given["result"], "--result"), **who)
    return Request(kind="retry", fresh=given["fresh"], **who) if given["retry"] else Request(kind="give_up", **who)


def _every(given: dict[str, Any]) -> int:
    """The recovery scan: what was driven when the machine or its driver died."""
    project = target.project()
    worst = 0
    for id in reversed(project.ids()):
        if not _was_abandoned(project, id):
            continue
        if given["dry_run"]:
            print(id)
            continue
        try:
            worst = max(worst, background.start(project, id, given, restart=given["restart"], force=given["force"]))
        except Error as error:
            print(errors.error(error), file=sys.stderr)
            worst = max(worst, error.exit_code)
    return worst


def _was_abandoned(project: Project, id: str) -> bool:
    try:
        run = journal.read(project, id).run
    except JournalError as error:
        print(errors.error(error), file=sys.stderr)
        return False
    if lock.holder(project.beside(id, "lock")) is not None:
        return False
    # A machine that is shut down in order sends SIGTERM; whoever types Ctrl-C means it.
    shut_down = run.stopped and run.stopped.kind == "signal" and "SIGINT" not in run.stopped.reason
    return run_status(run) == "running" or bool(shut_down and not run.ended)


def _renew(project: Project, id: str, given: dict[str, Any]) -> None:
    """Take today's files for the run; nothing is written when a state that is needed is gone."""
    held = lock.take(project.beside(id, "lock"), force=given["force"])
    try:
        reading = journal.read(project, id)
        start = reading.run.start
        loaded = loader.load(_path(project, start), overrides=start.overrides)
        check(loaded.workflow)
        renamed = dict(_names(pair) for pair in given["renamed"])
        changed = workflow_change.change(reading.run, loaded.workflow, loaded.digest, renamed)
        tables, rules = config.load(project.root)["backends"], config.site_rules()
        today = replace(start, backends=changed.backends, allowed_tools=reading.run.allowed_tools)
        today = check_start(loaded, today, tables, rules.backends, rules.models)
        changed = replace(changed, in_place=today.in_place)
        keep(project, loaded)
        book = journal.Journal(project, id, reading.size)
        book.append(Decision(seq=reading.run.seq + 1, time=round(time(), 3), events=[changed]))
        book.close()
        print(words.line(changed), file=sys.stderr)
    finally:
        held.release()


def _path(project: Project, start: RunStarted) -> str:
    """What was started: one file, when a folder with these states would begin elsewhere; else the folder or zip."""
    file = os.path.join(start.scope_dir, start.entry)
    try:
        with open(project.source(start.source), "rb") as snapshot:
            found = loader.from_source(snapshot.read(), name=start.name, entry=None, overrides=start.overrides).entry
    except OSError:
        found = "" if start.name == bare(start.entry) else start.entry
    return file if found != start.entry and os.path.exists(file) else start.scope_dir


def _names(pair: str) -> tuple[str, str]:
    old, equals, new = pair.partition("=")
    if not old or not equals or not new:
        raise UsageError(f"`{pair}` maps nothing", hint="--map OLD.md=NEW.md")
    return old, new
