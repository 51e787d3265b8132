"""How far the stories of a project are, what they took, and how fast they pass."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from raymond.errors import UsageError
from raymond.loops import finding, metrics, prd_init, specs
from raymond.loops.documents import PRD, PRD_STATUS, Documents
from raymond.loops.formats import prd, prd_status
from raymond.loops.ledger import NO_CHANGE, PASSED
from raymond.loops.loop_run import LoopRun
from raymond.loops.metrics import Effort, Metrics
from raymond.loops.settings import STORIES, TASKS
from raymond.store import project as projects

_RUNS = 200
"""Loops that are looked at, the latest first."""


def document(found: Documents) -> dict[str, Any]:
    """All of it for programs."""
    return metrics.document(_measured(found))


def text(found: Documents) -> str:
    """All of it for people."""
    return metrics.text(_measured(found))


def _measured(found: Documents) -> Metrics:
    if not found.exists(PRD):
        raise UsageError(f"{found.shown(PRD)} does not exist", hint=prd_init.NO_PRD)
    before, broken = prd_init.before(found)
    if broken:
        hint = "raymond prd status-init builds it again, and keeps this one aside"
        raise UsageError(f"{found.shown(PRD_STATUS)} cannot be read: {broken}", hint=hint)
    stories = prd.read(found.read(PRD)).stories
    status = prd_status.merged(before or prd_status.empty(found.shown(PRD)), stories)
    counted = metrics.tasks(one.task for one in specs.read(found).tasks.values())
    return metrics.measure(status, counted, _effort(found), datetime.now(UTC))


def _effort(found: Documents) -> Effort:
    """What the loops over stories and tasks of this project took, for each item that they verified."""
    verified, seconds, cost, count = 0, 0.0, 0.0, 0
    for loop in _loops(found):
        count += 1
        verified += sum(one.verdict in (PASSED, NO_CHANGE) for one in loop.ledger.entries)
        seconds += sum(one.seconds for one in loop.ledger.entries)
        cost += loop.run.cost
    return Effort(verified, seconds, cost) if count else Effort()


def _loops(found: Documents) -> Iterator[LoopRun]:
    project = projects.at(found.cwd)
    for loop in (STORIES, TASKS):
        yield from finding.every(project, loop, _RUNS)
