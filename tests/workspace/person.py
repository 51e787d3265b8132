"""A person with a home, a project, another repository and a folder to push to; root, or an ordinary user."""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

import raymond
from running import PATIENCE

HERE = Path(__file__).resolve().parent
ANYONE = 64207
"""An id that no account has."""
_AS_USER = [sys.executable, "-I", "-S", str(HERE / "as_user.py")]
_NEEDED = ":".join(
    dict.fromkeys([sys.prefix, sys.base_prefix, str(Path(raymond.__file__).resolve().parent.parent), str(HERE.parent)])
)
_GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
_NAMES = {f"GIT_{who}_{what}": "Ann" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_OFTEN = {
    "README": "read me\n",
    "src/app.py": "answer = 42\n",
    ".gitignore": ".env\nnode_modules/\n.venv/\ndist/\n*.bin\n",
}
Test = TypeVar("Test")
Entry = tuple[int, int, int, str]
"""Mode, owner, time of change in nanoseconds, and a digest of the content or the target of the link."""


class Person:
    """Someone who uses Raymond in a project; everything lies below one folder, outside of /tmp."""

    def __init__(self, folder: Path, user: int) -> None:
        self.folder, self.user = folder, user
        self.home, self.project = folder / "home", folder / "project"
        self.raymond_home = self.home / ".local/state/raymond"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAYMOND", "XDG_", "GIT_"))},
            **_GIT,
            "HOME": str(self.home),
            "TEST_PERSON": str(folder),
        }
        if user != os.geteuid():
            os.chown(folder, user, user)
        self.home.mkdir(0o700)
        self.own(self.home)

    # --- what they do

    @property
    def before(self) -> list[str]:
        """What a command of the person's begins with, if somebody else starts it."""
        return [] if self.user == os.geteuid() else [*_AS_USER, str(self.user), _NEEDED]

    def call(self, *argv: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run a command as this person, in their project if there is one."""
        where = given.pop("cwd", self.project if self.project.is_dir() else self.folder)
        options = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": PATIENCE, "check": False, **given}
        env = {**self.environment, **options.pop("environment", {})}
        return subprocess.run([*self.before, *argv], cwd=where, env=env, text=True, errors="surrogateescape", **options)

    def sh(self, script: str, **given: Any) -> str:
        """What a script of the person's own prints."""
        environment = {**_NAMES, **given.pop("environment", {})}
        done = self.call("/bin/sh", "-euc", dedent(script), environment=environment, **given)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def git(self, *args: str, **given: Any) -> str:
        """What git prints for the person."""
        done = self.call("git", *args, environment=_NAMES, **given)
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout

    def write(self, path: str | Path, text: str | bytes = "", mode: int = 0o644) -> Path:
        """A file of the person's; a relative path is one of the project."""
        whole = self.project / path
        made = [one for one in (whole, *whole.parents) if not one.exists()]
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(text.encode() if isinstance(text, str) else text)
        whole.chmod(mode)
        self.own(*made, whole)
        return whole

    def own(self, *paths: Path) -> None:
        """Let files be the person's, although root made them."""
        if self.user != os.geteuid():
            for path in paths:
                os.chown(path, self.user, self.user, follow_symlinks=False)

    def begin(self, files: Mapping[str, str | bytes] = {}, *options: str) -> "Person":
        """Make a project with a commit of these files."""
        self.project.mkdir(parents=True, exist_ok=True)
        self.own(self.project)
        self.sh(f"git init -q -b main {' '.join(options)} .")
        for path, text in {**_OFTEN, **files}.items():
            self.write(path, text)
        self.sh("git add -A && git commit -qm first")
        return self

    def furnish(self) -> "Person":
        """Add keys, another repository and a folder to push to."""
        for path, mode in ((".ssh/id", 0o600), (".bashrc", 0o644), (".netrc", 0o600), (".config/git/config", 0o644)):
            self.write(self.home / path, f"{path} of the person\n" if "git" not in path else "", mode)
        other, remote = self.folder / "other", self.folder / "remote.git"
        self.sh(
            f"""
            git clone -q --bare --no-hardlinks . '{remote}'
            git clone -q --no-hardlinks '{remote}' '{other}'
            git remote add origin '{remote}'
            git fetch -q
            git branch kept
            git tag v1
            echo stashed > README
            git stash -q
            """
        )
        return self

    # --- Raymond

    def raymond(self, *args: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """The command line."""
        return self.call(sys.executable, "-m", "raymond", *args, **given)

    def flow(self, script: str, settings: str = "", name: str = "flow", file: str = "START.sh") -> str:
        """A workflow of one script."""
        folder = self.folder / name
        self.write(folder / file, dedent(script))
        self.write(folder / "workflow.yaml", dedent(settings) or "{}\n")
        return str(folder)

    def run(self, script: str, *args: str, settings: str = "", id: str = "r", **given: Any) -> "subprocess.CompletedProcess[str]":  # fmt: skip
        """Run a script in a workspace of its own, to its end: it succeeds unless it says otherwise."""
        whole = f"{dedent(script)}\necho '<result>done</result>'\n"
        return self.raymond("run", self.flow(whole, settings), "--id", id, "--workspace", "isolated", *args, **given)

    def ran(self, script: str, *args: str, **given: Any) -> str:
        """The same; it has to complete. What it left in its tree is under the reference of the run."""
        done = self.run(script, *args, **given)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def saved(self, path: str, id: str = "r") -> str:
        """A file as the run saved it."""
        return self.git("show", f"refs/raymond/{id}/tip:{path}")

    # --- a workspace without a run

    @property
    def slot(self) -> Path:
        """Where the tree lies that `inside` uses."""
        return self.raymond_home / "place/1"

    @property
    def tree(self) -> Path:
        """The files of that tree."""
        return self.slot / "tree"

    def visit(self, do: str, argv: Iterable[str] = (), **given: Any) -> subprocess.CompletedProcess[str]:
        asked = {name: given.pop(name) for name in ("top", "cwd", "carry", "lend", "net") if name in given}
        return self.call(*self.visiting(argv, do=do, **asked), cwd="/", **given)

    def visiting(self, argv: Iterable[str], do: str = "call", **asked: Any) -> list[str]:
        """The command that does something with the tree."""
        whole = {
            "do": do,
            "folder": str(self.slot.parent),
            "top": str(self.project),
            "raymond": str(self.raymond_home),
            "cwd": str(self.project),
            "argv": list(argv),
            "carry": [],
            "lend": [],
            "net": "on",
            **asked,
        }
        return [sys.executable, str(HERE / "visit.py"), json.dumps(whole, default=str)]

    def inside(self, script: str, **given: Any) -> str:
        """What a script prints that works in the tree; the tree is made before, if there is none."""
        done = self.visit("call", ["/bin/sh", "-c", dedent(script)], **given)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def python_inside(self, script: str, **given: Any) -> Any:
        """What a Python script prints as JSON that works in the tree."""
        done = self.visit("call", [sys.executable, "-I", "-c", dedent(script)], **given)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def make_tree(self, **given: Any) -> dict[str, Any]:
        """Make the tree; what was refused, if it was."""
        done = self.visit("call", **given)
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def harvest(self) -> dict[str, Any]:
        """Take what is in the tree, and save it under `refs/raymond/r/tip`."""
        done = self.visit("harvest")
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def taken(self) -> dict[str, str]:
        """Take what is in the tree: path -> what differs from what it began with (A, M, D, T)."""
        tree = self.harvest()["tree"]
        said = self.git("diff-tree", "-r", "-z", "--no-renames", "--name-status", "refs/raymond/r/base", tree).split(
            "\0"
        )
        return dict(zip(said[1::2], said[0::2], strict=False))

    # --- what they have

    def possessions(self) -> dict[str, Entry]:
        """Every file below the folder, but for what Raymond may write: see the end of the rules."""
        found = {}
        for path, entry in walked(self.folder):
            if not _may_be_written(path):
                found[path] = entry
        return found

    def processes(self) -> list[int]:
        """Every process that was started for this person and has not ended."""
        mark = f"TEST_PERSON={self.folder}".encode()
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
        return found

    def leave(self) -> None:
        """End what is left, and remove everything."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        for above, _, _ in os.walk(self.folder):
            with contextlib.suppress(OSError):
                os.chmod(above, 0o700)
        shutil.rmtree(self.folder, ignore_errors=True)


def _may_be_written(path: str) -> bool:
    """Whether Raymond may write this: what it keeps of the run `r`, its references and the objects that these need."""
    above = ("project/.raymond", "project/.git/refs/raymond", "project/.git/objects", "flow")
    if any(path == one or path.startswith(f"{one}/") for one in above):
        return True
    raymond = path.removeprefix("home/.local")
    return raymond != path and "/runs/earlier/" not in raymond


def walked(top: Path) -> Iterator[tuple[str, Entry]]:
    """Everything below a folder, without following links; times of folders are left out, as reading is no change."""
    for above, names, files in os.walk(os.fsencode(top)):
        for name in [*names, *files]:
            path = os.path.join(above, name)
            found = os.lstat(path)
            is_folder = stat.S_ISDIR(found.st_mode)
            time = 0 if is_folder else found.st_mtime_ns
            content = os.readlink(path) if stat.S_ISLNK(found.st_mode) else b""
            if stat.S_ISREG(found.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            digest = hashlib.sha256(content).hexdigest()
            yield os.fsdecode(os.path.relpath(path, os.fsencode(top))), (found.st_mode, found.st_uid, time, digest)


@cache
def _why_not(user: int) -> str:
    """Why no step of this user can be isolated on this machine; empty when it can."""
    if user != os.geteuid():
        if os.geteuid() != 0:
            return "the tests do not run as root"
        argv = [*_AS_USER, str(user), _NEEDED, sys.executable, "-c", "import raymond"]
        done = subprocess.run(argv, capture_output=True, text=True, cwd="/", check=False)
        if done.returncode != 0:
            return f"an ordinary user cannot start this Python: {done.stderr[-200:]}"
    with tempfile.TemporaryDirectory(prefix="raymond-probe-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        os.chown(folder, user, user)
        program = f"from raymond.workspace import ability; print(ability.probe({folder!r} + '/p').problem)"
        before = [] if user == os.geteuid() else [*_AS_USER, str(user), _NEEDED]
        done = subprocess.run(
            [*before, sys.executable, "-c", program], capture_output=True, text=True, cwd="/", check=False
        )
        return done.stdout.strip() or done.stderr.strip()[-200:]


KINDS = ("root", "user")


def daily(test: Test) -> Test:
    """Let `make test` run a test with a person in it; `make test-slow` runs the others."""
    test.daily = True  # type: ignore[attr-defined]
    return test


@contextlib.contextmanager
def moved_in(kind: str) -> Iterator[Person]:
    """A person of this kind, gone after the block; skipped where there can be none."""
    user = 0 if kind == "root" else os.geteuid() or ANYONE
    if why := _why_not(user):
        pytest.skip(f"{kind}: {why}")
    folder = Path(tempfile.mkdtemp(prefix="raymond-", dir="/var/tmp"))
    folder.chmod(0o755)
    person = Person(folder, user)
    try:
        yield person
    finally:
        person.leave()
