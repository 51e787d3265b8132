"""The snapshot of a run's workflow: kept once for all runs of it, in the folder of each, and unpacked for its scripts.

An unpacked workflow is read-only, shared by all runs of it, and exactly what its snapshot says. What was compared once
is trusted while inode, size and time of change stand. Whatever else is found there is replaced, so that nobody who can
write files decides what runs next.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep
from typing import TypeAlias

from raymond.errors import JournalError, WorkflowError
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run
from raymond.store import blobs, exports, loader, zips
from raymond.store.home import Home
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.system import files, folders
from raymond.system.files import make_private, trouble, write_all

_NEXT = ".next"
"""Ends the name of a snapshot that a run is about to change to."""

Facts: TypeAlias = tuple[int, int, int, int]
"""Inode, size, time of change and mode."""
ALL_EVERY = 1.0
"""Seconds between two looks at all files; the one that is started is looked at every time."""
CLAIMED = 2.0
"""Seconds that `clean` may claim a folder; whoever does it longer is not `clean`."""
_TRIES = 20
_NO_FACTS = (0, 0, 0, 0)


# The snapshot of a run's workflow: kept once for all runs of it, and in the folder of each


def put(folder: RunFolder, loaded: "Loaded") -> None:
    """Put the snapshot into the folder of a run: as a link to the one that all runs share, else as a copy."""
    _put(folder, loaded, folder.source)


def prepare(folder: RunFolder, loaded: "Loaded") -> None:
    """Keep the snapshot beside the one in use, until the journal says that the run changes to it."""
    _put(folder, loaded, folder.source + _NEXT)
    files.sync_folder(folder.path)


def _put(folder: RunFolder, loaded: "Loaded", path: str) -> None:
    shared, data = _shared(folder.home, loaded.digest), loaded.source
    if not _has_content(shared, data):
        files.replace(shared, data, durable=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    try:
        os.link(shared, path)
    except OSError:
        # There are no links here, or `clean` was faster.
        files.replace(path, data, durable=True)


def use_prepared(folder: RunFolder) -> None:
    """The journal says so: the prepared snapshot is the one in use. The one before stays: a repair may need it."""
    with contextlib.suppress(FileNotFoundError):
        # After a repair it need not be the one that the journal named last.
        os.rename(folder.source, _former(folder, _digest(folder.source) or "unknown"))
    os.replace(folder.source + _NEXT, folder.source)


def settle_prepared(folder: RunFolder, digest: str) -> None:
    """Finish or undo what a process that was killed had prepared; the journal names `digest`."""
    if not os.path.lexists(folder.source + _NEXT):
        return
    if _digest(folder.source) != digest and _digest(folder.source + _NEXT) == digest:
        use_prepared(folder)
    else:
        os.unlink(folder.source + _NEXT)


def read(folder: RunFolder, digest: str) -> dict[str, bytes]:
    """The files of the snapshot with this digest; one that is not what was kept is refused."""
    found = ""
    kept = (folder.source, folder.source + _NEXT, _former(folder, digest), _shared(folder.home, digest))
    for path in kept:
        try:
            contents = _contents(path)
        except (OSError, WorkflowError) as error:
            found = found or f"{path}: {str(getattr(error, 'strerror', '') or error).lower()}"
            continue
        if zips.digest(contents) == digest:
            return contents
        found = found or f"{path} was changed after it was kept"
    raise JournalError(
        f"the snapshot of the workflow cannot be read: {found}",
        path=folder.source,
        hint=f"restore the file, then `raymond resume {folder.id}`",
    )


def _digest(path: str) -> str:
    """The digest of a snapshot; empty when there is none that can be read."""
    try:
        return zips.digest(_contents(path))
    except (OSError, WorkflowError):
        return ""


def _contents(path: str) -> dict[str, bytes]:
    return zips.read_snapshot(files.contents(path), file=path)


def _former(folder: RunFolder, digest: str) -> str:
    """Where a run keeps a snapshot that it no longer uses."""
    return folder.file(f"source-{digest[:16]}.zip")


def _shared(home: Home, digest: str) -> str:
    return f"{home.sources}/{digest}.zip"


def _has_content(path: str, data: bytes) -> bool:
    """Whether there is a snapshot at `path` with this content: a name proves nothing."""
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size == len(data) and files.contents(path) == data
    return False


# Unpacked for scripts


class UnpackedWorkflow:
    """The folder of one snapshot."""

    def __init__(self, home: Home, digest: str, files: Callable[[], Mapping[str, bytes]]) -> None:
        self.path = f"{home.work}/{digest}"
        self._home = home
        self._name = digest
        self._files = files
        self._known: dict[str, tuple[str, Facts]] = {}
        """The path and the facts of every file and folder that was compared."""
        self._folders: list[str] = []
        self._next = 0.0
        self._hold = -1

    @property
    def note(self) -> str:
        """What to say when something had to be replaced."""
        return f"files of the workflow had been changed in {self.path}: they were put back"

    def make(self) -> bool:
        """Make the folder what it should be; whether something in it had to be replaced."""
        files, replaced = self._files(), False
        written: Mapping[str, Facts] = {}
        for _ in range(_TRIES):
            self._take()
            if self._compare(files, written):
                self._next = monotonic() + ALL_EVERY
                return replaced
            replaced = replaced or self._is_wrong()
            written = self._replace(files)
        raise JournalError(f"{self.path} changes all the time", path=self.path, hint="scripts run from there")

    def check(self, name: str) -> bool:
        """Look at the file that is about to be started, now and then at all; whether something had to be replaced."""
        now = monotonic()
        if now >= self._next:
            self._next = now + ALL_EVERY
            names: Iterable[str] = self._known
        else:
            names = (name, *self._folders)
        return False if self._stand(names) else self.make()

    def _stand(self, names: Iterable[str]) -> bool:
        """Whether all of these are as they were when they were compared; asked for every step, so it is kept short."""
        try:
            for name in names:
                path, known = self._known[name]
                found = os.lstat(path)
                if (found.st_ino, found.st_size, found.st_ctime_ns, found.st_mode) != known:
                    return False
        except (KeyError, OSError):
            return False
        return True

    def close(self) -> None:
        """Nobody needs the folder here any more."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def _facts(self, name: str) -> Facts:
        try:
            return _facts(os.lstat(self._at(name)))
        except OSError:
            return _NO_FACTS

    def _take(self) -> None:
        """Hold the folder open and shared, which keeps `clean` from removing it."""
        self.close()
        until = monotonic() + CLAIMED
        while self._hold < 0:
            try:
                self._hold = folders.share(self.path, force=monotonic() > until)
            except BlockingIOError:
                sleep(0.005)  # `clean` is about to rename it
            except OSError:
                return  # there is none, or it is no folder

    def _compare(self, files: Mapping[str, bytes], written: Mapping[str, Facts]) -> bool:
        """Whether the folder holds `files` and nothing else; what was seen is known from then on.

        What is as we have `written` it need not be read.
        """
        # Looked at before the content is: a change in between is then a change of what is known.
        inside = ["", *folders_of(files)]
        known = {name: self._facts(name) for name in (*inside, *files)}
        if _NO_FACTS in known.values() or any(facts[3] & 0o222 for facts in known.values()):
            return False
        if self._hold < 0 or not _is_same(self.path, self._hold):
            return False
        listed: dict[str, set[str]] = {name: set() for name in inside}
        for name in (*inside[1:], *files):
            above, _, last = name.rpartition("/")
            listed[above].add(last)
        if not all(_lists(self._at(name), names) for name, names in listed.items()):
            return False
        unread = [name for name in files if written.get(name) != known[name]]
        if not all(_holds(self._at(name), files[name]) for name in unread):
            return False
        self._known = {name: (self._at(name), facts) for name, facts in known.items()}
        self._folders = inside
        return True

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path

    def _replace(self, files: Mapping[str, bytes]) -> dict[str, Facts]:
        """Write a new folder aside and swap; the one that was found wrong is removed. The facts of what was written."""
        mark = os.urandom(4).hex()
        aside, old = f".{self._name}.{mark}.new", f".{self._name}.{mark}.old"
        make_private(self._home.work, durable=True)
        try:
            written = _write_unpacked(f"{self._home.work}/{aside}", files)
        except OSError as error:
            with folders.opened(self._home.work) as work:
                folders.remove(aside, work)
            raise trouble(self.path, error) from None
        with folders.opened(self._home.work) as work:
            with contextlib.suppress(OSError):  # another process was faster: what it made is compared next
                if self._is_wrong():
                    os.rename(self._name, old, src_dir_fd=work, dst_dir_fd=work)
                os.rename(aside, self._name, src_dir_fd=work, dst_dir_fd=work)
            for left in (aside, old):
                folders.remove(left, work)
        return written

    def _is_wrong(self) -> bool:
        """Whether what was found wrong is still there: the folder that we hold, or something that is no folder."""
        if self._hold >= 0:
            return _is_same(self.path, self._hold)
        return os.path.lexists(self.path) and not folders.is_folder(self.path)


