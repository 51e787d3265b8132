"""Continue a run with today's files instead of those it began with (`resume --latest`)."""

import os
from collections.abc import Mapping
from time import time

from msgspec import Struct
from msgspec.structs import replace

from raymond.control import config, drive, preflight
from raymond.control.preflight import Proposal
from raymond.errors import Diagnostic, JournalError
from raymond.language import reach
from raymond.language.workflow import ENTRIES, bare
from raymond.machine import needed_states
from raymond.machine.events import RunStarted, WorkflowChanged
from raymond.machine.run import Run
from raymond.store import journal, loader, workflow_snapshot
from raymond.store.loader import Loaded
from raymond.store.project import Project


class Upgrade(Struct, frozen=True):
    """A change to today's files that was journaled, and what is doubtful about them."""

    changed: WorkflowChanged
    warnings: list[Diagnostic]


def upgrade(
    project: Project,
    id: str,
    renamed: Mapping[str, str],
    *,
    to: str = "",
    force: bool = False,
    strict: bool = False,
) -> Upgrade:
    """Journal that the run continues with today's files; refused when a state that is needed is gone.

    `to` is the state that an agent is sent to next. With `strict`, what would only be warned of is refused as well.
    """
    folder = project.run(id)
    held = drive.take_lock(folder, force)
    try:
        folded = journal.read(folder)
        start = folded.run.start
        workflow_snapshot.settle_prepared(folder, start.source)
        loaded = loader.load(_path(project, start), overrides=start.overrides)
        # Its agents may be in states that the entry no longer leads to.
        begin = (*needed_states.needed(folded.run), *renamed.values(), to)
        loaded.workflow.reach = reach.also_from(loaded.workflow, begin)
        with preflight.errors_located(loaded):
            warnings = _warnings(folded.run, loaded, strict=strict)
            changed = _change(project, folded.run, loaded, renamed)
        workflow_snapshot.prepare(folder, loaded)
        book = journal.Journal(folder, folded.size, held)
        book.decide(folded.run, time(), journal.torn(folded))
        book.decide(folded.run, time(), [changed])
        book.close()
        workflow_snapshot.use_prepared(folder)
        return Upgrade(changed, warnings)
    finally:
        held.release()


def check(project: Project, run: Run) -> None:
    """Refuse to continue a run whose files have anything doubtful in them."""
    files = workflow_snapshot.read(project.run(run.start.workflow_id), run.start.source)
    workflow = loader.from_files(files, name=run.start.name, entry=run.start.entry, overrides=run.start.overrides)
    _warnings(run, Loaded(workflow, run.start.scope_dir, files, run.start.source), strict=True)


def _warnings(run: Run, loaded: Loaded, *, strict: bool) -> list[Diagnostic]:
    start = run.start
    found = preflight.check_workflow(loaded, start.backend, start.metadata)
    warnings = preflight.located([*found, *preflight.start_warnings(loaded, start)], loaded)
    if strict:
        preflight.refuse_warnings(warnings)
    return warnings


def _change(project: Project, run: Run, loaded: Loaded, renamed: Mapping[str, str]) -> WorkflowChanged:
    changed = needed_states.change_workflow(run, loaded.workflow, loaded.digest, renamed)
    tables = config.load(project.tree)["backends"]
    today = replace(run.start, backends=changed.backends, allowed_tools=list(run.rights.allowed))
    today = preflight.check_start(Proposal(loaded, today, tables, config.site_rules()))
    return replace(changed, in_place=today.in_place)


def _path(project: Project, start: RunStarted) -> str:
    """What was started: one file, when a folder with these states could begin elsewhere; else the folder or zip."""
    file = os.path.join(start.scope_dir, start.entry)
    if bare(start.entry) not in ENTRIES and os.path.exists(file):
        return file  # the only state of a snapshot need not be the only one of its folder
    try:
        files = workflow_snapshot.read(project.run(start.workflow_id), start.source)
        found = loader.from_files(files, name=start.name, entry=None, overrides=start.overrides).entry
    except JournalError:
        found = "" if start.name == bare(start.entry) else start.entry
    return file if found != start.entry and os.path.exists(file) else start.scope_dir
