"""Hold a run's lock, make it ready, and drive it; and whether a run continues by itself."""

import os
from collections.abc import Callable, Iterator
from time import sleep, time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.backends import registry
from raymond.control import config, inside, left_requests, preflight, programs, runs
from raymond.drivers.face import Face, Quiet
from raymond.drivers.local import Driver
from raymond.errors import Error, NotContinued, RunBusy, RunDriven
from raymond.faces import documents
from raymond.machine.events import UNRECORDED as UNRECORDED
from raymond.machine.events import Program
from raymond.machine.events import Recording as Recording
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run
from raymond.store import journal, lock, workflow_snapshot
from raymond.store.journal import Folded
from raymond.store.loader import Loaded
from raymond.store.lock import Lock
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.store.trust import Trust
from raymond.store.workflow_snapshot import UnpackedWorkflow
from raymond.system.processes import withhold_descriptors
from raymond.views.status import run_status

if TYPE_CHECKING:
    from raymond.workspace.place import Place

LOCK_PATIENCE = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)
"""Seconds between tries when a person waits."""
LOCK_PATIENCE_ALONE = (*LOCK_PATIENCE, *[1.0] * 7)
"""The same when nobody does: the run would be left as it is."""
_SILENT_TRIES = 3
"""Tries after which whoever waits is told why."""


# --- the lock


def take_lock(
    folder: RunFolder,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
    *,
    patience: tuple[float, ...] = LOCK_PATIENCE,
    pause: Callable[[float], None] = sleep,
) -> Lock:
    """The lock of the run, once no command holds it; a driver is not waited for, it continues the run itself."""
    for number, seconds in enumerate(patience):
        try:
            return _take_once(folder, force)
        except RunBusy as busy:
            if isinstance(busy, RunDriven) or not busy.pid or busy.host not in ("", os.uname().nodename):
                raise  # nobody knows how long that takes: a command signs, and is done in a moment
            if number == _SILENT_TRIES and tell:
                tell(f"waiting: {busy}")
        pause(seconds)
    return _take_once(folder, force)


def _take_once(folder: RunFolder, force: bool) -> Lock:
    """The lock of the run; what is left of its steps does not keep it from whoever may resume the run."""
    try:
        return lock.take(folder, force=force)
    except RunBusy:
        from raymond.store import leftovers

        start = journal.first(folder)
        inside.check(start, "resume")
        if not leftovers.end_foreign_holders(folder, start):
            raise
    return lock.take(folder, force=force)


# --- continuing by itself


def check_continues(project: Project, run: Run) -> None:
    """Raise NotContinued when nobody but its owner may continue the run; whoever calls this holds its lock."""
    reason = why_not_continued(project, run)
    if reason:
        left = left_requests.of(project, run)
        raise NotContinued(f"{reason}, so it was not continued", again=left.then if left.ends_run else "")


def why_not_continued(project: Project, run: Run) -> str:
    """Why nobody but its owner may continue the run now; empty when nothing is in the way.

    Everything that is checked before a resume is checked after this, by whoever resumes it.
    """
    if run.is_over:
        return f"{run.start.workflow_id} has ended"
    if run.stop and not runs.was_shut_down(run):
        return f"{run.start.workflow_id} is {run_status(run)}"
    return left_requests.of(project, run).stop() or _changed_programs(project, run)


def _changed_programs(project: Project, run: Run) -> str:
    """What would answer its prompts now, if that is not what its last driver used."""
    return programs.difference(run, config.load(project.tree)["backends"]) if run.programs else ""


class LeftOut(Struct, frozen=True):
    """A run that nobody drives, and that is left to its owner."""

    id: str
    why: str
    then: str
    """What continues it, or ends it."""


def resumable(project: Project) -> Iterator[str | LeftOut | Error]:
    """The runs that were driven when the machine or their driver died, oldest first; what cannot be read, as error."""
    for id in reversed(project.ids()):
        try:
            seen = runs.look(project, id)
            if not runs.is_driven(project.run(id)) and not _belongs_to_step(seen.run):
                yield from _resumable(project, seen)
        except Error as error:
            yield error


