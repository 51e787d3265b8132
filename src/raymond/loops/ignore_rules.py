"""Rules by which git ignores files: those of now, and those that a tree had."""

import os
from collections.abc import Iterable

from raymond.loops import documents
from raymond.loops.git_calls import GitError, wrong
from raymond.loops.objects import Objects
from raymond.system import git

_EXCLUDE = "info/exclude"


class IgnoreRules(Objects):
    """What git ignores in a work tree, and why."""

    def ignored(self) -> list[str]:
        """What git ignores here; a folder of which it ignores everything ends in `/`."""
        said = self.ask("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return sorted(os.fsdecode(one) for one in said.split(b"\0") if one)

    def check_excludable(self) -> str:
        """The file with what git does not see in any worktree of this repository; refused if it is a link."""
        path = os.path.join(git.directories(self.top)[1], _EXCLUDE)
        if os.path.islink(path):
            raise GitError(f"{path} is a link: Raymond writes nothing there", hint="make it a file")
        return path

    def exclude(self, patterns: Iterable[str]) -> None:
        """Keep files out of git for this repository alone."""
        path = self.check_excludable()
        text = documents.read(path)
        there = {line.removesuffix("\r") for line in git.lines(text)}
        missing = [one for one in patterns if one not in there]
        if not missing:
            return
        more = ("" if not text or text.endswith("\n") else "\n") + "".join(f"{one}\n" for one in missing)
        if not os.path.isfile(path) or os.stat(path).st_nlink > 1 or not os.access(path, os.W_OK):
            documents.write(path, text + more)
            return
        # A loop that begins in another worktree loses none of its lines, and the file keeps its rights.
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "wb", buffering=0) as file:
            file.write(os.fsencode(more))

    def rule_of(self, path: str) -> tuple[str, str]:
        """The file with the rule by which git ignores a path, and the rule; empty when none does."""
        return self.rules_of([path]).get(path, ("", ""))

    def rules_of(self, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The same for every path that git ignores by one."""
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        done = self.run("check-ignore", "-v", "-z", "--no-index", "--stdin", given=given, plain=True)
        if done.returncode not in (0, 1):  # 1 means that it ignores none of them
            raise wrong("check-ignore", done)
        said = [os.fsdecode(one) for one in done.stdout.split(b"\0")]
        lines = zip(said[::4], said[2::4], said[3::4], strict=False)
        return {path: (where, rule) for where, rule, path in lines if not rule.startswith("!")}
