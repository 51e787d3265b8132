"""The settings of a run, a row for each: of it come flags, keys of config.toml, variables, Options and docs/cli.md.

A row stands beside the field that it is about. A new limit is a row here, and its use in the machine.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond import amounts, durations
from raymond.errors import UsageError
from raymond.language.policy_keys import PERMISSION_MODES, closed
from raymond.language.tags import NAME as NAME_FORM
from raymond.language.ways import WAYS
from raymond.machine.failures import SILENCE, TOOL_TIME
from raymond.machine.prices import UNKNOWN_TURN, Price
from raymond.machine.prices import show as dollars
from raymond.machine.run_started import MAX_WAIT, PATIENCE, TURNS_AT_ONCE
from raymond.patterns import regex

TASK, CHECKS, AGENTS, LIMITS, RIGHTS, GIT, TOLD = "Task", "Checks", "Agents", "Limits", "Rights", "Git", "Output"
"""The groups of flags."""
START, RUN, RESUME, CHANGE = "start", "run", "resume", "change"
"""The commands that a flag is for: those that start, `run` alone, those that resume, and among these those that change
what a run was started with."""
_NAME = regex(r"[A-Za-z0-9_-]+")
_ATOM = regex(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]", re.DOTALL)
"""An escaped character, or a set of them."""

Reader: TypeAlias = Callable[[Any], Any]
"""The value, or ValueError with what it must be."""
Reach: TypeAlias = Callable[[Any], float]


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, list | str | dict) else str(value)


class Kind(Struct, frozen=True):
    """What the values of a setting are."""

    read: Reader
    metavar: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Its flag may be given several times."""
    write: Callable[[Any], str] = _toml
    """A value as config.toml has it."""
    show: Callable[[Any], str] = str
    """A value as people are told it."""


class Row(Struct, frozen=True):
    """A setting: what it means, what its values are, and where it may be set."""

    about: str
    kind: Kind
    group: str = ""
    """Of its flag; a setting without one has no flag."""
    example: str = ""
    """As it is written in config.toml; a setting without one is not set there, nor in the environment."""
    default: Any = None
    """What holds where it is not set anywhere."""
    reach: Reach | None = None
    """How far a value lets a run go: a project may only set less. Without it a project may not set it at all, since a
    checkout of somebody else's would run, allow or buy what it says."""
    unset: str = ""
    """The same in words, if the default alone does not tell."""
    flag: str = ""
    """Empty for that of its name."""
    often: bool = False
    """`--help` shows it; the others are in `--help-all`."""
    metavar: str = ""
    """Empty for that of its kind."""
    where: tuple[str, ...] = (START,)
    word: str = ""
    """What a dry run calls it."""
    name: str = ""
    """That of the field."""

    @property
    def flags(self) -> list[str]:
        """What is typed to set it, the long form last."""
        return self.flag.split() if self.flag else [f"--{self.name.replace('_', '-')}"]

    @property
    def is_table(self) -> bool:
        """Whether it is a table of tables: an environment variable cannot hold that."""
        return isinstance(self.default, dict)


def rows(kind: type[Struct]) -> dict[str, Row]:
    """The rows beside the fields of a struct, those of what it inherits first."""
    bases = [one for one in reversed(kind.__mro__) if issubclass(one, Struct)]
    hints = {name: hint for one in bases for name, hint in getattr(one, "__annotations__", {}).items()}
    found = [(name, row) for name, hint in hints.items() for row in get_args(hint)[1:] if isinstance(row, Row)]
    blank = kind()
    return {name: _named(row, name, getattr(blank, name)) for name, row in found}


def _named(row: Row, name: str, value: Any) -> Row:
    """The row of a field; what holds where it cannot be set in files is the `value` that the field begins with."""
    default = row.default if row.example else value
    return replace(row, name=name, default=default, word=row.word or name.removeprefix("max_"))


# What values are


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("text")


def _name(value: Any) -> str:
    if isinstance(value, str) and NAME_FORM.fullmatch(value):
        return value
    raise ValueError("a name, of letters, digits and _.:/@+[]-, beginning with a letter or a digit")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise ValueError("a list of texts")


