"""Where the steps of a run work: in a tree of their own, or in the person's directory."""

import contextlib
import marshal
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from time import monotonic, sleep

from raymond.errors import WorkspaceError
from raymond.language.ways import Way
from raymond.system import folders, terminals
from raymond.system.files import contents, private
from raymond.workspace import harvest, publish, tree
from raymond.workspace.harvest import Harvest
from raymond.workspace.repository import Repository, is_full
from raymond.workspace.slot import SOON, Origin, Slot

PATIENCE = 2.0
"""Seconds to wait for what is inside of a tree to end."""
_ANSWER = 10.0
"""Seconds for what is asked inside."""
_ENTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.py")


class Place:
    """The tree of a run, for the steps that work in one. Until `open` was called there may be none."""

    def __init__(
        self,
        folder: str,
        top: str,
        run: str,
        raymond: str,
        way: Way,
        slot: str = "1",
        saves: str = "tip",
        *,
        is_apart: bool = False,
    ) -> None:
        self.folder = folder
        self._slot = Slot(f"{folder}/{slot}", top if way == "here" else "")
        self._is_apart = is_apart
        """Whether a tree that is made is to be in the project."""
        self.way = way
        self.saves = saves
        """The last part of the reference that the work is saved under."""
        self.top = top
        self.run = run
        self.raymond = raymond

    @property
    def slot(self) -> Slot:
        """The folder of the tree."""
        if not self._slot.is_apart and (self._is_apart or os.path.exists(self._slot.apart)):
            # A program asks about each edit outside of the directory that it was started in.
            self._slot = Slot(self._slot.path, f"{self.top}/.raymond/work/{self.run}", is_apart=True)
        return self._slot

    @property
    def is_there(self) -> bool:
        """Whether there is a whole tree."""
        return os.path.exists(f"{self.slot.path}/whole")

    @property
    def is_left(self) -> bool:
        """Whether there is a tree, or what a kill has left of one."""
        return os.path.exists(os.path.dirname(self.slot.path))

    def open(self, carry: list[str], tell: Callable[[str], None], time: float) -> Origin:
        """The tree, made if there is none."""
        if self.is_there:
            return self.known()
        return tree.make(self.slot, self.top, self.run, carry=carry, way=self.way, tell=tell, time=time)

    def known(self) -> Origin:
        """What a tree that is there began with."""
        base = self.slot.base()
        if base is None:
            raise WorkspaceError(f"there is no tree in {self.slot.path}")
        base = base if base.top == self.top else tree.moved(self.slot, base, self.top)
        self.way = base.way
        return base

    @property
    def tip(self) -> str:
        """The reference of the person's repository that holds the work."""
        return f"refs/raymond/{self.run}/{self.saves}"

    def outside(self, path: str) -> str:
        """Where a path of the project is on this machine for a step that works in the tree."""
        if path == self.top:
            return self.slot.tree
        inside = path.removeprefix(f"{self.top.rstrip('/')}/")
        return path if inside == path else f"{self.slot.tree}/{inside}"

    def project(self, path: str) -> str:
        """The path in the project of one in the tree."""
        return f"{self.top}{path[len(self.slot.tree) :]}" if f"{path}/".startswith(f"{self.slot.tree}/") else path

    def program(self, name: str) -> str:
        """The folder of an agent's program in this run."""
        return f"{self.slot.programs}/{name}"

    def entered(
        self,
        argv: list[str],
        *,
        way: Way,
        cwd: str,
        name: str,
        environment: Mapping[bytes, bytes],
        shown: Mapping[str, bool] = {},
        written: Mapping[str, str] = {},
        installed: str = "",
        only_reads: bool = False,
        net: str = "on",
        aside: str,
    ) -> tuple[list[str], str]:
        """What to start, and in which directory, so that `argv` runs in `cwd` of the tree. `aside` holds the plan."""
        if way != "isolated":
            return argv, self.outside(cwd)
        from raymond.workspace import plan  # only what enters needs it

        made = plan.make(
            self.slot,
            self.known(),
            cwd=cwd,
            home=os.path.expanduser("~"),
            raymond=self.raymond,
            environment=environment,
            shown=shown,
            written=written,
            installed=installed,
            only_reads=only_reads,
            net=net,
            name=name,
        )
        with open(aside, "wb", opener=private) as file:
            marshal.dump(made, file)
        return [sys.executable, "-I", "-S", _ENTER, aside, *argv], "/"

    def call(
        self, argv: list[str], cwd: str, environment: Mapping[bytes, bytes], shown: Mapping[str, bool], net: str
    ) -> int:
        """Run a command in the tree for a person who types; its exit code."""
        name = f"shell-{os.getpid()}"
        aside = f"{self.slot.path}/{name}.plan"
        argv, start_in = self.entered(
            argv, way=self.way, cwd=cwd, name=name, environment=environment, shown=shown, net=net, aside=aside
        )
        try:
            code = terminals.run(argv, start_in, environment)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(aside)
        if why := self.refusal(name, code):
            raise WorkspaceError(f"the workspace cannot be entered: {why.strerror}")
        return code

    def said(self, argv: list[str], cwd: str) -> list[str]:
        """The lines that a command prints where agents work; none if it fails."""
        name = f"ask-{os.getpid()}"
        aside = f"{self.slot.path}/{name}.plan"
        environment = {b"PATH": os.environb.get(b"PATH", b"")}
        argv, start_in = self.entered(
            argv, way=self.way, cwd=cwd, name=name, environment=environment, only_reads=True, aside=aside
        )
        try:
            done = subprocess.run(
                argv, cwd=start_in, env=environment, capture_output=True, timeout=_ANSWER, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        finally:
            with contextlib.suppress(OSError):
                os.unlink(aside)
        is_told = self.refusal(name, done.returncode) is None and done.returncode == 0
        return done.stdout.decode("utf-8", "replace").splitlines() if is_told else []

    def refusal(self, name: str, exit_code: int | None) -> OSError | None:
        """Why a step could not enter; None when it could. Nothing of it is inside any more."""
        until = monotonic() + PATIENCE
        while self.slot.is_inside(name) and monotonic() < until:
            sleep(SOON)  # the process that we have started was killed alone, and the kernel ends what is inside
        with contextlib.suppress(OSError), folders.opened(os.path.dirname(self.slot.work(name))) as works:
            folders.remove(name, works)
        path = f"{self.slot.path}/report.{name}"
        try:
            said = contents(path, 1 << 16).decode("utf-8", "replace")
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.unlink(path)
        number, _, text = said.partition(" ")
        if not number.isdigit():
            return None
        from raymond.workspace import enter  # it needs ctypes, and hardly any step is refused

        return OSError(int(number), text) if exit_code == enter.FAILED else None

    @property
    def is_full(self) -> bool:
        """Whether the disk that it lies on has no room."""
        return is_full(self.slot.path)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is at work in the tree while the block runs. WorkspaceError: something still is."""
        return self.slot.alone(patience=PATIENCE)

    def harvest(self) -> Harvest:
        """Take what is in the tree now. The caller has it alone."""
        if not os.path.isdir(self.top):
            raise WorkspaceError(f"{self.top} is gone")
        return harvest.harvest(self.slot, self.known())

    def save(self, taken: Harvest, message: str, time: float) -> str:
        """Put what was taken under a reference of the person's repository; its commit, empty if nothing changed.

        The caller still has the tree alone.
        """
        base = self.known()
        repository = Repository(self.slot.git, self.slot.rules)
        commit = base.commit
        if taken.tree != base.tree:
            commit = repository.commit(taken.tree, [base.commit], message, time)
        elif not publish.held(base.top, self.tip):
            return ""
        publish.hold(repository, base.top, self.tip, commit, base.commit)
        return commit

    def size(self) -> int:
        """Bytes that it takes on the disk."""
        found = 0
        for folder in [self.slot.path, *([self.slot.at] if self.slot.is_apart else [])]:
            for above, _, names in os.walk(folder):
                for name in names:
                    with contextlib.suppress(OSError):
                        found += os.lstat(os.path.join(above, name)).st_blocks * 512
        return found

    def drop(self) -> None:
        """Remove the tree and the checkout of its checks.

        Everything that counts is under a reference, and the caller has had the tree alone since.
        """
        self.slot.discard()
        with contextlib.suppress(FileNotFoundError), folders.opened(self.folder) as fd:
            for name in os.listdir(fd):
                folders.remove(name, fd)
        with contextlib.suppress(OSError), folders.opened(os.path.dirname(os.path.dirname(self.slot.path))) as above:
            os.rmdir(os.path.basename(os.path.dirname(self.slot.path)), dir_fd=above)
