"""`cd`: which directories an agent may change to."""

import os
from collections.abc import Iterable
from functools import lru_cache

from raymond.language.refusal import Refusal
from raymond.language.tags import Fork, Reset, Transition
from raymond.steps.job import Job


def directories(job: Job, asked: Iterable[Transition]) -> dict[str, str | Refusal]:
    """Every `cd` in `asked` -> its absolute directory, or why it is refused."""
    return {one.cd: _resolve(job, one.cd) for one in asked if isinstance(one, (Fork, Reset)) and one.cd}


def _resolve(job: Job, given: str) -> str | Refusal:
    if "\0" in given:
        return Refusal("directory", "`cd` is not a path: it contains a NUL")
    path = os.path.realpath(os.path.join(job.cwd, given))
    if not os.path.isdir(path):
        return Refusal("directory", f'cd="{given}": there is no directory {path}')
    roots = allowed(job.home, job.roots)
    if any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots):
        return path
    outside = f'cd="{given}": {path} is outside {roots[0]}, the repository\'s worktrees and `roots`'
    return Refusal("directory", outside)


@lru_cache(maxsize=8)
def _real(path: str) -> str:
    return os.path.realpath(path)


def allowed(cwd: str, roots: tuple[str, ...]) -> list[str]:
    """Where agents may change to: the run's directory, the worktrees of its repository, and `roots`."""
    return [_real(cwd), *(_real(os.path.join(cwd, root)) for root in roots), *_worktrees(cwd)]


def _worktrees(cwd: str) -> list[str]:
    git = _git_folder(cwd)
    if not git:
        return []
    found = [os.path.dirname(git)] if os.path.basename(git) == ".git" else []
    try:
        names = os.listdir(os.path.join(git, "worktrees"))
    except OSError:
        return found
    for name in names:
        own = os.path.join(git, "worktrees", name)
        link = _first_line(os.path.join(own, "gitdir"))
        if link:
            found.append(os.path.realpath(os.path.join(own, os.path.dirname(link))))
    return found


def _git_folder(cwd: str) -> str:
    """The common git folder of the repository that holds `cwd`."""
    folder = os.path.realpath(cwd)
    while True:
        path = os.path.join(folder, ".git")
        if os.path.isdir(path):
            return path
        link = _first_line(path).removeprefix("gitdir: ")
        if link:
            own = os.path.join(folder, link)
            return os.path.realpath(os.path.join(own, _first_line(os.path.join(own, "commondir")) or "."))
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except (OSError, UnicodeDecodeError):
        return ""
