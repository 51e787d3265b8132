"""One task of an implementation spec, as a value."""

from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check
from raymond.loops.formats.item import Doubt

Status: TypeAlias = Literal["planned", "in progress", "complete", "blocked"]


class Task(Struct, frozen=True, kw_only=True):
    """Something to be implemented, and where it is written: `text[start:end]` is the whole section."""

    id: str
    title: str
    status: Status = "planned"
    reason: str = ""
    """Why it is blocked."""
    verified: bool = False
    check: Check | None = None
    is_manual: bool = False
    """A person decides, by the criteria."""
    criteria: tuple[str, ...] = ()
    retries: int | None = None
    seal: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    last_attempt: str = ""
    context: str = ""
    implements: tuple[str, ...] = ()
    """The stories that it is part of."""
    proposed: bool = False
    """An agent added it."""
    problem: str = ""
    """Why its check, or what it implements, cannot be read: it has no `check`, but is not one that needs none."""
    body: str
    """The section without its heading, for the agent."""
    line: int
    """Of the heading, counted from 1."""
    start: int
    end: int


class Spec(Struct, frozen=True):
    """The tasks of a text in their order, and what is odd about them."""

    tasks: tuple[Task, ...]
    doubts: tuple[Doubt, ...]