def folders_of(files: Iterable[str]) -> list[str]:
    """The folders that hold `files`, parents first."""
    return sorted({name[:at] for name in files for at, character in enumerate(name) if character == "/"})


def _facts(found: os.stat_result) -> Facts:
    return found.st_ino, found.st_size, found.st_ctime_ns, found.st_mode


def _write_unpacked(path: str, files: Mapping[str, bytes]) -> dict[str, Facts]:
    written: dict[str, Facts] = {}
    os.mkdir(path, 0o700)
    inside = folders_of(files)
    for name in inside:
        os.mkdir(f"{path}/{name}", 0o700)
    for name, content in files.items():
        fd = os.open(f"{path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400)
        try:
            write_all(fd, content)
            written[name] = _facts(os.fstat(fd))
        finally:
            os.close(fd)
    for name in reversed(inside):
        os.chmod(f"{path}/{name}", 0o500)
    os.chmod(path, 0o500)
    return written


def _is_same(path: str, fd: int) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    return False


def _lists(path: str, names: set[str]) -> bool:
    with contextlib.suppress(OSError):
        return folders.is_folder(path) and set(os.listdir(path)) == names
    return False


def _holds(path: str, content: bytes) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size != len(content):
            return False
        return os.read(fd, len(content) + 1) == content
    finally:
        os.close(fd)


# The workflow of a run


def placed_workflow(project: Project, run: Run, loaded: Loaded | None = None) -> PlacedWorkflow:
    """The workflow of `run`; `loaded` saves reading it."""
    start = run.start
    if loaded is None:
        files = read(project.run(start.workflow_id), start.source)
        workflow = loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides)
    else:
        workflow = loaded.workflow
    uses = any("task_folder" in state.body.lower() for state in workflow.states.values())
    uses = uses or any("task_folder" in text.lower() for text in workflow.lib.values())
    folder = f"{project.home.work}/{start.source}"
    tasks = exports.tasks(project.tree, start.workflow_id)
    return PlacedWorkflow(workflow, folder, tasks, uses, whole=blobs.whole(project.run(start.workflow_id).blobs))


def unpacked_workflow(project: Project, run: Run, loaded: Loaded | None = None) -> UnpackedWorkflow:
    """The files of the workflow, which scripts are started from."""
    folder, digest = project.run(run.start.workflow_id), run.start.source

    def files() -> Mapping[str, bytes]:
        return loaded.files if loaded else read(folder, digest)

    return UnpackedWorkflow(project.home, digest, files)
