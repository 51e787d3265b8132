"""What people set once: site rules over flags over environment over the person's file, which a project may narrow.

Every value remembers where it came from. An unknown key is an error in any of them.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from raymond import amounts, durations
from raymond.errors import UsageError
from raymond.language.policy_keys import PERMISSION_MODES, closed
from raymond.language.tags import NAME
from raymond.machine.prices import UNKNOWN_TURN, Price
from raymond.machine.prices import show as dollars
from raymond.patterns import regex
from raymond.store import settings_file
from raymond.system import faults, files, git

SITE_FILE = "/etc/raymond/policy.toml"
"""For administrators; users cannot choose another file."""
PREFIX = "RAYMOND_"
PARALLEL = 4
"""Turns at once when nobody says how many."""
_ATOM = regex(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]", re.DOTALL)
"""An escaped character, or a set of them."""
_NAME = regex(r"[A-Za-z0-9_-]+")


class Key(Struct, frozen=True):
    """A setting: how it is read, its default, and what it means."""

    read: "Reader"
    default: Any
    says: str
    example: str
    """As it is written in TOML."""
    reach: "Reach | None" = None
    """How far a value lets a run go: a project may only set less. Without it a project may not set the key at all,
    since a checkout of somebody else's would run, allow or buy what it says."""
    table: bool = False
    """A table of tables: an environment variable cannot hold it."""
    unset: str = ""
    """What holds where nobody sets it, if that differs from the default."""

    @property
    def personal(self) -> bool:
        """Whether a project may not set it."""
        return self.reach is None


Reader: TypeAlias = Callable[[Any], Any]
"""The value, or ValueError with what it must be."""
Reach: TypeAlias = Callable[[Any], float]


class Setting(Struct, frozen=True):
    """A value, and where it was set."""

    value: Any
    origin: str


class Config(Struct, frozen=True):
    """Every key with its setting."""

    settings: dict[str, Setting]
    unused: dict[str, Setting] = {}
    """What the project says and does not get, because less is set."""

    def __getitem__(self, key: str) -> Any:
        """The value of `key`."""
        return self.settings[key].value

    @property
    def ignored(self) -> dict[str, Setting]:
        """What of `unused` nobody overruled: it goes further than what is set."""
        overruled = [name for name, one in self.settings.items() if one.origin.startswith(("--", PREFIX))]
        return {name: one for name, one in self.unused.items() if name not in overruled}

    def said(self, key: str) -> Any:
        """The value of `key` when somebody set it, else None."""
        return None if self.settings[key].origin == "default" else self.settings[key].value


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("text")


def _name(value: Any) -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
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
        if not closed(pattern):
            raise ValueError(f"tools; `{pattern}` has brackets that do not match")
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
        raise ValueError(f"input, output and cached of a model, in dollars per million tokens (`{model}`)")
    try:
        return Price(**{name: amounts.dollars(amount) for name, amount in table.items()})
    except ValueError as error:
        raise ValueError(f"{error} (`{model}`)") from None


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError("true or false")


def _choice(*choices: str) -> Reader:
    def read(value: Any) -> str:
        if value in choices:
            return str(value)
        raise ValueError(f"one of: {', '.join(choices)}")

    return read


def _limit(otherwise: float = float("inf")) -> Reach:
    """The reach of a limit that 0 turns off, or sets to what it is `otherwise`."""
    return lambda value: float(value or otherwise)


def _longer(value: float) -> float:
    """A project may have runs kept for longer, never removed earlier."""
    return -value