def duration(value: Any) -> float:
    """Seconds, from a duration as people write it."""
    seconds = durations.parse(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError(f"{durations.explain(value)}, like 90s, 10m or 2h")
    return seconds


def _period(value: Any) -> float:
    if seconds := duration(value):
        return seconds
    raise ValueError("a duration of more than 0s, like 90s, 10m or 2h")


def _money(value: Any) -> float:
    return amounts.dollars(value.removeprefix("$") if isinstance(value, str) else value)


def _is_slow(pattern: str) -> bool:
    """Whether a group is repeated that matches in several ways: on some texts that takes for ever."""
    varies, plain = [False], _ATOM.sub("a", pattern)
    for at, sign in enumerate(plain):
        if sign == "(":
            varies.append(False)
        elif sign == ")" and len(varies) > 1:
            inside = varies.pop()
            if inside and plain[at + 1 : at + 2] in ("*", "+", "{"):
                return True
            varies[-1] |= inside
        elif sign in "*+{|" or (sign == "?" and plain[at - 1] != "("):
            varies[-1] = True
    return False


def _patterns(value: Any) -> list[str]:
    for pattern in (found := _texts(value)):
        if _is_slow(pattern):
            raise ValueError(f"regular expressions that are quick to match; `{pattern}` repeats a group that varies")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"regular expressions; `{pattern}` is not one: {error}") from None
    return found


def _tools(value: Any) -> list[str]:
    for pattern in (found := _texts(value)):
        if not pattern.strip() or not closed(pattern):
            raise ValueError(f"names of tools; `{pattern}` is empty or lacks a bracket")
    return found


def _backends(value: Any) -> dict[str, dict[str, Any]]:
    tables = isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())
    if tables and all(_NAME.fullmatch(name) for name in value):
        return dict(value)
    raise ValueError("tables, one for each backend, named with letters, digits, _ and -")


def _prices(value: Any) -> dict[str, Price]:
    if not isinstance(value, dict):
        raise ValueError("tables, one for each model")
    return {model: _price(model, table) for model, table in value.items()}


def _price(model: str, table: Any) -> Price:
    known = set(Price.__struct_fields__)
    if not isinstance(table, dict) or not {"input", "output"} <= set(table) <= known:
        raise ValueError(f"`input` and `output`, and optionally `cached`, in dollars per million tokens (`{model}`)")
    try:
        return Price(**{name: amounts.dollars(amount) for name, amount in table.items()})
    except ValueError as error:
        raise ValueError(f"{error} (`{model}`)") from None


