"""The workspace of a run while it is driven: made before its first step, saved and dropped when the driver leaves."""

import contextlib
import os
from collections.abc import Callable

from raymond.errors import JournalError, WorkspaceError
from raymond.machine.events import Event, TreeMade, WorkSaved
from raymond.machine.run import Run
from raymond.workspace import home
from raymond.workspace.place import Place

Tell = Callable[[str], None]


def open(place: Place, run: Run, tell: Tell, now: float) -> list[Event]:
    """Make the tree of a run if it has none; what happened, for its journal."""
    id = run.start.workflow_id
    if run.tree is not None and not place.is_there:
        hint = f"what was saved of it is in {place.tip}: raymond apply {id}" if run.saved else ""
        raise WorkspaceError(f"the workspace of {id} is gone from {place.slot.path}", hint=hint)
    for warning in home.warnings(run.start.lend):
        tell(warning)
    base = place.open(run.start.carry, tell, now)
    if run.tree is None:
        os.makedirs(place.outside(run.start.cwd), exist_ok=True)  # git does not know empty folders
    return [] if run.tree else [TreeMade(head=base.head, commit=base.commit)]


def save(place: Place, run: Run, tell: Tell, now: float, note: Callable[[list[Event]], None]) -> None:
    """Put the work under a reference, and `note` that; a run that is over needs the tree no more if all was taken.

    If something fails, that is told, and nothing is lost. Nothing can change in the tree between these.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(place.alone())
            taken = place.harvest()
            commit = place.save(taken, f"raymond: {run.start.workflow_id}\n", now)
        except (WorkspaceError, JournalError, OSError) as error:
            resume = f"raymond resume {run.start.workflow_id}"
            tell(f"the work is not saved yet, and stays in {place.slot.tree}: {_why(error)}; fix this, then {resume}")
            return
        for path, why in taken.left_out:
            tell(f"not taken from the workspace: {path} ({why})")
        note([WorkSaved(commit=commit)] if commit and commit != run.saved else [])
        if run.is_over and taken.left_out:
            tell(f"the workspace stays, for what was not taken is nowhere else: {place.slot.tree}")
        elif run.is_over:
            drop(place, tell)


def drop(place: Place, tell: Tell) -> None:
    """Remove a tree that everything was taken from, or what a kill has left of one."""
    try:
        place.drop()
    except OSError as error:
        tell(f"the workspace was not removed: {error.filename or place.slot.path}: {_why(error)}")


def _why(error: WorkspaceError | JournalError | OSError) -> str:
    return (error.strerror or "").lower() if isinstance(error, OSError) else str(error)
