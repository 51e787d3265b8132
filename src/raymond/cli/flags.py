"""The flags that several commands share, and what follows from them and the configuration."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from raymond import amounts
from raymond.cli import names, texts
from raymond.cli.count import Count
from raymond.cli.help import AGENTS, CHECKS, LIMITS, MANY, ONE, RIGHTS, TASK, TOLD, flag
from raymond.cli.names import AGENT, BACKEND, STATE
from raymond.control import config, exposure, notifying
from raymond.control.config import Config
from raymond.errors import UsageError
from raymond.language.policy_keys import PERMISSION_MODES
from raymond.language.ways import WAYS

if TYPE_CHECKING:
    from raymond.control.start import Options


class ShowFlags(Struct, frozen=True, kw_only=True):
    """Who is told what happens, and where the run is driven."""

    notify: tuple[str, ...] = ()
    log_file: str | None = None
    log_format: str = "text"
    debug: bool = False
    quiet: bool = False
    as_json: bool = False
    detach: bool = False


class LimitFlags(Struct, frozen=True, kw_only=True):
    """Limits and tools that `run` and `resume` take."""

    budget: float | None = None
    max_iterations: int | None = None
    max_time: float | None = None
    max_turns: int | None = None
    allow_tools: tuple[str, ...] = ()
    allow_gate_commands: bool = False
    on_ask: Literal["wait", "fail"] | None = None

    @property
    def given(self) -> bool:
        """Whether any was given."""
        return self != LimitFlags()


class StartFlags(Struct, frozen=True, kw_only=True):
    """The flags of `run`."""

    limits: LimitFlags = LimitFlags()
    show: ShowFlags = ShowFlags()
    input_: str | None = None
    id_: str = ""
    variables: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    backend: str | None = None
    replies: str | None = None
    model: str | None = None
    effort: str | None = None
    max_parallel: int | None = None
    timeout: float | None = None
    cd: str | None = None
    roots: tuple[str, ...] = ()
    permission_mode: str | None = None
    skip: bool = False
    allow_start: bool = False
    allow_test_edits: bool = False
    red_first: bool = False
    workspace: Literal["here", "copy", "isolated"] | None = None
    trust_project: bool = False
    strict: bool = False
    dry_run: bool = False
    run_gates: bool = False


class ResumeFlags(Struct, frozen=True, kw_only=True):
    """The flags of `resume`."""

    limits: LimitFlags = LimitFlags()
    show: ShowFlags = ShowFlags()
    every: bool = False
    here: bool = False
    yes: bool = False
    dry_run: bool = False
    renew: bool = False
    renamed: tuple[str, ...] = ()
    restart: bool = False
    at_once: bool = False
    fresh: bool = False
    agent: str | None = None
    goto: str | None = None
    result: str | None = None
    retry: bool = False
    give_up: bool = False
    input_: str | None = None
    cd: str | None = None
    roots: tuple[str, ...] = ()
    trust_project: bool = False
    strict: bool = False
    force: bool = False


_Flags = TypeVar("_Flags", StartFlags, ResumeFlags)


class Duration(click.ParamType[float]):
    """A duration as people write it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        try:
            return value if isinstance(value, float) else config.duration(value)
        except ValueError as error:
            self.fail(f"'{value}' is not {error}", param, ctx)


class Dollars(click.ParamType[float]):
    """An amount of money."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Dollars; a $ before them is fine."""
        try:
            return amounts.dollars(str(value).removeprefix("$"))
        except ValueError as error:
            self.fail(f"'{value}' is not {error}.", param, ctx)


