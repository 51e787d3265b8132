"""A git directory of our own over the work tree of somebody else.

With a project's own settings, git may not see that a file changed (`trustctime`, `assume-unchanged`, replace refs),
or run what an agent has put there (hooks, filters, `core.fsmonitor`). Here are our own settings, index and attributes;
the project lends only its objects. Git does not compare them with their names, so only what is made of the files on the
disk, the hash of the tree, is true whatever an agent has written there; what a commit tracks, and what its history is,
are as true as the objects.
"""

import contextlib
import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping

from raymond.digests import sha256
from raymond.system import git
from raymond.system.files import contents, make_private, private, replace
from raymond.verifier.decides import SKIPPED

_GIT = "git"
PATIENCE = 300.0
"""Seconds for one question: a first look at a large repository reads all of it."""
_MOST_SHALLOW = 16 << 20
_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = false
\tfsmonitor = false
\tcommitGraph = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tuntrackedCache = false
\tcompression = 0
\tsafecrlf = false
[gc]
\tauto = 0
"""
_LONG_HASHES = b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding\n"
"""Files are what they are on disk."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

_BAD_FILE = b": bad config "
"""What git says of a file of settings that it does not understand."""

_SOON = 3.0
"""Seconds after which it is looked for what git may be waiting for."""
_HELD = 4096
"""Bytes that every pipe holds."""
_READ = (".gitignore", ".gitattributes", ".gitmodules")
"""What git reads by itself in a work tree."""

MOST = 1_000_000
"""Files of a tree; a home directory or a whole disk has more."""
_MOST_LOOSE = 100_000
"""Files of a directory that is no repository, which may be the wrong one."""


class PrivateGit:
    """Git, asked about the work tree at `top` through a directory that no agent can write to."""

    def __init__(self, path: str, top: str) -> None:
        self.path = path
        self.top = top
        self.removed: list[str] = []
        """Pipes that git would have waited for."""

    def prepare(self, commit: str) -> None:
        """Make it; `commit` is where the project stands."""
        for name in ("objects/info", "refs", "info"):
            make_private(os.path.join(self.path, name))
        lent = git.objects(self.top)
        files = {
            "HEAD": b"ref: refs/heads/sealed\n",
            "config": _CONFIG + (_LONG_HASHES if len(commit) == 64 else b""),
            "info/attributes": _ATTRIBUTES,
            "objects/info/alternates": os.fsencode(f"{lent}\n") if lent else b"",
        }
        for name, content in files.items():
            replace(os.path.join(self.path, name), content)
        shallow = os.path.join(os.path.dirname(lent), "shallow")
        if lent and os.path.isfile(shallow):
            replace(os.path.join(self.path, "shallow"), contents(shallow, _MOST_SHALLOW))

    def ignored(self, commit: str) -> tuple[frozenset[str], frozenset[str]]:
        """The folders and the single files that are ignored, less what `commit` tracks; none when git cannot tell."""
        with self._locked():
            if not commit or self._ask("read-tree", commit, index="tracked")[0] != 0:
                self._ask("read-tree", "--empty", index="tracked")
            code, said = self._ask(
                "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", index="tracked"
            )
        paths = [os.fsdecode(one) for one in said.split(b"\0") if one] if code == 0 else []
        folders = frozenset(path.rstrip("/") for path in paths if path.endswith("/"))
        return folders, frozenset(path for path in paths if not path.endswith("/"))

    def _forget(self) -> None:
        """Only their names are needed: without this, every version of every file would be kept."""
        objects = os.path.join(self.path, "objects")
        for name in os.listdir(objects):
            if len(name) == 2:
                import shutil

                shutil.rmtree(os.path.join(objects, name), ignore_errors=True)

    def tracks(self, commit: str, folder: str) -> bool:
        """Whether `commit` has anything in a folder."""
        return bool(commit and self._ask("ls-tree", "-r", "--name-only", "-z", commit, "--", folder)[1])

    def tracked(self) -> list[str]:
        """The files that the project had committed when this was made."""
        with self._locked():
            said = self._ask("ls-files", "-z", index="tracked")[1]
        return [os.fsdecode(one) for one in said.split(b"\0") if one]

    def tree(self) -> str:
        """The hash of the work tree as it stands, without what git ignores; empty when it cannot be told."""
        with self._locked():
            # `git add` would start git in repositories inside of the tree, with settings that an agent has written.
            listed = [self._ask("ls-files", "-z", index=index)[1] for index in ("tracked", "index")]
            listed.append(self._ask("ls-files", "--others", "--exclude-standard", "-z")[1])
            paths = dict.fromkeys(path for said in listed for path in said.split(b"\0") if path and path[-1:] != b"/")
            self._ask("update-index", "--add", "--remove", "-z", "--stdin", given=b"\0".join(paths))
            code, said = self._ask("write-tree", "--missing-ok")
            self._forget()
        return said.decode("ascii", "replace").strip() if code == 0 else ""

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time: agents of a run may be checked in the same directory."""
        fd = private(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            for name in ("tracked.lock", "index.lock"):  # of one that was killed
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.path, name))
            yield
        finally:
            os.close(fd)

    def _ask(self, *args: str, index: str = "index", given: bytes = b"") -> tuple[int | None, bytes]:
        """The exit code of git and what it printed; None when there is no git, or it took too long.

        `given` is its input.
        """
        return self._run(*args, index=index, given=given)[:2]

    def _run(self, *args: str, index: str = "index", given: bytes = b"") -> tuple[int | None, bytes, bytes]:
        """As `_ask`, with what it said of errors; a git that fails is asked again, since that may be the machine's."""
        done = self._once(*args, index=index, given=given)
        return self._once(*args, index=index, given=given) if done[0] not in (0, 1, None) else done

    def _once(self, *args: str, index: str, given: bytes) -> tuple[int | None, bytes, bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        ours = {
            "GIT_DIR": self.path,
            "GIT_WORK_TREE": self.top,
            "GIT_INDEX_FILE": os.path.join(self.path, index),
            **_ENVIRONMENT,
        }
        try:
            done = run_without_pipes(
                ["git", *args],
                self.top,
                self.removed,
                cwd=self.top,
                env={**kept, **ours},
                given=given,
                within=PATIENCE,
            )
        except FileNotFoundError:
            return None, b"", b""
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return None, b"", str(error).encode("utf-8", "replace")
        return done.returncode, done.stdout, done.stderr


def git_at(folder: str, top: str) -> PrivateGit:
    """The git directory for a tree among the seals of a run."""
    return PrivateGit(os.path.join(folder, f"{_GIT}-{short(top)}"), top)


def short(top: str) -> str:
    """A short name for a tree."""
    return sha256(os.fsencode(top)).hexdigest()[:12]


# Pipes in the place of files that git reads: it would wait for them for ever, and no git has a use for them


def run_without_pipes(
    argv: list[str],
    top: str,
    removed: list[str],
    *,
    within: float,
    env: Mapping[str, str],
    given: bytes = b"",
    cwd: str | None = None,
    own_session: bool = False,
    umask: int = -1,
) -> subprocess.CompletedProcess[bytes]:
    """Run git over the work tree at `top`, as `subprocess.run` does, and remove the pipes that it waits for.

    They are added to `removed`.
    """
    with (
        _source(given) as source,
        subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=own_session,
            umask=umask,
        ) as process,
    ):
        try:
            try:
                told = given if source == subprocess.PIPE else None
                out, err = process.communicate(told, timeout=min(_SOON, within))
            except subprocess.TimeoutExpired:
                removed += _remove(top)
                out, err = process.communicate(timeout=max(0.0, within - _SOON))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@contextlib.contextmanager
