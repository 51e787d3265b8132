"""What still runs of a run that nobody drives, and how it is ended; whoever calls this holds the lock."""

import contextlib
import os
from typing import TYPE_CHECKING

from msgspec import Struct

from raymond.control import runs
from raymond.errors import JournalError
from raymond.faces import documents
from raymond.machine.agent import RUNNING
from raymond.machine.events import StepStarted
from raymond.machine.run import Run
from raymond.redaction import Secrets
from raymond.store import exports, journal
from raymond.store.leftovers import Leftovers
from raymond.store.run_folder import RunFolder
from raymond.system import folders, process_tree

if TYPE_CHECKING:
    from raymond.store.project import Project


class Leftover(Struct, frozen=True):
    """A process of a run that nobody drives."""

    pid: int
    agent: str
    """Whose step started it; empty when that is not known."""
    command: str


def find(folder: RunFolder, run: Run) -> list[Leftover]:
    """Every process that the run has left."""
    found = Leftovers(folder, run.start).find()
    agents = _agents(folder, run, set(found.values()))
    secrets = Secrets.of(os.environ)
    return [
        Leftover(pid, agents.get(found[pid], ""), secrets.clean(process_tree.command(pid))) for pid in sorted(found)
    ]


def end(folder: RunFolder, run: Run) -> int:
    """End every process that the run has left; how many there were."""
    return len(Leftovers(folder, run.start).end())


def clear(project: "Project", run: Run) -> int:
    """Nothing of a run that has ended is needed any more: end its processes, remove what its turns printed."""
    folder = project.run(run.start.workflow_id)
    ended = end(folder, run)
    if os.path.exists(folder.spool):
        # That is the last thing a driver removes: this one was killed, perhaps before it could say how the run ended.
        with contextlib.suppress(JournalError):
            exports.put_state(project.tree, folder.id, documents.state_file(run, status=runs.undriven_status(run)))
        folders.remove_path(folder.spool)
    return ended


def _agents(folder: RunFolder, run: Run, steps: set[int]) -> dict[int, str]:
    """Whose steps these are; the journal is read again only for those that have ended."""
    found = {agent.step: agent.id for agent in run.agents.values() if agent.status == RUNNING}
    if steps <= {0, *found}:
        return found
    events = (event for decision in journal.decisions(folder) for event in decision.events)
    return found | {event.step: event.agent for event in events if isinstance(event, StepStarted)}
