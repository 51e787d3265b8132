"""Remove the files of a run, and files that no run needs any more."""

import os
import re

from raymond.store import lock
from raymond.store.project import Project

_BESIDE = ("json", "snap", "inbox")
_FOLDERS = ("transcripts", "sessions", "spool", "tasks")


def remove_run(project: Project, id: str) -> None:
    """Remove all files of run `id`. The journal goes last: as long as it exists, so does the run."""
    held = lock.take(project.beside(id, "lock"), run=id)
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


def remove_unused(project: Project) -> int:
    """Remove snapshots and long texts that no journal mentions any more; returns how many snapshots."""
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
