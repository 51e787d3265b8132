"""Show what a loop has set aside, and carry out what a person decides about it."""

import sys

from raymond.cli import picker
from raymond.control import inside, reviews
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.faces.trial import Trial
from raymond.loops import evidence, person
from raymond.loops.evidence import Evidence
from raymond.loops.loop_run import LoopRun
from raymond.text import visible

_MARGIN = "  | "


def aside(run: RunHandle) -> LoopRun | None:
    """The loop that this run is, if it has set items aside and none of its agents waits for a review."""
    if not run.start.loop or reviews.of_run(run.project, run.id):
        return None
    loop = LoopRun(run.project, run.read())
    return loop if person.waiting(loop) else None


def items(run: RunHandle) -> list[Evidence]:
    """What a run has set aside, if it is a loop."""
    if not run.start.loop:
        return []
    loop = LoopRun(run.project, run.read())
    return [evidence.of(loop, one) for one in person.waiting(loop)]


def kept(run: RunHandle) -> UsageError | None:
    """Why a loop is not removed: items wait for a person; None when none does."""
    found = person.waiting(LoopRun(run.project, run.read()))
    if not found:
        return None
    items = ", ".join(f"{one.number} ({one.title})" for one in found)
    force = f"raymond clean --force {run.id} removes the run, but not what git has in refs/raymond/{run.id}"
    what = f"{run.id} has set items aside that wait for you: {items}"
    return UsageError(what, hint=f"raymond review {run.id} shows them; {force}")


def lines(run: RunHandle, found: Evidence) -> list[str]:
    """All of an item that was set aside, and the commands that decide it."""
    return [
        *_shown(run.id, found),
        f"accept: raymond accept {run.id} {found.item}",
        f"reject: raymond reject {run.id} {found.item} REASON",
    ]


def _shown(id: str, found: Evidence) -> list[str]:
    """All of an item; nothing of what others wrote is cut or hidden."""
    width = width_of(sys.stdout)
    told = [
        f"{id}, item {found.item}: {found.title}: {found.verdict}",
        f"why:    {found.reason}",
        f"saved:  {found.saved}",
    ]
    shown = [part for one in told for part in hung(visible(one), _MARGIN, width)]
    if found.words:
        shown += ["the agent says:", *in_margin(found.words, _MARGIN, width)]
    for what, text in found.texts.items():
        shown += [f"{what}:", *in_margin(text.rstrip("\n"), _MARGIN, width)]
    return shown


def accept(loop: LoopRun, name: str | None) -> int:
    """Show an item, ask, and commit it if its check is green with today's HEAD."""
    inside.check_by_hand("accept")
    entry = person.chosen(loop, name)
    print("\n".join(_shown(loop.id, evidence.of(loop, entry))), flush=True)
    if not picker.can_ask():
        what = "what was set aside is accepted on a terminal, where it can be seen"
        command = f"raymond accept {loop.id} {entry.number}"
        raise UsageError(what, hint=f"type it in a terminal (ssh -t), with no pipe: {command}")
    if not picker.agrees("commit this?"):
        print("nothing was accepted", file=sys.stderr)
        return 3
    done = person.accept(loop, entry, Trial(sys.stderr).tell)
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


def names(loop: LoopRun) -> list[str]:
    """What items that were set aside are called."""
    return [name for one in person.waiting(loop) for name in (str(one.number), one.title, one.agent)]


def reject(loop: LoopRun, name: str | None, reason: str) -> int:
    """Put an item back into the queue; without a reason, show it and ask for one."""
    inside.check_by_hand("reject")
    entry = person.chosen(loop, name)
    if not reason and picker.can_ask():
        print("\n".join(_shown(loop.id, evidence.of(loop, entry))), flush=True)
        reason = picker.ask("why? The next session is told; Ctrl-C rejects nothing: ")
    print(person.reject(loop, entry, reason), file=sys.stderr)
    return 0
