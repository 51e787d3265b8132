"""One story of a PRD, as a value."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check

Kind: TypeAlias = Literal["command", "manual", "tasks", "composite"]


class StoryCheck(Struct, frozen=True):
    """How a story is verified."""

    kind: Kind
    checks: tuple[Check, ...] = ()
    """The command, if `kind` is `command`."""
    criteria: tuple[str, ...] = ()
    """What a person looks at, if it is `manual`."""
    parts: tuple["StoryCheck", ...] = ()
    """All of which have to pass, if it is `composite`."""

    def commands(self) -> Iterator[Check]:
        """All commands, also those of its parts."""
        yield from self.checks
        for part in self.parts:
            yield from part.commands()


class Story(Struct, frozen=True):
    """What somebody wants, and where it is written: `text[start:end]`."""

    id: str
    title: str
    line: int
    """Of its heading, counted from 1."""
    start: int
    end: int
    body: str
    """The text under its heading."""
    role: str = ""
    want: str = ""
    benefit: str = ""
    criteria: tuple[str, ...] = ()
    given: StoryCheck | None = None
    """What its `Verification` says; None when it has none."""
    problem: str = ""
    """Why its `Verification`, or what it names, cannot be used. It is neither unverified nor verified otherwise."""
    implemented_by: tuple[str, ...] = ()
    """Tasks such as `1.4.1`, groups such as `1.4`, areas such as `1`."""
    priority: int = 1
    """1 comes first."""
    depends_on: tuple[str, ...] = ()

    def check(self, *, has_tasks: bool = False) -> StoryCheck:
        """How it is verified; without a word about it by its tasks, and without tasks by a person.

        What cannot be used is left to a person, who is told so: nothing else may pass in its place.
        """
        if self.problem:
            return StoryCheck("manual", criteria=(f"it cannot be verified: {self.problem}",))
        if self.given:
            return self.given
        if has_tasks or self.implemented_by:
            return StoryCheck("tasks")
        return StoryCheck("manual", criteria=self.criteria)