_TRUSTING = flag(
    RIGHTS, "--trust-project", is_flag=True, help="Let agents' programs use the project's own settings this time."
)
_STRICT = flag(TASK, "--strict", is_flag=True, help="Refuse what would only be warned of.")
_ROOTS = flag(AGENTS, "--root", "roots", multiple=True, metavar="DIR", help="Another directory agents may `cd` to.")
_LIMITS = (
    flag(
        LIMITS,
        "--budget",
        often=True,
        type=Dollars(),
        metavar="USD",
        help="Stop when this is spent ($10; 0 for no limit).",
    ),
    flag(LIMITS, "--max-iterations", type=Count(), metavar="N", help="Stop after this many steps."),
    flag(LIMITS, "--max-time", often=True, type=Duration(), metavar="TIME", help="Stop after this long, e.g. 8h."),
    flag(LIMITS, "--max-turns", type=Count(), metavar="N", help="Stop after this many backend turns."),
    flag(
        RIGHTS,
        "--allow-tool",
        "allow_tools",
        often=True,
        multiple=True,
        metavar="PATTERN",
        help="A tool agents may use without asking.",
    ),
    flag(RIGHTS, "--allow-gate-commands", is_flag=True, help="Agents may run exactly the commands of the gates."),
    flag(
        AGENTS,
        "--on-ask",
        type=click.Choice(["wait", "fail"]),
        help="An agent that asks a person waits, or fails (for CI).",
    ),
)
_DETACH = flag(TOLD, "-d", "--detach", "detach", often=True, is_flag=True, help="Run in the background; prints the id.")
_SHOWING = (
    flag(
        TOLD,
        "--notify",
        "notify",
        often=True,
        multiple=True,
        metavar="CMD|URL",
        help="Notify when the run ends or asks something.",
    ),
    flag(TOLD, "--log-file", type=click.Path(dir_okay=False), metavar="FILE", help="Also append every line to FILE."),
    flag(TOLD, "--log-format", type=click.Choice(["text", "json"]), default="text", help="Format of the log file."),
    flag(
        TOLD, "--debug", is_flag=True, help="Keep every step's output as files in .raymond/debug, with transitions.log."
    ),
    flag(TOLD, "--quiet", "-q", is_flag=True, help="Show only warnings, what steps print, and how the run ends."),
    flag(TOLD, "--json", "as_json", is_flag=True, help="One JSON document on stdout at the end."),
    _DETACH,
)


