"""Resume a loop that was cut off, or end it for good: what its last agent left is looked at and saved first."""

import os
from collections.abc import Callable

from raymond.control import leftovers, request
from raymond.control.handle import RunHandle
from raymond.errors import UsageError, WorkspaceError
from raymond.faces.words import many
from raymond.language.refusal import Refusal
from raymond.loops import report, state
from raymond.loops.branch import TIP
from raymond.loops.formats.state_file import Status
from raymond.loops.loop_run import LoopRun
from raymond.loops.next_item import PAUSE
from raymond.loops.preflight import Ask
from raymond.loops.settings import RALPH
from raymond.loops.step import FAILS
from raymond.machine.agent import ASKING, Agent
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.workspace import tree as trees
from raymond.workspace.repository import Repository

QUESTIONS = {
    "running": "Found in-progress loop ({unit} {session}/{most}). Resume? [Y/n]",
    "paused": "Found paused loop. Resume from {unit} {session}? [Y/n]",
    "stopping": "Loop was stopping. Mark complete and show summary? [Y/n]",
}
"""What a person is asked about a loop that was found, by its status."""
_WORKING = ("WORK.md", "REJECTED.md")


def check(loop: LoopRun) -> None:
    """Refuse to continue where the branch of a loop is gone, or where its checkout is on another one."""
    if not loop.settings.commits_anything:
        return
    branch = loop.branch
    if not branch.commit_of(TIP):
        what = f"{branch.reference(TIP)} is gone, so what the loop has done cannot be found"
        raise UsageError(what, hint=f"raymond cancel {loop.id} ends it")
    _check_here(loop)


def _check_here(loop: LoopRun) -> None:
    """Refuse to touch a checkout on another branch: what is there is not this loop's."""
    branch = loop.branch
    if branch.is_here and branch.name and not branch.is_looked_at and loop.place.is_there:
        hint = f"git switch {branch.name}; or raymond cancel {loop.id} ends it and touches nothing here"
        raise UsageError(f"this loop runs on {branch.name}, which is not checked out", hint=hint)


def save(loop: LoopRun, ask: Ask | None, tell: Callable[[str], None]) -> None:
    """Let a person say what becomes of the work of an interrupted session; without one, the session continues with it.

    A turn that outlived its driver still writes there, so nothing is asked then.
    """
    worker = loop.worker
    if ask is None or worker is None or worker.state not in _WORKING or loop.loop == RALPH:
        return
    if worker.visit.pending or not loop.has_branch or not loop.place.is_there:
        return  # the agent was done: only its check was cut off, and runs again
    opened, branch, place = loop.ledger.open, loop.branch, loop.place
    assert opened is not None
    try:
        with place.alone():
            origin, taken = place.known(), place.harvest()
            repository = Repository(place.slot.git, place.slot.rules)
            changed = repository.changes(origin.tree, taken.left)
            if not changed:
                return
            what = f"The interrupted session has changed {many(len(changed), 'file')}, not committed yet."
            answer = ask(what, ("continue", "discard", "commit"))
            if answer == "continue":
                return
            branch = loop.branch_in(repository)
            name = _free(loop, f"{opened.slot}.interrupted", taken.left, origin.commit, repository)
            tell(f"what the interrupted session has changed is kept in {name}")
            if answer == "commit":
                tree = branch.merged(taken.tree, origin.commit)
                if not tree:
                    raise UsageError("it conflicts with what was committed since", hint="continue, or discard it")
                with branch.alone():
                    branch.commit(tree, "chore: commit an interrupted session\n", branch.tip)
            trees.follow(place.slot, origin, branch.tip, branch.vouched, taken=taken.left)
            if branch.is_here:
                branch.check_out(origin.commit)
    except WorkspaceError as error:
        tell(f"it cannot be asked about the interrupted session: {error}")


