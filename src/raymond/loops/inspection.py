"""Inspection: what an agent did to the repository besides its work, named, and put back where it can be."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from msgspec import Struct

from raymond.digests import sha256
from raymond.loops import documents, doubts, unfinished
from raymond.loops.baseline import Baseline
from raymond.loops.change import Change
from raymond.loops.documents import LOGS, PROGRESS, Documents, TooLarge
from raymond.loops.formats import foreign_text, queue, session_log
from raymond.loops.formats.item import Item
from raymond.loops.repository import Repository
from raymond.system import files

_NAMED = 20
_LONGEST = 150
"""Characters of one reason."""
_BROKEN = "left an index that git cannot read, which was made anew"
_UNFINISHED = "which stays: remove it with `git ... --quit`; `--abort` would undo what was committed since"
_ADDED = '"{title}" was added to {path} while an agent worked; it counts as proposed'


def told(note: str) -> str:
    """A note as a sentence: what it does not say is that the agent did it."""
    return note if note.startswith('"') else f"the agent {note}"


class Inspection(Struct):
    """What was found."""

    review: list[str] = []
    notes: list[str] = []
    proposed: list[str] = []
    """Raw items that the agent wants to be done."""
    told: dict[str, str] = {}
    """Sections of a session log that the agent wrote itself."""
    head: str = ""
    """The commit that the agent left HEAD at."""
    tree: str = ""
    """All files as the agent left them, with the documents of the loop as they were."""
    left: str = ""
    """The same, with the documents as the agent left them too."""
    changed: list[str] = []
    """The paths of its work."""
    commits: list[str] = []
    hidden: list[str] = []
    """Files that git ignored before: they are not the agent's to commit, nor ours to remove."""
    beyond: list[str] = []
    """What is left in the tree whatever becomes of the item, because git neither commits nor saves it."""
    is_checked: bool = False
    """Whether the files are those that the check was green with."""

    @property
    def verdict(self) -> str:
        """`review`; empty when a check decides."""
        return "review" if self.review else ""

    def noticed(self, told: str) -> list[str]:
        """What is told besides the reason why the item does not count, which is `told`."""
        return [*self.notes, *(one for one in self.beyond if one[:_LONGEST] not in told)]

    @property
    def reason(self) -> str:
        """Why it does not count; what may have got out comes first."""
        found = sorted(self.review, key=lambda one: not one.startswith(("put ", "wrote ")))
        named = [one if len(one) <= _LONGEST else f"{one[:_LONGEST]}..." for one in found[:_NAMED]]
        more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
        return "; ".join([*named, *more])


