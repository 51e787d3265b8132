"""The flags that several commands share: in groups for `--help`, and what follows from them and the configuration."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from raymond.cli import texts, values
from raymond.cli.command import Decorator, argument, option
from raymond.cli.values import AGENT, BACKEND, STATE, Value
from raymond.control import arguments
from raymond.control.settings import (
    AGENTS,
    CHANGE,
    CHECKS,
    GIT,
    LIMITS,
    LIST,
    OPTIONS,
    RESUME,
    RIGHTS,
    RUN,
    START,
    SWITCH,
    TASK,
    TEXT,
    TEXTS,
    TOLD,
    Options,
    Row,
    choice,
    rows,
)
from raymond.errors import UsageError

ONE, MANY = "One agent", "Many runs"
GROUPS = (TASK, ONE, MANY, CHECKS, AGENTS, LIMITS, RIGHTS, GIT, TOLD)
"""In this order."""

_Typed = dict[str, Any]
"""Settings of a run as they were typed, by their names; those that were not are None, false or empty."""

_WORKFLOW = argument("path", complete=values.complete_workflow)

_READERS: dict[str, Callable[[Any], Any]] = {
    "id": lambda value: arguments.check_text(value, "--id"),
    "input": lambda value: texts.text(value, "--input"),
    "variables": lambda pairs: dict(map(texts.variable, pairs)),
    "overrides": texts.overrides,
    "replies": texts.read,
}
"""What is typed, as a program would say it."""


class ShowFlags(Struct, frozen=True, kw_only=True):
    """Who is told what happens, and where the run is driven."""

    notify: tuple[str, ...] = ()
    log_file: Annotated[str | None, Row("Also append every line to FILE.", TEXT, TOLD, metavar="FILE")] = None
    log_format: Annotated[str, Row("Format of the log file.", choice("text", "json"), TOLD)] = "text"
    debug: Annotated[
        bool, Row("Keep every step's output as files in .raymond/debug, with transitions.log.", SWITCH, TOLD)
    ] = False
    quiet: Annotated[
        bool,
        Row("Show only warnings, what steps print, and how the run ends.", SWITCH, TOLD, flag="--quiet -q"),
    ] = False
    as_json: Annotated[bool, Row("One JSON document on stdout at the end.", SWITCH, TOLD, flag="--json")] = False
    detach: Annotated[
        bool, Row("Run in the background; prints the id.", SWITCH, TOLD, flag="-d --detach", often=True)
    ] = False


class StartFlags(Struct, frozen=True, kw_only=True):
    """The flags of `run`."""

    run: _Typed = {}
    show: ShowFlags = ShowFlags()
    cd: Annotated[str | None, Row("The directory agents work in.", TEXT, TASK, metavar="DIR")] = None
    dry_run: Annotated[bool, Row("Show what would start, and start nothing.", SWITCH, TASK, often=True)] = False
    run_gates: Annotated[
        bool, Row("With --dry-run: also run the gates, one after the other.", SWITCH, CHECKS, where=(RUN,))
    ] = False


class ResumeFlags(Struct, frozen=True, kw_only=True):
    """The flags of `resume`."""

    run: _Typed = {}
    show: ShowFlags = ShowFlags()
    every: Annotated[
        bool,
        Row("Every run that a kill or shutdown cut off, in all projects.", SWITCH, MANY, flag="--all", often=True),
    ] = False
    here: Annotated[bool, Row("Every run that a kill or shutdown cut off, in this project.", SWITCH, MANY)] = False
    yes: Annotated[bool, Row("With --all or --here: do not ask.", SWITCH, MANY)] = False
    dry_run: Annotated[bool, Row("With --all or --here: list them, resume none.", SWITCH, MANY)] = False
    renew: Annotated[
        bool,
        Row("Continue with today's files, not those it started with.", SWITCH, TASK, flag="--latest", often=True),
    ] = False
    renamed: Annotated[
        tuple[str, ...],
        Row("With --latest: a state that was renamed.", LIST, TASK, flag="--map", metavar="OLD=NEW"),
    ] = ()
    restart: Annotated[bool, Row("Stop turns that still run instead of following them.", SWITCH, AGENTS)] = False
    at_once: Annotated[bool, Row("Retry a backend closed by a limit right away.", SWITCH, AGENTS, flag="--now")] = False
    fresh: Annotated[bool, Row("Retry failed and paused agents without their conversation.", SWITCH, AGENTS)] = False
    agent: Annotated[
        str | None, Row("Do one of these to agent A, then continue:", TEXT, ONE, metavar="A", often=True)
    ] = None
    goto: Annotated[
        str | None, Row("- send it to STATE (--input gives it an input),", TEXT, ONE, metavar="STATE", often=True)
    ] = None
    result: Annotated[str | None, Row("- let it return TEXT,", TEXT, ONE, metavar=TEXTS, often=True)] = None
    retry: Annotated[bool, Row("- let it try again,", SWITCH, ONE, often=True)] = False
    give_up: Annotated[bool, Row("- let it fail for good.", SWITCH, ONE, often=True)] = False
    input_: Annotated[
        str | None,
        Row("With --goto: what the state gets as {{input}}.", TEXT, ONE, flag="--input", metavar=TEXTS, often=True),
    ] = None
    cd: Annotated[str | None, Row("Continue in DIR, where its project was moved to.", TEXT, TASK, metavar="DIR")] = None
    force: Annotated[bool, Row("Take the lock even if another host still holds it.", SWITCH, TASK)] = False

    @property
    def changes(self) -> _Typed:
        """What of the run is to be changed, by name."""
        return {name: value for name, value in _typed(self.run).items() if CHANGE in OPTIONS[name].where}


def _typed(run: _Typed) -> _Typed:
    return {name: value for name, value in run.items() if value is not None and value is not False and value != ()}


_Flags = TypeVar("_Flags", StartFlags, ResumeFlags)


def flag_of(row: Row) -> Decorator:
    """The decorator that adds the flag of a setting."""
    kind, value = row.kind, row.unset.strip('"') or (row.kind.show(row.default) if row.default else "")
    about = f"{row.about.rstrip('.')} ({value})." if value and kind is not SWITCH else row.about
    more: dict[str, Any] = {"help": about, "often": row.often, "many": kind.many}
    if kind is SWITCH:
        more |= {"is_flag": True}
    elif kind.choices:
        more |= {"choices": kind.choices, "default": row.default or None}
    else:
        more |= {"metavar": row.metavar or kind.metavar}
        is_read = not kind.many and (row.example or kind is not TEXT)
        more |= {"type": Value(kind.read)} if is_read else {}
        more |= {} if row.example or kind.many else {"default": row.default or None}
    return option(*row.flags, row.name, group=row.group, **more | _MORE.get(row.name, {}))


def _id(text: str) -> str:
    """An id that was given; an empty one is that of a variable that nobody has set, and would start a run each time."""
    if not text.strip():
        raise UsageError("--id is empty", hint="is the variable it comes from set? without --id, a name is made up")
    return text


_MORE: dict[str, dict[str, Any]] = {
    "id": {"type": Value(_id)},
    "backend": {"type": BACKEND},
    "agent": {"type": AGENT},
    "goto": {"type": STATE},
}
"""What the flags of these settings need besides their rows."""


def flag_rows(kind: type[Struct], *where: str, instead: Mapping[str, Row] = {}) -> list[Row]:
    """The settings of a struct that have a flag in one of these commands; some with another row."""
    known = [instead.get(name, row) for name, row in rows(kind).items()]
    return [row for row in known if row.group and set(where) & set(row.where)]


def _starting(*where: str, instead: Mapping[str, Row] = {}) -> list[Any]:
    """The flags of commands that start something."""
    return [
        flag_of(row) for kind in (Options, StartFlags, ShowFlags) for row in flag_rows(kind, *where, instead=instead)
    ]


_ONCE = {
    "id": replace(OPTIONS["id"], about="Start once per KEY: starting it again does nothing.", metavar="KEY"),
    "detach": replace(rows(ShowFlags)["detach"], about="Accepted as for run: it is always so."),
}
"""The flags of `run` that mean something else for `start`."""
_KEPT = [replace(row, default=None) for row in flag_rows(Options, RESUME, CHANGE)]
"""A run that continues keeps what it had: there is no default."""
_RESUMING = [*flag_rows(ResumeFlags, START), *_KEPT, *flag_rows(ShowFlags, START)]


def _handed_over(kind: type[_Flags], flags: Sequence[Any], **always: Any) -> Callable[[Callable[..., int]], Any]:
    """Give a command these flags: those of `kind` as one value, and what else it takes by name."""
    names = {*OPTIONS, *rows(ShowFlags), *rows(kind)}

    def decorate(command: Callable[..., int]) -> Any:
        def call(**typed: Any) -> int:
            own = {name: typed.pop(name) for name in [*typed] if name not in names}
            return command(given=_read_flags(kind, typed | always), **own)

        call.__doc__ = command.__doc__
        for add in reversed(flags):
            call = add(call)
        return call

    return decorate


_CONTINUED = [
    replace(row, often=False) for row in _KEPT if START in row.where and row.name not in ("strict", "trust_project")
]
"""What can be changed of a loop that continues: not how many steps, since loops count items."""
CONTINUED = frozenset([*(row.name for row in _CONTINUED), *rows(ShowFlags)])
"""The names of the flags of a start that count, too, for a loop that was cut off."""


def as_resumption(given: StartFlags, *, yes: bool) -> ResumeFlags:
    """The flags of a start that also count when a loop that was cut off is resumed instead."""
    run = {name: value for name, value in given.run.items() if name in CONTINUED}
    return ResumeFlags(run=run, show=given.show, yes=yes)


def starting(command: Callable[..., int]) -> Any:
    """The flags of `run`."""
    return _handed_over(StartFlags, [_WORKFLOW, *_starting(START, RUN)])(command)


def starting_once(command: Callable[..., int]) -> Any:
    """The flags of `start`: those of `run`, always in the background."""
    return _handed_over(StartFlags, [_WORKFLOW, *_starting(START, RUN, instead=_ONCE)], detach=True)(command)


def resuming(command: Callable[..., int]) -> Any:
    """The flags of `resume`."""
    return _handed_over(ResumeFlags, [*map(flag_of, _RESUMING)])(command)


def looping(own: Sequence[Any]) -> Callable[[Callable[..., int]], Any]:
    """The flags of a loop: its `own`, and those of `run` that are for loops, too."""
    return _handed_over(StartFlags, [*own, *_starting(START)])


def continuing(*own: Any) -> Callable[[Callable[..., int]], Any]:
    """Limits and flags about who is told, for a loop that continues, besides a command's `own`."""
    return _handed_over(ResumeFlags, [*own, *map(flag_of, [*_CONTINUED, *flag_rows(ShowFlags, START)])])