def _named(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """An id that was given; an empty one is that of a variable that nobody has set, and would start a run each time."""
    if value is not None and not value.strip():
        raise UsageError("--id is empty", hint="is the variable it comes from set? without --id, a name is made up")
    return value or ""


_ID = flag(TASK, "--id", "id_", often=True, callback=_named, metavar="ID", help="Name the run; the id must be new.")
_STARTING = (
    click.argument("path", type=click.Path(readable=False), shell_complete=names.workflow),  # the loader says it better
    flag(TASK, "--input", "input_", often=True, metavar="TEXT|@FILE|-", help="What the first state gets as {{input}}."),
    _ID,
    flag(TASK, "--var", "variables", multiple=True, metavar="K=V", help="A variable every agent sees as {{K}}."),
    flag(
        TASK,
        "--set",
        "settings",
        multiple=True,
        metavar="STATE.KEY=VALUE",
        help="Override a policy key (frontmatter) of STATE.",
    ),
    flag(AGENTS, "--backend", often=True, type=BACKEND, metavar="NAME", help="The program that answers prompts."),
    flag(TASK, "--replies", metavar="FILE", help="Scripted replies to use instead of replies.yaml."),
    flag(AGENTS, "--model", metavar="NAME", help="Model for states that name none."),
    flag(AGENTS, "--effort", metavar="LEVEL", help="Effort for states that name none."),
    *_LIMITS,
    flag(
        AGENTS, "--max-parallel", type=Count(), metavar="N", help="Steps to run at once, per backend and for scripts."
    ),
    flag(LIMITS, "--timeout", type=Duration(), metavar="TIME", help="Stop a step that is silent for this long (10m)."),
    flag(TASK, "--cd", "cd", metavar="DIR", help="The directory agents work in."),
    _ROOTS,
    flag(RIGHTS, "--permission-mode", type=click.Choice(PERMISSION_MODES), help="What agents may do without asking."),
    flag(RIGHTS, "--dangerously-skip-permissions", "skip", is_flag=True, help="Agents may do anything without asking."),
    flag(CHECKS, "--red-first", is_flag=True, help="Run the checks of states before the work too."),
    flag(
        CHECKS,
        "--allow-test-edits",
        is_flag=True,
        help="Accept in advance that agents change what decides their checks.",
    ),
    flag(
        AGENTS,
        "--workspace",
        often=True,
        type=click.Choice(WAYS),
        help="Where agents work: here, in a copy, or isolated in one.",
    ),
    flag(RIGHTS, "--allow-start", is_flag=True, help="Steps may start runs that outlive this one: raymond start."),
    _TRUSTING,
    _STRICT,
    flag(TASK, "--dry-run", often=True, is_flag=True, help="Show what would start, and start nothing."),
    flag(CHECKS, "--run-gates", is_flag=True, help="With --dry-run: also run the gates, one after the other."),
    *_SHOWING,
)
_ONCE = {
    _ID: flag(
        TASK,
        "--id",
        "id_",
        often=True,
        callback=_named,
        metavar="KEY",
        help="Start once per KEY: starting it again does nothing.",
    ),
    _DETACH: flag(
        TOLD, "-d", "--detach", "detach", often=True, is_flag=True, help="Accepted as for run: it is always so."
    ),
}
"""The flags of `run` that mean something else for `start`."""
_RESUMING = (
    flag(
        MANY,
        "--all",
        "every",
        often=True,
        is_flag=True,
        help="Every run that a kill or shutdown cut off, in all projects.",
    ),
    flag(MANY, "--here", is_flag=True, help="Every run that a kill or shutdown cut off, in this project."),
    flag(MANY, "--yes", is_flag=True, help="With --all or --here: do not ask."),
    flag(MANY, "--dry-run", is_flag=True, help="With --all or --here: list them, resume none."),
    flag(
        TASK,
        "--latest",
        "renew",
        often=True,
        is_flag=True,
        help="Continue with today's files, not those it started with.",
    ),
    flag(TASK, "--map", "renamed", multiple=True, metavar="OLD=NEW", help="With --latest: a state that was renamed."),
    flag(AGENTS, "--restart", is_flag=True, help="Stop turns that still run instead of following them."),
    flag(AGENTS, "--now", "at_once", is_flag=True, help="Retry a backend closed by a limit right away."),
    flag(AGENTS, "--fresh", is_flag=True, help="Retry failed and paused agents without their conversation."),
    flag(ONE, "--agent", often=True, type=AGENT, metavar="A", help="Do one of these to agent A, then continue:"),
    flag(
        ONE, "--goto", often=True, type=STATE, metavar="STATE", help="- send it to STATE (--input gives it an input),"
    ),
    flag(ONE, "--result", often=True, metavar="TEXT|@FILE|-", help="- let it return TEXT,"),
    flag(ONE, "--retry", often=True, is_flag=True, help="- let it try again,"),
    flag(ONE, "--give-up", often=True, is_flag=True, help="- let it fail for good."),
    flag(
        ONE,
        "--input",
        "input_",
        often=True,
        metavar="TEXT|@FILE|-",
        help="With --goto: what the state gets as {{input}}.",
    ),
    flag(TASK, "--cd", metavar="DIR", help="Continue in DIR, where its project was moved to."),
    _ROOTS,
    _TRUSTING,
    _STRICT,
    flag(TASK, "--force", is_flag=True, help="Take the lock even if another host still holds it."),
    *_LIMITS,
    *_SHOWING,
)


def starting(command: Callable[[str, StartFlags], int]) -> Callable[..., int]:
    """The flags of `run`, handed over as one value."""

    def call(path: str, **given: Any) -> int:
        return command(path, _read(StartFlags, given))

    return _documented(_STARTING, call, command)


def starting_once(command: Callable[[str, StartFlags], int]) -> Callable[..., int]:
    """The flags of `start`, handed over as one value: those of `run`, always in the background."""

    def call(path: str, **given: Any) -> int:
        return command(path, _read(StartFlags, given | {"detach": True}))

    return _documented(tuple(_ONCE.get(one, one) for one in _STARTING), call, command)


def looping(own: Sequence[Any], without: Sequence[str]) -> Callable[..., Any]:
    """The flags of a loop: its `own`, and those of `run` but for the ones that it is `without`."""
    shared = [one for one in _STARTING[1:] if not set(without) & set(option(one).opts)]

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        def call(**given: Any) -> int:
            known = {name for kind in (StartFlags, LimitFlags, ShowFlags) for name in kind.__struct_fields__}
            mine = {name: given.pop(name) for name in list(given) if name not in known}
            for name in LimitFlags.__struct_fields__:
                given.setdefault(name, None)
            return command(_read(StartFlags, given), **mine)

        return _documented((*own, *shared), call, command)

    return decorate


def continuing(*own: Any) -> Callable[..., Any]:
    """Limits and flags about who is told, handed over as one value, besides a command's `own`."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        def call(**given: Any) -> int:
            known = (*LimitFlags.__struct_fields__, *ShowFlags.__struct_fields__)
            shared = {name: given.pop(name, None) for name in known}
            return command(_read(ResumeFlags, shared), **given)

        limits = [one for one in _LIMITS if "--max-iterations" not in option(one).opts]
        return _documented((*own, *limits, *_SHOWING), call, command)

    return decorate


def as_resumption(given: StartFlags) -> ResumeFlags:
    """The flags of a start that also count when a loop that was cut off is resumed instead."""
    return ResumeFlags(limits=given.limits, show=given.show)


def option(decorate: Any) -> click.Parameter:
    """The option that a decorator adds."""

    def bare() -> None:
        pass

    found: click.Parameter = decorate(bare).__click_params__[0]
    return found


def resuming(command: Callable[[str | None, ResumeFlags], int]) -> Callable[..., int]:
    """The flags of `resume`, handed over as one value."""

    def call(id_: str | None, **given: Any) -> int:
        return command(id_, _read(ResumeFlags, given))

    return _documented(_RESUMING, call, command)


def _read(kind: type[_Flags], given: dict[str, Any]) -> _Flags:
    limits = LimitFlags(**{name: given.pop(name) for name in LimitFlags.__struct_fields__})
    show = ShowFlags(**{name: given.pop(name) for name in ShowFlags.__struct_fields__})
    show = replace(show, notify=tuple(map(notifying.settled, show.notify)))
    return kind(limits=limits, show=show, **given)


def _documented(
    decorators: tuple[Any, ...], call: Callable[..., int], command: Callable[..., int]
) -> Callable[..., int]:
    call.__doc__ = command.__doc__
    for decorate in reversed(decorators):
        call = decorate(call)
    return call


def configuration(tree: str, flags: StartFlags) -> Config:
    """The configuration with the flags that were given."""
    limits = flags.limits
    given = {
        "backend": flags.backend,
        "model": flags.model,
        "effort": flags.effort,
        "budget": limits.budget,
        "max_iterations": limits.max_iterations,
        "max_time": limits.max_time,
        "max_turns": limits.max_turns,
        "max_parallel": flags.max_parallel,
        "timeout": flags.timeout,
        "permission_mode": flags.permission_mode,
        "allow_tools": list(limits.allow_tools) or None,
        "notify": list(flags.show.notify) or None,
    }
    return config.load(tree, flags=given)


def options(flags: StartFlags) -> "Options":
    """The options of a new run that only flags can set."""
    from raymond.control.start import Options  # `clean` shares a flag, and starts nothing

    return Options(
        id=exposure.check(flags.id_, "--id"),
        input=texts.text(flags.input_ or "", "--input"),
        variables=dict(texts.variable(pair) for pair in flags.variables),
        overrides=texts.overrides(flags.settings),
        replies=texts.read(flags.replies) if flags.replies else None,
        roots=list(flags.roots),
        allow_gate_commands=flags.limits.allow_gate_commands,
        skip_permissions=flags.skip,
        allow_start=flags.allow_start,
        allow_test_edits=flags.allow_test_edits,
        red_first=flags.red_first,
        workspace=flags.workspace or "",
        on_ask=flags.limits.on_ask or "",
        trust_project=flags.trust_project,
        strict=flags.strict,
    )


def go_to(flags: StartFlags) -> StartFlags:
    """Change to the directory of --cd; paths in other flags stay relative to where they were typed."""
    if not flags.cd:
        return flags
    named = flags.input_ if flags.input_ and flags.input_[0] == "@" and flags.input_ not in ("@", "@-") else ""
    flags = replace(
        flags,
        replies=flags.replies and os.path.abspath(flags.replies),
        roots=tuple(map(os.path.abspath, flags.roots)),
        input_=f"@{os.path.abspath(named[1:])}" if named else flags.input_,
        show=replace(flags.show, log_file=flags.show.log_file and os.path.abspath(flags.show.log_file)),
    )
    try:
        os.chdir(flags.cd or "")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"--cd {flags.cd}: {reason}", hint="name a directory that exists") from None
    return flags