KEYS: dict[str, Key] = {
    "backend": Key(_text, "", "the program that answers prompts (claude, or the workflow's own replies)", '"claude"'),
    "model": Key(_name, "", "the model, by the name its backend uses", '"sonnet"'),
    "small_model": Key(_name, "", "the model that judges for evaluators; on claude it is haiku", '"gpt-5-mini"'),
    "effort": Key(_name, "", "how hard the model thinks, where that can be set", '"high"'),
    "budget": Key(amounts.dollars, 10.0, "dollars a run may spend; 0 for no limit", "5.00", reach=_limit()),
    "max_iterations": Key(amounts.count, 0, "steps a run may take", "200", reach=_limit()),
    "max_time": Key(duration, 0.0, "how long a run may take; only time with a driver counts", '"8h"', reach=_limit()),
    "max_parallel": Key(amounts.count, 0, "steps at once, per backend and for scripts", "4", reach=_limit(PARALLEL)),
    "timeout": Key(
        duration, 600.0, "how long a step may print nothing; then it is stopped", '"10m"', reach=_limit(600.0)
    ),
    "max_wait": Key(
        duration, 86400.0, "how long to wait for a usage limit to end; 0s for not at all", '"24h"', reach=float
    ),
    "tool_timeout": Key(duration, 1800.0, "how long a tool may show no sign of life", '"30m"', reach=_limit(1800.0)),
    "max_turns": Key(amounts.count, 0, "backend turns a run may take", "500", reach=_limit()),
    "unknown_turn_cost": Key(amounts.dollars, UNKNOWN_TURN, "dollars counted for a turn of unknown cost", "0.50"),
    "retryable": Key(_patterns, [], "program errors that count as an overload", '["upstream .* reset"]'),
    "patience": Key(duration, 21600.0, "how long to wait for an overloaded backend", '"6h"', reach=float),
    "permission_mode": Key(
        _choice(*PERMISSION_MODES), "", "what agents may do without asking", '"acceptEdits"', unset="acceptEdits"
    ),
    "allow_tools": Key(_tools, [], "more tools that agents may use", '["Bash(npm test)"]'),
    "notify": Key(_texts, [], "commands and URLs to notify when a run asks or ends", '["~/bin/tell-me"]'),
    "durability": Key(
        _choice("normal", "strict"),
        "normal",
        "strict: sync every decision to disk at once",
        '"strict"',
        reach="strict normal".split().index,
    ),
    "transcripts": Key(
        _choice("full", "tail"),
        "full",
        "tail: keep only the end of what each step said and printed",
        '"tail"',
        reach="tail full".split().index,
    ),
    "may_change": Key(
        _texts,
        [],
        "the only files that agents in a workspace may change",
        '["src/**"]',
        reach=lambda some: float(not some),
    ),
    "keep": Key(duration, 30 * 86400.0, "how long `clean` keeps a finished run", '"30d"', reach=_longer),
    "backends": Key(_backends, {}, "backends of your own", '{mine = {command = ["my-agent"]}}', table=True),
    "prices": Key(_prices, {}, "what models cost", "{my-model = {input = 1.25, output = 10.00}}", table=True),
}
SITE_KEYS: dict[str, Key] = {
    "max_budget": Key(amounts.dollars, 0.0, "the highest budget a run may have", "50.00"),
    "allow_skip_permissions": Key(_flag, True, "whether --dangerously-skip-permissions may be used", "false"),
    "backends": Key(_texts, [], "the only backends allowed", '["claude"]'),
    "models": Key(_texts, [], "the only models allowed", '["sonnet"]'),
}


class SiteRules(Struct, frozen=True, kw_only=True):
    """The limits that an administrator sets for everybody."""

    max_budget: float = 0.0
    allow_skip_permissions: bool = True
    backends: list[str] = []
    models: list[str] = []


def load(
    tree: str,
    *,
    flags: Mapping[str, Any] = {},
    environment: Mapping[str, str] = os.environ,
    policy_file: str = SITE_FILE,
) -> Config:
    """The configuration in the project at `tree`, if there is one; a flag that is None was not given."""
    user, project = user_file(environment), f"{tree}/{settings_file.NAME}" if tree else ""
    config = Config({name: Setting(key.default, "default") for name, key in KEYS.items()})
    settings = config.settings
    settings |= {name: Setting(value, user) for name, value in _table(user, _content(user), KEYS).items()}
    if tree:
        _narrow(config, project, _table(project, settings_file.read(tree), KEYS), user)
    for variable, value in environment.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name in KEYS and value and not KEYS[name].table:
            _check_text(variable, value)
            settings[name] = Setting(_read(KEYS[name], name, value, f"the environment: {variable}"), variable)
    for name, value in flags.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            settings[name] = Setting(_given(KEYS[name], name, value, flag), flag)
    return _obey(config, site_rules(policy_file), policy_file)