def _source(given: bytes) -> Iterator[int]:
    """Where git reads what it is given. Of what no pipe holds, the rest would not be written after the first wait."""
    if len(given) <= _HELD:
        yield subprocess.PIPE if given else subprocess.DEVNULL
        return
    import tempfile  # hardly any command is given so much

    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.flush()
        file.seek(0)
        yield file.fileno()


def _remove(top: str) -> list[str]:
    """Remove the pipes that git would read; whoever waits for one goes on."""
    found = list(_found(top))
    for path in found:
        with contextlib.suppress(OSError):
            # Whoever opens it has somebody at the other end now, and reads its end when that is closed.
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.unlink(path)
            finally:
                os.close(fd)
    return [os.path.relpath(path, top) for path in found]


def _found(top: str) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = [one for one in folders if one != ".git"]
        yield from (path for name in _READ if name in names and _is_pipe(path := os.path.join(folder, name)))
    for own in dict.fromkeys(one for one in git.directories(top) if one):
        for folder, folders, names in os.walk(own):
            folders[:] = [one for one in folders if one not in ("objects", "modules", "worktrees")]
            yield from (path for name in names if _is_pipe(path := os.path.join(folder, name)))


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False


# The tree of a check: the repository, or the directory alone, and every file in it


def top_of(cwd: str) -> str:
    """The top of the repository that holds `cwd`, if it is ours or git trusts it; without one, `cwd` itself."""
    return git.top(cwd) or cwd


def check_size(top: str, most: int = _MOST_LOOSE) -> None:
    """Refuse a directory that is no repository and has too many files, before anything of it is read."""
    for _ in walk(top, (), most):
        pass


def walk(top: str, skipped: Collection[str], most: int = MOST) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every folder below `top` but those of tools and `skipped`, with its files and its folders; names are relative.

    Links are files here: nothing is looked up behind them.
    """
    pending, seen = [""], 0
    while pending:
        folder = pending.pop()
        files, below = _entries(f"{top}/{folder}" if folder else top)
        seen += len(files) + len(below)
        if seen > most:
            raise OSError(
                errno.E2BIG, f"there are more than {most:,} files in {top}; run it in a repository of its own"
            )
        prefix = f"{folder}/" if folder else ""
        pending += [path for name in below if (path := f"{prefix}{name}") not in skipped and name not in SKIPPED]
        yield folder, files, below


def _entries(path: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(path) as found:
            for one in found:
                if one.name.isascii() or _is_text(one.name):
                    (folders if one.is_dir(follow_symlinks=False) else files).append(one.name)
    except OSError:  # it went away, or may not be read: then no check can read it either
        pass
    return files, folders


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8, as that of every file that a check is known to load."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
