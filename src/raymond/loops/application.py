"""Application: what was set aside, in the tree of a person while it is checked; gone again unless it is committed."""

import json
import os
from time import time
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import asdict

from raymond.errors import Error, UsageError
from raymond.loops import documents
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.repository import Repository
from raymond.system import files

_NOTE = "applied"
"""The file in the folder of the loop that tells what is in the tree, for whoever comes after a kill."""
_NAMED = 5
"""Paths that are named."""


class Note(Struct, frozen=True):
    """What is in the tree."""

    key: str
    head: str
    tree: str
    commit: str = ""
    """What the branch is about to name, or does already."""


class Application:
    """HEAD with the work of an item as files, for as long as it is entered."""

    def __init__(self, loop: LoopRun, entry: Entry, tree: str) -> None:
        self.tree = tree
        self.head = loop.repository.head()
        self._branch = loop.repository.branch()
        self._repository: Repository = loop.repository
        self._note = Note(entry.key, self.head, tree)
        self._path = loop.file(_NOTE)
        self._kept = f"{entry.saved}.changed"
        self._changes = self._repository.changes(self.head, tree)
        self._before = self._repository.tree()
        self._applied = ""
        self._commit = ""

    def __enter__(self) -> Self:
        self._check_room()
        _write(self._path, self._note)
        try:
            self._repository.bring_back(self.tree, self._paths)
            self._applied = self._repository.tree()
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._repository.head() != self._commit:
            self._undo()

    @property
    def _paths(self) -> list[str]:
        return [one.path for one in self._changes]

    def _check_room(self) -> None:
        """Refuse to write where a file of the person is that git ignores."""
        top, removed = self._repository.top, {one.path for one in self._changes if one.status != "A"}
        for path in [one.path for one in self._changes if one.status == "A"]:
            whole = os.path.join(top, path)
            found = path if os.path.lexists(whole) else _file_above(top, path)
            if found and found not in removed:
                what = f"{found} is there, is not committed, and would be overwritten"
                raise UsageError(what, hint="move it away, then try again")

    def check_unchanged(self, who: str) -> None:
        """Refuse what was not shown: the files have to be as they were before `who` ran."""
        if others := [one.path for one in self._repository.changes(self._applied, self._repository.tree())]:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            what = f"not committed, because files changed while {who} ran: {', '.join(others[:_NAMED])}{more}"
            hint = f"the tree is as before; see what changed: git diff {self._note.tree[:12]} {self._kept}"
            raise Error(what, hint=hint)

    def publish(self, commit: str) -> None:
        """Let the branch name the commit; from here on, nothing is undone."""
        repository, self._commit = self._repository, commit
        _write(self._path, Note(self._note.key, self.head, self.tree, commit))
        name = f"refs/heads/{self._branch}" if self._branch else "HEAD"
        if (repository.branch(), repository.head()) != (self._branch, self.head):
            raise UsageError("somebody has committed meanwhile", hint="try it again")
        repository.move(name, commit, self.head, "raymond: accepted")

    def _undo(self) -> None:
        """Let the tree be as it was; what nobody has shown is kept first, because a person may have written it."""
        repository, head = self._repository, self._repository.head()
        now = repository.tree()
        others = [one.path for one in repository.changes(self._applied, now)] if self._applied else []
        if others:
            date = f"{int(time())} +0000"
            repository.move(self._kept, repository.commit(now, [head], "raymond: changed during accept\n", date))
        if head == self.head:
            repository.bring_back(self._before, dict.fromkeys([*self._paths, *others]))
        else:  # somebody has committed: what belongs to them stays
            repository.bring_back(head, self._paths)
        os.unlink(self._path)


def _file_above(top: str, path: str) -> str:
    """What is where a folder of `path` has to be, and is none; empty when nothing is."""
    above = os.path.dirname(path)
    while above:
        whole = os.path.join(top, above)
        if os.path.lexists(whole) and (os.path.islink(whole) or not os.path.isdir(whole)):
            return above
        above = os.path.dirname(above)
    return ""


def left(loop: LoopRun) -> Note | None:
    """What an accept that was killed has left; None when there is nothing."""
    text = documents.read(loop.file(_NOTE))
    return Note(**json.loads(text)) if text else None


def clear(loop: LoopRun, note: Note) -> None:
    """Take out of the tree what is there as it was applied; other changes are somebody's, and stay."""
    repository, head = loop.repository, loop.repository.head()
    if repository.reference(f"{note.tree}^{{tree}}"):
        others = {one.path for one in repository.changes(note.tree, repository.tree())}
        applied = [one.path for one in repository.changes(note.head, note.tree)]
        repository.bring_back(head, [path for path in applied if path not in others])
    done(loop)


def done(loop: LoopRun) -> None:
    """Forget what was in the tree."""
    os.unlink(loop.file(_NOTE))


def _write(path: str, note: Note) -> None:
    files.replace(path, json.dumps(asdict(note)).encode(), durable=True)
