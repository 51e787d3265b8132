"""What takes more than reading a line that is typed right: help, mistakes, completion, commands of commands."""

import inspect
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from raymond import cli
from raymond.cli import usage_errors
from raymond.cli.command import Command, Param, Type
from raymond.cli.flags import GROUPS
from raymond.errors import UsageError

HELP_NAMES = {"help_option_names": ["-h", "--help"]}

_EVERY = "raymond.help.every"


class Flag(click.Option):
    """A flag that knows its group, and whether people want it often."""

    def __init__(self, names: list[str], *, param: Param, **more: Any) -> None:
        super().__init__(names, **more)
        self.group = param.group
        self.often = param.often


class Grouped(click.Command):
    """A command with many flags: `--help` has those that are wanted often, `--help-all` every one."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_every,
                help="Show every flag.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags in groups, those without one last."""
        every = ctx.meta.get(_EVERY, False)
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "Help")}
        left = 0
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            group = param.group if isinstance(param, Flag) else ""
            is_shown = every or not isinstance(param, Flag) or not group or param.often
            if record and is_shown:
                groups[group or "Help"].append(record)
            left += not is_shown
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if left:
            formatter.write_paragraph()
            formatter.write_text(f"{left} more flags: {ctx.command_path} --help-all")


def _show_every(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Typed(click.ParamType[Any]):
    """What a type makes of a text; what is no text was made by one."""

    name = "value"

    def __init__(self, type: Type) -> None:
        self.type = type

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value."""
        try:
            return self.type.read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"'{value}' is not {error}", param, ctx)


class Group(click.Group):
    """A command of commands."""

    def define(self, name: str, *, grouped: bool = False, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
        """Add a command, made of a function that has flags and arguments."""

        def add(run: Callable[..., Any]) -> click.Command:
            command = made(Command(name, run, grouped=grouped), **more)
            self.add_command(command)
            return command

        return add


def made(command: Command, **more: Any) -> click.Command:
    """A command of click of the same name that takes the same."""
    kind = Grouped if command.grouped else click.Command
    more = {"help": inspect.cleandoc(command.run.__doc__ or "")} | more
    return kind(command.name, params=[*map(_param, command.params)], callback=command.run, **more)


def _param(param: Param) -> click.Parameter:
    more: dict[str, Any] = {"metavar": param.metavar, "required": param.required, "shell_complete": _completer(param)}
    if param.choices:
        more["type"] = click.Choice(param.choices)
    elif param.type:
        more["type"] = Typed(param.type)
    if param.default is not None:
        more["default"] = param.default
    if not param.flags:
        return click.Argument([param.name], nargs=-1 if param.many else 1, **more)
    if param.is_switch:
        more["is_flag"] = True
    return Flag([*param.flags, param.name], param=param, multiple=param.many, help=param.help, **more)


def _completer(param: Param) -> Any:
    return param.complete or getattr(param.type, "complete", None)


class _Commands(click.Group):
    """All commands; each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order people need them."""
        return [*cli.COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command in the file of its name, or in the one that it shares with others."""
        if name not in cli.COMMANDS:
            return None
        found = cli.command_named(name)
        return made(found) if isinstance(found, Command) else found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """An unknown word gets a suggestion."""
        if args[0] not in cli.COMMANDS:
            raise UsageError(f"there is no command or workflow `{args[0]}`", hint=_hint(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands, without importing any of them; where none begins so, a workflow."""
        found = [CompletionItem(name, help=says) for name, says in cli.COMMANDS.items() if name.startswith(incomplete)]
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without importing any of them."""
        for name, commands in cli.GROUPS.items():
            with formatter.section(name):
                formatter.write_dl([*commands.items()])


@click.command(cls=_Commands, context_settings=HELP_NAMES)
@click.option(
    "-C", "directory", metavar="DIR", type=click.Path(file_okay=False), help="Do everything as if started in DIR."
)
@click.version_option(package_name="raymond-orchestrator", prog_name="raymond")
def group(directory: str | None) -> None:
    """Run workflows of coding agents that can be killed at any moment and lose nothing."""


def run(args: list[str]) -> Any:
    """Run one command, or say what is wrong with it."""
    try:
        # Not `group.main`: it would make a broken pipe look like an agent that failed.
        with group.make_context("raymond", [*args] or ["--help"]) as ctx:
            return group.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.UsageError as error:
        named = usage_errors.path_of_command(group, args) if args[0] in cli.COMMANDS else "raymond"
        message, hint = usage_errors.explain(error, named)
        raise UsageError(message, hint=hint) from None


def _hint(word: str) -> str:
    import difflib

    from raymond.control import naming

    id = naming.known(word)
    close = difflib.get_close_matches(word, cli.COMMANDS, 1)
    if word == "new":
        return "a folder with a START.md in it is a workflow: raymond demo shows one, raymond run PATH runs it"
    if word in ("lint", "check", "validate"):
        return "raymond run PATH --dry-run checks a workflow and starts nothing"
    if id and (id == word or not close):
        return f"{id} is a run: raymond status {id} shows it"
    return f"did you mean `raymond {close[0]}`?" if close else "raymond --help lists the commands"
