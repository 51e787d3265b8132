"""The flags that loops have in common, and the settings they make."""

from typing import Any

import click
from click.core import ParameterSource

from raymond import durations
from raymond.cli.count import Count
from raymond.cli.flags import Duration, option
from raymond.cli.help import CHECKS, GIT, LIMITS, TASK, flag
from raymond.errors import UsageError
from raymond.loops.settings import ON_DIRTY, ON_FAIL, ON_REPEAT, ON_REVIEW, Settings
from raymond.text import digits

WITHOUT = ("--input", "--max-iterations", "--run-gates", "--max-parallel")
"""Flags of `run` that a loop does not have, or has with another meaning."""
COMMON = (
    flag(TASK, "--docs", default="docs", metavar="DIR", help="The folder of session logs and records (docs)."),
    flag(LIMITS, "--attempts", type=Count(), default=2, metavar="N", help="Fresh sessions for an item (2)."),
    flag(
        LIMITS,
        "--on-fail",
        often=True,
        type=click.Choice(ON_FAIL),
        default="skip",
        help="When its attempts are used up (skip).",
    ),
    flag(
        LIMITS,
        "--max-failures",
        type=Count(),
        default=3,
        metavar="N",
        help="Failures of an item in a row, until --on-repeat (3).",
    ),
    flag(
        LIMITS,
        "--on-repeat",
        type=click.Choice(ON_REPEAT),
        default="block",
        help="What follows after --max-failures (block).",
    ),
    flag(LIMITS, "--pause", type=Duration(), default=2.0, metavar="TIME", help="Between two items (2s)."),
    flag(LIMITS, "--pause-on-fail", is_flag=True, help="Wait for a person after an item that failed."),
    flag(CHECKS, "--gate-timeout", type=Duration(), default=600.0, metavar="TIME", help="For one check (10m)."),
    flag(GIT, "--no-commit", is_flag=True, help="Make no branch: what counts comes into the checkout at the end."),
    flag(GIT, "--branch", often=True, metavar="NAME|current", help="The branch that gets the commits (raymond/ID)."),
    flag(
        GIT,
        "--on-dirty",
        type=click.Choice(ON_DIRTY),
        default="snapshot",
        help="Whether agents find your uncommitted changes (snapshot).",
    ),
    flag(GIT, "--from", "since", metavar="REF", help="Begin with this commit."),
    flag(CHECKS, "--allow", multiple=True, metavar="PATTERN", help="Run only checks that match one of these."),
    flag(CHECKS, "--deny", multiple=True, metavar="PATTERN", help="Run no check that matches."),
    flag(TASK, "--accept-proposed", is_flag=True, help="Also run items that agents have proposed."),
    flag(
        CHECKS,
        "--on-review",
        type=click.Choice(ON_REVIEW),
        default="set-aside",
        help="A change that a person must see (set-aside).",
    ),
    flag(TASK, "--summary-prompt", default="", metavar="TEXT", help="An agent also writes a closing paragraph."),
    flag(
        TASK,
        "--workflow",
        metavar="DIR",
        help="Run the workflow in DIR, made with eject, instead of the one that ships.",
    ),
    flag(TASK, "--yes", is_flag=True, help="Do not ask whether to resume a loop that was cut off."),
)


def settings(loop: str, id: str, given: dict[str, Any], **more: Any) -> Settings:
    """The settings that the flags of a loop make."""
    for option_, name in (("--branch", "branch"), ("--from", "since")):
        if given[name] == "":
            raise UsageError(f"{option_} is empty", hint="is the variable it comes from set?")
    return Settings(
        loop=loop,
        docs=given["docs"],
        attempts=max(1, given["attempts"]),
        on_fail=given["on_fail"],
        max_failures=max(1, given["max_failures"]),
        on_repeat=given["on_repeat"],
        pause=given["pause"],
        pause_on_fail=given["pause_on_fail"],
        gate_timeout=given["gate_timeout"],
        branch=_branch(id, given),
        applies=given["no_commit"] or given["branch"] == "current",
        accept_proposed=given["accept_proposed"],
        on_review=given["on_review"],
        allow=tuple(given["allow"]),
        deny=tuple(given["deny"]),
        closing=given["summary_prompt"],
        typed=_typed(),
        **more,
    )


def _branch(id: str, given: dict[str, Any]) -> str:
    """The branch of a loop: its own, or the one that was named."""
    if given["no_commit"]:
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
    if isinstance(option.type, Duration):
        return durations.written(value)
    return digits(value) if isinstance(value, float) else str(value)


_ONCE = ("id_", "since", "from_session", "yes", "dry_run", "detach", "as_json", "resumes", "starts", "wait")
"""Parameters that say nothing about the next start."""
_OF_ITEMS = (
    "--attempts",
    "--on-fail",
    "--max-failures",
    "--on-repeat",
    "--allow",
    "--deny",
    "--accept-proposed",
)
DEFAULTS: dict[str, Any] = {
    "attempts": 1,
    "on_fail": "skip",
    "on_repeat": "pause",
    "accept_proposed": False,
    "allow": (),
    "deny": (),
}
"""What the flags of items would say where there are none."""


def is_of_items(decorate: Any) -> bool:
    """Whether a flag says something only about items of a queue."""
    return bool(set(option(decorate).opts) & set(_OF_ITEMS))
