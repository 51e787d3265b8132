"""Resume a loop that was cut off: what its last agent left in the tree is saved first."""

import os
from collections.abc import Callable

from msgspec.structs import replace

from raymond.control import steer
from raymond.errors import UsageError
from raymond.faces.words import many
from raymond.language.refusal import Refusal
from raymond.loops import documents, state, summary
from raymond.loops.baseline import RESUMED, Baseline, Keeper
from raymond.loops.ending import PAUSED
from raymond.loops.formats.state_file import Status
from raymond.loops.loop_run import LoopRun
from raymond.loops.opening import Ask
from raymond.loops.repository import SAVED, Repository
from raymond.loops.saved import Saved
from raymond.loops.step import FAILS
from raymond.loops.turnover import PAUSE
from raymond.machine.agent import ASKING, RUNNING, Agent
from raymond.machine.run import Run
from raymond.store.project import Project

QUESTIONS = {
    "running": "Found in-progress loop ({unit} {session}/{most}). Resume? [Y/n]",
    "paused": "Found paused loop. Resume from {unit} {session}? [Y/n]",
    "stopping": "Loop was stopping. Mark complete and show summary? [Y/n]",
}
"""What a person is asked about a loop that was found, by its status."""


def save(loop: LoopRun, ask: Ask | None, tell: Callable[[str], None]) -> None:
    """Keep what an interrupted session has changed, and let a person say what becomes of it.

    Without a person, it stays in the tree: the session continues with it. A turn that outlived its driver still writes
    there, so nothing is touched then.
    """
    opened, worker = loop.ledger.open, loop.worker
    if opened.get("baseline") and (worker is None or worker.status != RUNNING):
        _take_over(loop, opened["slot"], opened["baseline"])
    if not opened or worker is None or worker.state not in ("WORK.md", "REJECTED.md"):
        return
    if worker.visit.pending:  # the agent was done: only its check was cut off, and runs again
        return
    repository = loop.repository
    before = _baseline(loop, opened["slot"], opened["baseline"]) if opened.get("baseline") else None
    changed = _changed(loop, before) if before else []
    if before is None or not changed:
        return
    head, date = repository.head(), f"{int(float(opened['began']))} +0000"
    kept = repository.commit(repository.tree(), [head], "raymond: an interrupted session\n", date)
    name = _free(repository, f"refs/raymond/{loop.id}/{opened['slot']}.interrupted", kept)
    Saved(loop.file(f"saved-{opened['slot']}"), repository, f"{SAVED}{loop.id}/", "resume").keep(name, kept)
    tell(f"what the interrupted session has changed is kept in {name}")
    if ask is None or worker.status == RUNNING:
        return
    what = f"The interrupted session has changed {many(len(changed), 'file')}, not committed yet."
    answer = ask(what, ("continue", "commit", "discard"))
    if answer == "commit":
        tree = repository.tree(changed)
        made = repository.commit(tree, [head], "chore: commit an interrupted session\n", date)
        repository.move(f"refs/heads/{repository.branch()}", made, head)
        repository.refresh(before.staged, before.head)
    elif answer == "discard":
        repository.bring_back(before.work, changed)
        repository.refresh(before.staged, before.head)


def _changed(loop: LoopRun, before: Baseline) -> list[str]:
    """What the session has changed and not committed, without what a person had not committed when it began."""
    repository = loop.repository
    persons = {one.path for one in repository.changes(f"{before.work}^", before.work)} if before.head else set[str]()
    touched = {one.path for one in repository.changes(before.work, repository.tree())}
    left_out = {*(persons - touched), *loop.settings.prompt_in(loop.documents.cwd, loop.top)}
    return [one for one in repository.dirt() if one not in left_out and not loop.documents.owns(one)]


def _free(repository: Repository, name: str, commit: str) -> str:
    """The first name of a row, NAME, NAME-2 and so on, that names no other commit: what was saved before stays."""
    number, free = 1, name
    while repository.reference(free) not in ("", commit):
        number += 1
        free = f"{name}-{number}"
    return free


def check(loop: LoopRun) -> None:
    """Refuse to go on where a person has switched to another branch: what is there is not the loop's."""
    branch = loop.repository.branch() if loop.settings.branch else ""
    if branch != loop.settings.branch:
        own = loop.settings.branch
        what = f"the loop works on {own}, and {branch or 'no branch'} is checked out"
        if not loop.repository.reference(f"refs/heads/{own}"):
            what = f"the branch {own}, on which the loop works, is gone"
            raise UsageError(what, hint=f"git switch -c {own} where its commits are, then try again")
        raise UsageError(what, hint=f"git switch {own}, then try again")


def waits(loop: LoopRun) -> bool:
    """Whether a person was asked whether to go on and has not answered."""
    return any(map(_asks, loop.run.agents.values()))


def _asks(agent: Agent) -> bool:
    """Whether an agent asks whether to go on, and not what only a person can say."""
    return agent.status == ASKING and (agent.state == PAUSE or agent.question.startswith(FAILS))


def answer(loop: LoopRun) -> None:
    """Whoever resumes a loop that paused after a failure has decided that it goes on."""
    for agent in loop.run.agents.values():
        told = steer.answer(loop.project, loop.id, agent.id, "continue") if _asks(agent) else None
        if isinstance(told, Refusal) and told.kind == "needs_person":
            raise UsageError(told.reason, hint=told.hint or f"on a terminal: raymond answer {loop.id} continue")


def note(project: Project, run: Run) -> None:
    """Write into the state file that this process drives the loop, if it goes on in the middle of an item."""
    loop = LoopRun(project, run)
    path = loop.documents.state(loop.loop)
    if loop.ledger.open and os.path.isdir(os.path.dirname(path)):
        status: Status = "stopping" if loop.is_stopping else "running"
        left = tuple(summary.remaining(loop))
        state.write(path, loop.id, loop.settings, loop.ledger, status, left, pid=os.getpid())


def _keeper(loop: LoopRun, slot: str) -> Keeper:
    return Keeper(loop.file(f"baseline-{slot}"), loop.repository)


def _baseline(loop: LoopRun, slot: str, digest: str) -> Baseline:
    return _keeper(loop, slot).load(documents.read(loop.file(f"{RESUMED}-{slot}")) or digest)


def _take_over(loop: LoopRun, slot: str, digest: str) -> None:
    """Let what a person did since the loop paused be part of what its item began with: commits, and the documents.

    After a kill nobody knows whose it is, and it stays the agent's.
    """
    repository, noted = loop.repository, documents.read(loop.file(PAUSED)).split()
    if len(noted) != 2:
        return
    keeper, before = _keeper(loop, slot), _baseline(loop, slot, digest)
    head, now = repository.head(), repository.tree()
    committed = repository.changes(noted[0], head) if repository.descends(head, noted[0]) else []
    paths = {one.path for one in committed}
    paths |= {one.path for one in repository.changes(noted[1], now) if loop.documents.owns(one.path)}
    if paths:
        tree, date = repository.mixed(before.work, now, sorted(paths)), f"{int(loop.run.now)} +0000"
        staged = keeper.staged(head, date)
        work = repository.commit(tree, [head, staged], "raymond: at the resumption\n", date)
        saved = f"{SAVED}{loop.id}/base"
        repository.move(saved, work)
        renewed = replace(before, head=head if committed else before.head, work=work, staged=staged)
        documents.write(loop.file(f"{RESUMED}-{slot}"), keeper.save(renewed, renews=True))
    os.unlink(loop.file(PAUSED))
