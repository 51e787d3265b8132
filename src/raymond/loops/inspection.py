"""Inspection: what an agent did to the repository besides its work, named, and put back where it can be."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from raymond.loops import documents
from raymond.loops.baseline import Baseline, Keeper
from raymond.loops.documents import LOGS, PROGRESS, Documents
from raymond.loops.formats import queue, session_log
from raymond.loops.formats.item import Item
from raymond.loops.repository import Change, Repository
from raymond.system import files, git

LARGE = 10 << 20
"""Bytes of a new file that a person has to look at."""
_SCANNED = 1 << 20
"""Bytes of a file that are searched for secrets."""
_MOST_COMMITS = 100
_GUARDED = (
    *(".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".githooks", ".claude", ".codex", ".raymond"),
    *(".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile", "bitbucket-pipelines.yml", ".drone.yml"),
    *(".mcp.json", ".gitmodules", ".gitattributes"),
)
"""Names of files and folders that decide what runs elsewhere, or for other agents."""


@dataclass(slots=True)
class Inspection:
    """What was found."""

    tampered: list[str] = field(default_factory=list)
    review: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)
    """Raw items that the agent wants to be done."""
    told: dict[str, str] = field(default_factory=dict)
    """Sections of a session log that the agent wrote itself."""
    head: str = ""
    """The commit that the agent left HEAD at."""
    tree: str = ""
    """All files as the agent left them, with the documents of the loop as they were."""
    left: str = ""
    """The same, with the documents as the agent left them too."""
    changed: list[str] = field(default_factory=list)
    """The paths of its work."""
    commits: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """`tampered` or `review`; empty when a check decides."""
        return "tampered" if self.tampered else "review" if self.review else ""

    @property
    def reason(self) -> str:
        """Why it does not count."""
        return "; ".join([*self.tampered, *self.review])


class Inspector:
    """Looks at what happened since the baseline of an item.

    What was found is on the disk before anything is put back: a second look after a kill finds nothing any more.
    """

    def __init__(self, keeper: Keeper, own: Documents, path: str, written: Mapping[str, str]) -> None:
        self._keeper = keeper
        self._repository: Repository = keeper.repository
        self._own = own
        self._path = path
        self._written = written
        """What Raymond itself has written for the item, before it was killed: path -> digest."""

    def look(self, before: Baseline, title: str) -> Inspection:
        """What was found now, and in earlier looks at the same item."""
        found = self._earlier()
        _add(found.tampered, (one.words for one in self._keeper.differences(before)))
        self._keep(found)
        if found.tampered:
            self._keeper.restore(before)  # git does nothing below that an agent has set
        self._look_at_history(before, found)
        found.left = self._repository.tree()
        changes = self._repository.changes(before.work, found.left)
        own = [one for one in changes if self._own.owns(one.path) and not self._own.is_summary(one.path)]
        theirs = [one for one in own if not self._is_ours(one)]
        self._look_at_documents(before, theirs, title, found)
        work = [one for one in changes if not self._own.owns(one.path)]
        found.changed = [one.path for one in work]
        found.review += _doubts(self._repository, [*work, *theirs, *self._committed(before, found)])
        found.review += _told_secrets(self._repository, found.commits)
        _add(found.notes, (f"left a repository of its own in {path}" for path in self._repository.nested()))
        self._keep(found)
        kept = {one.path for one in theirs} & {self._own_progress()}
        self._repository.bring_back(before.work, [one.path for one in own if one.path not in kept])
        found.tree = self._repository.tree()
        return found

    def _is_ours(self, change: Change) -> bool:
        digest = self._written.get(change.path)
        return (
            bool(digest) and change.is_file and hashlib.sha256(self._repository.blob(change.new)).hexdigest() == digest
        )

    def _own_progress(self) -> str:
        return os.path.join(self._own.inside, PROGRESS)

    def _look_at_history(self, before: Baseline, found: Inspection) -> None:
        repository = self._repository
        found.head, branch = repository.head(), repository.branch()
        if branch != before.branch:
            _add(found.tampered, [f"switched from {before.branch or 'no branch'} to {branch or 'no branch'}"])
        if before.head and not repository.descends(found.head, before.head):
            _add(found.tampered, [f"rewrote the history: {before.head[:12]} is not in that of HEAD any more"])
        else:
            found.commits = repository.commits(before.head, found.head)[:_MOST_COMMITS]
        for name, commit in repository.remotes().items():
            if before.remotes.get(name) != commit and self._is_pushed(name, commit, found):
                _add(found.tampered, [f"pushed to {name.removeprefix('refs/remotes/')}"])
        self._keep(found)

    def _is_pushed(self, name: str, commit: str, found: Inspection) -> bool:
        """Whether a branch elsewhere moved because of a push: a fetch brings no commit that was made here."""
        if commit in (found.head, *found.commits):
            return True
        folder = git.directories(self._repository.top)[1]
        try:
            log = files.contents(os.path.join(folder, "logs", name), _SCANNED).decode("utf-8", "replace")
        except OSError:
            return False
        return log.rstrip("\n").rpartition("\n")[2].endswith("update by push")

    def _committed(self, before: Baseline, found: Inspection) -> Iterator[Change]:
        """What the agent's own commits changed: a file may be gone from the tree and still be in one of them."""
        above = before.head
        for commit in found.commits:
            if above:
                yield from self._repository.changes(above, commit)
            above = commit

    def _look_at_documents(self, before: Baseline, own: Iterable[Change], title: str, found: Inspection) -> None:
        logs = os.path.join(self._own.inside, LOGS)
        newest = os.path.join(logs, session_log.newest(_names(self._repository, before.work, logs)) or "-")
        for one in own:
            path = os.path.relpath(one.path, os.path.relpath(self._own.cwd, self._own.top))
            text = documents.read(os.path.join(self._own.top, one.path))
            if one.path == newest:
                old = (self._repository.file(before.work, one.path) or b"").decode("utf-8", "surrogateescape")
                self._compare(old, text, title, path, found)
            elif os.path.dirname(one.path) == logs and one.status == "A" and one.is_file:
                _add(found.notes, [f"wrote a session log of its own, {path}"])
                said = session_log.told(text)
                _add(found.proposed, session_log.proposals(said.pop(queue.TITLE, "")))
                found.told |= said
            elif one.path != self._own_progress():
                verb = {"A": "made", "D": "removed"}.get(one.status, "changed")
                _add(found.notes, [f"{verb} {path}, which Raymond writes"])

    def _compare(self, old: str, new: str, title: str, path: str, found: Inspection) -> None:
        """What became of the queue while a turn ran: whoever changed it, it counts for no item of now."""
        before = {queue.key(one): one for one in queue.read(old).items}
        now = {queue.key(one): one for one in queue.read(new).items}
        own = " ".join(title.split()).casefold()
        added = [one for key, one in now.items() if key not in before]
        _add(
            found.proposed, (one.raw if one.proposed else queue.marked(one.raw, session_log.PROPOSED) for one in added)
        )
        _add(found.notes, (f'proposed "{one.title}" in {path}' for one in added))
        for key, one in before.items():
            if key == own:
                there = now.get(key)
                if there and (there.verification, there.metadata) != (one.verification, one.metadata):
                    _add(found.notes, [f"changed the check of its own item in {path}, which does not count"])
            elif key not in now:
                _add(found.notes, [f'removed "{one.title}" from {path}, which does not count'])
            elif _kept(now[key]) != _kept(one):
                _add(found.notes, [f'changed "{one.title}" in {path}, which does not count'])

    def _earlier(self) -> Inspection:
        try:
            given = json.loads(files.contents(self._path))
        except OSError:
            return Inspection()
        return Inspection(**given)

    def _keep(self, found: Inspection) -> None:
        kept = {name: getattr(found, name) for name in ("tampered", "notes", "proposed", "told")}
        files.replace(self._path, json.dumps(kept).encode("utf-8", "surrogatepass"), durable=True)