def _resumable(project: Project, seen: runs.Seen) -> Iterator[str | LeftOut]:
    id = seen.run.start.workflow_id
    left = left_requests.of(project, seen.run)
    if seen.status == runs.ANSWERED:
        yield LeftOut(id, "it was answered and not continued", left.then)
    elif seen.status == runs.INTERRUPTED or runs.was_shut_down(seen.run):
        why = left.stop()
        if not why and os.path.isdir(project.tree):
            why = _changed_programs(project, seen.run)
        yield LeftOut(id, why, left.then) if why else id


def _belongs_to_step(run: Run) -> bool:
    """Whether a step of another run waits for it: that step is repeated, and starts it again."""
    return bool(run.start.inside) and not run.start.apart


def asked_by_step() -> bool:
    """Whether a step answers: it says itself when the run is to continue, which must not outlive it."""
    return bool(inside.starter().sender.steps)


# --- driving


class Resumption(Struct, frozen=True, kw_only=True):
    """How a run that was driven before is driven again."""

    restart: bool = False
    """Stop turns that still run instead of following them."""
    at_once: bool = False
    """Retry a backend closed by a limit right away."""
    fresh: bool = False
    """Retry failed and paused agents without their conversation."""
    retries: bool = True
    """Retry failed and paused agents at all."""
    force: bool = False
    """Take the lock even if another host still holds it."""
    by_itself: bool = False
    """Nobody asked for this: decide under the lock whether the run may continue."""


AS_IT_IS = Resumption()
"""Nothing special is asked for."""


def hold(
    project: Project,
    id: str,
    face: Face | None = None,
    *,
    loaded: Loaded | None = None,
    force: bool = False,
    trusts_now: bool = False,
    alone: bool = False,
    by_itself: bool = False,
    recording: Recording = UNRECORDED,
    clock: Callable[[], float] = time,
) -> "HeldRun":
    """Hold the lock of a run and make it ready to be driven; `loaded` saves reading the workflow it still has.

    `trusts_now` lets agents' programs use the project's own settings this time, trusted or not.

    `alone`: this process does nothing else, so that what steps let go of may become its child. `by_itself`: see
    Resumption. `recording`: what the faces write, for the journal.
    """
    told = face or Quiet()
    folder = project.run(id)
    held = take_lock(folder, force, told.on_note, patience=LOCK_PATIENCE_ALONE if by_itself else LOCK_PATIENCE)
    try:
        reading = journal.read(folder)
        run = reading.run
        if by_itself:
            check_continues(project, run)
        if not run.is_over:
            preflight.check_place(project, run)
        if loaded is None:
            inside.check(run.start, "resume")  # whoever has just started it may drive it
        workflow_snapshot.settle_prepared(folder, run.start.source)
        known = loaded if loaded is not None and loaded.digest == run.start.source else None
        placed, unpacked = (
            workflow_snapshot.placed_workflow(project, run, known),
            workflow_snapshot.unpacked_workflow(project, run, known),
        )
        settings = config.load(project.tree)
        placed = _checked(run, placed, settings["backends"], begins=loaded is not None)
        if unpacked.make():
            told.on_note(unpacked.note)
        trusts = _trusts(project, run, placed, trusts_now, told)
        book = journal.Journal(folder, reading.size, held)
        book.decide(run, clock(), journal.torn(reading))
        book.write()
        place = _place(project, run, placed, settings["backends"], told)
        folder_of = place.program if place and not run.is_over else None
        backends = registry.make(project, run, placed, settings["backends"], trusts, folder_of)
        _tell_lost(project, reading, told)
        parts = (project, run, placed, unpacked, book, backends, told, documents.state_file, held.sign)
        driver = Driver(
            *parts,
            strict=settings["durability"] == "strict",
            tails=settings["transcripts"] == "tail",
            alone=alone,
            programs=_programs(run, placed, settings["backends"]),
            recording=recording,
            look=lambda name: programs.examine(run.start, name, settings["backends"]),
            place=place,
            clock=clock,
        )
    except BaseException:
        held.release()
        raise
    return HeldRun(project, held, book, unpacked, driver)


