"""What is wrong with a command line, in our words instead of click's, and how to type it again."""

import difflib
import shlex

import click

from raymond import pasted
from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.errors import Error, UsageError, WrongDirectory
from raymond.patterns import regex

_EXTRA = regex(r"Got unexpected extra arguments? \((.*)\)")
_COMMAND = regex(r"No such command ['`\"](.*?)['`\"]")
_RANGE = regex(r"^(-?\d+) is not in the range x>=(\d+)$")
_LIMIT_FLAGS = ("--max-items", "--max-iterations", "--max-sessions", "--max-stories", "--max-tasks")
"""What the limit of a loop is called: each loop has one of these, or means one of these."""
_EXAMPLES = {
    "--budget": "--budget 5",
    "--keep": "--keep 30d",
    "--max-time": "--max-time 8h",
    "--timeout": "--timeout 10m",
}

_LONGEST = 100
"""Characters of what was typed that are repeated for every run."""


def path_of_command(group: click.Group, args: list[str]) -> str:
    """The command that was typed, with the commands that it is in."""
    found, command = ["raymond"], group
    for word in args:
        inner = command.commands.get(word) if found[1:] else command.get_command(click.Context(group), word)
        if inner is None:
            break
        found.append(word)
        if not isinstance(inner, click.Group):
            break
        command = inner
    return " ".join(found)


def explain(error: click.UsageError, command: str) -> tuple[str, str]:
    """One sentence, and the way out; `command` is what was typed, for an error that does not say it."""
    help_ = f"{error.ctx.command_path if error.ctx else command} --help"
    if isinstance(error, click.NoSuchOption):
        if error.option_name in _LIMIT_FLAGS and (limit := _limit(error.ctx)):
            return f"there is no flag `{error.option_name}`", limit
        close = difflib.get_close_matches(error.option_name, _flags(error.ctx), 1, 0.65)
        hint = f"did you mean `{close[0]}`?" if close else help_
        return f"there is no flag `{error.option_name}`", hint
    if isinstance(error, click.MissingParameter):
        return _missing(error, help_)
    if isinstance(error, click.BadOptionUsage):
        return f"`{error.option_name}` needs a value", help_
    if isinstance(error, click.BadParameter) and error.param:
        flag = _name_of(error.param)
        reason = error.message.rstrip(".").replace("'", "`").replace("a valid integer range", "a whole number")
        reason = _RANGE.sub(r"`\1` is not a whole number, \2 or more", reason)
        return f"{flag}: {reason[:1].lower()}{reason[1:]}", _EXAMPLES.get(flag, help_)
    if error.message.startswith("No such command"):
        return _no_command(error, help_)
    extra = _EXTRA.match(error.message)
    if extra:
        word = (extra[1].split() or ["''"])[0]
        return f"`{word}` is one argument too many", help_
    return error.format_message().rstrip("."), help_


def _limit(ctx: click.Context | None) -> str:
    """The way to the limit of a loop; empty for a command that has none."""
    if ctx is None:
        return ""
    for param in ctx.command.params:
        if isinstance(param, click.Option) and param.name == "most":
            return f"did you mean `{_name_of(param)}`?"
    if ctx.command.name == "resume" and ctx.parent and ctx.parent.parent:
        return "a loop keeps the limit it began with: when it has ended, start another with the limit that you want"
    return ""


def _no_command(error: click.UsageError, help_: str) -> tuple[str, str]:
    """A word after a command that has commands of its own."""
    word = _COMMAND.match(error.message)
    of = error.ctx.command if error.ctx else None
    named = [*of.commands] if isinstance(of, click.Group) else []
    close = difflib.get_close_matches(word[1], named, 1) if word else []
    what = f"there is no `{word[1]}` in {error.ctx.command_path}" if word and error.ctx else error.message.rstrip(".")
    return what, f"did you mean `{close[0]}`?" if close else help_


def _missing(error: click.MissingParameter, help_: str) -> tuple[str, str]:
    name = _name_of(error.param) if error.param else "an argument"
    usage = f"{error.ctx.command_path} {name}" if error.ctx else help_
    return f"{name} is missing", usage


def _name_of(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.make_metavar(click.Context(click.Command(None))) if param.metavar else (param.name or "").upper()


def _flags(ctx: click.Context | None) -> list[str]:
    if not ctx:
        return []
    return [flag for param in ctx.command.params if isinstance(param, click.Option) for flag in param.opts]


# The command that was typed, once more


def with_commands(error: Error, typed: list[str]) -> Error:
    """An error that lists runs gets the command for each, one about the directory that for the right one."""
    if isinstance(error, WrongDirectory):
        return UsageError(str(error), hint=_in_directory(error.directory, typed))
    if not isinstance(error, SeveralRuns):
        return error
    return error.spelled(lambda row: _command_for(row, error.given, typed))


def _command_for(row: RunRow, given: str, typed: list[str]) -> str:
    at = _place_of_verb(typed)
    there = ["-C", pasted.word(row.project, "DIR")] if naming.needs_place(row) else [*map(shlex.quote, typed[:at])]
    words = _with_id(row.workflow_id, given, typed[at + 1 :])
    return " ".join(["raymond", *there, typed[at], *words])


def _in_directory(directory: str, typed: list[str]) -> str:
    """All that was typed, in another directory: without one of its flags it could mean something else."""
    at = _place_of_verb(typed)
    before = [pasted.word(one, "DIR") for one in typed[:at]]
    after = [pasted.word(one, "...") for one in typed[at:]]
    return " ".join(["raymond", *before, pasted.flag("-C", directory, "DIR"), *after])


def _place_of_verb(typed: list[str]) -> int:
    """Where the command is: after every -C with its directory."""
    at = 0
    while typed[at] == "-C":
        at += 2
    return at


def _with_id(id: str, given: str, words: list[str]) -> list[str]:
    """The words after the command with the id in place of what was given, quoted; "..." for what cannot be repeated."""
    plain = shlex.join(words)
    if len(plain) > _LONGEST or not plain.isprintable() or (given and words.count(given) != 1):
        return [id, "..."]
    if not given:
        return [id, *map(shlex.quote, words)]
    return [id if word == given else shlex.quote(word) for word in words]
