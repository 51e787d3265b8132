"""Rules by which git ignores files: those of now, and those that a tree had."""

import os
from collections.abc import Iterable

from raymond.loops import documents
from raymond.loops.genuine import is_genuine
from raymond.loops.git_calls import GitError, wrong
from raymond.loops.objects import Objects
from raymond.system import git
from raymond.verifier import exclude_lines

RULES = ".gitignore"


class IgnoreRules(Objects):
    """What git ignores in a work tree, and why."""

    def ignored(self) -> list[str]:
        """What git ignores here; a folder of which it ignores everything ends in `/`."""
        said = self.ask("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return sorted(os.fsdecode(one) for one in said.split(b"\0") if one)

    def check_excludable(self) -> str:
        """The file with what git does not see in any worktree of this repository; refused if it is a link."""
        path = os.path.join(git.directories(self.top)[1], exclude_lines.NAME)
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
        return self._rules(paths, self.top, {})

    def ignored_with(self, tree: str, paths: Iterable[str]) -> set[str]:
        """The paths that git would ignore with the rules that a tree has, and those outside of the tree."""
        import tempfile  # hardly any agent changes a rule

        listed = self.ask("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")
        entries = (
            one.partition(b"\t") for one in listed if os.path.basename(one.partition(b"\t")[2]) == RULES.encode()
        )
        # Git reads no rules through a link.
        found = {path: about.split()[2].decode() for about, _, path in entries if about.startswith(b"100")}
        rules = {path: self.blob(name) for path, name in found.items()}
        if not all(is_genuine(found[path], content) for path, content in rules.items()):
            return set()  # nobody knows them any more
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.index)) as folder:
            for path, content in rules.items():
                whole = os.path.join(os.fsencode(folder), path)
                os.makedirs(os.path.dirname(whole), exist_ok=True)
                with open(whole, "wb") as file:
                    file.write(content)
            there = {"GIT_DIR": git.directories(self.top)[0], "GIT_WORK_TREE": folder}
            return set(self._rules(paths, folder, there))

    def _rules(self, paths: Iterable[str], at: str, more: dict[str, str]) -> dict[str, tuple[str, str]]:
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        asked = ("-C", at, "check-ignore", "-v", "-z", "--no-index", "--stdin")
        done = self.run(*asked, given=given, more=more, plain=True)
        if done.returncode not in (0, 1):  # 1 means that it ignores none of them
            raise wrong("check-ignore", done)
        said = [os.fsdecode(one) for one in done.stdout.split(b"\0")]
        lines = zip(said[::4], said[2::4], said[3::4], strict=False)
        return {path: (where, rule) for where, rule, path in lines if not rule.startswith("!")}
