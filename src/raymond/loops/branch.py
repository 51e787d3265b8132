"""The branch of a loop: commits that only Raymond makes, with what counts and with the loop's own documents.

The references below refs/raymond/ID/ are the truth. `base` is the checkout as the loop found it, `tip` the last commit.
`vouched` has the files that decide checks as they count for the next item, `own` has them as a person left or accepted
them. Everything else there is work that does not count. refs/heads/raymond/ID follows the tip where it can.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from time import time

from msgspec import Struct

from raymond.errors import Error, WorkspaceError
from raymond.loops.formats.foreign_text import one_line
from raymond.patterns import regex
from raymond.system import files, git
from raymond.system.files import make_private, private
from raymond.workspace import publish
from raymond.workspace.repository import Repository

TIP, BASE, VOUCHED, OWN = "tip", "base", "vouched", "own"
LEFT = "left"
"""What a tree still holds between items that is not part of the branch."""
TAKEN = "taken"
"""The checkout with the documents that a person has edited there since and let count."""
_ITEM = "Raymond-Item"

_WIDTH = 72
_CONVENTIONAL = regex(r"[a-z]+(?:\([^()]+\))?!?: \S")
_KINDS = {
    "fix": ("fix", "repair", "correct", "resolve", "handle"),
    "docs": ("document", "docs", "readme", "explain"),
    "test": ("test", "cover"),
    "refactor": ("refactor", "rename", "move", "simplify", "extract", "clean"),
    "chore": ("update", "upgrade", "bump", "configure"),
}
_KIND = 13
"""Characters of a kind such as `refactor: `, and of what is around an id."""
_MOST_FILES = 20


class BranchGone(Error):
    """A loop has no branch, or its branch is not as Raymond left it."""


class Branch(Struct, frozen=True):
    """The branch of one loop."""

    top: str
    """The person's checkout."""
    id: str
    name: str
    """Of the branch that follows the tip; empty for none."""
    lock: str
    """Locked by each process that makes a commit."""
    repository: Repository
    """Where trees are made."""
    is_here: bool = False
    """Whether the person's checkout is the tree that agents work in, with this branch checked out."""

    def reference(self, what: str) -> str:
        """The reference for something of this loop."""
        return f"refs/raymond/{self.id}/{what}"

    def commit_of(self, what: str) -> str:
        """What such a reference names, empty when there is none; refused if Raymond did not let it name that."""
        there, known = git.reference(self.top, self.reference(what)), self.known(what)
        if known and there not in known and (there or what != TIP):
            raise BranchGone(f"{self.reference(what)} is not where Raymond left it", hint=self._back(what))
        return there

    def _back(self, what: str) -> str:
        return f"git update-ref {self.reference(what)} {self.known(what)[0]} puts it back"

    def known(self, what: str) -> list[str]:
        """What such a reference may name: while it is moved, two commits; nothing before a loop has begun."""
        with contextlib.suppress(OSError):
            return files.contents(self._note(what)).decode("ascii", "replace").split()
        return []

    def _note(self, what: str) -> str:
        return os.path.join(os.path.dirname(self.lock), f"at-{what}")

    def note(self) -> None:
        """Note where the references of a loop are before its first agent begins: something else may move them."""
        make_private(os.path.dirname(self.lock))
        for what in (TIP, BASE, VOUCHED, OWN):
            files.replace(self._note(what), git.reference(self.top, self.reference(what)).encode(), durable=True)

    def _move(self, what: str, commit: str) -> None:
        """Let such a reference name a commit; refused if something else moves it meanwhile."""
        there = self.commit_of(what)
        make_private(os.path.dirname(self.lock))
        files.replace(self._note(what), f"{there} {commit}".encode(), durable=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{git.directories(self.top)[1]}/{self.reference(what)}.lock")  # a git that was killed left it
        is_moved = publish.move(self.top, self.reference(what), commit, there)
        files.replace(self._note(what), (commit if is_moved else there).encode())
        if not is_moved:
            raise BranchGone(f"{self.reference(what)} was moved meanwhile", hint="look at it, then try again")

    @property
    def tip(self) -> str:
        """The last commit."""
        tip = self.commit_of(TIP)
        if not tip:
            hint = self._back(TIP) if self.known(TIP) else f"raymond cancel {self.id} ends the loop"
            raise BranchGone(f"{self.reference(TIP)} is gone", hint=hint)
        return tip

    @property
    def vouched(self) -> str:
        """The commit with the files that decide checks."""
        return self.commit_of(VOUCHED) or self.tip

    def tree_of(self, what: str) -> str:
        """The tree that such a reference names."""
        return self.repository.tree_of(self.commit_of(what) or self.tip)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other process makes a commit while the block runs."""
        make_private(os.path.dirname(self.lock))
        fd = private(self.lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def made_for(self, mark: str, since: str = "") -> str:
        """The commit that was made for an item; empty when there is none. Only Raymond commits on this branch.

        It was made after the commit `since`, if that is known.
        """
        since = since or self.commit_of(BASE)
        if self.tip == since:
            return ""
        what = "--format=%H%x00%(trailers:key=Raymond-Item,valueonly)%x00"
        said = publish.ask(self.top, "log", what, self.tip, f"^{since}", "--")
        parts = said.decode("utf-8", "replace").split("\0")
        return next(
            (one.strip() for one, marks in zip(parts[::2], parts[1::2], strict=False) if marks.strip() == mark), ""
        )

    def commit(self, tree: str, message: str, parent: str) -> str:
        """Make a commit on top of `parent` and let the branch end with it; refused if it ends with another one."""
        publish.send(self.repository, self.top, [tree], [parent])
        made = publish.commit(self.top, tree, [parent], message, time())
        if parent != self.tip:
            raise BranchGone(f"{self.reference(TIP)} was moved meanwhile", hint="look at it, then try again")
        self._move(TIP, made)
        self.follow(parent)
        return made

    def follow(self, before: str = "") -> None:
        """Let the branch name the tip, unless it is checked out or a person has put it somewhere else.

        The tip is known to come after the commit `before`.
        """
        tip, name = self.tip, f"refs/heads/{self.name}"
        if not self.name:
            return
        there = git.reference(self.top, name)
        if there == tip:
            return
        if self.is_here:
            publish.move(self.top, name, tip, there)
            return
        is_looked_at = f"ref: {name}" in git.checked_out(self.top)
        if not is_looked_at and (there in ("", before) or publish.contains(self.top, tip, there)):
            publish.move(self.top, name, tip, there)

    def withdraw(self) -> None:
        """Remove it: the loop was refused, and has made no commit of an item."""
        name, tip = f"refs/heads/{self.name}", self.commit_of(TIP)
        is_ours = self.name == f"raymond/{self.id}"  # a branch of another name may be the person's
        if is_ours and git.reference(self.top, name) == tip and f"ref: {name}" not in git.checked_out(self.top):
            publish.drop(self.top, name)
        for what in (TIP, BASE, VOUCHED, OWN, LEFT):
            publish.drop(self.top, self.reference(what))

    @property
    def is_looked_at(self) -> bool:
        """Whether it is the branch that is checked out."""
        return git.branch_line(self.top) == f"ref: refs/heads/{self.name}"

    def check_out(self, since: str = "") -> None:
        """Let HEAD and the index of the person's checkout, which has the files, name the tip.

        Where the index was that of the commit `since`, what a person has staged since then stays in it, if it fits.
        """
        if not self.name:
            return
        publish.ask(self.top, "symbolic-ref", "HEAD", f"refs/heads/{self.name}")
        try:
            publish.ask(self.top, "read-tree", *(["-i", "-m", since] if since else []), self.tip)
        except WorkspaceError:
            publish.ask(self.top, "read-tree", self.tip)
        publish.ask(self.top, "update-index", "-q", "--refresh", fails=[1])

    def behind(self) -> int:
        """How many commits of the loop its branch does not have."""
        there = git.reference(self.top, f"refs/heads/{self.name}") if self.name else ""
        if not there or there == self.tip:
            return 0
        return int(publish.ask(self.top, "rev-list", "--count", f"{there}..{self.tip}", "--"))

    @property
    def is_applied(self) -> bool:
        """Whether the checkout was given what the tip has."""
        return self.repository.tree_of(self.commit_of("applied") or self.commit_of(BASE)) == self.tree_of(TIP)

    @property
    def shown(self) -> str:
        """Where a person finds the tip: the branch, or the reference where no branch follows."""
        there = git.reference(self.top, f"refs/heads/{self.name}") if self.name else ""
        is_gone = not there and self.commit_of(BASE) != self.tip
        return self.name if self.name and not is_gone and not self.behind() else self.reference(TIP)

    def keep(self, what: str, tree: str, message: str, parent: str) -> str:
        """Let a reference of the loop name a commit of this tree; the same commit if it does already."""
        there = self.commit_of(what)
        if there and self.repository.tree_of(there) == tree:
            return there
        publish.send(self.repository, self.top, [tree], [parent])
        made = publish.commit(self.top, tree, [parent], message, time())
        self._move(what, made)
        return made

    def vouch(self, what: str, tree: str) -> None:
        """Let `vouched` or `own` name this tree."""
        tip = self.tip
        if self.repository.tree_of(tip) == tree:
            self._move(what, tip)
        else:
            self.keep(what, tree, f"raymond: what decides checks ({what})\n", tip)

    def merged(self, tree: str, base: str) -> str:
        """Work that began with the commit `base`, on top of the tip; empty when both changed the same lines."""
        tip = self.tip
        if tip == base:
            return tree
        work = self.repository.commit(tree, [base], "work\n", 0)
        found, conflicts = self.repository.merged(tip, work)
        return "" if conflicts else found


def trailers(id: str, mark: str) -> list[str]:
    """The lines by which a commit is known as that of an item."""
    return [f"Raymond-Run: {id}", *([f"{_ITEM}: {mark}"] if mark else [])]


@contextlib.contextmanager
def borrowed(folder: str, top: str) -> Iterator[Repository]:
    """A repository for a moment, in which trees of the repository at `top` can be made; nothing of it stays."""
    import tempfile

    make_private(folder)
    with tempfile.TemporaryDirectory(prefix="git-", dir=folder) as aside:
        repository = Repository(f"{aside}/git", f"{aside}/rules")
        make_private(repository.worktree)
        repository.make(top, git.head(top))
        yield repository


def exclude(top: str, patterns: Iterable[str]) -> None:
    """Keep files out of git for this repository alone."""
    path = os.path.join(git.directories(top)[1], "info/exclude")
    if os.path.islink(path):
        raise BranchGone(f"{path} is a link: Raymond writes nothing there", hint="make it a file")
    try:
        text = files.contents(path).decode("utf-8", "surrogateescape")
    except OSError:
        text = ""
    known = {line.removesuffix("\r") for line in git.lines(text)}
    missing = [one for one in patterns if one not in known]
    if missing:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # What another loop appends at the same time stays.
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666), "ab", buffering=0
        ) as file:
            gap = "" if not text or text.endswith("\n") else "\n"
            file.write(os.fsencode(gap + "".join(f"{one}\n" for one in missing)))


# The message of a commit


def subject(title: str) -> str:
    """A conventional subject for an item."""
    title = one_line(title).strip().rstrip(".")
    if not _CONVENTIONAL.match(title):
        first, _, rest = title.partition(" ")
        word = first.casefold().rstrip(":")
        kind = next((kind for kind, words in _KINDS.items() if word in words), "feat")
        title = rest.lstrip() if first.endswith(":") and word == kind and rest.strip() else title
        title = f"{kind}: {title[:1].lower() + title[1:] if title[1:2].islower() else title}"
    return title if len(title) <= _WIDTH else f"{title[: _WIDTH - 3].rstrip()}..."


def headline(title: str, id: str) -> str:
    """The title of a task or a story with its id at the end, where a subject that is too long keeps it."""
    if not id or not title.startswith(id):
        return title
    bare = one_line(title.removeprefix(id).lstrip(".: ")).rstrip(".")
    room = _WIDTH - len(id) - _KIND
    return f"{bare if len(bare) <= room else bare[: room - 3].rstrip() + '...'} ({id})"


def message(title: str, facts: Iterable[str], wrote: Iterable[str], trailers: Iterable[str]) -> str:
    """The whole message: the subject, what is known about the work, and the lines by which it is found again."""
    files = list(wrote)
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    named = [f"Written by the check: {', '.join(map(one_line, files[:_MOST_FILES]))}{more}"] if files else []
    body = "\n".join([*map(one_line, facts), *named])
    return "\n\n".join([subject(title), body, "\n".join(trailers)]) + "\n"
