"""Continue a run with today's files instead of those it began with (`resume --latest`)."""

import os
from collections.abc import Mapping
from time import time

from msgspec.structs import replace

from raymond.control import config, preflight
from raymond.control.preflight import Proposal
from raymond.errors import JournalError
from raymond.language.workflow import ENTRIES, bare
from raymond.machine import workflow_change
from raymond.machine.events import RunStarted, WorkflowChanged
from raymond.machine.run import Run
from raymond.store import journal, loader, lock, sources
from raymond.store.loader import Loaded
from raymond.store.project import Project


def upgrade(project: Project, id: str, renamed: Mapping[str, str], *, force: bool = False) -> WorkflowChanged:
    """Journal that the run continues with today's files; refused when a state that is needed is gone."""
    folder = project.run(id)
    held = lock.take(folder, force=force)
    try:
        folded = journal.read(folder)
        start = folded.run.start
        sources.settle(folder, start.source)
        loaded = loader.load(_path(project, start), overrides=start.overrides)
        changed = _change(project, folded.run, loaded, renamed)
        sources.prepare(folder, loaded)
        book = journal.Journal(folder, folded.size, held)
        book.decide(folded.run, time(), journal.torn(folded))
        book.decide(folded.run, time(), [changed])
        book.close()
        sources.change(folder)
        return changed
    finally:
        held.release()


def _change(project: Project, run: Run, loaded: Loaded, renamed: Mapping[str, str]) -> WorkflowChanged:
    preflight.check_workflow(loaded.workflow)
    changed = workflow_change.change(run, loaded.workflow, loaded.digest, renamed)
    tables, rules = config.load(project.tree)["backends"], config.site_rules()
    today = replace(run.start, backends=changed.backends, allowed_tools=list(run.rights.allowed))
    today = preflight.check_start(Proposal(loaded, today, tables, rules.backends, rules.models))
    return replace(changed, in_place=today.in_place)


def _path(project: Project, start: RunStarted) -> str:
    """What was started: one file, when a folder with these states could begin elsewhere; else the folder or zip."""
    file = os.path.join(start.scope_dir, start.entry)
    if bare(start.entry) not in ENTRIES and os.path.exists(file):
        return file  # the only state of a snapshot need not be the only one of its folder
    try:
        files = sources.read(project.run(start.workflow_id), start.source)
        found = loader.from_files(files, name=start.name, entry=None, overrides=start.overrides).entry
    except JournalError:
        found = "" if start.name == bare(start.entry) else start.entry
    return file if found != start.entry and os.path.exists(file) else start.scope_dir
