"""`raymond clean`: remove what old runs left."""

import os
import re
import sys
from time import time as now

import click

from raymond import durations
from raymond.cli import flags, target
from raymond.control import config
from raymond.errors import JournalError, UsageError
from raymond.machine.run import Run
from raymond.store import journal, lock
from raymond.store.project import Project

_BESIDE = ("json", "snap", "inbox")
_FOLDERS = ("transcripts", "sessions", "spool", "tasks")


@click.command("clean")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--keep", type=flags.Duration(), metavar="TIME", help="Keep runs that ended within this time (30d).")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def command(ids: tuple[str, ...], keep: float | None, dry_run: bool) -> int:
    """Remove finished runs: those named, or all that ended long ago. A run that is not finished is never touched."""
    project = target.project()
    settings = config.load(project.root, flags={"keep": keep})
    before = now() - settings["keep"]
    runs = {id: _finished(project, id) for id in (project.resolve(id) for id in ids)} if ids else {}
    for id, run in runs.items():
        if run is None:
            raise UsageError(f"{id} is not finished", hint=f"raymond stop {id}; what is not finished is never removed")
    old = [*runs] or [id for id in project.ids() if _ended_before(project, id, before)]
    for id in old:
        if not dry_run:
            _remove_run(project, id)
        print(id)
    freed = 0 if dry_run else _remove_unused(project)
    word = "would be removed" if dry_run else "removed"
    more = f", and {_count(freed, 'snapshot')} nobody needs" if freed else ""
    rule = "" if ids else f" (keep: {durations.brief(settings['keep'])})"
    print(f"{_count(len(old), 'run')} {word}{more}{rule}", file=sys.stderr)
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _finished(project: Project, id: str) -> Run | None:
    run = journal.read(project, id).run
    return run if run.ended and lock.holder(project.beside(id, "lock")) is None else None


def _ended_before(project: Project, id: str, before: float) -> bool:
    try:
        run = _finished(project, id)
    except JournalError:
        return False  # one that cannot be read may still be repaired
    return run is not None and run.now < before


def _remove_run(project: Project, id: str) -> None:
    """The journal goes last: as long as it is there, the run is."""
    held = lock.take(project.beside(id, "lock"))
    try:
        for folder in _FOLDERS:
            _remove(project.path(folder, id))
        for name in _names(project.path("debug")):
            if re.fullmatch(rf"{id}_\d{{8}}_\d{{6}}(_\d+)?", name):
                _remove(project.path("debug", name))
        for ending in _BESIDE:
            _remove(project.beside(id, ending))
        _remove(project.path("logs", f"{id}.log"))
        _remove(project.path("spool", f"{id}.pids"))
        _remove(project.journal(id))
        _remove(project.beside(id, "lock"))
    finally:
        held.release()


def _remove_unused(project: Project) -> int:
    """Snapshots and long texts that no journal speaks of any more; how many snapshots."""
    said = "".join(_text(project.journal(id)) for id in project.ids())
    removed = 0
    for folder, ending in (("sources", ".zip"), ("blobs", "")):
        for name in _names(project.path(folder)):
            if name.removesuffix(ending) not in said:
                _remove(project.path(folder, name))
                removed += folder == "sources"
    kept = {name[:16] for name in _names(project.path("sources"))}
    for name in _names(project.path("work")):
        if name not in kept:
            _remove(project.path("work", name))
    return removed


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        from shutil import rmtree

        rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
