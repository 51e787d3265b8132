"""A slot: the folder with one private tree of a run, everything about it, and the lock that says who is inside."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from raymond.errors import WorkspaceError
from raymond.language.ways import Way
from raymond.system import folders
from raymond.system.files import contents, make_private, private, replace
from raymond.system.processes import alive

SOON = 0.005
"""Seconds between two looks at something that ends soon."""
_ASIDE = ".dropped"
_LONG = 30.0
"""Seconds to wait for git to end that a killed process had started."""


class StillInside(WorkspaceError):
    """A step is at work in a tree."""


class Origin(Struct, frozen=True, kw_only=True):
    """What a tree began with: the content of the file `whole`, without which the tree is discarded."""

    way: Way
    """How steps work in it."""
    top: str
    """The person's checkout, at whose path a step finds the tree."""
    head: str
    """The commit that HEAD named there."""
    commit: str
    """The checkout as it stood, committed or not; the same as `head` if nothing was uncommitted."""
    tree: str
    """The tree of that commit."""
    installed: list[str] = []
    """Folders with installed packages: the person's, with a layer over them."""
    data: list[str] = []
    """Files and folders of the person that are shown read-only."""
    copied: list[str] = []
    """Small ignored files of the person's."""
    objects: list[str] = []
    """Folders of git with objects that steps need, besides those of the person's repository."""
    left_out: list[str] = []
    """What the checkout has and the tree does not: repositories inside of it."""
    kept: list[str] = []
    """Files and folders that are Raymond's to write: what a step does to them is not taken."""
    vouched: str = ""
    """The tree whose deciding files count in checks; empty for what the tree began with."""
    began: str = ""
    """The tree that installed packages belong to; empty for the one that the tree began with."""
    branch: str = ""
    """The branch that a step finds checked out; empty for the person's."""


class Slot(Struct, frozen=True):
    """The paths in the folder of a slot."""

    path: str
    at: str = ""
    """The directory that steps work in, if that is not in this folder."""
    is_apart: bool = False
    """Whether that directory is a tree of the run, and not the person's own."""

    @property
    def tree(self) -> str:
        """The files that a step works on."""
        return self.at or f"{self.path}/tree"

    @property
    def git(self) -> str:
        """Raymond's own git directory: no step can see it."""
        return f"{self.path}/git"

    @property
    def rules(self) -> str:
        """The `.gitignore` and `.gitattributes` files of the base, and nothing else."""
        return f"{self.path}/rules"

    @property
    def layer(self) -> str:
        """What steps wrote over folders of the person's."""
        return f"{self.path}/layer"

    def upper(self, name: str) -> str:
        """The one of these layers that has this name."""
        return f"{self.layer}/{name}/upper"

    def work(self, step: str) -> str:
        """What the kernel needs for that, while a step is inside."""
        return f"{self.path}/overlays/{step}"

    @property
    def programs(self) -> str:
        """The folders of the agents' programs: settings and conversations."""
        return f"{self.path}/programs"

    @property
    def seen(self) -> str:
        """The files of the tree as Raymond saw them last."""
        return f"{self.path}/seen"

    @property
    def apart(self) -> str:
        """There if the tree is apart."""
        return f"{self.path}/apart"

    @property
    def empty(self) -> str:
        """A file with nothing in it, to be shown instead of another."""
        return f"{self.path}/empty"

    @property
    def lock(self) -> str:
        """Held, shared, by whatever is inside; alone by whoever reads or removes the tree."""
        return f"{self.path}/lock"

    @property
    def inside(self) -> str:
        """The first process of each step that is inside, one file each."""
        return f"{self.path}/inside"

    def base(self) -> Origin | None:
        """What the tree began with; None when there is no whole tree."""
        try:
            return msgspec.convert(json.loads(contents(f"{self.path}/whole")), type=Origin)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise WorkspaceError(f"{self.path}/whole cannot be read: {error}") from None

    def complete(self, base: Origin) -> None:
        """The tree is there: from now on it counts."""
        # Not by msgspec: a path need not be text.
        text = json.dumps(msgspec.to_builtins(base))
        replace(f"{self.path}/whole", f"{text}\n".encode("ascii"), durable=True)

    def prepare(self) -> None:
        """Make the folder of a tree that is about to be made; what a killed process had begun is removed."""
        make_private(os.path.dirname(self.path))
        if os.path.lexists(self.path) or (self.is_apart and os.path.lexists(self.at)):
            with contextlib.suppress(FileNotFoundError), self.alone(patience=_LONG):
                pass
            self.discard()
        make_private(self.inside)
        make_private(self.programs)
        make_private(f"{self.layer}/upper")
        make_private(f"{self.layer}/work")
        for path in (self.lock, self.empty, *([self.apart] if self.is_apart else [])):
            with open(path, "xb", opener=private):
                pass

    def discard(self) -> None:
        """Remove everything. Renamed first, so that nothing takes a half of it for a whole one."""
        if self.is_apart:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}/whole")
            above, name = os.path.split(self.at)
            with contextlib.suppress(FileNotFoundError), folders.opened(above) as fd:
                folders.remove(name, fd)
            with contextlib.suppress(OSError):
                os.rmdir(above)
        above, name = os.path.split(self.path)
        with folders.opened(above) as fd:
            aside = f"{name}.{os.urandom(4).hex()}{_ASIDE}"
            with contextlib.suppress(FileNotFoundError):
                os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
            for left in os.listdir(fd):
                if left.endswith(_ASIDE):
                    folders.remove(left, fd)

    @contextlib.contextmanager
    def alone(self, *, patience: float = 0.0) -> Iterator[None]:
        """Nothing is inside while the block runs, and nothing enters. StillInside: something is.

        The commands of git that the block runs hold the lock, too: when we are killed, it is free when they have ended.
        """
        until = time.monotonic() + patience
        fd = os.open(self.lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            while not self._take(fd):
                if time.monotonic() >= until:
                    raise StillInside(f"a step is still at work in {self.tree}", hint="wait for it, or stop the run")
                time.sleep(SOON)
            os.set_inheritable(fd, True)
            yield
        finally:
            os.close(fd)

    def _take(self, fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # The kernel frees the lock of a killed process before it has ended what that process had started.
        for name in os.listdir(self.inside):
            if self.is_inside(name):
                fcntl.flock(fd, fcntl.LOCK_UN)
                return False
            os.unlink(f"{self.inside}/{name}")
        return True

    def is_inside(self, name: str) -> bool:
        """Whether the first process of a step is inside; when it is gone, the kernel has ended all others."""
        try:
            said = contents(f"{self.inside}/{name}")
        except FileNotFoundError:
            return False
        pid, _, began = said.decode("ascii", "replace").strip().partition(" ")
        return pid.isdigit() and alive(int(pid), began)
