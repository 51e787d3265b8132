"""Make the commit that was planned for an item, once."""

import contextlib
from time import time
from typing import Any

from msgspec.structs import replace

from raymond.loops.git_calls import GitError
from raymond.loops.hooks import hooks_in
from raymond.loops.ledger import FAILED, Entry, entry_of
from raymond.loops.repository import Repository
from raymond.loops.step import Step


def commit(step: Step, given: dict[str, Any]) -> Entry:
    """Make the commit that was planned, unless it is there; the entry with it."""
    entry = entry_of(given["entry"])
    if "tree" not in given:
        return entry
    repository = step.repository
    made = _there(step, given)
    if not made:
        try:
            made = _made(step, given)
        except GitError as error:
            return _uncommitted(step, entry, f"{error} ({error.hint})" if error.hint else str(error))
    if _is_planned(repository, repository.head(), given):  # after a commit of a person the index is theirs
        with contextlib.suppress(GitError, OSError):  # the commit is made: what follows it undoes nothing
            repository.refresh(given.get("staged", ""), given.get("base", ""))
            folder = given.get("hooks_folder", "")
            if folder and hooks_in(folder) == given["hooks"]:
                repository.hook(folder, "post-commit")
    return replace(entry, commit=made, seconds=round(time() - entry.began, 3))


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
        raise GitError("somebody has moved HEAD or switched branches meanwhile")
    parents = [given["parent"]]
    made = repository.commit(given["tree"], parents, given["message"], given["date"], sign=given["signs"])
    repository.move(f"refs/heads/{given['branch']}", made, given["head"], "raymond: commit")
    return made


def _uncommitted(step: Step, entry: Entry, why: str) -> Entry:
    """The work is checked and in the tree, but no commit has it: a person has to look. Its records go again."""
    reference = step.repository.reference(f"refs/raymond/{step.id}/base")
    changed = [one.path for one in step.repository.changes(reference, step.repository.tree())]
    step.repository.bring_back(reference, [one for one in changed if step.documents.owns(one)])
    error = f"the work is verified and in the tree, but it could not be committed: {why}"
    return replace(entry, verdict=FAILED, error=error, action="pause")