def _place(project: Project, run: Run, placed: PlacedWorkflow, tables: registry.Tables, told: Face) -> "Place | None":
    """The workspace of a run; None where every step works here."""
    if run.start.workspace == "here" and not placed.workflow.has_workspaces:
        return None
    from raymond.control import workspaces

    if not run.is_over:
        notes = workspaces.logins(run.start, placed.workflow, tables)
        for note in notes if run.seq == 1 else ():
            told.on_note(note)
    return workspaces.place_of(project, run, placed.workflow)


def _tell_lost(project: Project, reading: Folded, face: Face) -> None:
    """Say what of the driver before was cut off, and what becomes of requests that it did not live to hear."""
    if reading.torn:
        face.on_note(f"{reading.torn} bytes of an incomplete last line were cut off the journal and kept beside it")
    if reading.run.seq == 1:
        return
    left = left_requests.of(project, reading.run).note()
    if left:
        face.on_note(left)


def _programs(run: Run, placed: PlacedWorkflow, tables: registry.Tables) -> list[Program]:
    """What answers the prompts of a run that is resumed; one that begins has just said it."""
    if run.is_over or run.seq == 1:
        return []
    before = [one.name for one in run.programs]
    return programs.answering(run.start, placed.workflow, tables, before)


def _checked(run: Run, placed: PlacedWorkflow, tables: registry.Tables, *, begins: bool) -> PlacedWorkflow:
    """The workflow under the site rules of today; refused when the run may not or cannot continue here."""
    rules = config.site_rules()
    preflight.check_site(run, rules, placed.workflow)
    if not begins and not run.is_over:  # a start has looked for them
        from raymond.machine import needed_states

        reached = needed_states.reachable_states(run, placed.workflow)
        programs.check_scripts(placed.workflow, reached, id=run.start.workflow_id)
        programs.check_reached_prompts(run.start, placed.workflow, reached, tables)
    return replace(placed, models=tuple(rules.models))


def _trusts(project: Project, run: Run, placed: PlacedWorkflow, trusts_now: bool, told: Face) -> dict[str, Trust]:
    """Where agents' programs may use settings of the project; says what is left out."""
    if run.is_over or all(one.kind != "prompt" for one in placed.workflow.states.values()):
        return {}
    from raymond.control import trust  # scripts have no agents' programs

    standing = trust.decide(project, run.start, placed.workflow, trusts_now=trusts_now)
    if standing.note:
        told.on_note(standing.note)
    return standing.trusts


class HeldRun:
    """A run this process may drive, until it is closed."""

    def __init__(
        self, project: Project, held: Lock, book: journal.Journal, unpacked: UnpackedWorkflow, driver: Driver
    ) -> None:
        self.lock = held
        self.project = project
        self._unpacked = unpacked
        self.driver = driver
        self._journal = book

    @property
    def run(self) -> Run:
        """The run as it is now."""
        return self.driver.run

    @property
    def signal(self) -> int:
        """The signal that ended the driving; 0 when none did."""
        return self.driver.signal

    def drive(self, how: Resumption = AS_IT_IS) -> None:
        """Drive it until nothing is left that this process could do."""
        withhold_descriptors()
        self.driver.drive(restart=how.restart, at_once=how.at_once, fresh=how.fresh, retries=how.retries)

    def clear(self) -> int:
        """Of a run that has ended: end what a driver that was killed left of it; how many processes there were."""
        from raymond.control import leftovers

        ended = leftovers.clear(self.project, self.run)
        self.driver.tidy()
        return ended

    def close(self) -> None:
        """Close the journal, then let others drive."""
        try:
            self._journal.close()
        finally:
            self._unpacked.close()
            self.lock.release()

    def __enter__(self) -> "HeldRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
