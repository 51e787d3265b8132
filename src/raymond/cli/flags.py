"""The flags that several commands share, and what follows from them and the configuration."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from raymond.control import config
from raymond.control.config import Config
from raymond.errors import UsageError
from raymond.language.policy_keys import PERMISSION_MODES

if TYPE_CHECKING:
    from raymond.control.start import Options


class Duration(click.ParamType[float]):
    """A length of time as people write it."""

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
            amount = float(str(value).removeprefix("$"))
        except ValueError:
            amount = -1.0
        if not 0 <= amount < float("inf"):
            self.fail(f"'{value}' is not a number of dollars, 0 or more.", param, ctx)
        return amount


_LIMITS = (
    click.option("--budget", type=Dollars(), metavar="USD", help="Stop when this is spent ($10; 0 for no limit)."),
    click.option("--max-iterations", type=click.IntRange(1), metavar="N", help="Stop after this many steps."),
    click.option("--max-time", type=Duration(), metavar="TIME", help="Stop after this long, e.g. 8h."),
    click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop after this many turns of backends."),
    click.option(
        "--allow-tool", "allow_tools", multiple=True, metavar="PATTERN", help="A tool agents may use unasked."
    ),
)
_SHOWING = (
    click.option(
        "--notify", "notify", multiple=True, metavar="CMD|URL", help="Tell how the run ends, and what it asks."
    ),
    click.option("--log-file", type=click.Path(dir_okay=False), metavar="FILE", help="Append every line to FILE too."),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="Of the log file."),
    click.option("--debug", is_flag=True, help="Keep every step's output as files in .raymond/debug."),
    click.option("--quiet", "-q", is_flag=True, help="Only what steps print, and the ending."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout at the end."),
    click.option("-d", "--detach", "detach", is_flag=True, help="Run in the background; prints the id."),
)
_STARTING = (
    click.argument("path", type=click.Path(readable=False)),  # the loader says it better
    click.option("--input", "input_", metavar="TEXT|@FILE|-", help="What the first state gets as {{input}}."),
    click.option("--id", "id_", default="", metavar="ID", help="Name the run; an id that exists is refused."),
    click.option("--var", "variables", multiple=True, metavar="K=V", help="A variable every agent sees as {{K}}."),
    click.option(
        "--set", "settings", multiple=True, metavar="STATE.KEY=VALUE", help="A policy key, above frontmatter."
    ),
    click.option("--backend", metavar="NAME", help="Which program answers prompts."),
    click.option("--replies", metavar="FILE", help="Scripted replies, instead of replies.yaml."),
    click.option("--model", metavar="NAME", help="For states that name none."),
    click.option("--effort", metavar="LEVEL", help="For states that name none."),
    *_LIMITS,
    click.option(
        "--max-parallel", type=click.IntRange(1), metavar="N", help="Steps at once, per backend and of scripts."
    ),
    click.option("--timeout", type=Duration(), metavar="TIME", help="Silence after which a step is stopped (10m)."),
    click.option("--cd", "cd", metavar="DIR", help="The directory agents work in."),
    click.option("--root", "roots", multiple=True, metavar="DIR", help="Another directory agents may `cd` to."),
    click.option("--permission-mode", type=click.Choice(PERMISSION_MODES), help="What agents may do unasked."),
    click.option("--dangerously-skip-permissions", "skip", is_flag=True, help="Agents may do anything unasked."),
    click.option("--dry-run", is_flag=True, help="Show what would be started, and start nothing."),
    *_SHOWING,
)
_TAKING_UP = (*_LIMITS, *_SHOWING)


def starting(command: Callable[..., int]) -> Callable[..., int]:
    """The flags of `run` and `start`."""
    return _all(_STARTING, command)


def taking_up(command: Callable[..., int]) -> Callable[..., int]:
    """Those of them that make sense for a run that exists."""
    return _all(_TAKING_UP, command)


def _all(decorators: tuple[Any, ...], command: Callable[..., int]) -> Callable[..., int]:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def configuration(root: str, given: dict[str, Any]) -> Config:
    """The configuration with the flags that were given."""
    found = {key: given[key] for key in config.KEYS if given.get(key) not in (None, ())}
    for key in ("notify", "allow_tools"):
        if key in found:
            found[key] = list(found[key])
    return config.load(root, flags=found)


def options(given: dict[str, Any], settings: Config, rules: config.SiteRules) -> "Options":
    """What a person said of a new run, by flag or configuration."""
    from raymond.control.start import Options  # `clean` shares a flag, and starts nothing

    skips = "--dangerously-skip-permissions" if given["skip"] else ""
    if settings["permission_mode"] == "bypassPermissions":
        skips = skips or f"bypassPermissions ({settings.settings['permission_mode'].origin})"
    if skips and not rules.allow_skip_permissions:
        raise UsageError(f"{config.SITE_FILE} does not allow {skips}", hint="name the tools: --allow-tool")
    return Options(
        id=open_text(given["id_"], "--id"),
        input=text(given["input_"] or "", "--input"),
        variables=dict(_pair(pair) for pair in given["variables"]),
        overrides=overrides(given["settings"]),
        backend=settings.said("backend") or "",
        model=settings["model"],
        effort=settings["effort"],
        replies=read(given["replies"]) if given["replies"] else None,
        tables=settings["backends"],
        prices=settings["prices"],
        unknown_turn_cost=settings["unknown_turn_cost"],
        retryable=settings["retryable"],
        budget=settings.said("budget"),
        budget_from=settings.settings["budget"].origin,
        most_budget=rules.max_budget,
        backends=rules.backends,
        models=rules.models,
        max_iterations=settings.said("max_iterations"),
        max_time=settings["max_time"],
        max_turns=settings["max_turns"],
        max_parallel=settings.said("max_parallel"),
        timeout=settings.said("timeout") or 0.0,
        tool_timeout=settings.said("tool_timeout") or 0.0,
        max_wait=settings["max_wait"],
        patience=settings["patience"],
        roots=list(given["roots"]),
        permission_mode=settings["permission_mode"],
        allowed_tools=settings["allow_tools"],
        skip_permissions=given["skip"],
        notify=settings["notify"],
    )


def go_to(given: dict[str, Any]) -> None:
    """Work in the directory of --cd from here on; what other flags name stays where it was typed."""
    directory = given["cd"]
    if not directory:
        return
    for name in ("replies", "log_file"):
        if given[name]:
            given[name] = os.path.abspath(given[name])
    given["roots"] = [os.path.abspath(root) for root in given["roots"]]
    if (given["input_"] or "")[:1] == "@" != given["input_"]:
        given["input_"] = f"@{os.path.abspath(given['input_'][1:])}"
    try:
        os.chdir(directory)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"--cd {directory}: {reason}", hint="name a directory that is there") from None


def text(given: str, what: str) -> str:
    """The text itself, of a file with @FILE, or of stdin with -; `what` it is for says who is wrong about it."""
    if given == "-":
        import sys

        try:
            return open_text(sys.stdin.buffer.read().decode(), what)
        except UnicodeDecodeError as error:
            raise UsageError(f"stdin is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from None
    if given == "@":
        raise UsageError("@ names no file", hint="--input @FILE")
    return open_text(read(given[1:]) if given.startswith("@") else given, what)


def open_text(given: str, what: str) -> str:
    """`given`, which will be journaled, shown and sent to a model: refused when a secret stands in it."""
    if given:
        from raymond.redaction import Secrets

        found = Secrets.of(os.environ).find(given)
        if found:
            raise UsageError(
                f"{what} contains {found}", hint="it would be stored: a step reads secrets from its environment"
            )
    return given


def read(path: str) -> str:
    """The text in a file that a flag names."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        why = (error.strerror or "").lower()
        raise UsageError(f"`{path}` cannot be read: {why}", hint="paths are relative to this directory") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"`{path}` is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from None


def _pair(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not equals or not key.isidentifier():
        raise UsageError(f"`{given}` is no variable", hint="--var name=value")
    return key, open_text(value, f"--var {key}")


def overrides(given: tuple[str, ...] | list[str]) -> dict[str, dict[str, object]]:
    """`STATE.KEY=VALUE` -> {STATE: {KEY: VALUE}}; the value is YAML."""
    found: dict[str, dict[str, object]] = {}
    for one in given:
        left, equals, value = open_text(one, "--set").partition("=")
        state, dot, key = left.rpartition(".")
        if equals and not state:
            raise UsageError(f"`{one}` names no state", hint="--set REVIEW.md.max_visits=5")
        if not equals or not dot:
            raise UsageError(f"`{one}` sets nothing", hint="--set REVIEW.md.max_visits=5")
        from raymond.language import frontmatter

        document = frontmatter.load(f"{key}: {value}", file="--set")
        if document.diagnostics or key not in document.values:
            raise UsageError(f"`{value}` cannot be read as a value of {key}", hint="--set REVIEW.md.max_visits=5")
        found.setdefault(state, {})[key] = document.values[key]
    return found
