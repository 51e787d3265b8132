"""What items leave behind that did not count: where their changes are, and tasks that are blocked."""

import contextlib
from collections.abc import Iterator

from raymond import pasted
from raymond.errors import Error
from raymond.loops import specs
from raymond.loops.failing import WAITS
from raymond.loops.formats import task_id
from raymond.loops.formats.foreign_text import code
from raymond.loops.formats.task_spec import SHOWN
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import SESSION
from raymond.loops.specs import Placed
from raymond.loops.step import TROUBLE
from raymond.system import git

_MOST = 5


def of(loop: LoopRun, entry: Entry) -> str:
    """The command that shows what an item that failed has left; empty if nothing is known of it."""
    if entry.saved:
        return diff(loop, entry.saved)
    if entry.action in ("skip", "block"):
        return ""
    if not loop.run.is_over or entry.action == "pause" or not git.top(loop.top):
        return "git diff"
    # What stays in the tree becomes a part of what follows, or is put away in the end; it was saved before.
    name = f"refs/raymond/{loop.id}/{loop.ledger.entries.index(entry) + 1}.{entry.attempts}"
    return diff(loop, name) if loop.repository.reference(name) else ""


def diff(loop: LoopRun, name: str) -> str:
    """The command that shows what a reference has."""
    return f"git diff {loop.settings.branch or 'HEAD'}...{name}"


def of_plans(loop: LoopRun) -> Iterator[str]:
    """How a person sees what agents have changed in specs and the PRD, which was put back."""
    if not loop.settings.owns_plans or not git.top(loop.top):
        return
    where, prefix = pasted.word(loop.documents.docs, "DIR"), f"refs/raymond/{loop.id}/"
    names = loop.repository.said("for-each-ref", "--format=%(refname)", prefix).split()
    for name in [one for one in names if ".documents" in one.removeprefix(prefix) and _has_plan(loop, one)][:_MOST]:
        yield f"see what an agent changed in the plan, which was put back: git show {name} -- {where}"


def _has_plan(loop: LoopRun, name: str) -> bool:
    """Whether the documents of a reference differ from those before in what says what is to be done."""
    repository = loop.repository
    with contextlib.suppress(*TROUBLE):  # whatever git does not do, there is a summary
        before = repository.reference(f"{name}^")
        return bool(before) and any(loop.documents.is_plan(one.path) for one in repository.changes(before, name))
    return False


def blocked(loop: LoopRun) -> Iterator[str]:
    """How a person unblocks what the loop has blocked because it failed too often."""
    found = [one for one in loop.ledger.failed if one.action == "block"]
    if loop.loop == SESSION:
        for one in found[:_MOST]:
            yield f"unblock {code(one.title)}: take its [BLOCKED: ...] out with raymond continuous-session edit"
        return
    failed = {task_id.base(one.key) for one in found}
    waiting = [one for one in _blocked(loop) if task_id.base(one.task.id) in failed] if failed else []
    for placed in [one for one in waiting if not one.task.reason.startswith(WAITS)][:_MOST]:
        where = f"write {SHOWN['planned']} as its Status in {loop.documents.shown(placed.place)}"
        yield f"unblock {code(f'{placed.task.id}. {placed.task.title}')} when it can be done: {where}"


def _blocked(loop: LoopRun) -> list[Placed]:
    """The tasks that are blocked; none if their specs cannot be read any more."""
    with contextlib.suppress(Error, OSError):
        return [one for one in specs.read(loop.documents).tasks.values() if one.task.status == "blocked"]
    return []
