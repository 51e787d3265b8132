"""What people set once: site rules over flags over environment over the person's file, which a project may narrow.

Every value remembers where it came from. An unknown key is an error in any of them.
"""

import os
import shlex
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from raymond import durations, errors
from raymond.control.settings import DURATION, KEYS, PERIOD, SITE_KEYS, Row, SiteRules
from raymond.errors import UsageError
from raymond.machine.prices import show as dollars
from raymond.store import trust
from raymond.system import files, git

SITE_FILE = "/etc/raymond/policy.toml"
"""For administrators; users cannot choose another file."""
PREFIX = "RAYMOND_"


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
        overruled = [name for name, one in self.settings.items() if one.origin.startswith(("--", "Options.", PREFIX))]
        return {name: one for name, one in self.unused.items() if name not in overruled}

    def said(self, key: str) -> Any:
        """The value of `key` when somebody set it, else None."""
        return None if self.settings[key].origin == "default" else self.settings[key].value


def load(
    tree: str,
    *,
    flags: Mapping[str, Any] = {},
    environment: Mapping[str, str] = os.environ,
    policy_file: str = SITE_FILE,
) -> Config:
    """The configuration in the project at `tree`, if there is one; a flag that is None was not given."""
    user, project = user_file(environment), f"{tree}/{trust.SETTINGS_FILE}" if tree else ""
    config = Config({name: Setting(key.default, "default") for name, key in KEYS.items()})
    settings = config.settings
    settings |= {name: Setting(value, user) for name, value in _table(user, _content(user), KEYS).items()}
    if tree:
        _narrow(config, project, _table(project, trust.read_settings(tree), KEYS), user)
    for variable, value in environment.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name in KEYS and value and not KEYS[name].is_table:
            _check_text(variable, value)
            settings[name] = Setting(_read(KEYS[name], value, f"the environment: {variable}"), variable)
    for name, value in flags.items():
        if value is not None:
            flag = KEYS[name].flags[-1] if KEYS[name].group else f"Options.{name}"
            settings[name] = Setting(_given(KEYS[name], value, flag), flag)
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
        before = config.settings[name].value
        narrower = reach(value) < reach(before) or value == before
        (config.settings if narrower else config.unused)[name] = Setting(value, path)


def tree_of(cwd: str) -> str:
    """The project of `cwd`, whose configuration applies there."""
    return git.top(cwd) or os.path.realpath(cwd)


def site_rules(policy_file: str = SITE_FILE) -> SiteRules:
    """The rules in `policy_file`; none when there is no such file."""
    return SiteRules(**_table(policy_file, _content(policy_file), SITE_KEYS))


def user_file(environment: Mapping[str, str] = os.environ) -> str:
    """Where a person keeps their own settings; empty without a home."""
    return trust.settings_of_person(environment)


def _content(path: str) -> bytes:
    """What a person or the site has written; a link is theirs to make. Nothing when there is no such file."""
    try:
        return files.contents(os.path.realpath(path), trust.MOST_SETTINGS_BYTES + 1) if path else b""
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        if errors.is_passing_fault(error):
            raise  # it is not the file that has to be changed
        raise UsageError(f"{path} cannot be read: {(error.strerror or '').lower()}") from None


def _table(path: str, data: bytes, known: Mapping[str, Row]) -> dict[str, Any]:
    """The settings in a file."""
    if not data:
        return {}
    if len(data) > trust.MOST_SETTINGS_BYTES:
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


def _known(known: Mapping[str, Row], name: str, value: Any, path: str) -> Any:
    if name in known:
        return _read(known[name], value, path)
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known)}"
    raise UsageError(f"{path}: there is no key `{name}`", hint=hint)


def _read(row: Row, value: Any, where: str) -> Any:
    try:
        return row.kind.read(value)
    except ValueError as error:
        raise UsageError(f"{where}: `{row.name}` must be {error}", hint=_example(row, where)) from None


def _example(row: Row, where: str) -> str:
    """How to set it right in the place it was set in: a variable of the environment takes no TOML."""
    variable = f"{PREFIX}{row.name.upper()}"
    if not where.endswith(variable):
        return f"{row.name} = {row.example}"
    value = row.example.strip('["]')
    return f"{variable}={shlex.quote(value)}"


def _given(row: Row, value: Any, flag: str) -> Any:
    """What was said at the start: by a flag, or by a program that may pass anything; durations come as seconds."""
    if row.kind in (DURATION, PERIOD) and isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value <= durations.LONGEST and (value or row.kind is DURATION):
            return float(value)
        least = "0" if row.kind is DURATION else "more than 0, up"
        what = f"{flag}: `{row.name}` must be seconds, {least} to {durations.LONGEST:,.0f}"
        raise UsageError(what, hint=f"{row.name} = 60")
    return _read(row, value, flag)


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
