"""The objects of a repository: files of trees, read through git."""

import os

from raymond.loops.git_calls import GitCalls, wrong


class Objects(GitCalls):
    """Git, and what it has stored."""

    def blob(self, name: str) -> bytes:
        """The content of an object."""
        return self.ask("cat-file", "blob", name)

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
