"""The flags that loops have in common, and the settings they make."""

from collections.abc import Collection
from typing import Annotated, Any

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from raymond import durations
from raymond.cli.flags import of_row, table
from raymond.cli.value import Value
from raymond.control.settings import GIT, LIMITS, SWITCH, TASK, TEXT, Row, choice, count, duration, rows
from raymond.errors import UsageError
from raymond.loops.settings import ON_DIRTY, RALPH, SESSION, STORIES, TASKS, Settings
from raymond.text import digits

MOST = {
    SESSION: ("--max-sessions", 5, "Items"),
    RALPH: ("--max-iterations", 10, "Iterations"),
    TASKS: ("--max-iterations", 10, "Tasks"),
    STORIES: ("--max-stories", 3, "Stories"),
}
"""The flag that limits what a loop counts, what holds without it, and what it counts."""
_ITEMS, _ALL = (SESSION, TASKS, STORIES), (SESSION, TASKS, STORIES, RALPH)


class Start(Struct):
    """What is said about one start of a loop, and not kept with it."""

    pin_prompt: Annotated[
        bool, Row("Read the prompt once; changes of its file do not count.", SWITCH, TASK, where=(RALPH,))
    ] = False
    no_commit: Annotated[
        bool, Row("Make no branch: what counts comes into the checkout at the end.", SWITCH, GIT, where=_ITEMS)
    ] = False
    on_dirty: Annotated[
        str, Row("Whether agents find your uncommitted changes.", choice(*ON_DIRTY), GIT, where=_ALL)
    ] = "snapshot"
    since: Annotated[str, Row("Begin with this commit.", TEXT, GIT, flag="--from", metavar="REF", where=_ALL)] = ""
    workflow: Annotated[
        str,
        Row(
            "Run the workflow in DIR, made with eject.",
            TEXT,
            TASK,
            metavar="DIR",
            where=_ALL,
        ),
    ] = ""
    yes: Annotated[bool, Row("Do not ask whether to resume a loop that was cut off.", SWITCH, TASK, where=_ALL)] = False


def own(loop: str, without: Collection[str] = ()) -> list[Any]:
    """The flags of a loop that `run` does not have."""
    flag, most, items = MOST[loop]
    limit = Row(f"{items} at most; 0: no limit.", count(0), LIMITS, default=most, flag=flag, often=True, name="most")
    instead = _OF_RALPH if loop == RALPH else {}
    found = [limit, *table(Settings, loop, instead=instead), *table(Start, loop)]
    return [of_row(row) for row in found if row.name not in without]


_ROWS = rows(Settings)
DOCS = of_row(_ROWS["docs"])
_OF_RALPH = {
    "max_failures": replace(
        _ROWS["max_failures"], about="Iterations in a row in which the agent's program fails, until a person is asked."
    ),
}
"""What means something else where there are no items."""


def settings(loop: str, id: str, given: dict[str, Any], **more: Any) -> Settings:
    """The settings that the flags of a loop make; `more` are those that no flag says."""
    for flag, name in (("--branch", "branch"), ("--from", "since")):
        if given[name] == "":
            raise UsageError(f"{flag} is empty", hint="is the variable it comes from set?")
    said = {name: given[name] for name in (*_ROWS, "most") if given.get(name) is not None}
    said |= {"branch": _branch(id, given), "typed": _typed()}
    applies = bool(given.get("no_commit")) or given["branch"] == "current"
    return Settings(**said | {"loop": loop, "applies": applies} | more)


def _branch(id: str, given: dict[str, Any]) -> str:
    """The branch of a loop: its own, or the one that was named."""
    if given.get("no_commit"):
        return ""
    return given["branch"] if given["branch"] not in (None, "current") else f"raymond/{id}"


def _typed() -> dict[str, list[str]]:
    """The flags that were typed, with their values, but for those that are about this one start."""
    context, found = click.get_current_context(), {}
    for param in context.command.params:
        is_typed = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if is_typed and isinstance(param, click.Option) and param.name not in _ONCE:
            value = context.params[param.name or ""]
            values = value if isinstance(value, tuple) else (value,)
            found[max(param.opts, key=len)] = [] if param.is_flag else [_written(param, one) for one in values]
    return found


def _written(option: click.Option, value: Any) -> str:
    """A value of a flag as a person types it."""
    if isinstance(option.type, Value) and option.type.read is duration:
        return durations.written(value)
    return digits(value) if isinstance(value, float) else str(value)


_ONCE = ("id", "id_", "since", "source", "yes", "dry_run", "detach", "as_json", "resumes", "starts", "wait")
"""Parameters that say nothing about the next start."""