def _check_text(variable: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the environment: {variable} is not UTF-8", hint=f"set {variable} again") from None


def _narrow(config: Config, path: str, table: Mapping[str, Any], user: str) -> None:
    """Let a project set what goes no further than what is set already."""
    for name, value in table.items():
        reach = KEYS[name].reach
        if reach is None:
            raise UsageError(
                f"{path}: `{name}` is for a person to set, not for a project",
                hint=f"remove it there; {user or '~/.config/raymond/config.toml'} is the place for it",
            )
        narrower = reach(value) <= reach(config.settings[name].value)
        (config.settings if narrower else config.unused)[name] = Setting(value, path)


def tree_of(cwd: str) -> str:
    """The project of `cwd`, whose configuration applies there."""
    return git.top(cwd) or os.path.realpath(cwd)


def site_rules(policy_file: str = SITE_FILE) -> SiteRules:
    """The rules in `policy_file`; none when there is no such file."""
    return SiteRules(**_table(policy_file, _content(policy_file), SITE_KEYS))


def user_file(environment: Mapping[str, str] = os.environ) -> str:
    """Where a person keeps their own settings; empty without a home."""
    return settings_file.of_person(environment)


def _content(path: str) -> bytes:
    """What a person or the site has written; a link is theirs to make. Nothing when there is no such file."""
    try:
        return files.contents(os.path.realpath(path), settings_file.MOST + 1) if path else b""
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        if faults.is_passing(error):
            raise  # it is not the file that has to be changed
        raise UsageError(f"{path} cannot be read: {(error.strerror or '').lower()}") from None


def _table(path: str, data: bytes, known: Mapping[str, Key]) -> dict[str, Any]:
    """The settings in a file."""
    if not data:
        return {}
    if len(data) > settings_file.MOST:
        raise UsageError(f"{path} is larger than 1 MiB", hint="settings are a few lines of TOML: budget = 5.00")
    import tomllib

    try:
        values = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start + 1})", hint="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {str(error).lower()}", hint="budget = 5.00") from None
    except (ValueError, RecursionError):  # Python reads no number of more than 4,300 digits
        raise UsageError(f"{path} has a number or a table that is too large", hint="budget = 5.00") from None
    return {name: _known(known, name, value, path) for name, value in values.items()}


def _known(known: Mapping[str, Key], name: str, value: Any, path: str) -> Any:
    if name in known:
        return _read(known[name], name, value, path)
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known)}"
    raise UsageError(f"{path}: there is no key `{name}`", hint=hint)


def _read(key: Key, name: str, value: Any, where: str) -> Any:
    try:
        return key.read(value)
    except ValueError as error:
        raise UsageError(f"{where}: `{name}` must be {error}", hint=_example(key, name, where)) from None


def _example(key: Key, name: str, where: str) -> str:
    """How to set it right in the place it was set in: a variable of the environment takes no TOML."""
    variable = f"{PREFIX}{name.upper()}"
    if not where.endswith(variable):
        return f"{name} = {key.example}"
    value = key.example.strip('["]')
    return f"{variable}={shlex.quote(value)}"


def _given(key: Key, name: str, value: Any, flag: str) -> Any:
    """What was said at the start: by a flag, or by a program that may pass anything; durations come as seconds."""
    if key.read is duration and isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value <= durations.LONGEST:
            return float(value)
        raise UsageError(f"{flag}: `{name}` must be seconds, 0 to {durations.LONGEST:,.0f}", hint=f"{name} = 60")
    return _read(key, name, value, flag)


def _obey(config: Config, given: SiteRules, path: str) -> Config:
    """Apply the site rules: refuse what a person set against them, lower a default."""
    asked = config.settings["budget"]
    if given.max_budget and not 0 < asked.value <= given.max_budget:
        if asked.origin.startswith("--"):
            raise _against(path, f"a budget of at most {dollars(given.max_budget)}", f"--budget {given.max_budget:g}")
        config.settings["budget"] = Setting(given.max_budget, path)
    for key, allowed in (("backend", given.backends), ("model", given.models)):
        setting = config.settings[key]
        if allowed and setting.value not in allowed:
            if setting.value and setting.origin != "default":
                raise _against(path, f"no {key} `{setting.value}`", f"one of: {', '.join(allowed)}")
            config.settings[key] = Setting(allowed[0], path)
    return config


def _against(path: str, what: str, hint: str) -> UsageError:
    return UsageError(f"{path} allows {what}", hint=hint)
