"""`raymond task-loop`: work through the tasks of the implementation specs, each in a fresh session."""

from typing import Any

import click

from raymond.cli import flags, internal_mode, loop_flags, loop_group
from raymond.cli.flags import StartFlags
from raymond.cli.help import NAMES, Command
from raymond.cli.loop_start import Start
from raymond.loops import starting
from raymond.loops.settings import TASKS


@click.group("task-loop", context_settings=NAMES, no_args_is_help=False)
def command() -> None:
    """Work through the tasks in docs/implementation/N-AREA/N.M-TOPIC.md that nobody has verified: one per fresh
    session, each one checked, then committed and marked in its spec.
    """


@command.command("start", cls=Command)
@flags.looping(loop_flags.own(TASKS))
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    return Start(TASKS, given, own, "the tasks are in docs/implementation")()


loop_group.add_to(command, TASKS, starting.WORKFLOW)
internal_mode.add_to(command, TASKS)
