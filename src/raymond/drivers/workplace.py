"""The workspace of a run while it is driven: made before its first step, saved when the driver leaves."""

from collections.abc import Callable

from raymond.errors import WorkspaceError
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
    return [] if run.tree else [TreeMade(head=base.head, commit=base.commit)]


def save(place: Place, run: Run, tell: Tell, now: float) -> list[Event] | None:
    """Put the work under a reference; what happened, for the journal. None: that failed, and nothing is lost."""
    try:
        taken = place.harvest()
        commit = place.save(taken, f"raymond: {run.start.workflow_id}\n", now)
    except (WorkspaceError, OSError) as error:
        why = (error.strerror or "").lower() if isinstance(error, OSError) else str(error)
        tell(f"the work is not saved yet, and stays in {place.slot.tree}: {why}")
        return None
    for path, why in taken.left_out:
        tell(f"not taken from the workspace: {path} ({why})")
    return [WorkSaved(commit=commit)] if commit and commit != run.saved else []