def _read_flags(kind: type[_Flags], given: dict[str, Any]) -> _Flags:
    run = {name: given.pop(name) for name in OPTIONS if name in given}
    run |= {"id": run["id"] or ""} if "id" in run else {}
    run["notify"] = tuple(map(arguments.notify_target, run.get("notify", ())))
    show = {name: given.pop(name) for name in rows(ShowFlags)}
    return kind(run=run, show=ShowFlags(notify=run["notify"], **show), **given)


def options(flags: StartFlags) -> Options:
    """What was typed about the run that is to start; paths are relative to where they were typed."""
    found: dict[str, Any] = {}
    for name, value in _typed(flags.run).items():
        plain = list(value) if isinstance(value, tuple) else value
        found[name] = _READERS[name](plain) if name in _READERS else plain
    if flags.cd:
        found["roots"] = [*map(os.path.abspath, found.get("roots", ()))]
    return Options(**found)


def go_to(flags: StartFlags) -> StartFlags:
    """Change to the directory of --cd; the log file stays where it was typed."""
    if not flags.cd:
        return flags
    log = flags.show.log_file
    flags = replace(flags, show=replace(flags.show, log_file=log and os.path.abspath(log)))
    try:
        os.chdir(flags.cd or "")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"--cd {flags.cd}: {reason}", hint="name a directory that exists") from None
    return flags
