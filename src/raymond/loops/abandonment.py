"""End a loop that nobody goes on with: what its interrupted item has changed is kept, and taken out of the tree."""

from raymond.control import leftovers, steer
from raymond.control.handle import RunHandle
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH
from raymond.loops.step import Step
from raymond.loops.work import Work


class _Outside(Step):
    """A loop that nobody drives, as its next step would find it."""

    def __init__(self, loop: LoopRun, agent: str) -> None:
        self._values = {}
        self.id = loop.id
        self.agent = agent
        self.key = f"{agent}-interrupted"
        self.visit = 1
        self.cwd = loop.documents.cwd
        self.settings = loop.settings
        self.top = loop.top
        self.documents = loop.documents
        self.folder = loop.project.run(loop.id)


def is_committing(loop: LoopRun) -> bool:
    """Whether the item that was open is checked, and only its commit was cut off."""
    worker = loop.worker
    return worker is not None and worker.state == "COMMIT.py"


def put_away(loop: LoopRun) -> str:
    """Keep what the interrupted item has changed, and return to where it began; the reference, if there was anything.

    In the plain loop changes stay in the tree between iterations, and so they do here. On another branch nothing is of
    the item.
    """
    leftovers.end(loop.project.run(loop.id), loop.run)  # an agent that outlived its driver still writes
    opened, worker = loop.ledger.open, loop.worker
    if loop.loop == RALPH or not opened.get("baseline") or worker is None or is_committing(loop):
        return ""
    if loop.repository.branch() != loop.settings.branch:
        return ""
    work = Work(_Outside(loop, worker.id), opened)
    found = work.inspect()
    saved = work.save_interrupted(found)
    if saved:
        work.go_back(found)
    return saved


def stop(loop: LoopRun) -> None:
    """End a loop that was stopping when it was cut off as it would have ended: the open item stays in the queue."""
    saved, ledger = put_away(loop), loop.ledger
    ledger.open = {}
    ledger.ended, ledger.why = "stopped", "somebody asked for it"
    if saved:
        ledger.why += f"; what the interrupted session has changed is kept in {saved}"
    if loop.loop != RALPH:
        found = loop.selection()
        ledger.note_left([one.title for one in found.ready], found.not_taken())
    steer.finish(loop.project, loop.id, "main", ledger.write())
    if not RunHandle(loop.project, loop.id).read().is_over:
        steer.cancel(loop.project, loop.id)


def give_up(loop: LoopRun) -> str:
    """End a loop that nobody wants to resume, so that `resume --all` does not either; where its changes are kept."""
    saved = put_away(loop)
    steer.cancel(loop.project, loop.id)
    return saved
