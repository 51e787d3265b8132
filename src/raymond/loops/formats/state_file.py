"""State files of loops: JSON that people may read, and of which other programs may keep fields of their own."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, NoReturn, TypeAlias

from msgspec import Struct, to_builtins

Status: TypeAlias = Literal["running", "paused", "stopping", "complete", "failed"]
Outcome: TypeAlias = Literal["passed", "failed", "skipped"]
ORDER = (
    *("status", "startedAt", "lastUpdated", "maxSessions", "currentSession", "sourceSession"),
    *("maxIterations", "maxStories", "currentIteration", "currentStory", "currentTask", "scope"),
    *("completedStories", "failedStories", "completedTasks", "failedTasks"),
    *("completedItems", "failedItems", "queueSnapshot"),
    *("branch", "error"),
    *("version", "pid", "host", "workflow_id"),
)
"""The fields that we know; others follow as they come."""
_DEEPEST = 100


class Broken(Exception):
    """A state file that cannot be read; `str()` says why."""


# The fields have the names that the file gives them.


class CompletedItem(Struct, frozen=True):
    """An item that is done."""

    title: str
    sessionLog: str
    verification: Outcome
    duration: int
    """Milliseconds."""
    verdict: str = ""
    """What was found in more detail: `own check`, `review`, `timed out`, `blocked`."""


class FailedItem(Struct, frozen=True):
    """An item that was given up."""

    title: str
    error: str
    sessionLog: str
    verdict: str = ""


class SessionState(Struct, frozen=True):
    """The state of a loop over the next steps of sessions."""

    status: Status
    startedAt: str
    lastUpdated: str
    maxSessions: int
    currentSession: int
    sourceSession: str
    completedItems: tuple[CompletedItem, ...] = ()
    failedItems: tuple[FailedItem, ...] = ()
    queueSnapshot: tuple[str, ...] = ()


class RalphState(Struct, frozen=True):
    """The state of the plain loop."""

    status: Status
    startedAt: str
    lastUpdated: str
    maxIterations: int
    currentIteration: int


class CompletedTask(Struct, frozen=True):
    """A task or a story that is done."""

    id: str
    title: str
    verified: bool
    duration: int
    """Milliseconds."""
    verdict: str = ""


class FailedTask(Struct, frozen=True):
    """One that was given up."""

    id: str
    title: str
    error: str
    attempts: int
    verdict: str = ""


class Scope(Struct, frozen=True):
    """Which tasks a loop works through; empty for all."""

    area: str = ""
    taskGroup: str = ""


class TaskState(Struct, frozen=True):
    """The state of a loop over tasks."""

    status: Status
    startedAt: str
    lastUpdated: str
    maxIterations: int
    currentIteration: int
    currentTask: str
    scope: Scope
    completedTasks: tuple[CompletedTask, ...] = ()
    failedTasks: tuple[FailedTask, ...] = ()


class StoryState(Struct, frozen=True):
    """The state of a loop over stories."""

    status: Status
    startedAt: str
    lastUpdated: str
    maxStories: int
    currentIteration: int
    currentStory: str
    currentTask: str
    completedStories: tuple[CompletedTask, ...] = ()
    failedStories: tuple[FailedTask, ...] = ()
    completedTasks: tuple[CompletedTask, ...] = ()
    failedTasks: tuple[FailedTask, ...] = ()


def known(state: SessionState | RalphState | TaskState | StoryState) -> dict[str, Any]:
    """The fields of a state, for `write`."""
    found: dict[str, Any] = to_builtins(state)
    return found


def read(text: str | bytes) -> dict[str, Any]:
    """The fields of a state file, whoever wrote them."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(decoded.removeprefix("\ufeff"), parse_constant=_no_number, parse_float=_finite)
        _measure(value)
        # An escape can stand for half a character, which no file can hold.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise Broken("it is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise Broken(f"it is not valid JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise Broken("it is nested too deeply") from None
    except ValueError as error:
        raise Broken(f"it is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Broken("it is not a JSON object")
    return value


def _measure(value: object) -> None:
    """Refuse what could be read, but not written again."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise RecursionError


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits} is too large")
    return number


def write(known: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """The text of a state file: what is `known`, and the fields of `before` that are not."""
    fields = {**(before or {}), **known}
    others = [name for name in (*known, *(before or {})) if name not in ORDER]
    ordered = {name: fields[name] for name in (*ORDER, *others) if name in fields}
    text = json.dumps(ordered, ensure_ascii=False, indent=2, allow_nan=False)
    # A path that is not UTF-8 has halves of surrogate pairs, which would make the file unreadable.
    return text.encode("utf-8", "replace").decode() + "\n"
