"""Inspection: what an agent did to the repository besides its work, named, and put back where it can be."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from msgspec import Struct

from raymond.digests import sha256
from raymond.loops import documents, doubts, unfinished
from raymond.loops.baseline import Baseline, Keeper
from raymond.loops.change import Change
from raymond.loops.documents import LOGS, PROGRESS, Documents, TooLarge
from raymond.loops.formats import foreign_text, queue, session_log
from raymond.loops.formats.item import Item
from raymond.loops.genuine import Forged, Genuine, is_genuine
from raymond.loops.hooks import hooks_in
from raymond.loops.ignore_rules import RULES
from raymond.loops.pushes import Pushes
from raymond.loops.references import References
from raymond.loops.repository import Repository
from raymond.loops.saved import Saved
from raymond.patterns import regex
from raymond.system import files
from raymond.verifier import exclude_lines

_NAMED = 20
_LONGEST = 150
"""Characters of one reason."""
_LOCKED = "which stays: remove it once no git is at work here"
_UNFINISHED = "which stays: remove it with `git ... --quit`; `--abort` would undo what was committed since"
_ADDED = '"{title}" was added to {path} while an agent worked; it counts as proposed'
_GENERATED = frozenset(
    "node_modules dist build target out bin obj venv .venv env .env.local __pycache__ .pytest_cache .mypy_cache"
    " .ruff_cache .tox .nox .next .nuxt .cache .gradle .idea .vscode .DS_Store coverage .coverage htmlcov".split()
)
_MADE = (".pyc", ".pyo", ".o", ".so", ".class", ".log", ".tmp", ".swp", ".egg-info")
_EXCLUDE = f"/{exclude_lines.NAME}"
_SIGNED = regex(r"(?i)(?:^|[\n-\r\x1c-\x1e\x85\u2028\u2029])raymond-(?:run|item)[ \t]*:")
"""A trailer of Raymond's, as git finds it: the case does not matter. Nor does what ends the line before it."""
_MOST_HIDDEN = 200
"""Files that an agent hid from git and that are named."""


def told(note: str) -> str:
    """A note as a sentence: what it does not say is that the agent did it."""
    return note if note.startswith('"') else f"the agent {note}"


class Inspection(Struct):
    """What was found."""

    tampered: list[str] = []
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
        """`tampered` or `review`; empty when a check decides."""
        return "tampered" if self.tampered else "review" if self.review else ""

    def noticed(self, told: str) -> list[str]:
        """What is told besides the reason why the item does not count, which is `told`."""
        return [*self.tampered, *self.notes, *(one for one in self.beyond if one[:_LONGEST] not in told)]

    @property
    def reason(self) -> str:
        """Why it does not count; what may have got out comes first."""
        found = sorted(
            [*self.tampered, *self.review], key=lambda one: not one.startswith(("put ", "pushed ", "wrote "))
        )
        named = [one if len(one) <= _LONGEST else f"{one[:_LONGEST]}..." for one in found[:_NAMED]]
        more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
        return "; ".join([*named, *more])


