"""`raymond task-loop`: work through the tasks of the implementation specs, each in a fresh session."""

from typing import Any

import click

from raymond.cli import flags, internal_mode, loop_flags, loop_group
from raymond.cli.count import Count
from raymond.cli.flags import StartFlags
from raymond.cli.help import LIMITS, NAMES, TASK, Command, flag
from raymond.cli.loop_start import Start
from raymond.loops import starting
from raymond.loops.settings import TASKS

_OWN = (
    flag(
        LIMITS,
        "--max-iterations",
        "most",
        often=True,
        type=Count(0),
        default=10,
        metavar="N",
        help="Tasks at most (10; 0 for no limit).",
    ),
    flag(TASK, "--area", default="", metavar="N", help="Only tasks of this area, e.g. 1."),
    flag(TASK, "--task-group", default="", metavar="N.M", help="Only tasks of this group, e.g. 1.4."),
    flag(TASK, "--task", often=True, default="", metavar="ID", help="Only this task, e.g. 1.4.1, and what repairs it."),
    flag(LIMITS, "--stop-on-fail", is_flag=True, help="End the loop when a task fails."),
    flag(TASK, "--skip-unverifiable", is_flag=True, help="Pass over tasks that no command verifies."),
    flag(
        TASK,
        "--session-per-task",
        "log_per_task",
        is_flag=True,
        help="Write a session log for each task, not one for all.",
    ),
    *loop_flags.COMMON,
)


@click.group("task-loop", context_settings=NAMES, no_args_is_help=False)
def command() -> None:
    """Work through the tasks in docs/implementation/N-AREA/N.M-TOPIC.md that nobody has verified: one per fresh
    session, each one checked, then committed and marked in its spec.
    """


@command.command("start", cls=Command)
@flags.looping(_OWN, loop_flags.WITHOUT)
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    begin = Start(TASKS, given, own, "--max-iterations", "the tasks are in docs/implementation")
    return begin(_settings(own))


def _settings(own: dict[str, Any]) -> dict[str, Any]:
    """The settings that only this loop has."""
    names = ("most", "area", "task_group", "task", "stop_on_fail", "skip_unverifiable", "log_per_task")
    return {name: own[name] for name in names}


loop_group.add_to(command, TASKS, starting.WORKFLOW)
internal_mode.add_to(command, TASKS, _OWN[: -len(loop_flags.COMMON)], _settings)
