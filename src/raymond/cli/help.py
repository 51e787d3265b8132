"""Help: flags in groups; of a command with many, those that people want often, and the others when asked for."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from raymond.control.settings import AGENTS, CHECKS, GIT, LIMITS, RIGHTS, TASK, TOLD

ONE, MANY = "One agent", "Many runs"
GROUPS = (TASK, ONE, MANY, CHECKS, AGENTS, LIMITS, RIGHTS, GIT, TOLD)
"""In this order."""
Called = TypeVar("Called", bound=Callable[..., Any])
NAMES = {"help_option_names": ["-h", "--help"]}


class Flag(click.Option):
    """A flag that knows its group, and whether people want it often."""

    def __init__(self, *args: Any, group: str, often: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group
        self.often = often


def flag(group: str, *names: str, often: bool = False, **more: Any) -> Callable[[Called], Called]:
    """Decorate a command with a flag of a group."""
    return click.option(*names, cls=Flag, group=group, often=often, **more)


class Command(click.Command):
    """A command with many flags: `--help` has those that are wanted often, `--help-all` every one."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.append(
            click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_all, help="Show every flag."
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags in groups, those without one last."""
        every = ctx.meta.get(_EVERY, False)
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "Help")}
        left = 0
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            is_shown = every or not isinstance(param, Flag) or param.often
            if record and is_shown:
                groups[param.group if isinstance(param, Flag) else "Help"].append(record)
            left += not is_shown
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if left:
            formatter.write_paragraph()
            formatter.write_text(f"{left} more flags: {ctx.command_path} --help-all")


_EVERY = "raymond.help.every"


def _all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Starting(click.Group):
    """A group whose first word, when it is none of its commands, is what `start` starts with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `start`, which may be left out."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Those of `start`."""
        return self.commands["start"].collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags of `start`, then the other commands."""
        self.commands["start"].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
