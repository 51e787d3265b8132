"""Git with a directory, settings and an index of Raymond's own.

What an agent has had in its hands is never read through git: neither its `.git` nor, as a work tree, its files. Git is
given contents and names, and the rules of the base.
"""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from raymond.errors import WorkspaceError
from raymond.system import git
from raymond.system.files import contents, make_private, private, replace

_FORMAT = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {}\n"
_FIXED = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.untrackedCache": "false",
    "core.commitGraph": "false",
    "core.safecrlf": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.protectHFS": "true",
    "core.fsync": "committed,loose-object",
    "core.fsyncMethod": "batch",
    "gc.auto": "0",
    "index.version": "2",
}
_KEPT = ("core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode")
_KEPT_SECTIONS = ("filter.", "user.")
"""The person's settings that say what the content of a file is, or who they are. None of the others counts."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_FAULTS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Input/output error": errno.EIO,
    "Too many open files": errno.EMFILE,
    "Cannot allocate memory": errno.ENOMEM,
}
"""How git says that it is the machine that fails."""
_FULL = 1 << 20
"""Bytes below which a disk counts as full: what could not be written is larger, most likely."""
_ODD = frozenset('\n"#')
"""Signs with which a line of alternates must be quoted."""
_NOBODY = {"NAME": "Raymond", "EMAIL": "raymond@localhost"}


class Repository:
    """A git directory; the person's objects are lent to it."""

    def __init__(self, path: str, worktree: str) -> None:
        self.path = path
        self.worktree = worktree
        """Where git finds rules, unless a call says otherwise: never a tree that an agent works in."""

    def make(self, top: str, head: str) -> None:
        """Make it for the checkout at `top`."""
        for name in ("objects/info", "refs", "info"):
            make_private(f"{self.path}/{name}")
        common = git.directories(top)[1]
        settings = git.settings(top)
        attributes = f"{self.path}/attributes"
        fixed = [*_FIXED.items(), ("core.attributesFile", attributes)]
        replace(f"{self.path}/HEAD", b"ref: refs/heads/raymond\n")
        replace(f"{self.path}/config", configuration(head, [*contents_settings(settings), *fixed]))
        replace(f"{self.path}/objects/info/alternates", alternates([f"{common}/objects"]))
        ignored = [_own(dict(settings), "core.excludesfile", "ignore"), _content(f"{common}/info/exclude")]
        replace(f"{self.path}/info/exclude", b"\n".join([*ignored, b"/.raymond", b""]))
        replace(f"{self.path}/info/attributes", _content(f"{common}/info/attributes"))
        replace(attributes, _own(dict(settings), "core.attributesfile", "attributes"))
        shallow = _content(f"{common}/shallow")
        if shallow:
            replace(f"{self.path}/shallow", shallow)

    def ask(
        self,
        *args: str,
        given: bytes = b"",
        worktree: str = "",
        index: str = "index",
        env: Mapping[str, str] = {},
        fails: Iterable[int] = (),
        seconds: float | None = None,
    ) -> bytes:
        """What git printed; WorkspaceError when its exit code is neither 0 nor among `fails`, or its time is over."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        where = worktree or self.worktree
        ours = {
            "GIT_DIR": self.path,
            "GIT_WORK_TREE": where,
            "GIT_INDEX_FILE": os.path.join(self.path, index),
            **_ENVIRONMENT,
            **env,
        }
        return call(["git", *args], where, {**kept, **ours}, given, fails, seconds)

    def has_attributes(self, rules: str) -> bool:
        """Whether anybody says how contents are converted: the person, or a file among the `rules`."""
        if any(os.path.getsize(f"{self.path}/{name}") for name in ("info/attributes", "attributes")):
            return True
        return any(".gitattributes" in names for _, _, names in os.walk(rules))

    def commit(self, tree: str, parents: Sequence[str], message: str, time: float) -> str:
        """The commit of a tree; the same one for the same arguments."""
        known = self.ask("config", "--get-regexp", "^user\\.(name|email)$", fails=[1])
        env = {}
        for what in ("AUTHOR", "COMMITTER"):
            env[f"GIT_{what}_DATE"] = f"@{int(time)} +0000"
            for name, default in _NOBODY.items():
                if f"user.{name.lower()} ".encode() not in known:
                    env[f"GIT_{what}_{name}"] = default
        above = [word for parent in parents for word in ("-p", parent)]
        return (
            self.ask("commit-tree", tree, *above, given=message.encode("utf-8", "replace"), env=env)
            .decode("ascii")
            .strip()
        )

    def entries(self, tree: str) -> dict[bytes, bytes]:
        """Every file of a tree: path -> mode and blob."""
        found = {}
        for line in self.ask("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
            about, path = line.split(b"\t", 1)
            mode, _, blob = about.split(b" ")
            found[path] = mode + b" " + blob
        return found

    def changes(self, old: str, new: str, within: Iterable[str] = ()) -> dict[bytes, tuple[bytes, bytes]]:
        """Every path that differs between trees -> mode and blob before and after; nothing where there is no file.

        `within` are the files and folders that are asked about; all without any.
        """
        if old == new:
            return {}
        said = self.ask("diff-tree", "-r", "-z", "--no-renames", old, new, "--", *within).split(b"\0")
        found = {}
        for about, path in zip(said[0::2], said[1::2], strict=False):
            old_mode, new_mode, before, after, _ = about.lstrip(b":").split(b" ")
            found[path] = _entry(old_mode, before), _entry(new_mode, after)
        return found

    def write_out(self, wanted: Mapping[bytes, bytes], to: str) -> None:
        """Write files (path -> mode and blob) below `to`, by the attributes of the work tree.

        Attributes among these files would come first, and could run filters of the person's: git does not see them.
        """
        rules = {path for path in wanted if os.path.basename(path) == b".gitattributes"}
        index = f"aside.{os.urandom(4).hex()}"
        try:
            given = b"".join(b"%s\t%s\0" % (one, path) for path, one in wanted.items() if path not in rules)
            self.ask("update-index", "-z", "--index-info", given=given, index=index)
            self.ask("checkout-index", "-a", f"--prefix={to}/", index=index)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}/{index}")
        for path in rules:
            mode, blob = wanted[path].split(b" ")
            content = self.ask("cat-file", "blob", blob.decode("ascii"))
            target = os.path.join(os.fsencode(to), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if mode == b"120000":
                os.symlink(content, target)
                continue
            with open(target, "xb", opener=partial(os.open, mode=0o777 if mode == b"100755" else 0o666)) as file:
                file.write(content)

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return self.trees_of(commit)[0]

    def trees_of(self, *commits: str) -> list[str]:
        """The trees of some commits."""
        return self.ask("rev-parse", *(f"{one}^{{tree}}" for one in commits)).decode("ascii").split()

    def written(self) -> str:
        """The tree of the index."""
        return self.ask("write-tree").decode("ascii").strip()

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of some objects."""
        said = self.ask("cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode("ascii"))
        found, at = dict[str, bytes](), 0
        while at < len(said):
            end = said.index(b"\n", at)
            name, _, size = said[at:end].split()
            at = end + 2 + int(size)
            found[name.decode("ascii")] = said[end + 1 : at - 1]
        return found

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """How long some objects are."""
        given = "".join(f"{name}\n" for name in names).encode("ascii")
        said = self.ask("cat-file", "--batch-check=%(objectname) %(objectsize)", given=given)
        return {name.decode("ascii"): int(size) for name, size in map(bytes.split, said.splitlines())}

    def put(self, mode: bytes, content: bytes) -> bytes:
        """The mode and blob of a file with this content."""
        return mode + b" " + self.ask("hash-object", "-w", "--stdin", "--no-filters", given=content).strip()

    def put_all(self, files: Mapping[str, tuple[bytes, bytes]]) -> dict[str, bytes]:
        """The same for several: name -> mode and content."""
        if not files:
            return {}
        aside = f"{self.path}/aside.{os.urandom(4).hex()}"
        make_private(aside)
        try:
            paths = [f"{aside}/{number}" for number in range(len(files))]
            for path, (_, content) in zip(paths, files.values(), strict=True):
                with open(path, "xb", opener=private) as file:
                    file.write(content)
            given = "".join(f"{_quoted(path)}\n" for path in paths)
            said = self.ask("hash-object", "-w", "--no-filters", "--stdin-paths", given=os.fsencode(given)).split()
        finally:
            shutil.rmtree(aside)
        return {name: mode + b" " + blob for (name, (mode, _)), blob in zip(files.items(), said, strict=True)}

    def changed(self, tree: str, lines: Mapping[str, bytes]) -> str:
        """A tree with other files at some paths: none where there is no mode and blob."""
        if not lines:
            return tree
        index = f"aside.{os.urandom(4).hex()}"
        # What goes comes first: a folder may take the place of a file.
        given = [b"0 %s\t%s\0" % (b"0" * len(tree), os.fsencode(path)) for path in lines]
        given += [b"%s\t%s\0" % (one, os.fsencode(path)) for path, one in lines.items() if one]
        try:
            self.ask("read-tree", tree, index=index)
            self.ask("update-index", "-z", "--index-info", given=b"".join(given), index=index)
            return self.ask("write-tree", index=index).decode("ascii").strip()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}/{index}")

    def empty_tree(self) -> str:
        """The tree without a file."""
        return self.ask("hash-object", "-w", "-t", "tree", "--stdin").decode("ascii").strip()

    def merged(self, ours: str, theirs: str) -> tuple[str, list[str]]:
        """The tree of a merge of two commits, and the paths in which they conflict; no file is touched."""
        said = self.ask("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs, fails=[1])
        tree, *paths = said.split(b"\0")[:-1]
        return tree.decode("ascii"), [os.fsdecode(path) for path in dict.fromkeys(paths) if path]


def _entry(mode: bytes, blob: bytes) -> bytes:
    return b"" if mode == b"000000" else mode + b" " + blob


def contents_settings(settings: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the person's settings that count in a repository of Raymond's."""
    return [(key, value) for key, value in settings if key in _KEPT or key.startswith(_KEPT_SECTIONS)]


def configuration(head: str, settings: Iterable[tuple[str, str]]) -> bytes:
    """The text of a file of settings, for a repository with names of objects like `head`."""
    lines = [_FORMAT.format("sha256" if len(head) == 64 else "sha1")]
    for key, value in settings:
        section, _, rest = key.partition(".")
        middle, _, name = rest.rpartition(".")
        lines.append(f"[{section} {_quoted(middle)}]\n" if middle else f"[{section}]\n")
        lines.append(f"\t{name} = {_quoted(value)}\n")
    return os.fsencode("".join(lines))


def alternates(folders: Iterable[str]) -> bytes:
    """The text of a file that names folders with objects of others."""
    return os.fsencode("".join(f"{_quoted(one) if set(one) & _ODD else one}\n" for one in folders))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def call(
    argv: list[str],
    cwd: str,
    env: Mapping[str, str],
    given: bytes = b"",
    fails: Iterable[int] = (),
    seconds: float | None = None,
    *,
    tells: bool = False,
) -> bytes:
    """What a command of git printed, or with `tells` its exit code.

    OSError: the machine had no room; WorkspaceError: git failed.
    """
    words = " ".join([argv[0], *(one for one in argv[1:] if not one.startswith("-") and "=" not in one)][:2])
    try:
        # It inherits the lock of the tree: see Slot.alone.
        done = subprocess.run(
            argv, cwd=cwd, env=env, input=given, capture_output=True, close_fds=False, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise WorkspaceError(f"`{words}` took longer than {seconds:g}s") from None
    if done.returncode == 0 or done.returncode in fails:
        return b"%d" % done.returncode if tells else done.stdout
    said = done.stderr.decode("utf-8", "replace").strip()
    for text, number in _FAULTS.items():
        # Where a file cannot be written, git does not always say why.
        if text in said or (number == errno.ENOSPC and (is_full(cwd) or is_full(env.get("GIT_DIR", cwd)))):
            raise OSError(number, os.strerror(number), cwd)
    raise WorkspaceError(f"`{words}` failed: {said.splitlines()[-1] if said else f'exit code {done.returncode}'}")


def is_full(path: str) -> bool:
    """Whether the disk of a folder has no room."""
    try:
        return shutil.disk_usage(path).free < _FULL
    except OSError:
        return False


def _content(path: str) -> bytes:
    try:
        return contents(os.path.realpath(path))
    except OSError:
        return b""


def _own(settings: Mapping[str, str], key: str, name: str) -> bytes:
    """The rules that the person has for all repositories."""
    default = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return _content(os.path.expanduser(settings.get(key) or os.path.join(default, "git", name)))
