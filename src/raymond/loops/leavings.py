"""What items leave behind that did not count: where their changes are, and tasks that are blocked."""

import contextlib
from collections.abc import Iterator

from raymond import pasted
from raymond.errors import Error
from raymond.loops import specs
from raymond.loops.formats import item_ids
from raymond.loops.formats.foreign_text import code
from raymond.loops.formats.task_spec import SHOWN
from raymond.loops.item_run import DOCUMENTS
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.outcome import WAITS
from raymond.loops.settings import SESSION
from raymond.loops.specs import Placed
from raymond.system import git
from raymond.workspace import publish

_MOST = 5


def of(loop: LoopRun, entry: Entry) -> str:
    """The command that shows what an item that failed has left; empty if nothing is known of it."""
    return diff(loop, entry.saved) if entry.saved else ""


def diff(loop: LoopRun, name: str) -> str:
    """The command that shows what a reference has."""
    return f"git diff {pasted.word(loop.branch.shown, 'BRANCH')}...{pasted.word(name, 'REF')}"


def of_plans(loop: LoopRun) -> Iterator[str]:
    """How a person sees what agents whose work counts have changed in the plan, which does not count."""
    names = [f"{one.slot}.{DOCUMENTS}" for one in loop.ledger.done if loop.has_branch]
    for name in [one for one in names if loop.branch.commit_of(one)][:_MOST]:
        where = f"git show {loop.branch.reference(name)} -- {pasted.word(loop.checkout.docs, 'DIR')}"
        yield f"see what an agent changed in the plan, which does not count: {where}"


def blocked(loop: LoopRun) -> Iterator[str]:
    """How a person unblocks what the loop has blocked because it failed too often."""
    found = [one for one in loop.ledger.failed if one.action == "block"]
    if loop.loop == SESSION:
        for one in found[:_MOST]:
            yield f"unblock {code(one.title)}: take its [BLOCKED: ...] out with raymond continuous-session edit"
        return
    failed = {item_ids.repaired(one.key) for one in found}
    waiting = [one for one in _blocked(loop) if item_ids.repaired(one.task.id) in failed] if failed else []
    is_apart = loop.has_branch and not publish.contains(loop.top, git.head(loop.top), loop.branch.tip)
    after = " when you have taken the branch over" if is_apart else ""
    for placed in [one for one in waiting if not one.task.reason.startswith(WAITS)][:_MOST]:
        where = f"write {SHOWN['planned']} as its Status in {loop.documents.shown(placed.place)}{after}"
        yield f"unblock {code(f'{placed.task.id}. {placed.task.title}')} when it can be done: {where}"


def _blocked(loop: LoopRun) -> list[Placed]:
    """The tasks that are blocked; none if their specs cannot be read any more."""
    with contextlib.suppress(Error, OSError):
        return [one for one in specs.read(loop.documents).tasks.values() if one.task.status == "blocked"]
    return []
