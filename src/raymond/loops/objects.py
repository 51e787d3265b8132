"""The objects of a repository: files of trees, read through git."""

import os
from collections.abc import Iterable

from raymond.loops.git_calls import GitCalls, wrong


class Objects(GitCalls):
    """Git, and what it has stored."""

    def blob(self, name: str) -> bytes:
        """The content of an object."""
        return self.ask("cat-file", "blob", name)

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """How long some objects are."""
        said = self.ask("cat-file", "--batch-check=%(objectname) %(objectsize)", given=_lines(names))
        found = (line.split() for line in said.splitlines())
        return {name.decode("ascii"): int(size) for name, size in found if size != b"missing"}

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of some objects."""
        said, found, at = self.ask("cat-file", "--batch", given=_lines(names)), dict[str, bytes](), 0
        while at < len(said):
            end = said.index(b"\n", at)
            name, _, size = said[at:end].split()
            at = end + 2 + int(size)
            found[name.decode("ascii")] = said[end + 1 : at - 1]
        return found

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


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode("ascii")