def _yes_or_no(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError("true or false")


def choice(*choices: str) -> Kind:
    """One of several words."""

    def read(value: Any) -> str:
        if value in choices:
            return str(value)
        raise ValueError(f"one of: {', '.join(choices)}")

    return Kind(read, choices=choices)


def count(least: int = 1) -> Kind:
    """How many of something."""
    return Kind(lambda value: amounts.count(value, least), "N")


TEXT, NAME, LIST = Kind(_text, "TEXT"), Kind(_name, "NAME"), Kind(_texts, "TEXT", many=True)
MONEY = Kind(_money, "USD", show=dollars)
COUNT = count()
DURATION = Kind(duration, "TIME", write=lambda value: f'"{durations.written(value)}"', show=durations.written)
PERIOD = replace(DURATION, read=_period)
"""A duration in which something has to happen."""
SWITCH = Kind(_yes_or_no, write=lambda value: str(value).lower())
TOOLS, PATTERNS = Kind(_tools, "PATTERN", many=True), Kind(_patterns, "PATTERN", many=True)


def _limit(otherwise: float = float("inf")) -> Reach:
    """The reach of a limit that 0 turns off, or sets to what it is `otherwise`."""
    return lambda value: float(value or otherwise)


def _longer(value: float) -> float:
    """A project may have runs kept for longer, never removed earlier."""
    return -value


def _any_or_few(files: list[str]) -> float:
    return float(not files)


_ANY = (START, CHANGE)
TEXTS = "TEXT|@FILE|-"
_SOURCE = (START, RESUME)


class Told(msgspec.StructMeta):
    """Of a struct that programs make: a misspelt name is told as in the other places that settings are set."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        """The struct, or an error that a person understands."""
        known = cls.__struct_fields__
        for name in given:
            if name not in known:
                from difflib import get_close_matches

                close = get_close_matches(name, known, 1)
                hint = f"did you mean `{close[0]}`?" if close else "`raymond docs python` names them all"
                raise UsageError(f"Options: there is no `{name}`", hint=hint)
        return super().__call__(*args, **given)


class Options(Struct, kw_only=True, metaclass=Told):
    """What a person sets at the start; where it is None or empty, the settings decide."""

    input: Annotated[
        str, Row("What the first state gets as {{input}}.", TEXT, TASK, metavar=TEXTS, often=True, where=(RUN,))
    ] = ""
    id: Annotated[str, Row("Name the run; the id must be new.", TEXT, TASK, metavar="ID", often=True)] = ""
    variables: Annotated[
        dict[str, str], Row("A variable every agent sees as {{K}}.", LIST, TASK, flag="--var", metavar="K=V")
    ] = {}
    overrides: Annotated[
        dict[str, dict[str, Any]],
        Row("Override a policy key (frontmatter) of STATE.", LIST, TASK, flag="--set", metavar="STATE.KEY=VALUE"),
    ] = {}
    """Above the frontmatter: `{"REVIEW.md": {"max_visits": 5}}`."""
    replies: Annotated[
        str | None, Row("Scripted replies to use instead of replies.yaml.", TEXT, TASK, metavar="FILE")
    ] = None
    """The text of a replies.yaml, for the scripted backend."""
    backend: Annotated[
        str, Row("The program that answers prompts.", TEXT, AGENTS, '"claude"', "", metavar="NAME", often=True)
    ] = ""
    model: Annotated[str, Row("Model for states that name none.", NAME, AGENTS, '"sonnet"', "")] = ""
    small_model: Annotated[
        str, Row("Model that judges for evaluators; on claude it is haiku.", NAME, "", '"gpt-5-mini"', "")
    ] = ""
    effort: Annotated[
        str, Row("How hard the model thinks, for states that name none.", NAME, AGENTS, '"high"', "", metavar="LEVEL")
    ] = ""
    budget: Annotated[
        float | None,
        Row("Dollars to spend at most; 0: no limit.", MONEY, LIMITS, "5.00", 10.0, _limit(), often=True, where=_ANY),
    ] = None
    max_iterations: Annotated[
        int | None, Row("Steps to take at most.", COUNT, LIMITS, "200", 0, _limit(), where=(RUN, CHANGE), word="steps")
    ] = None
    max_time: Annotated[
        float | None,
        Row("Time it may be driven, e.g. 8h.", DURATION, LIMITS, '"8h"', 0.0, _limit(), often=True, where=_ANY),
    ] = None
    """Seconds, like every duration here."""
    max_turns: Annotated[
        int | None, Row("Turns of agents' programs at most.", COUNT, LIMITS, "500", 0, _limit(), where=_ANY)
    ] = None
    timeout: Annotated[
        float | None,
        Row("Stop a step that prints nothing for this long.", PERIOD, LIMITS, '"10m"', SILENCE, _limit(SILENCE)),
    ] = None
    tool_timeout: Annotated[
        float | None,
        Row("How long a tool may show no sign of life.", PERIOD, "", '"30m"', TOOL_TIME, _limit(TOOL_TIME)),
    ] = None
    max_wait: Annotated[
        float | None,
        Row("How long to wait for a usage limit to end; 0s: not at all.", DURATION, "", '"24h"', MAX_WAIT, float),
    ] = None
    patience: Annotated[
        float | None, Row("How long to wait for an overloaded backend.", DURATION, "", '"6h"', PATIENCE, float)
    ] = None
    retryable: Annotated[
        list[str] | None,
        Row("Errors of a program that count as an overload.", PATTERNS, "", '["upstream .* reset"]', []),
    ] = None
    max_parallel: Annotated[
        int | None,
        Row(
            "Steps to run at once, per backend and for scripts.",
            *(COUNT, AGENTS, "4", 0, _limit(TURNS_AT_ONCE)),
            unset=f"{TURNS_AT_ONCE} turns, and scripts for twice the number of cores",
            where=(RUN,),
        ),
    ] = None
    roots: Annotated[
        list[str], Row("Another directory agents may `cd` to.", LIST, AGENTS, flag="--root", metavar="DIR", where=_ANY)
    ] = []
    workspace: Annotated[
        Literal["", "here", "copy", "isolated"],
        Row("Where agents work: here, in a copy, or isolated in one.", choice(*WAYS), AGENTS, often=True),
    ] = ""
    may_change: Annotated[
        list[str] | None,
        Row("The only files that agents in a workspace may change.", LIST, "", '["src/**"]', [], _any_or_few),
    ] = None
    on_ask: Annotated[
        Literal["", "wait", "fail"],
        Row("An agent that asks a person waits, or fails (for CI).", choice("wait", "fail"), AGENTS, where=_ANY),
    ] = ""
    decide_by: Annotated[
        Literal["", "terminal", "program"],
        Row(
            "Who decides reviews: a person at a terminal, or also a program that no agent started.",
            *(choice("terminal", "program"), "", '"program"', ""),
            unset='"terminal"',
        ),
    ] = ""
    permission_mode: Annotated[
        str,
        Row(
            "What agents may do without asking.",
            *(choice(*PERMISSION_MODES), RIGHTS, '"acceptEdits"', ""),
            unset='"acceptEdits"',
        ),
    ] = ""
    allow_tools: Annotated[
        list[str] | None,
        Row(
            "A tool agents may use without asking.",
            *(TOOLS, RIGHTS, '["Bash(npm test)"]', []),
            flag="--allow-tool",
            often=True,
            where=_ANY,
        ),
    ] = None
    allow_gate_commands: Annotated[
        bool, Row("Agents may run exactly the commands of the gates.", SWITCH, RIGHTS, where=_ANY)
    ] = False
    """A gate alone gives them no right."""
    skip_permissions: Annotated[
        bool, Row("Agents may do anything without asking.", SWITCH, RIGHTS, flag="--dangerously-skip-permissions")
    ] = False
    allow_start: Annotated[bool, Row("Steps may start runs that outlive this one: raymond start.", SWITCH, RIGHTS)] = (
        False
    )
    trust_project: Annotated[
        bool, Row("Agents' programs use the project's own settings this time.", SWITCH, RIGHTS, where=_SOURCE)
    ] = False
    allow_test_edits: Annotated[
        bool, Row("Accept in advance that agents change what decides their checks.", SWITCH, CHECKS)
    ] = False
    red_first: Annotated[bool, Row("Run the checks of states before the work too.", SWITCH, CHECKS)] = False
    strict: Annotated[bool, Row("Refuse what would only be warned of.", SWITCH, TASK, where=_SOURCE)] = False
    notify: Annotated[
        list[str] | None,
        Row(
            "Notify when the run ends or asks something.",
            *(LIST, TOLD, '["~/bin/tell-me"]', []),
            metavar="CMD|URL",
            often=True,
            where=_SOURCE,
        ),
    ] = None


OPTIONS = rows(Options)
_FILES = {
    "unknown_turn_cost": Row("Dollars counted for a turn of unknown cost.", MONEY, "", "0.50", UNKNOWN_TURN),
    "prices": Row("What models cost.", Kind(_prices), "", "{my-model = {input = 1.25, output = 10.00}}", {}),
    "backends": Row("Backends of your own.", Kind(_backends), "", '{mine = {command = ["my-agent"]}}', {}),
    "durability": Row(
        "`strict` syncs every decision to disk at once.",
        *(choice("normal", "strict"), "", '"strict"', "normal", "strict normal".split().index),
    ),
    "transcripts": Row(
        "`tail` keeps only the end of what each step said and printed.",
        *(choice("full", "tail"), "", '"tail"', "full", "tail full".split().index),
    ),
    "keep": Row("How long `clean` keeps a finished run.", DURATION, "", '"30d"', 30 * 86400.0, _longer),
}
"""What is set in files and the environment, and not for one run."""
KEYS = {
    **{name: row for name, row in OPTIONS.items() if row.example},
    **{name: replace(row, name=name) for name, row in _FILES.items()},
}
"""What config.toml may have."""


class SiteRules(Struct, frozen=True, kw_only=True):
    """The limits that an administrator sets for everybody."""

    max_budget: Annotated[float, Row("The highest budget a run may have.", MONEY, "", "50.00", 0.0)] = 0.0
    allow_skip_permissions: Annotated[
        bool, Row("Whether --dangerously-skip-permissions may be used.", SWITCH, "", "false", True)
    ] = True
    backends: Annotated[list[str], Row("The only backends allowed.", LIST, "", '["claude"]', [])] = []
    models: Annotated[list[str], Row("The only models allowed.", LIST, "", '["sonnet"]', [])] = []


SITE_KEYS = rows(SiteRules)
