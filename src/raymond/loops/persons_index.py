"""The index of the person in whose checkout a loop works: what is staged there stays so."""

import contextlib
import os
from collections.abc import Iterable

from raymond.loops.git_calls import GitCalls, GitError, wrong
from raymond.system import git
from raymond.system.files import make_private

_LISTED = ("ls-files", "-z", "--", ".git")
_NO_TREE = (b": unmerged (", b"error: invalid object ")
"""What git says of an index that can be read, and of which no tree can be made."""


class PersonsIndex(GitCalls):
    """Git in a work tree, and the index there; trees are made in a file of our own."""

    @property
    def _place(self) -> str:
        return os.path.join(git.directories(self.top)[0], "index")

    @property
    def is_locked(self) -> bool:
        """Whether somebody is changing the index, or was killed while doing so."""
        return os.path.lexists(f"{self._place}.lock")

    def is_broken(self) -> bool:
        """Whether git cannot read it."""
        if self.run(*_LISTED).returncode == 0:
            return False
        self.ask("rev-parse", "--git-dir")  # if that fails too, it is not the index
        return self.run(*_LISTED).returncode != 0

    def staged(self, head: str) -> str:
        """The tree of what a person has staged; empty when that is nothing."""
        done = self.run("diff-index", "--cached", "--quiet", head) if head else None
        if done and done.returncode not in (0, 1) and not self.is_broken():
            raise wrong("diff-index", done)
        return self._read(self._aside()) if done and done.returncode == 1 else ""

    def _aside(self) -> GitCalls:
        """Git with a second index of our own: flags of the person's entries have no place in the first one."""
        aside = GitCalls(self.top, f"{self.index}.aside")
        make_private(os.path.dirname(aside.index))
        for path in (f"{aside.index}.lock", aside.index):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return aside

    def _read(self, aside: GitCalls) -> str:
        """Copy the person's index; its tree, empty when there is none, or git cannot make one of it.

        The copy has the time of the original, by which git knows which files it must look into.
        """
        try:
            _copy(self._place, aside.index, os.O_TRUNC)
        except FileNotFoundError:
            return ""
        done = aside.run("write-tree", index=True)
        if done.returncode and not any(one in done.stderr for one in _NO_TREE) and not self.is_broken():
            raise wrong("write-tree", done)
        return done.stdout.decode("ascii").strip() if done.returncode == 0 else ""

    def follow(self, staged: str = "", base: str = "", paths: Iterable[str] | None = None) -> bool:
        """Refresh it after a commit, which nothing undoes; `paths` alone if given. A failure is tried once more.

        False if it stays behind HEAD.
        """
        for _ in range(2):
            with contextlib.suppress(GitError, OSError):
                return self.refresh(staged, base) if paths is None else self.refresh_paths(paths)
        return False

    def refresh(self, staged: str = "", base: str = "") -> bool:
        """Let the index be as HEAD, so that `git status` tells what there is; False while somebody has locked it.

        What was `staged` when HEAD was `base` stays so, unless it was committed since. Flags of entries stay too. It is
        made aside and put in place as git does it: a git that is killed would leave a lock that stops the person.
        """
        head = git.head(self.top)
        if not head:
            return True
        aside = self._aside()
        wanted = _merged(aside, staged, base, head) if staged else head
        if there := self._read(aside):
            _change(aside, there, wanted)
        else:
            aside.ask("read-tree", wanted, index=True)
        aside.run("update-index", "-q", "--refresh", index=True)
        return self._put(aside.index)

    def refresh_paths(self, paths: Iterable[str]) -> bool:
        """Let some paths be in the index as they are in the tree: what else a person has staged stays so."""
        aside = self._aside()
        if not self._read(aside):
            return self.refresh()
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        aside.ask("update-index", "--add", "--remove", "-z", "--stdin", index=True, given=given)
        return self._put(aside.index)

    def _put(self, made: str) -> bool:
        """Let an index that was made aside be that of the person; no link is followed. False if somebody is at it."""
        new, lock = f"{self._place}.raymond", f"{self._place}.lock"
        with contextlib.suppress(OSError):
            if os.path.samefile(new, lock):
                os.unlink(lock)  # we were killed between the two calls below
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        _copy(made, new, os.O_EXCL)
        try:
            os.link(new, lock)
            os.rename(lock, self._place)
        except FileExistsError:
            return False  # they write an index of their own: `git reset` lets it follow HEAD
        finally:
            os.unlink(new)
        return True


def _copy(source: str, target: str, how: int) -> None:
    """Copy an index with its time: without that, git takes a file for unchanged that was written just now."""
    with open(source, "rb") as file:
        there = os.fstat(file.fileno())
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | how | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with open(fd, "wb") as to:
            to.write(file.read())
    os.utime(target, ns=(there.st_atime_ns, there.st_mtime_ns))


def _merged(aside: GitCalls, staged: str, base: str, head: str) -> str:
    """The tree of what was staged, with what was committed since."""
    aside.ask("read-tree", staged, index=True)
    _change(aside, base, head)
    return aside.ask("write-tree", index=True).decode("ascii").strip()


def _change(aside: GitCalls, before: str, after: str) -> None:
    """Make those entries of an index that differ between two trees as the second one has them."""
    parts = aside.ask("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split(b"\0")
    lines = []
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        _, mode, _, new, _ = head.split(b" ")
        lines.append(mode + b" " + new + b"\t" + path + b"\0")
    aside.ask("update-index", "-z", "--index-info", index=True, given=b"".join(lines))
