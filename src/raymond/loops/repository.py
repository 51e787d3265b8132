"""The repository that a loop works in: what it reads and writes there through git."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence

from raymond.digests import sha256
from raymond.loops import documents
from raymond.loops.change import MODULE, Change, read_changes
from raymond.loops.git_calls import PATIENCE, SIGNING, GitError, wrong
from raymond.loops.ignore_rules import IgnoreRules
from raymond.loops.persons_index import PersonsIndex
from raymond.system import files, git
from raymond.system.files import make_private

_DEFAULTS = ("main", "master", "trunk")
_STASHES = ("logs", "refs", "stash")
SAVED = "refs/raymond/"
"""Where Raymond keeps what did not count."""
_PASSING = ("refs/bisect/", "refs/rewritten/", "refs/prefetch/")
"""References that git makes and removes by itself while it works."""
_LAST = ("log", "-1", "--encoding=UTF-8", "--no-show-signature")
"""The newest commit, told as it is whatever the settings say of how to show one."""
_SHORT = 4_096
"""Bytes of a file with one line."""
_ARGUMENTS = 256
"""Paths that one command is given: with the longest there can be, they are below the limit of the system."""
_UNKNOWN = b"fatal: Not a valid "
"""What git says of a commit that it does not have."""
_RAW = ("-r", "-z", "--raw", "--no-renames")
_EMPTY = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The tree without a file, which every repository has."""
_IGNORED = "Ignoring path "
"""What git says of a path that no repository may have."""


