"""Show what a loop has set aside, and carry out what a person decides about it."""

import sys

from raymond.cli import choice, picker
from raymond.control import inside, reviews
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.faces.trial import Trial
from raymond.loops import accepting, starting
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.text import visible

_MARGIN = "  | "


def aside(id: str | None) -> LoopRun | None:
    """The loop with this id, if it has set items aside and none of its agents waits for a review."""
    if not id:
        return None
    run = choice.find(id)
    if not run.start.loop or reviews.of_run(run.project, run.id):
        return None
    loop = LoopRun(run.project, run.read())
    return loop if accepting.waiting(loop) else None


def kept(run: RunHandle) -> UsageError | None:
    """Why a loop is not removed: items wait for a person; None when none does."""
    found = accepting.waiting(LoopRun(run.project, run.read()))
    if not found:
        return None
    items = ", ".join(f"{one.number} ({one.title})" for one in found)
    force = f"raymond clean --force {run.id} removes the run, but not what git has in refs/raymond/{run.id}"
    what = f"{run.id} has set items aside that wait for you: {items}"
    return UsageError(what, hint=f"raymond review {run.id} shows them; {force}")


def lines(loop: LoopRun) -> list[str]:
    """Everything that was set aside, and the commands that decide it."""
    shown: list[str] = []
    for entry in accepting.waiting(loop):
        shown += [*_shown(loop, entry), *_commands(loop, entry), ""]
    return shown


def _shown(loop: LoopRun, entry: Entry) -> list[str]:
    width = width_of(sys.stdout)
    loud = "TAMPERED" if entry.verdict == "tampered" else entry.verdict
    told = [
        f"{loop.id}, item {entry.number}: {entry.title}: {loud}",
        f"why:    {' '.join(entry.error.split())}",
        f"saved:  {entry.saved}",
    ]
    shown = [part for one in told for part in hung(visible(one), _MARGIN, width)]
    return [*shown, "difference:", *in_margin(accepting.difference(loop, entry).rstrip("\n"), _MARGIN, width)]


def _commands(loop: LoopRun, entry: Entry) -> list[str]:
    return [f"{verb}: raymond {verb} {loop.id} {entry.number}" for verb in ("accept", "reject")]


def accept(loop: LoopRun, name: str | None) -> int:
    """Show an item, ask, and commit it if its check is green with today's HEAD."""
    inside.check_by_hand("accept")
    starting.check_alone(loop.project)
    entry = accepting.chosen(loop, name)
    print("\n".join(_shown(loop, entry)), flush=True)
    if not picker.can_ask():
        what = "what was set aside is accepted on a terminal, where it can be seen"
        command = f"raymond accept {loop.id} {entry.number}"
        raise UsageError(what, hint=f"type it in a terminal (ssh -t), with no pipe: {command}")
    if not picker.agrees("commit this?"):
        print("nothing was accepted", file=sys.stderr)
        return 3
    done = accepting.accept(loop, entry, Trial(sys.stderr).tell)
    if done.commit:
        print(f"committed as {done.commit[:12]}", file=sys.stderr)
        return 0
    if done.branch:
        told = f"it does not fit what was committed since: it is on the branch {done.branch}; git merge {done.branch}"
        print(told, file=sys.stderr)
        return 1
    print(
        f"not committed, because its check is not green here: {done.red}; it is still in {entry.saved}", file=sys.stderr
    )
    return 1


def reject(loop: LoopRun, name: str | None, reason: str) -> int:
    """Put an item back into the queue."""
    inside.check_by_hand("reject")
    starting.check_alone(loop.project)
    print(accepting.reject(loop, accepting.chosen(loop, name), reason), file=sys.stderr)
    return 0
