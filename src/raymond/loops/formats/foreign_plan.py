"""A list of work that another tool keeps, as a value: what all of their formats have in common."""

from msgspec import Struct

from raymond.loops.formats.item import Doubt


class ForeignTask(Struct, frozen=True):
    """One step of a story."""

    key: str
    """What it is called in its file; the same each time it is read."""
    title: str
    text: str = ""
    criteria: tuple[str, ...] = ()
    is_done: bool = False
    """Its file says so."""
    ticked: tuple[str, ...] = ()
    """The criteria that are ticked in a task that is not done."""


class ForeignStory(Struct, frozen=True):
    """Something that is wanted."""

    key: str
    title: str
    line: int
    tasks: tuple[ForeignTask, ...]
    """At least one."""
    id: str = ""
    text: str = ""
    criteria: tuple[str, ...] = ()
    priority: int = 1
    is_done: bool = False
    depends_on: tuple[str, ...] = ()
    """Keys of other stories."""


class ForeignPlan(Struct, frozen=True):
    """All of a file."""

    title: str
    stories: tuple[ForeignStory, ...]
    commands: tuple[str, ...] = ()
    """What checks every task."""
    doubts: tuple[Doubt, ...] = ()


class Unreadable(Exception):
    """A file that is not what it should be; `str()` says why."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line