class Repository(PersonsIndex, IgnoreRules):
    """A work tree and its git directory; `index` is a file of our own in which trees are made."""

    refused: Sequence[str] = ()
    """Files that git did not take into the tree that was made last, such as `git~1`."""

    # What there is

    def head(self) -> str:
        """The commit of HEAD; empty before the first one."""
        return git.head(self.top)

    def branch(self) -> str:
        """The branch that is checked out; empty when HEAD is detached."""
        try:
            content = files.contents(os.path.join(git.directories(self.top)[0], "HEAD"), _SHORT)
        except OSError:
            content = b""
        said = content.strip().decode("utf-8", "replace")
        name = said.removeprefix("ref: refs/heads/")
        if name != said and name != ".invalid":  # as it says where references are kept in another way
            return name
        return self.said("symbolic-ref", "-q", "--short", "HEAD")

    def is_default(self, branch: str) -> bool:
        """Whether `branch` is the one that everybody starts from."""
        remote = self.said("symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD")
        return branch in (*_DEFAULTS, remote.partition("/")[2], self.said("config", "--get", "init.defaultBranch"))

    @property
    def is_sparse(self) -> bool:
        """Whether only a part of the files is checked out."""
        return self.said("config", "--type=bool", "--get", "core.sparseCheckout") == "true"

    def identity(self) -> str:
        """Who commits; empty when git does not know."""
        done = self.run("var", "GIT_COMMITTER_IDENT")
        said = done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else ""
        return said.strip().rpartition(" ")[0].rpartition(" ")[0]

    def dirt(self, hides: Callable[[str], bool] = lambda _: False) -> list[str]:
        """The paths that are not as HEAD has them, those that git does not know included, but for what `hides`."""
        said = self.ask(
            "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"
        )
        found = [(one[:2], os.fsdecode(one[3:])) for one in said.split(b"\0") if one and not one.endswith(b"/")]
        return [path for status, path in found if status != b"??" or not hides(path)]

    def conflicts(self) -> list[str]:
        """The paths of which the index has several versions, because git could not merge them."""
        said = self.run("ls-files", "--unmerged", "-z").stdout.split(b"\0")
        return list(dict.fromkeys(os.fsdecode(one.partition(b"\t")[2]) for one in said if one))

    def filters(self) -> list[str]:
        """The filters that the repository's own settings define: whoever looks at a changed file runs them."""
        asked = (
            "config",
            "--show-scope",
            "--includes",
            "--name-only",
            "--get-regexp",
            r"^filter\..*\.(clean|process)$",
        )
        lines = [line.split("\t", 1) for line in git.lines(self.said(*asked))]
        return [name for scope, name in lines if scope in ("local", "worktree")]

    def footprint(self) -> str:
        """A digest of HEAD and of what differs from it, without reading any file: another one means a change."""
        found = [self.head()]
        for path in self.dirt():
            with contextlib.suppress(OSError):
                there = os.lstat(os.path.join(self.top, path))
                found.append(f"{path} {there.st_mode} {there.st_size} {there.st_mtime_ns}")
        return sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()

    def descends(self, commit: str, base: str) -> bool:
        """Whether `base` is in the history of `commit`."""
        if commit == base:
            return True
        done = self.run("merge-base", "--is-ancestor", base, commit)
        if done.returncode > 1 and not done.stderr.startswith(_UNKNOWN):
            raise wrong("merge-base", done)
        return done.returncode == 0

    def commits(self, base: str, commit: str) -> list[str]:
        """The commits since `base`, oldest first."""
        if commit == base:
            return []
        since = f"{base}..{commit}" if base else commit
        return self.said("rev-list", "--reverse", since).split()

    def message(self, commit: str) -> str:
        """Its whole message."""
        return self.said(*_LAST, "--format=%B", commit)

    def date(self, commit: str) -> int:
        """When it was committed, in seconds; 0 when there is none."""
        return int(self.said(*_LAST, "--format=%ct", commit) or 0)

    def people(self, commit: str) -> str:
        """Who made it and committed it."""
        return self.said(*_LAST, "--format=%an %ae%n%cn %ce", commit)

    def is_made_of(self, commit: str, tree: str, parents: Iterable[str]) -> bool:
        """Whether a commit has exactly these files and parents, whatever its message is."""
        made_of = self.said(*_LAST, "--format=%T %P", commit)
        return made_of == " ".join([self.reference(f"{tree}^{{tree}}"), *(one for one in parents if one)])

    def last_with(self, trailer: str) -> tuple[str, str]:
        """The newest commit with such a trailer, and its message; both empty when there is none."""
        said = self.said(*_LAST, "--format=%H%n%B", f"--grep=^{trailer}: ", "HEAD") if self.head() else ""
        commit, _, message = said.partition("\n")
        return commit, message

    def changes(self, before: str, after: str) -> list[Change]:
        """What differs between two trees or commits."""
        return read_changes(self.ask("diff-tree", *_RAW, before, after))

    def changed_since(self, before: str) -> list[str]:
        """The paths that are not as `before` has them, by what the files themselves say: no other tree is read."""
        self.tree()
        return [one.path for one in read_changes(self.ask("diff-index", "--cached", *_RAW, before, index=True))]

    # What is written

    def tree(self, only: Iterable[str] | None = None) -> str:
        """The tree of everything as it stands, without what git ignores; submodules stay as HEAD has them.

        With `only`, everything but these paths is as HEAD has it.
        """
        self._unlock()
        head = self.head()
        self.ask("read-tree", *(("--reset", head) if head else ("--empty",)), index=True)
        paths = list(self._paths() if only is None else map(os.fsencode, only))
        behind = set(self._behind_links(paths))
        if behind:
            gone = b"".join(path + b"\0" for path in behind)
            self.ask("update-index", "--force-remove", "-z", "--stdin", index=True, given=gone)
        given = b"".join(path + b"\0" for path in paths if path not in behind)
        take = ("update-index", "--add", "--remove", "--ignore-skip-worktree-entries", "-z", "--stdin")
        done = self.run(*take, index=True, given=given)
        if done.returncode:
            raise wrong(take[0], done)
        lines = git.lines(os.fsdecode(done.stderr))
        self.refused = [line.removeprefix(_IGNORED) for line in lines if line.startswith(_IGNORED)]
        return self._written()

    def _written(self) -> str:
        return self.ask("write-tree", index=True).decode("ascii").strip()

    def _behind_links(self, paths: Iterable[bytes]) -> Iterable[bytes]:
        """The paths of which a folder has become a link: git has no such file any more."""
        known: dict[bytes, bool] = {b"": False}

        def is_behind(folder: bytes) -> bool:
            if folder not in known:
                known[folder] = is_behind(os.path.dirname(folder)) or os.path.islink(
                    os.path.join(os.fsencode(self.top), folder)
                )
            return known[folder]

        return [path for path in paths if is_behind(os.path.dirname(path)) or self._is_special(path)]

    def _is_special(self, path: bytes) -> bool:
        """Whether there is a pipe, a device or a socket, which git does not know."""
        try:
            mode = os.lstat(os.path.join(os.fsencode(self.top), path)).st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))

    def _paths(self) -> Iterable[bytes]:
        """Every file that git knows or would take; a path that ends in `/` is a repository inside of this one."""
        listed = self.ask("ls-files", "-s", "-z", index=True).split(b"\0")
        known = [one.partition(b"\t")[2] for one in listed if one and not one.startswith(MODULE.encode())]
        others = self.ask("ls-files", "--others", "--exclude-standard", "-z", index=True).split(b"\0")
        return dict.fromkeys([*known, *(one for one in others if one and not one.endswith(b"/"))])

    def merged(self, ours: str, theirs: str) -> str:
        """The tree of a merge that touches no file; empty when it has conflicts."""
        done = self.run("merge-tree", "--write-tree", "--no-messages", ours, theirs)
        return done.stdout.decode("ascii", "replace").split("\n")[0] if done.returncode == 0 else ""

    def mixed(self, tree: str, other: str, paths: Iterable[str]) -> str:
        """`tree` with these paths as `other` has them."""
        self._unlock()
        self.ask("read-tree", tree, index=True)
        lines = []
        for path in paths:
            there = self.ask("ls-tree", "-r", "-z", "--full-tree", other, path).split(b"\0")[:-1]
            # A folder that has become a file, or the other way round, goes before what takes its place.
            lines += [b"0 " + b"0" * len(tree) + b"\t" + os.fsencode(path), *there]
        given = b"".join(line + b"\0" for line in lines)
        self.ask("update-index", "--replace", "-z", "--index-info", index=True, given=given)
        return self._written()

    def with_file(self, tree: str, path: str, text: str) -> str:
        """`tree` with another text in a file that it has."""
        content = text.encode("utf-8", "surrogateescape")
        blob = self.ask("hash-object", "-w", "--stdin", given=content).strip()
        self.stage(tree)
        there = self.ask("ls-tree", "-z", "--full-tree", tree, path).rstrip(b"\0")
        given = there.split(b" ")[0] + b" blob " + blob + b"\t" + os.fsencode(path) + b"\0"
        self.ask("update-index", "-z", "--index-info", index=True, given=given)
        return self._written()

    def stage(self, tree: str) -> None:
        """Let our own index be this tree, as a hook sees it."""
        self._unlock()
        self.ask("read-tree", tree, index=True)

    def diff(self, before: str, after: str, paths: Iterable[str]) -> str:
        """What differs in these paths, as a patch."""
        wanted, said = list(paths), b""
        for at in range(0, len(wanted), _ARGUMENTS):
            options = ("--text", "--no-color", "--no-ext-diff", "--no-textconv")
            said += self.ask("diff", *options, before, after, "--", *wanted[at : at + _ARGUMENTS])
        return said.decode("utf-8", "replace")

    def nested(self) -> list[str]:
        """The repositories inside of this one that it does not know."""
        said = self.ask("ls-files", "--others", "--exclude-standard", "-z", "--directory", "--no-empty-directory")
        paths = [os.fsdecode(one) for one in said.split(b"\0") if one.endswith(b"/")]
        return [one for one in paths if os.path.lexists(os.path.join(self.top, one, ".git"))]

    def commit(self, tree: str, parents: Iterable[str], message: str, date: str, *, sign: bool = False) -> str:
        """Make a commit that no branch has yet; the same values give the same commit, unless it is signed."""
        above = [word for parent in parents if parent for word in ("-p", parent)]
        done = self.run(
            "commit-tree",
            *(["-S"] if sign else []),
            *above,
            tree,
            given=message.encode("utf-8", "replace"),
            more={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
            within=SIGNING if sign else PATIENCE,
        )
        if done.returncode:
            raise wrong("commit-tree", done)
        return done.stdout.decode("ascii", "replace").strip()

    @property
    def signs(self) -> bool:
        """Whether commits are signed here."""
        return self.said("config", "--type=bool", "--get", "commit.gpgsign") == "true"

    def move(self, name: str, to: str, old: str | None = None, why: str = "raymond") -> None:
        """Let a reference name a commit; with `old`, only if it names that now. GitError when it does not."""
        before = [] if old is None else [old or "0" * len(to)]
        done = self.run("update-ref", "--no-deref", "-m", why, name, to, *before)
        if not done.returncode:
            return
        lock = os.path.join(git.directories(self.top)[name != "HEAD"], f"{name}.lock")
        if os.path.lexists(lock):
            shown = os.path.relpath(lock, self.top) if lock.startswith(f"{self.top}/") else lock
            hint = "wait until the other git has ended; if there is none, remove the file"
            raise GitError(f"{name} cannot be written, because there is a lock: {shown}", hint=hint)
        if old is not None and self.reference(name) != old:
            raise GitError(f"{name} was not moved: somebody has moved it meanwhile", hint="look at it, then try again")
        raise GitError(f"{name} cannot be written: {wrong('update-ref', done)}")

    def drop(self, name: str) -> None:
        """Remove a reference, if it is there."""
        self.run("update-ref", "--no-deref", "-d", name)

    def drop_all(self, prefix: str) -> None:
        """Remove every reference below `prefix`."""
        for name in git.lines(self.said("for-each-ref", "--format=%(refname)", prefix)):
            self.drop(name)

    def reference(self, name: str) -> str:
        """What a reference names; empty when there is none."""
        return self.said("rev-parse", "-q", "--verify", name)

    def worktrees(self) -> dict[str, str]:
        """The other worktrees, and the branch that each has checked out; empty for one without."""
        said = os.fsdecode(self.ask("worktree", "list", "--porcelain", "-z")).split("\0\0")
        blocks = [block.split("\0") for block in said if block]
        branches = {lines[0][9:]: [one[7:] for one in lines if one.startswith("branch ")] for lines in blocks}
        return {path: "".join(names) for path, names in branches.items() if path != self.top}

    def put(self, name: str, to: str) -> None:
        """Let a reference name a commit, or stand for another reference, if that can be done."""
        if to.startswith("refs/"):
            self.run("symbolic-ref", "-m", "raymond", name, to)
        else:
            with contextlib.suppress(GitError):
                self.move(name, to)

    def switch(self, branch: str) -> None:
        """Let HEAD name a branch; the files stay as they are."""
        self.ask("symbolic-ref", "-m", "raymond", "HEAD", f"refs/heads/{branch}")

    def is_branch_name(self, name: str) -> bool:
        """Whether a branch can be called so."""
        return self.run("check-ref-format", "--branch", name).returncode == 0

    def in_the_way(self, name: str) -> str:
        """The branch because of which none can have this name, as git keeps them like files and folders."""
        branches = git.lines(self.said("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"))
        clashes = (one for one in branches if name.startswith(f"{one}/") or one.startswith(f"{name}/"))
        return next(clashes, "")

    def add_worktree(self, path: str, branch: str) -> None:
        """Make a worktree of HEAD, with a new branch."""
        self.ask("worktree", "add", "-q", "-b", branch, path, "HEAD")

    def check_out(self, branch: str) -> None:
        """Check out another branch, with its files."""
        self.ask("switch", "-q", "--no-guess", branch)

    def bring_back(self, tree: str, paths: Iterable[str]) -> None:
        """Give these paths the content they have in `tree`; those it does not have are removed."""
        wanted = set(paths)
        if not wanted:
            return
        self.stage(tree)
        listed = self.ask("ls-files", "-s", "-z", index=True).split(b"\0")[:-1]
        modes = {os.fsdecode(path): about[:6] for about, _, path in (one.partition(b"\t") for one in listed)}
        for path in sorted(wanted.difference(modes)):
            self._remove(path)
        written = sorted(wanted.intersection(modes))
        narrow = {path: rights for path in written if modes[path][:3] == b"100" and (rights := self._narrow(path))}
        for umask, some in ((-1, [path for path in written if path not in narrow]), (0o077, list(narrow))):
            given = b"".join(os.fsencode(path) + b"\0" for path in some)
            if given:
                self.ask("checkout-index", "-f", "-q", "-z", "--stdin", index=True, given=given, umask=umask)
        for path, (mode, group) in narrow.items():
            self._share(path, mode, group)

    def _narrow(self, path: str) -> tuple[int, int] | None:
        """The mode and the group of a file that not everybody may read, which git does not know."""
        mode, group = documents.shared(os.path.join(self.top, path))
        return None if mode is None or mode & 0o044 == 0o044 else (mode, group)

    def _share(self, path: str, mode: int, group: int) -> None:
        """Let a file that git has written for us alone be as open as it was; whether it can be run is what git says."""
        with contextlib.suppress(OSError):  # somebody has put something else there meanwhile
            fd = os.open(os.path.join(self.top, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                readable = mode & 0o666 | 0o600
                runnable = (readable & 0o444) >> 2 if os.fstat(fd).st_mode & stat.S_IXUSR else 0
                documents.share(fd, readable | runnable, group)
            finally:
                os.close(fd)

    def _unlock(self) -> None:
        """Our own index has no other user: a lock was left by a git that was killed with us."""
        make_private(os.path.dirname(self.index))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.index}.lock")

    def _remove(self, path: str) -> None:
        whole = os.path.join(self.top, path)
        try:
            os.unlink(whole)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise GitError(f"{path}: {(error.strerror or '').lower()}", hint="remove it, then resume") from None
        above = os.path.dirname(path)
        while above:
            try:
                os.rmdir(os.path.join(self.top, above))
            except OSError:
                return
            above = os.path.dirname(above)
