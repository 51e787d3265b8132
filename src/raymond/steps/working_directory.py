"""Where an agent works, and the files there that a step asks to be shown with its question."""

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from raymond.language.refusal import Refusal
from raymond.language.tags import Ask, Fork, Reset, Transition
from raymond.machine.agent import AskedFile
from raymond.steps.job import Job
from raymond.store import asked_files
from raymond.system import git
from raymond.text import is_text

if TYPE_CHECKING:
    from raymond.workspace.place import Place


def directories(job: Job, asked: Iterable[Transition], place: "Place | None" = None) -> dict[str, str | Refusal]:
    """Every `cd` in `asked` -> its absolute directory, or why it is refused."""
    # `isinstance` of a class of msgspec takes five times as long when it is false.
    given = [one.cd for one in asked if (type(one) is Fork or type(one) is Reset) and one.cd]
    if not given:
        return {}
    if place is None or job.way == "here":
        return {cd: _resolve(job, cd) for cd in given}
    return {cd: _in_tree(job, cd, place) for cd in given}


def _in_tree(job: Job, given: str, place: "Place") -> str | Refusal:
    """The same for a step that works in a tree of its own, which it cannot leave."""
    path = os.path.realpath(os.path.join(place.outside(job.cwd), given)) if "\0" not in given else ""
    named = place.project(path)
    if named == path or not os.path.isdir(path) or not is_text(named):
        return Refusal("directory", f'cd="{given}": there is no such directory in the workspace of this run')
    return named


def _resolve(job: Job, given: str) -> str | Refusal:
    if "\0" in given:
        return Refusal("directory", "`cd` is not a path: it contains a NUL")
    path = os.path.realpath(os.path.join(job.cwd, given))
    if not is_text(path):
        return Refusal("directory", f'cd="{given}" leads to a path that is not UTF-8')
    if not os.path.isdir(path):
        return Refusal("directory", f'cd="{given}": there is no directory {path}')
    roots = allowed(job.home, job.roots)
    if is_inside(path, roots):
        return path
    outside = f'cd="{given}": {path} is outside {roots[0]}, the repository\'s worktrees and every `--root`'
    return Refusal("directory", outside)


def is_inside(path: str, folders: Iterable[str]) -> bool:
    """Whether a real path is one of these folders, or below one."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


@lru_cache(maxsize=8)
def _real(path: str) -> str:
    return os.path.realpath(path)


def allowed(cwd: str, roots: tuple[str, ...]) -> list[str]:
    """Where agents may change to: the run's directory, the worktrees of its repository, and `roots`."""
    return [_real(cwd), *(_real(os.path.join(cwd, root)) for root in roots), *git.worktrees(cwd)]


# The files that a step asks to be shown with its question


def shown_files(cwd: str, folder: str, asked: Iterable[Transition]) -> tuple[AskedFile, ...] | Refusal:
    """What they are now, or why they cannot be shown."""
    for one in asked:
        if type(one) is Ask and one.files.strip():
            return asked_files.resolve(cwd, one.files, folder if folder != cwd else "")
    return ()
