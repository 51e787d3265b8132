"""Sealing: take down what decides a check, before the work begins."""

import contextlib
import os

from raymond.system import git
from raymond.system.files import make_private
from raymond.verifier import seal
from raymond.verifier.assignment import Assignment
from raymond.verifier.pack import Pack
from raymond.verifier.private_git import PrivateGit, git_at, short
from raymond.verifier.rules import rules_of
from raymond.verifier.seal import Seal
from raymond.verifier.tree import check_size, top_of

_LAST = "last"


def seal_here(given: Assignment, cwd: str) -> Seal:
    """Seal `cwd` for the checks of `given`; the seal is on the disk when this returns."""
    top = _top(given, cwd)
    if not os.path.lexists(os.path.join(top, ".git")):
        check_size(top)
    private, commit = git_of(given, top), git.head(top)
    make_private(given.folder)
    private.prepare(commit)
    skipped, ignored = private.ignored(commit)
    rules = rules_of(
        top,
        cwd,
        [one.run for one in given.checks],
        skipped=skipped,
        ignored=ignored,
        path=given.environment.get("PATH", os.defpath),
        seal=given.seal,
        unseal=given.unseal,
    )
    pack = Pack(os.path.join(given.folder, f"{given.step}.pack"))
    try:
        found = seal.make(rules, cwd, commit, pack, _former(given, top))
        if given.sealed:
            handed = seal.load(seal_path(given.folder, given.sealed))
            found = seal.over(moved(given, handed, cwd) if handed.cwd != cwd else handed, found)
    finally:
        pack.close()
    path = seal_path(given.folder, given.step)
    seal.save(found, path)
    _remember(given, top, path)
    return found


def moved(given: Assignment, sealed: Seal, cwd: str) -> Seal:
    """A seal in the directory that a person has moved its run to."""
    found = seal.moved(sealed, cwd, _top(given, cwd))
    top = found.rules.top
    git_of(given, top).prepare(git.head(top))
    return found


def _top(given: Assignment, cwd: str) -> str:
    """The tree of `cwd`: not a repository of the home directory that knows nothing of it, which keeps settings."""
    top, home = top_of(cwd), given.environment.get("HOME", "")
    if top == cwd or not home or top != os.path.realpath(home):
        return top
    private, commit = git_of(given, top), git.head(top)
    make_private(given.folder)
    private.prepare(commit)
    return top if private.tracks(commit, os.path.relpath(cwd, top)) else cwd


def seal_path(folder: str, step: int) -> str:
    """Where the seal that this step made is."""
    return os.path.join(folder, f"{step}.seal")


def git_of(given: Assignment, top: str) -> PrivateGit:
    """The run's own git directory for a tree."""
    return git_at(given.folder, top)


def _former(given: Assignment, top: str) -> Seal | None:
    """The last seal of this tree: what has not changed since is not read again."""
    try:
        return seal.load(os.path.join(given.folder, f"{_LAST}-{short(top)}"))
    except (OSError, ValueError):
        return None


def _remember(given: Assignment, top: str, path: str) -> None:
    last = os.path.join(given.folder, f"{_LAST}-{short(top)}")
    aside = f"{last}.{given.step}"
    with contextlib.suppress(OSError):
        os.link(path, aside)
        os.replace(aside, last)
