"""The objects of a repository: files of trees, read through git."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice

from raymond.digests import sha1, sha256
from raymond.loops.git_calls import GitCalls, GitError, wrong

_AT_ONCE = 100
"""Objects that are read with one command: all of them are in memory then."""
_SHORTER = 40
"""Letters of the names of objects, unless the repository uses SHA-256."""


def is_genuine(name: str, content: bytes) -> bool:
    """Whether a file with this content has that name in git: one that lies loose in its folder is never compared."""
    made = (sha1 if len(name) == _SHORTER else sha256)(b"blob %d\0" % len(content) + content)
    return made.hexdigest() == name


class Objects(GitCalls):
    """Git, and what it has stored."""

    def blob(self, name: str) -> bytes:
        """The content of an object."""
        return self.ask("cat-file", "blob", name)

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """How many bytes objects have."""
        given = "".join(f"{name}\n" for name in names).encode()
        said = self.ask("cat-file", "--batch-check=%(objectname) %(objectsize)", given=given).decode("ascii", "replace")
        pairs = [line.split(" ") for line in said.splitlines()]
        if missing := [name for name, size in pairs if not size.isdecimal()]:
            raise GitError(f"the repository has no object {missing[0]}", hint="git fsck says what else is missing")
        return {name: int(size) for name, size in pairs}

    def blobs(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The names of objects with their content, a hundred at a time."""
        left = iter(names)
        while some := list(islice(left, _AT_ONCE)):
            given = "".join(f"{name}\n" for name in some).encode()
            said, at = self.ask("cat-file", "--batch", given=given), 0
            for name in some:
                end = said.index(b"\n", at)
                size = said[at:end].rpartition(b" ")[2]
                if not size.isdigit():
                    raise GitError(f"the repository has no object {name}", hint="git fsck says what else is missing")
                at = end + 1 + int(size)
                yield name, said[end + 1 : at]
                at += 1

    def file(self, tree: str, path: str) -> bytes | None:
        """A file of a tree or a commit; None when it has none of that name."""
        done = self.run("cat-file", "blob", f"{tree}:{path}")
        if done.returncode == 0:
            return done.stdout
        if b" blob " in self.run("ls-tree", "-z", "--full-tree", tree, path).stdout:
            raise wrong("cat-file", done)
        return None

    def listed(self, tree: str, folder: str) -> list[str]:
        """The files of a tree that are right in a folder."""
        said = self.ask("ls-tree", "-z", "--name-only", "--full-tree", tree, f"{folder.rstrip('/')}/")
        return [os.fsdecode(one) for one in said.split(b"\0") if one]
