"""Hold a run's lock and make it ready to be driven."""

from collections.abc import Callable
from time import time

from raymond.backends import registry
from raymond.control import config
from raymond.drivers.face import Face
from raymond.drivers.local import Driver
from raymond.store import journal, lock
from raymond.store.loader import Loaded
from raymond.store.lock import Lock
from raymond.store.project import Project
from raymond.store.sources import place


def hold(
    project: Project,
    id: str,
    face: Face,
    *,
    loaded: Loaded | None = None,
    force: bool = False,
    clock: Callable[[], float] = time,
) -> "HeldRun":
    """Hold the lock of a run and make it ready to be driven."""
    held = lock.take(project.beside(id, "lock"), force=force)
    try:
        reading = journal.read(project, id)
        if reading.torn:
            face.on_note(f"{reading.torn} bytes at the end of the journal were torn off and are dropped")
        workspace = place(project, reading.run, loaded)
        book = journal.Journal(project, id, reading.size)
        settings = config.load(project.root)
        backends = registry.make(project, reading.run, workspace, settings["backends"])
        strict = settings["durability"] == "strict"
        driver = Driver(project, reading.run, workspace, book, backends, face, strict=strict, clock=clock)
    except BaseException:
        held.release()
        raise
    return HeldRun(held, book, driver)


class HeldRun:
    """A run this process may drive, until it is closed."""

    def __init__(self, held: Lock, book: journal.Journal, driver: Driver) -> None:
        self.lock = held
        self.driver = driver
        self._journal = book

    def close(self) -> None:
        """Close the journal, then let others drive."""
        try:
            self._journal.close()
        finally:
            self.lock.release()
