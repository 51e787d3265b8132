"""Take up a loop that was cut off: what its last agent left in the tree is saved first."""

from collections.abc import Callable

from raymond.control import steer
from raymond.loops.loop_run import LoopRun
from raymond.loops.opening import Ask
from raymond.machine.agent import ASKING, RUNNING

QUESTIONS = {
    "running": "Found in-progress loop (session {session}/{most}). Resume? [Y/n]",
    "paused": "Found paused loop. Resume from session {session}? [Y/n]",
    "stopping": "Loop was stopping. Mark complete and show summary? [Y/n]",
}
"""What a person is asked about a loop that was found, by its status."""


def save(loop: LoopRun, ask: Ask | None, tell: Callable[[str], None]) -> None:
    """Keep what an interrupted session has changed, and let a person say what becomes of it.

    Without a person, it stays in the tree: the session continues with it. A turn that outlived its driver still writes
    there, so nothing is touched then.
    """
    opened = loop.ledger.open
    worker = next((one for one in loop.run.agents.values() if "iteration" in (one.variables or {})), None)
    if not opened or worker is None or worker.state not in ("WORK.md", "REJECTED.md"):
        return
    if worker.visit.pending:  # the agent was done: only its check was cut off, and runs again
        return
    repository = loop.repository
    base = repository.reference(f"refs/raymond/{loop.id}/base")
    changed = [one for one in repository.dirt() if not loop.documents.owns(one)]
    if not base or not changed:
        return
    name = f"refs/raymond/{loop.id}/{opened['slot']}.interrupted"
    head, date = repository.head(), f"{int(float(opened['began']))} +0000"
    kept = repository.commit(repository.tree(), [head], "raymond: an interrupted session\n", date)
    repository.move(name, kept)
    tell(f"what the interrupted session has changed is kept in {name}")
    if ask is None or worker.status == RUNNING:
        return
    what = f"The interrupted session has changed {len(changed)} files that are not committed."
    answer = ask(what, ("continue", "commit", "discard"))
    if answer == "commit":
        made = repository.commit(repository.tree(), [head], "chore: commit an interrupted session\n", date)
        repository.move(f"refs/heads/{repository.branch()}", made, head)
        repository.refresh()
    elif answer == "discard":
        repository.bring_back(base, changed)
        repository.refresh()


def answer(loop: LoopRun) -> None:
    """Whoever resumes a loop that paused after a failure has decided that it goes on."""
    for agent in loop.run.agents.values():
        if agent.status == ASKING and agent.state == "PAUSE.py":
            steer.answer(loop.project, loop.id, agent.id, "continue")
