"""`raymond run`: start a workflow."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from raymond import pasted
from raymond.cli import driving, flags, terminal, texts
from raymond.cli.command import as_command
from raymond.cli.flags import StartFlags
from raymond.control import config, inside, start
from raymond.control.handle import RunHandle
from raymond.control.settings import KEYS
from raymond.control.start import Loaded
from raymond.errors import Error, JournalError, UsageError, WorkflowError
from raymond.faces.foreign_text import said

if TYPE_CHECKING:
    from raymond.control.preview import Preview

_MOST_WARNINGS = 10
"""Warnings shown before a run; a dry run shows all."""


@as_command("run", grouped=True)
@flags.starting
def command(path: str, given: StartFlags) -> int:
    """Start the workflow in PATH: a folder, a zip, or one state file."""
    if given.dry_run:
        return rehearse(path, given)
    loaded, given, options = prepared(path, given)
    run = start.begin_here(loaded, options)
    with begun(run.id):
        warn(run, path)
        return driving.go(run, given.show)


def prepared(path: str, given: StartFlags) -> tuple[Loaded, StartFlags, start.Choices]:
    """The workflow, and what it starts with, in the directory where the run is to start; nothing is written."""
    if given.run_gates:
        hint = f"raymond run {pasted.word(path, 'PATH')} --dry-run --run-gates"
        raise UsageError("--run-gates needs --dry-run", hint=hint)
    _check(path, given)
    loaded = start.load(path, texts.overrides(given.run["overrides"]))
    given, options, _ = choose(given)
    driving.check_log_file(given.show)
    return loaded, given, options


def warn(run: RunHandle, path: str) -> None:
    """Say what is doubtful about a run that has just begun."""
    if run.warnings:
        _warn(run, path)
    driving.warn(run)


def rehearse(path: str, given: StartFlags) -> int:
    """Show what would start; the exit code."""
    from raymond.cli import dry_run
    from raymond.control import preview

    loaded = None
    try:
        _check(path, given)
        loaded = start.load(path, texts.overrides(given.run["overrides"]))
        given, options, settings = choose(given)
        driving.check_log_file(given.show, dry=True)
        # With --json every finding is in the document, and the exit code says that it would be refused.
        refuses, options.strict = options.strict, options.strict and not given.show.as_json
        made = preview.dry_run(loaded, options, settings)
    except Error as error:
        names = [pair.partition("=")[0] for pair in given.run["variables"]]
        refused = error.diagnostics if isinstance(error, WorkflowError) else ()
        told = {(one.message, one.file, one.line) for one in refused}
        found = preview.workflow_warnings(loaded, names) if loaded else []
        warnings = [one for one in found if (one.message, one.file, one.line) not in told]
        if not given.show.as_json:
            from raymond.faces import errors

            sys.stderr.write(errors.warnings(warnings))
            raise
        sys.stdout.write(dry_run.refusal(error, warnings))
        return error.exit_code
    code = _show(made, given)
    return WorkflowError.exit_code if refuses and made.warnings else code


def _show(made: "Preview", given: StartFlags) -> int:
    """Show what would start, and try its gates if that is asked for; the exit code."""
    from raymond.cli import dry_run, gate
    from raymond.control.gate import Where
    from raymond.language.ways import narrowed

    as_json = given.show.as_json
    if not as_json:
        sys.stdout.write(dry_run.show(made))
    states = [one.state for one in made.gates] if given.run_gates else []
    start = made.start
    where = Where(narrowed(start.workspace, ""), start.carry, start.lend, start.net, start.setup)
    found = gate.run(states, where, sys.stderr if as_json else sys.stdout)
    if as_json:
        sys.stdout.write(dry_run.document(made, found))
    else:
        none = "there is no gate to run\n" if given.run_gates else ""
        sys.stdout.write("apart from the gates, nothing was started\n" if found else f"{none}{dry_run.ENDS}")
    return gate.exit_code(list(found.values()))


def choose(given: StartFlags) -> tuple[StartFlags, start.Choices, config.Config]:
    """Go where the run is to start; what it starts with there."""
    typed, given = flags.options(given), flags.go_to(given)
    settings = start.configuration(typed)
    if settings.unused:
        _mention_unused(settings)
    options = start.configured(typed, settings, config.site_rules())
    options.apart, options.recording = given.show.detach, driving.recording_of(given.show)
    return given, options, settings


def _check(path: str, given: StartFlags) -> None:
    if given.show.detach:
        inside.leave()
    _check_path(path)


def _check_path(path: str) -> None:
    """The id of a run is no workflow."""
    if os.path.exists(path) or "/" in path or "." in path:
        return
    from raymond.control import naming

    id = naming.known(path)
    if id == path and id:
        hint = f"raymond status {id} shows it, raymond resume {id} continues it"
        raise UsageError(f"`{path}` is a run, not a workflow", hint=hint)


@contextlib.contextmanager
def begun(id: str) -> Iterator[None]:
    """Whatever the machine refuses from now on, there is a run: starting it again would do its work twice."""
    resume = f"`raymond resume {id}`"
    try:
        yield
    except JournalError as error:
        error.hint = error.hint.replace("then try again", f"then {resume}")
        raise
    except terminal.Unwritten as error:
        error.add_note(f"`raymond status {id}`")  # which tells the same
        raise
    except (OSError, ImportError, MemoryError) as error:
        error.add_note(resume)
        raise


def _warn(run: RunHandle, path: str) -> None:
    from raymond.faces import errors

    all_with = f"raymond run {pasted.word(path, 'PATH')} --dry-run"
    sys.stderr.write(errors.warnings(run.warnings, _MOST_WARNINGS, all_with))


def _mention_unused(settings: config.Config) -> None:
    """Say which settings of the project are not used because they would widen what is set."""
    told = [f"{name} = {KEYS[name].kind.write(one.value)}" for name, one in settings.ignored.items()]
    if told:
        verb = "is" if len(told) == 1 else "are"
        where = next(iter(settings.unused.values())).origin
        why = "a project can only make settings stricter"
        print(said(f"{where}: {', '.join(told)} {verb} ignored: {why}", sys.stderr), file=sys.stderr)