def _kept(item: Item) -> tuple[object, ...]:
    return item.verification, item.metadata, item.priority, item.ticked


def _names(repository: Repository, tree: str, folder: str) -> list[str]:
    return [os.path.basename(path) for path in repository.listed(tree, folder)]


def _add(to: list[str], more: Iterable[str]) -> None:
    to += [one for one in dict.fromkeys(more) if one not in to]


def _doubts(repository: Repository, changes: Iterable[Change]) -> list[str]:
    """What a person has to look at before it counts."""
    found: dict[str, None] = {}
    for one in changes:
        if one.is_module:
            found[f"changed the submodule {one.path}"] = None
        elif guarded := [part for part in one.path.split("/") if part in _GUARDED]:
            verb = {"A": "added", "D": "removed"}.get(one.status, "changed")
            found[f"{verb} {one.path} ({guarded[0]} decides what runs elsewhere)"] = None
        if one.is_file:
            size = repository.size(one.new)
            if one.status == "A" and size > LARGE:
                found[f"added {one.path}, which has {size / (1 << 20):.0f} MB"] = None
            elif size <= _SCANNED and (what := _secret(repository, one)):
                found[f"put {what} into {one.path}"] = None
    return list(found)


def _told_secrets(repository: Repository, commits: Iterable[str]) -> list[str]:
    from raymond import redaction

    texts = ((commit, repository.message(commit)) for commit in commits)
    return [
        f"wrote {what} into the message of {commit[:12]}"
        for commit, text in texts
        if redaction.suspects(text)
        for _, _, _, what in list(redaction.lines(text))[:1]
    ]


def _secret(repository: Repository, change: Change) -> str:
    """What looks like a secret in the new version of a file and was not in the old one; empty when nothing does."""
    from raymond import redaction

    new = repository.blob(change.new).decode("utf-8", "replace")
    if "\0" in new or not redaction.suspects(new):
        return ""
    old = repository.blob(change.old).decode("utf-8", "replace") if change.old.strip("0") else ""
    lines = new.splitlines()
    for line, column, length, what in redaction.lines(new):
        token = lines[line - 1][column - 1 : column - 1 + length] if line <= len(lines) else ""
        if token and token not in old:
            return what
    return ""
