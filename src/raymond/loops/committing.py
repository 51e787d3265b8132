"""Make the commit that was planned for an item, once."""

import contextlib
from time import time
from typing import Any

from msgspec.structs import replace

from raymond.loops import hooks
from raymond.loops.genuine import Forged
from raymond.loops.git_calls import GitError
from raymond.loops.ledger import Entry, entry_of
from raymond.loops.repository import Repository
from raymond.loops.step import Step, told

BEHIND = (
    '"git status" shows the commit as undone, and the next commit would undo it: .git/index could not be written; '
    "once there is no .git/index.lock, run `git reset`"
)


class Moved(GitError):
    """What was planned does not fit any more: it has to be made again."""


def commit(step: Step, given: dict[str, Any]) -> Entry:
    """Make the commit that was planned, unless it is there; the entry with it."""
    entry = entry_of(given["entry"])
    if "tree" not in given:
        return entry
    repository = step.repository
    there = _there(step, given)
    try:
        made = there or _made(step, given)
    except Moved as error:
        return _paused(step, entry, error)
    head = repository.head()
    is_planned = head == made if not there else _is_planned(repository, head, given)
    if is_planned:  # after a commit of a person the index is theirs
        if not repository.follow(given.get("staged", ""), given.get("base", "")):
            entry = replace(entry, notes=(*entry.notes, BEHIND))
        with contextlib.suppress(GitError, OSError):  # the commit is made: what follows it undoes nothing
            folder = given.get("hooks_folder", "")
            if folder and hooks.hooks_in(folder) == given["hooks"]:
                repository.hook(folder, "post-commit")
        with contextlib.suppress(GitError, OSError):
            entry = replace(entry, notes=(*entry.notes, *_put_back(step, given, made)))
    return replace(entry, commit=made, seconds=round(time() - entry.began, 3))


def _put_back(step: Step, given: dict[str, Any], made: str) -> list[str]:
    """Give the documents what was committed, if a hook has changed them since; what to tell."""
    if not hooks.is_there(given.get("hooks_folder", ""), "post-commit"):
        return []
    from raymond.loops import hooked
    from raymond.loops.work import Work

    return hooked.put_back(Work(step), "post-commit", given["tree"], made)


def _there(step: Step, given: dict[str, Any]) -> str:
    """The commit of the plan, if it was made before a kill: a person may have committed since, or reworded it."""
    repository = step.repository
    trailer = next((one for one in given["message"].splitlines() if one.startswith("Raymond-Item: ")), None)
    branch = repository.reference(f"refs/heads/{given['branch']}")
    for commit in repository.commits(given["parent"], branch):
        if _is_planned(repository, commit, given) or trailer in repository.message(commit).splitlines():
            return commit
    return ""


def _is_planned(repository: Repository, commit: str, given: dict[str, Any]) -> bool:
    return repository.is_made_of(commit, given["tree"], [given["parent"]], given["message"])


def _made(step: Step, given: dict[str, Any]) -> str:
    repository = step.repository
    if repository.branch() != given["branch"] or repository.head() != given["head"]:
        raise Moved("somebody has moved HEAD or switched branches meanwhile")
    try:
        repository.check_new(given["tree"], given["parent"])
    except Forged as error:
        raise Moved(str(error), hint=error.hint) from None
    parents, signs = [given["parent"]], given["signs"] and repository.signs  # a person may have switched that off
    made = repository.commit(given["tree"], parents, given["message"], given["date"], sign=signs)
    repository.move(f"refs/heads/{given['branch']}", made, given["head"], "raymond: commit")
    return made


def _paused(step: Step, entry: Entry, error: Moved) -> Entry:
    """The item in front of a person: it was checked, and git does not commit it."""
    from raymond.loops.work import Work  # hardly any commit needs it

    return replace(Work(step).paused(f"it could not be committed: {told(error)}"), notes=entry.notes)