class Inspector:
    """Looks at what happened since the baseline of an item.

    What was found is on the disk before anything is put back: a second look after a kill finds nothing any more.
    """

    def __init__(
        self,
        keeper: Keeper,
        own: Documents,
        path: str,
        written: Mapping[str, str],
        first: Baseline,
        saved: Saved,
        aside: str,
    ) -> None:
        self._keeper = keeper
        self._first = first
        """The baseline of the loop."""
        self._saved = saved
        self._repository: Repository = keeper.repository
        self._own = own
        self._path = path
        self._key = saved.step
        self._aside = aside
        """Below this, references that were moved keep what they were moved to."""
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
        changes, folders = self._seen(before, found)
        # A loop that pauses writes a summary in the middle of an item.
        own = [one for one in changes if self._own.owns(one.path) and not self._is_our_summary(one)]
        theirs = [one for one in own if not self._is_ours(one)]
        if ours := [one.path for one in own if one not in theirs]:
            found.left = self._repository.mixed(found.left, before.work, ours)
        if self._is_forged(before) and before.queue[0] not in {one.path for one in own}:
            _add(found.tampered, _rewrote(before, [before.queue[0]]))
        self._look_at_documents(before, theirs, item, found)
        work = [one for one in changes if not self._own.owns(one.path)]
        found.changed = [one.path for one in work]
        self._look_at_plans(before, work, found)
        stored = doubts.of_changes(self._repository, [*work, *theirs, *self._committed(before, found)], folders)
        _add(found.review, stored.review)
        _add(found.tampered, _rewrote(before, stored.rewritten))
        _add(found.review, doubts.of_commits(self._repository, found.commits))
        self._keep(found)
        lost = {before.queue[0]}.intersection(stored.rewritten)  # of which there is a copy
        if any(one.path != self._own_progress() for one in theirs):
            keep(found)
        self._put_back(before, [one.path for one in own if one.path not in lost], theirs, found)
        found.tree = self._repository.tree() if own else found.left
        if found.left != found.tree:  # what was added to the progress does not stay as it was
            keep(found)
        return found

    def _look_at_git(self, before: Baseline, found: Inspection) -> None:
        """What decides how git sees the work comes first, and is put back at once."""
        differences = [*self._keeper.regained(before), *self._keeper.differences(before)]
        _add(found.tampered, differences)
        self._keep(found)
        if differences:
            kept = self._keeper.restore(before)  # git does nothing below that an agent has set
            _add(found.notes, (f"changed a file of git, which was put back; it is kept as {path}" for path in kept))
        self._look_at_locks(before, found)
        self._end_unfinished(before, found)
        _add(found.tampered, self._keeper.differences_elsewhere(before))
        self._look_at_history(before, found)
        self._look_at_objects(before, found)
        self._look_at_references(before, found)
        self._look_at_hooks(before, found)

    def _look_beyond_git(self, before: Baseline, found: Inspection) -> None:
        """What was checked and will not be committed: a person has to look."""
        pipes = self._repository.removed
        _add(found.notes, (f"made a pipe of {path}, for which git would wait; it was removed" for path in pipes))
        refused = [path for path in self._repository.refused if path not in before.refused]
        _add(found.beyond, (f"left {path}, which git does not take into a commit" for path in refused[:_NAMED]))
        nested = [one for one in self._repository.nested() if one not in before.nested]
        _add(found.beyond, (f"left a repository of its own in {one}" for one in nested))
        modules = self._keeper.changed_modules(before)
        _add(found.beyond, (f"changed the submodule {path}, which is neither saved nor put back" for path in modules))
        _add(found.review, found.beyond)

    def _look_at_locks(self, before: Baseline, found: Inspection) -> None:
        """A lock that the agent left is removed if no git can need it."""
        for path, is_gone in self._keeper.free(before):
            shown = os.path.relpath(path, self._own.top) if path.startswith(f"{self._own.top}/") else path
            then = ", then `git reset`" if path.endswith("/index.lock") else ""
            _add(found.notes, [f"left {shown}, {'which was removed' if is_gone else _LOCKED + then}"])

    def _end_unfinished(self, before: Baseline, found: Inspection) -> None:
        """Nobody ends what the agent has begun with git; what it did to HEAD and the files is looked at as any work."""
        self._look_at_index(before, found)
        if names := self._keeper.unfinished(before):
            what = f"left {unfinished.words(names)} unfinished"
            ended = f"{what}, which was ended; its files stay part of the work"
            _add(found.notes, [ended])
            self._keep(found)
            if not unfinished.end(self._repository, names):
                found.notes[found.notes.index(ended)] = f"{what}, {_UNFINISHED}"

    def _look_at_index(self, before: Baseline, found: Inspection) -> None:
        """An index that the agent broke is as it was again, and has no conflicts that nobody could resolve."""
        if before.is_index_broken:
            return
        if self._repository.is_broken():
            _add(found.tampered, ["broke .git/index, which was put back"])
        elif conflicts := self._repository.conflicts():
            more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
            _add(found.notes, [f"left a conflict in {conflicts[0]}{more}, of which the file stays as it is"])
        else:
            return
        self._keep(found)
        self._repository.refresh(before.staged, before.head)

    def _seen(self, before: Baseline, found: Inspection) -> tuple[list[Change], dict[str, str]]:
        """What changed, without what git had been told to ignore: that is a person's, and no part of the work.

        And the folders that git has stored since: object -> path.
        """
        changes, folders = self._repository.changes_in_folders(before.work, found.left)
        known = frozenset(before.ignored)
        _add(found.hidden, (one.path for one in changes if _is_among(one.path, known)))
        _add(found.review, (f"made git see {path}, which it ignored" for path in found.hidden[:_NAMED]))
        if rules := self._new_rules(before, found):
            # With the rules as they were, git sees what was hidden: it is saved, and removed with the rest.
            self._keep(found)
            self._bring_back(before, rules, found)
            found.left = self._repository.tree()
            changes, folders = self._repository.changes_in_folders(before.work, found.left)
        return [one for one in changes if one.path not in found.hidden], folders

    def _bring_back(self, before: Baseline, paths: Iterable[str], found: Inspection) -> None:
        """Give paths back what they had; what git has lost of it is the agent's doing, also when a person is asked."""
        try:
            self._repository.bring_back(before.work, paths)
        except Forged as error:
            _add(found.tampered, _rewrote(before, [error.path]))
            self._keep(found)
            raise

    def _new_rules(self, before: Baseline, found: Inspection) -> set[str]:
        """The files with rules by which git ignores something that it would have seen with those of before."""
        repository, known = self._repository, frozenset(before.ignored)
        new = [one for one in repository.ignored() if not _is_among(one, known)]
        ruled = repository.rules_of(new) if new else {}
        self._look_at_lines(before, ruled, found)
        # What else is outside of the tree was put back, or is a person's.
        ruled = {path: one for path, one in ruled.items() if not os.path.isabs(one[0]) and one[0][:5] != ".git/"}
        ruled = {path: one for path, one in ruled.items() if not is_generated(path)}
        as_before = repository.ignored_with(before.work, ruled) if ruled else set[str]()
        hidden = {path: one for path, one in ruled.items() if path not in as_before}
        if not hidden:
            return set()
        places = {where for where, _ in hidden.values()}
        old = {where: repository.file(before.work, where) or b"" for where in places}
        for path, (where, rule) in list(hidden.items())[:_MOST_HIDDEN]:
            is_old = os.fsencode(rule) in old[where].replace(b"\r\n", b"\n").split(b"\n")
            how = "removing an exception to a rule" if is_old else "a new rule"
            _add(found.review, [f"hid {path} from git by {how} in {where}"])
        if len(hidden) > _MOST_HIDDEN:
            _add(found.review, [f"hid {len(hidden) - _MOST_HIDDEN} more files from git"])
        changes = repository.changes(before.work, found.left)
        return places | {one.path for one in changes if os.path.basename(one.path) == RULES}

    def _look_at_lines(self, before: Baseline, ruled: dict[str, tuple[str, str]], found: Inspection) -> None:
        """Lines like ours are not put back, because a loop in another worktree may need them: nothing here does."""
        old = exclude_lines.own(before.files.get(exclude_lines.NAME, b""))
        lines = {path: os.fsencode(rule) for path, (where, rule) in ruled.items() if where.endswith(_EXCLUDE)}
        hidden = [path for path, line in lines.items() if exclude_lines.own(line) and line not in old]
        _add(found.review, (f"hid {path} from git by a new rule in .git{_EXCLUDE}" for path in hidden[:_NAMED]))

    def _look_at_hooks(self, before: Baseline, found: Inspection) -> None:
        folder = self._repository.hooks_folder()
        if folder != self._first.hooks_folder:
            _add(found.notes, ["changed which hooks the project has; those of the beginning are used"])
        if folder == before.hooks_folder and hooks_in(folder) != before.hooks and not found.tampered:
            where = os.path.relpath(before.hooks_folder, self._own.top)
            _add(found.review, [f"changed the hooks of the project in {where}"])

    def _look_at_references(self, before: Baseline, found: Inspection) -> None:
        """Branches, tags and stashes that are not its own stay where they were."""
        references = References(
            self._repository, before, self._first, self._saved, self._aside, is_shared=self._keeper.is_shared
        )
        _add(found.tampered, references.tampered())
        _add(found.review, references.doubtful())
        _add(found.notes, references.notes())
        self._keep(found)
        _add(found.tampered, references.put_back())

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
        if self._is_forged(before):
            _add(found.tampered, _rewrote(before, [before.queue[0]]))
            self._keep(found)
            text = before.queue[1].decode("utf-8", "surrogateescape")
            documents.write(os.path.join(self._own.top, before.queue[0]), text)
        if added:
            documents.write(os.path.join(self._own.top, progress), added)

    def _is_forged(self, before: Baseline) -> bool:
        """Whether the queue is not what it was, line by line; git may end lines in another way."""
        path, kept = before.queue
        now = documents.content(os.path.join(self._own.top, path)) if path else kept
        return now.replace(b"\r", b"") != kept.replace(b"\r", b"")

    def _is_ours(self, change: Change) -> bool:
        digest = self._written.get(change.path)
        if not digest or not change.is_file:
            return False
        content = self._repository.blob(change.new)
        return sha256(content).hexdigest() == digest and is_genuine(change.new, content)

    def _is_our_summary(self, change: Change) -> bool:
        return self._own.is_summary(change.path) and self._is_ours(change)

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
            found.commits = repository.commits(before.head, found.head)
            forged = [one for one in found.commits if _SIGNED.search(repository.message(one))]
            _add(found.tampered, (f"wrote a commit in the name of Raymond ({one[:12]})" for one in forged))
        self._look_at_pushes(before, found)
        self._keep(found)

    def _look_at_pushes(self, before: Baseline, found: Inspection) -> None:
        pushes = Pushes(self._repository, before, self._first, found.commits, is_shared=self._keeper.is_shared)
        _add(found.tampered, pushes.tampered)
        _add(found.review, pushes.review)
        _add(found.notes, pushes.notes)

    def _look_at_objects(self, before: Baseline, found: Inspection) -> None:
        """Commits and folders are what everything is compared with: they have to be what they were."""
        with Genuine(self._repository) as stored:
            forged = stored.forged([before.work, before.head, before.staged, *found.commits])
        _add(found.tampered, _rewrote(before, forged))
        self._keep(found)

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
        names = _names(self._repository, before.work, logs) if changed else []
        newest = os.path.join(logs, session_log.newest(names) or "-")
        for one in changed:
            path = self._shown(one.path)
            text = documents.beginning(os.path.join(self._own.top, one.path))
            if one.path == newest:
                stored = before.queue[1] if before.queue[0] == newest else self._repository.file(before.work, one.path)
                old = (stored or b"").decode("utf-8", "surrogateescape")
                self._compare(old, text, item, path, found)
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
        names = ("tampered", "review", "notes", "proposed", "told", "hidden")
        kept = {"step": self._key, **{name: getattr(found, name) for name in names}}
        files.replace(self._path, json.dumps(kept).encode("utf-8", "surrogatepass"), durable=True)


def _fit(added: str) -> str:
    """What an agent added to a record, so that it hides nothing that follows."""
    gap = added[: len(added) - len(added.lstrip("\n"))]
    return f"{gap}{foreign_text.prose(added, 1)}\n"


def _kept(item: Item) -> tuple[object, ...]:
    return item.verification, item.metadata, item.priority, item.ticked


def _rewrote(before: Baseline, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield f"rewrote what git has stored of {'the queue' if path == before.queue[0] else path}"


def _names(repository: Repository, tree: str, folder: str) -> list[str]:
    return [os.path.basename(path) for path in repository.listed(tree, folder)]


def _add(to: list[str], more: Iterable[str]) -> None:
    there = set(to)
    to += [one for one in dict.fromkeys(more) if one not in there]


def _is_among(path: str, ignored: Set[str]) -> bool:
    """Whether a path is one of these, or in a folder of theirs, which ends in `/`."""
    return path in ignored or any(path[: at + 1] in ignored for at, letter in enumerate(path) if letter == "/")


def is_generated(path: str) -> bool:
    """Whether a path is one that tools make, and that every project tells git to ignore."""
    parts = path.rstrip("/").split("/")
    return any(part in _GENERATED for part in parts) or parts[-1].endswith(_MADE)