def _free(loop: LoopRun, what: str, tree: str, parent: str, repository: Repository) -> str:
    """Keep an interrupted session under the first name of a row, NAME, NAME-2 and so on, that has nothing else."""
    branch, number, free = loop.branch_in(repository), 1, what
    while (there := branch.commit_of(free)) and repository.tree_of(there) != tree:
        number += 1
        free = f"{what}-{number}"
    branch.keep(free, tree, "raymond: an interrupted session\n", parent)
    return branch.reference(free)


def waits(loop: LoopRun) -> bool:
    """Whether a person was asked whether to go on and has not answered."""
    return any(map(_asks, loop.run.agents.values()))


def _asks(agent: Agent) -> bool:
    """Whether an agent asks whether to go on, and not what only a person can say."""
    return agent.status == ASKING and (agent.state == PAUSE or agent.question.startswith(FAILS))


def answer(loop: LoopRun) -> None:
    """A person who resumes a loop that paused after a failure has decided that it goes on."""
    for agent in loop.run.agents.values():
        told = request.answer(loop.project, loop.id, agent.id, "continue") if _asks(agent) else None
        if isinstance(told, Refusal) and told.kind == "needs_person":
            raise UsageError(told.reason, hint=told.hint or f"on a terminal: raymond answer {loop.id} continue")


def note(project: Project, run: Run) -> None:
    """Write into the state file that this process drives the loop, if it goes on in the middle of an item."""
    loop = LoopRun(project, run)
    path = loop.checkout.state(loop.loop)
    if loop.ledger.open and os.path.isdir(os.path.dirname(path)):
        status: Status = "stopping" if loop.is_stopping else "running"
        left = tuple(report.remaining(loop))
        state.write(path, loop.id, loop.settings, loop.ledger, status, left, pid=os.getpid())


# End it for good


def is_committing(loop: LoopRun) -> bool:
    """Whether the item that was open is checked, and only its commit was cut off."""
    worker = loop.worker
    return worker is not None and worker.state == "COMMIT.py"


def _put_away(loop: LoopRun) -> str:
    """Keep what the interrupted item has changed; the reference, if there was anything."""
    leftovers.end(loop.project.run(loop.id), loop.run)  # an agent that outlived its driver still writes
    opened, place = loop.ledger.open, loop.place
    if opened is None or not loop.has_branch or not place.is_there or is_committing(loop):
        return ""
    with place.alone():
        origin, taken = place.known(), place.harvest()
        repository = Repository(place.slot.git, place.slot.rules)
        if taken.left == origin.tree:
            return ""
        name = _free(loop, f"{opened.slot}.interrupted", taken.left, origin.commit, repository)
        if place.way == "here":
            branch = loop.branch_in(repository)
            trees.follow(place.slot, origin, branch.tip, branch.vouched, taken=taken.left)
            branch.check_out(origin.commit)
        return name


def stop(loop: LoopRun) -> None:
    """End a loop that was stopping when it was cut off as it would have ended: the open item stays in the queue."""
    saved, ledger = _put_away(loop), loop.ledger
    ledger.open = None
    ledger.ended, ledger.why = "stopped", "on request"
    if saved:
        ledger.why += f"; what the interrupted session has changed is kept in {saved}"
    if loop.loop != RALPH:
        found = loop.selection()
        ledger.note_left([one.title for one in found.ready], found.not_taken())
    request.finish(loop.project, loop.id, "main", ledger.write())
    if not RunHandle(loop.project, loop.id).read().is_over:
        request.cancel(loop.project, loop.id)
    _drop(loop)


def give_up(loop: LoopRun) -> str:
    """End a loop that is not to be resumed, so that `resume --all` does not either; where its changes are kept."""
    _check_here(loop)
    saved = _put_away(loop)
    request.cancel(loop.project, loop.id)
    _drop(loop)
    return saved


def _drop(loop: LoopRun) -> None:
    if loop.has_branch and loop.place.is_left:
        loop.place.drop()
