"""Make the commit that was planned for an item, once."""

import contextlib
from time import time
from typing import Any

from msgspec.structs import replace

from raymond.loops import documents
from raymond.loops.git_calls import GitError
from raymond.loops.hooks import is_there
from raymond.loops.ledger import Entry, entry_of
from raymond.loops.repository import Repository
from raymond.loops.step import Step, told
from raymond.system import git

BEHIND = (
    '"git status" shows the commit as undone, and the next commit would undo it: .git/index could not be written; '
    "once there is no .git/index.lock, run `git reset`"
)
_MADE = "made"
"""The file with the plan that was committed last, and the commit."""
_OWED = "owed"
"""The file with the commit after which the documents have to be put back, as a hook runs."""
_RAN = "ran"
"""What it says besides when the hook has ended."""


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
    # After a commit of a person the index is theirs.
    if is_planned and not repository.follow(given.get("staged", ""), given.get("base", "")):
        entry = replace(entry, notes=(*entry.notes, BEHIND))
    if is_planned or documents.read(step.file(_OWED)).startswith(made):
        noticed = _followed(step, given, made, is_last=is_planned)
        entry = replace(entry, notes=(*entry.notes, *noticed))
    return replace(entry, commit=made, seconds=round(time() - entry.began, 3))


def _followed(step: Step, given: dict[str, Any], made: str, *, is_last: bool) -> list[str]:
    """Let the hook run that follows a commit, and give the documents what was committed; what to tell.

    The hook may be gone when it has run, have committed on top, or have killed Raymond: what it did is put back anyway.
    """
    folder, owed = given.get("hooks_folder", ""), step.file(_OWED)
    if not folder:
        return []
    if not is_there(folder, "post-commit"):
        return []
    if is_last and documents.read(owed) != f"{made} {_RAN}":
        documents.write(owed, made)
        with contextlib.suppress(GitError, OSError):  # the commit is made: what follows it undoes nothing
            step.repository.hook(folder, "post-commit")
        documents.write(owed, f"{made} {_RAN}")
    from raymond.loops import hooked
    from raymond.loops.work import Work

    noticed = hooked.put_back(Work(step), "post-commit", given["tree"], made)
    documents.write(owed, "")
    return noticed


def _there(step: Step, given: dict[str, Any]) -> str:
    """The commit of the plan, if it was made before a kill: a person may have committed since, or reworded it.

    A message alone proves nothing, as agents write messages too: the files and the parent are those of the plan, unless
    it is noted that the commit was made, so that whoever has its mark now was made of it.
    """
    repository = step.repository
    branch = repository.reference(f"refs/heads/{given['branch']}")
    since = repository.commits(given["head"], branch)  # none of the agent's own
    mark = next((line for line in git.lines(given["message"]) if line.startswith("Raymond-Item: ")), None)
    marked = [one for one in since if mark in git.lines(repository.message(one))]
    for commit in since:
        if _is_planned(repository, commit, given) or (commit in marked and _is_alike(repository, commit, given)):
            return commit
    made = documents.read(step.file(_MADE)).rpartition(" ")[2]
    return made if marked and documents.read(step.file(_MADE)) == _note(given, made) else ""


def _note(given: dict[str, Any], made: str) -> str:
    return f"{given['tree']} {given['head']} {made}"


def _is_alike(repository: Repository, commit: str, given: dict[str, Any]) -> bool:
    return repository.is_made_of(commit, given["tree"], [given["parent"]])


def _is_planned(repository: Repository, commit: str, given: dict[str, Any]) -> bool:
    is_said = repository.message(commit).strip() == given["message"].strip()
    return is_said and _is_alike(repository, commit, given)


def _made(step: Step, given: dict[str, Any]) -> str:
    repository = step.repository
    if repository.branch() != given["branch"] or repository.head() != given["head"]:
        raise Moved("somebody has moved HEAD or switched branches meanwhile")
    parents, signs = [given["parent"]], given["signs"] and repository.signs  # a person may have switched that off
    made = repository.commit(given["tree"], parents, given["message"], given["date"], sign=signs)
    repository.move(f"refs/heads/{given['branch']}", made, given["head"], "raymond: commit")
    documents.write(step.file(_MADE), _note(given, made))
    return made


def _paused(step: Step, entry: Entry, error: Moved) -> Entry:
    """The item in front of a person: it was checked, and git does not commit it."""
    from raymond.loops.work import Work  # hardly any commit needs it

    return replace(Work(step).paused(f"it could not be committed: {told(error)}"), notes=entry.notes)
