"""The loops in other folders and other worktrees of a repository."""

import os
from collections.abc import Iterator

from raymond import pasted
from raymond.loops import starting, unended
from raymond.loops.documents import STATES, Documents
from raymond.loops.loop_run import LoopRun
from raymond.loops.loop_status import status_of
from raymond.loops.opening import Place
from raymond.store import project as projects
from raymond.system import git


def beside(place: Place, loop: str) -> Iterator[str]:
    """A line for each on this checkout that has not ended and has other documents, with the command that shows it."""
    for one in unended.every(projects.at(place.documents.cwd), loop):
        if not unended.is_of(one, place.documents):
            folder = os.path.relpath(os.path.realpath(one.documents.folder), os.path.realpath(place.documents.cwd))
            yield f"{loop} {one.id} is in {pasted.name(folder)}: {unended.command(one, 'status')}"


def _found(place: Place, loop: str) -> Iterator[tuple[LoopRun, str, str]]:
    """The last loop of each other worktree, its status, and the worktree as seen from here."""
    here = place.documents
    inside = os.path.relpath(os.path.realpath(here.cwd), here.top)
    for tree in git.worktrees(here.cwd):
        if tree == here.top:
            continue
        cwd, project = os.path.normpath(os.path.join(tree, inside)), projects.at(tree)
        found = starting.look(project, Documents(cwd, here.docs, tree), loop)
        if not (found and found.loop) and (one := next(unended.every(project, loop), None)):
            found, cwd = starting.look(project, one.documents, loop), one.documents.cwd
        if found and found.loop:
            yield found.loop, status_of(found), os.path.relpath(cwd, here.cwd)


def seen(place: Place, loop: str) -> Iterator[str]:
    """A line for each that was started here, with the command that shows it."""
    for one, status, path in _found(place, loop):
        if one.settings.checkout != place.documents.top:
            continue
        there = pasted.word(path, "PATH")
        command = f"cd {there} && raymond {loop} status{unended.flag_of(one)}"
        yield f"{loop} {one.id} is in {pasted.name(path)} ({status}): {command}"


def unmerged(place: Place) -> Iterator[str]:
    """A line for each branch of a loop in a worktree that HEAD does not have: a new loop does not build on it."""
    repository = place.repository
    for loop in STATES:
        for one, _, path in _found(place, loop):
            tip = repository.reference(f"refs/heads/{one.settings.branch}") if one.settings.branch else ""
            if tip and not repository.descends(repository.head(), tip):
                branch = pasted.word(one.settings.branch, "BRANCH")
                what = f"the loop {one.id} in {pasted.name(path)} is not merged, so this one starts without it"
                yield f"{what}: git merge {branch}"