class Inspector:
    """Looks at what happened since the baseline of an item.

    What was found is on the disk before anything is put back: a second look after a kill finds nothing any more.
    """

    def __init__(self, repository: Repository, own: Documents, path: str, written: Mapping[str, str], key: str) -> None:
        self._repository = repository
        self._own = own
        self._path = path
        self._key = key
        """Of the step that looks."""
        self._written = written
        """What Raymond itself has written for the item, before it was killed: path -> digest."""

    def look(
        self, before: Baseline, item: str, is_checked: Callable[[], bool], keep: Callable[[Inspection], None]
    ) -> Inspection:
        """What was found now, and in earlier looks at the same item, whose key is `item`.

        `is_checked`: are the files those of the check? `keep` saves documents that are about to be put back.
        """
        found = self._earlier()
        self._look_at_git(before, found)
        found.left = self._repository.tree()
        found.is_checked = is_checked()
        self._look_beyond_git(before, found)
        changes = self._seen(before, found)
        # A loop that pauses writes a summary in the middle of an item.
        own = [one for one in changes if self._own.owns(one.path) and not self._is_our_summary(one)]
        theirs = [one for one in own if not self._is_ours(one)]
        if ours := [one.path for one in own if one not in theirs]:
            found.left = self._repository.mixed(found.left, before.work, ours)
        self._look_at_documents(before, theirs, item, found)
        work = [one for one in changes if not self._own.owns(one.path)]
        found.changed = [one.path for one in work]
        self._look_at_plans(before, work, found)
        changed = [*work, *theirs, *self._committed(before, found)]
        _add(found.review, doubts.of_changes(self._repository, changed))
        _add(found.review, doubts.of_commits(self._repository, found.commits))
        self._keep(found)
        if any(one.path != self._own_progress() for one in theirs):
            keep(found)
        self._put_back(before, [one.path for one in own], theirs, found)
        found.tree = self._repository.tree() if own else found.left
        if found.left != found.tree:  # what was added to the progress does not stay as it was
            keep(found)
        return found

    def _look_at_git(self, before: Baseline, found: Inspection) -> None:
        """What the agent did with git besides its work: only files count, and its commits on top."""
        self._end_unfinished(before, found)
        self._look_at_history(before, found)

    def _look_beyond_git(self, before: Baseline, found: Inspection) -> None:
        """What was checked and will not be committed: a person has to look."""
        pipes = self._repository.removed
        _add(found.notes, (f"made a pipe of {path}, for which git would wait; it was removed" for path in pipes))
        refused = [path for path in self._repository.refused if path not in before.refused]
        _add(found.beyond, (f"left {path}, which git does not take into a commit" for path in refused[:_NAMED]))
        nested = [one for one in self._repository.nested() if one not in before.nested]
        _add(found.beyond, (f"left a repository of its own in {one}" for one in nested))
        _add(found.review, found.beyond)

    def _end_unfinished(self, before: Baseline, found: Inspection) -> None:
        """Nobody ends what the agent has begun with git; what it did to HEAD and the files is looked at as any work."""
        is_broken = self._repository.is_broken()
        conflicts = [] if is_broken else self._repository.conflicts()
        if is_broken or conflicts:
            more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
            conflict = f"left a conflict in {conflicts[0]}{more}, of which the file stays as it is" if conflicts else ""
            _add(found.notes, [conflict or _BROKEN])
            self._keep(found)
            self._repository.refresh(before.staged, before.head)
        if names := [one for one in unfinished.there(self._repository) if one not in before.unfinished]:
            what = f"left {unfinished.words(names)} unfinished"
            ended = f"{what}, which was ended; its files stay part of the work"
            _add(found.notes, [ended])
            self._keep(found)
            if not unfinished.end(self._repository, names):
                found.notes[found.notes.index(ended)] = f"{what}, {_UNFINISHED}"

    def _seen(self, before: Baseline, found: Inspection) -> list[Change]:
        """What changed, without what git had been told to ignore: that is a person's, and no part of the work."""
        changes = self._repository.changes(before.work, found.left)
        known = frozenset(before.ignored)
        _add(found.hidden, (one.path for one in changes if _is_among(one.path, known)))
        _add(found.review, (f"made git see {path}, which it ignored" for path in found.hidden[:_NAMED]))
        return [one for one in changes if one.path not in found.hidden]

    def _put_back(self, before: Baseline, own: list[str], theirs: list[Change], found: Inspection) -> None:
        """Give Raymond's documents back what they said; what was only added to the progress stays, if it counts."""
        progress = self._own_progress()
        added = ""
        if progress in {one.path for one in theirs} and not found.verdict:
            old = self._text(before.work, progress)
            try:
                new: str | None = documents.read(os.path.join(self._own.top, progress))
            except TooLarge:
                new = None
            if new is not None and new.startswith(old):
                added = old + _fit(new[len(old) :])
            else:
                _add(found.notes, [f"rewrote {self._own.shown(PROGRESS)}, which was put back"])
                self._keep(found)
        self._repository.bring_back(before.work, own)
        if added:
            documents.write(os.path.join(self._own.top, progress), added)

    def _is_ours(self, change: Change) -> bool:
        digest = self._written.get(change.path)
        if not digest or not change.is_file:
            return False
        return sha256(self._repository.blob(change.new)).hexdigest() == digest

    def _is_our_summary(self, change: Change) -> bool:
        return self._own.is_summary(change.path) and self._is_ours(change)

    def _own_progress(self) -> str:
        return os.path.join(self._own.inside, PROGRESS)

    def _look_at_history(self, before: Baseline, found: Inspection) -> None:
        """Another branch, or a history without what was there, is put back; the files are the work."""
        repository = self._repository
        branch = repository.branch()
        if before.branch and branch != before.branch:
            _add(found.notes, [f"switched from {before.branch} to {branch or 'no branch'}, which was put back"])
            self._keep(found)
            repository.switch(before.branch)
        head = repository.head()
        if before.head and not repository.descends(head, before.head):
            _add(found.notes, [f"took {before.head[:12]} out of the history, which was put back"])
            self._keep(found)
            repository.move(f"refs/heads/{before.branch}" if before.branch else "HEAD", before.head)
        found.head = repository.head()
        found.commits = repository.commits(before.head, found.head)

    def _committed(self, before: Baseline, found: Inspection) -> Iterator[Change]:
        """What the agent's own commits changed: a file may be gone from the tree and still be in one of them."""
        above = before.head
        for commit in found.commits:
            if above:
                yield from self._repository.changes(above, commit)
            above = commit

    def _look_at_documents(self, before: Baseline, own: Iterable[Change], item: str, found: Inspection) -> None:
        changed = list(own)
        logs = os.path.join(self._own.inside, LOGS)
        listed = self._repository.listed(before.work, logs) if changed else []
        names = [os.path.basename(path) for path in listed]
        newest = os.path.join(logs, session_log.newest(names) or "-")
        for one in changed:
            path = self._shown(one.path)
            text = documents.beginning(os.path.join(self._own.top, one.path))
            if one.path == newest:
                self._compare(self._text(before.work, one.path), text, item, path, found)
            elif os.path.dirname(one.path) == logs and one.status == "A" and one.is_file:
                _add(found.notes, [f"wrote a session log of its own, {path}"])
                said = session_log.told(text)
                _add(found.proposed, session_log.proposals(said.pop(queue.TITLE, "")))
                found.told |= said
            elif self._own.is_plan(one.path):
                self._compare_plans(before, one, path, text, item, found)
            elif one.path != self._own_progress():
                verb = {"A": "made", "D": "removed"}.get(one.status, "changed")
                _add(found.notes, [f"{verb} {path}, which Raymond writes"])

    def _compare_plans(self, before: Baseline, one: Change, path: str, text: str, own: str, found: Inspection) -> None:
        """What became of a spec or of the PRD: it is as it was afterwards."""
        from raymond.loops import plan_changes

        old = self._text(before.work, one.path) if one.status != "A" else ""
        noticed, proposed = plan_changes.between(old, text, own, path)
        _add(found.notes, noticed)
        _add(found.proposed, proposed)

    def _look_at_plans(self, before: Baseline, work: Iterable[Change], found: Inspection) -> None:
        """Specs and stories may be the work itself, and stay as they are; what then counts as done is named."""
        plans = [one for one in work if self._own.is_about_plans(one.path)]
        if not plans:
            return
        from raymond.loops import plan_marks

        trees = (before.work, found.left)
        old, new = ([(self._shown(one.path), self._text(tree, one.path)) for one in plans] for tree in trees)
        _add(found.notes, plan_marks.between(old, new))

    def _text(self, tree: str, path: str) -> str:
        """What a file of a tree says; empty when there is none."""
        return (self._repository.file(tree, path) or b"").decode("utf-8", "surrogateescape")

    def _shown(self, path: str) -> str:
        """A path of the repository as people are told it."""
        return os.path.relpath(path, os.path.relpath(self._own.cwd, self._own.top))

    def _compare(self, old: str, new: str, own: str, path: str, found: Inspection) -> None:
        """What became of the queue while a turn ran: whoever changed it, it counts for no item of now."""
        before = {queue.key(one): one for one in queue.read(old).items}
        now = {queue.key(one): one for one in queue.read(new).items}
        added = [one for key, one in now.items() if key not in before]
        _add(
            found.proposed, (one.raw if one.proposed else queue.marked(one.raw, session_log.PROPOSED) for one in added)
        )
        _add(found.notes, (_ADDED.format(title=one.title, path=path) for one in added))
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
        is_same = given.pop("step") == self._key
        review, hidden = given.pop("review"), given.pop("hidden")
        found = Inspection(**given)
        if is_same:  # repeated after a kill: what was there may have been put back
            found.review, found.hidden = review, hidden
        return found

    def _keep(self, found: Inspection) -> None:
        names = ("review", "notes", "proposed", "told", "hidden")
        kept = {"step": self._key, **{name: getattr(found, name) for name in names}}
        files.replace(self._path, json.dumps(kept).encode("utf-8", "surrogatepass"), durable=True)


def _fit(added: str) -> str:
    """What an agent added to a record, so that it hides nothing that follows."""
    gap = added[: len(added) - len(added.lstrip("\n"))]
    return f"{gap}{foreign_text.prose(added, 1)}\n"


def _kept(item: Item) -> tuple[object, ...]:
    return item.verification, item.metadata, item.priority, item.ticked


def _add(to: list[str], more: Iterable[str]) -> None:
    there = set(to)
    to += [one for one in dict.fromkeys(more) if one not in there]


def _is_among(path: str, ignored: Set[str]) -> bool:
    """Whether a path is one of these, or in a folder of theirs, which ends in `/`."""
    return path in ignored or any(path[: at + 1] in ignored for at, letter in enumerate(path) if letter == "/")
