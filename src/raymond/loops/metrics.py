"""Metrics of a story loop: how far it is, what an item takes, and when it ends at this pace."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any

from msgspec import Struct

from raymond.errors import UsageError
from raymond.faces.words import many
from raymond.loops import finding, prd_init, spec_files
from raymond.loops.documents import PRD, PRD_STATUS, Documents
from raymond.loops.formats import prd, prd_status
from raymond.loops.formats.prd_status import REMOVED, Status
from raymond.loops.formats.records import duration
from raymond.loops.ledger import NO_CHANGE, PASSED
from raymond.loops.loop_run import LoopRun
from raymond.loops.loop_status import bar
from raymond.loops.settings import STORIES, TASKS
from raymond.store import project as projects

_WEEK = timedelta(days=7)
_FARTHEST = 3650
"""Days of a projection that is worth telling."""

_RUNS = 200
"""Loops that are looked at, the latest first."""


class Effort(Struct, frozen=True):
    """What a loop has taken so far; None for what is not known."""

    verified: int = 0
    """Items that it verified."""
    seconds: float | None = None
    cost: float | None = None


class Tasks(Struct, frozen=True):
    """How many tasks there are."""

    verified: int = 0
    unverified: int = 0
    """Complete, but nobody has checked it."""
    remaining: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.verified + self.unverified + self.remaining


class Velocity(Struct, frozen=True):
    """How fast stories pass."""

    week: int
    """Stories of the last seven days."""
    days: int
    """Since the first one passed, both days counted; 0 when none has."""
    per_day: float | None
    left: float | None
    """Days until all have passed at this pace; None when nobody can tell."""
    end: date | None


class Metrics(Struct, frozen=True):
    """All of it."""

    total: int
    passed: int
    failed: int
    pending: int
    tasks: Tasks
    effort: Effort
    velocity: Velocity


def tasks(counted: Iterable[Any]) -> Tasks:
    """Count tasks by what is known of them."""
    verified = unverified = remaining = 0
    for one in counted:
        if one.status != "complete":
            remaining += 1
        elif one.verified:
            verified += 1
        else:
            unverified += 1
    return Tasks(verified, unverified, remaining)


def measure(status: Status, counted: Tasks, effort: Effort, now: datetime) -> Metrics:
    """The metrics of a status file; `now` has a zone."""
    stories = [one for one in status["stories"] if not one.get(REMOVED)]
    states = [prd_status.state(one) for one in stories]
    passed, failed = states.count("passed"), states.count("failed")
    left = len(states) - passed
    return Metrics(
        len(states), passed, failed, left - failed, counted, effort, _velocity(_passed(stories, now), left, now)
    )


def _passed(stories: Iterable[Mapping[str, Any]], now: datetime) -> list[datetime]:
    """When each story that passes now has passed, as far as its history says; in order."""
    found = []
    for story in stories:
        if story.get("passes") is not True:
            continue
        noted = (one.get("date") for one in story.get("history") or () if one.get("result") == "passed")
        times = [when for when in map(_time, (*noted, story.get("lastVerified"))) if when and when <= now]
        found += [min(times)] if times else []
    return sorted(found)


def _time(text: Any) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _velocity(passed: list[datetime], left: int, now: datetime) -> Velocity:
    week = sum(now - when < _WEEK for when in passed)
    if not passed:
        return Velocity(week, 0, None, 0.0 if not left else None, None)
    days = (now.astimezone(UTC).date() - passed[0].date()).days + 1
    per_day = len(passed) / days
    needed = left / per_day
    end = (now + timedelta(days=ceil(needed))).date() if 0 < needed <= _FARTHEST else None
    return Velocity(week, days, per_day, needed, end)


def document(metrics: Metrics) -> dict[str, Any]:
    """All of it for programs."""
    done, effort, pace = metrics.tasks, metrics.effort, metrics.velocity
    return {
        "stories": {
            "total": metrics.total,
            "passed": metrics.passed,
            "failed": metrics.failed,
            "pending": metrics.pending,
            "pass_rate": _share(metrics.passed, metrics.total),
        },
        "tasks": {
            "total": done.total,
            "verified": done.verified,
            "unverified": done.unverified,
            "remaining": done.remaining,
        },
        "per_verified_item": {
            "items": effort.verified,
            "seconds": _each(effort.seconds, effort.verified),
            "cost": _each(effort.cost, effort.verified),
        },
        "velocity": {
            "stories_this_week": pace.week,
            "days": pace.days,
            "stories_per_day": None if pace.per_day is None else round(pace.per_day, 3),
            "projected_days": None if pace.left is None else round(pace.left, 1),
            "projected_end": pace.end.isoformat() if pace.end else None,
        },
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _each(amount: float | None, count: int) -> float | None:
    return None if amount is None or not count else amount / count


def text(metrics: Metrics, *, ascii_: bool = False) -> str:
    """All of it for people; `ascii_` for a terminal that shows nothing else."""
    return "\n".join(_lines(metrics, ascii_)) + "\n"


def _lines(metrics: Metrics, ascii_: bool) -> Iterator[str]:
    done, effort = metrics.tasks, metrics.effort
    yield f"Stories:     {bar(metrics.passed, metrics.total, ascii_)} passed"
    if metrics.total:
        rest = f"{metrics.failed} failed, {metrics.pending} pending"
        yield f"Pass rate:   {round(100 * metrics.passed / metrics.total)}% ({rest})"
    else:
        yield "Pass rate:   no stories yet"
    yield f"Tasks:       {bar(done.verified, done.total, ascii_)} verified"
    if done.total:
        yield f"             {done.unverified} complete but unverified, {done.remaining} remaining"
    seconds, cost = _each(effort.seconds, effort.verified), _each(effort.cost, effort.verified)
    if effort.verified:
        time = duration(seconds) if seconds is not None else "an unknown time"
        money = f"${cost:.2f}" if cost is not None else "an unknown cost"
        yield f"Per item:    {time}, {money} ({many(effort.verified, 'verified item')})"
    else:
        yield "Per item:    nothing verified yet"
    yield f"Velocity:    {_pace(metrics.velocity)}"
    yield f"Projected:   {_projection(metrics)}"


def _pace(pace: Velocity) -> str:
    if pace.per_day is None:
        return "no story has passed yet"
    since = "today" if pace.days == 1 else f"in {many(pace.days, 'day')}"
    return f"{many(pace.week, 'story')} this week, {pace.per_day:.1f} per day {since}"


def _projection(metrics: Metrics) -> str:
    pace = metrics.velocity
    if metrics.total and metrics.passed == metrics.total:
        return "all stories have passed"
    if pace.left is None or not metrics.total:
        return "unknown until a story has passed"
    if pace.end is None:
        return "more than ten years at this pace"
    early = " (from one day only)" if pace.days == 1 else ""
    return f"{pace.end.isoformat()}, in {many(ceil(pace.left), 'day')}{early}"


def story_document(found: Documents) -> dict[str, Any]:
    """All of it for programs."""
    return document(_measured(found))


def story_text(found: Documents) -> str:
    """All of it for people."""
    return text(_measured(found))


def _measured(found: Documents) -> Metrics:
    if not found.exists(PRD):
        raise UsageError(f"{found.shown(PRD)} does not exist", hint=prd_init.NO_PRD)
    before, broken = prd_init.before(found)
    if broken:
        hint = "raymond prd status-init builds it again, and keeps this one aside"
        raise UsageError(f"{found.shown(PRD_STATUS)} cannot be read: {broken}", hint=hint)
    stories = prd.read(found.read(PRD)).stories
    status = prd_status.merged(before or prd_status.empty(found.shown(PRD)), stories)
    counted = tasks(one.task for one in spec_files.read_tasks(found).tasks.values())
    return measure(status, counted, _effort(found), datetime.now(UTC))


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
