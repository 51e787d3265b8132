"""`raymond story-loop`: work through the stories of the PRD that do not pass."""

import json
import sys
from typing import Any

import click

from raymond.cli import flags, internal_mode, loop_flags, loop_group, loop_verbs
from raymond.cli.count import Count
from raymond.cli.flags import StartFlags
from raymond.cli.help import LIMITS, NAMES, TASK, Command, flag
from raymond.cli.loop_start import Start
from raymond.loops import starting
from raymond.loops.settings import STORIES

_OWN = (
    flag(
        LIMITS,
        "--max-stories",
        "most",
        often=True,
        type=Count(0),
        default=3,
        metavar="N",
        help="Stories at most (3; 0 for no limit).",
    ),
    flag(TASK, "--story", often=True, default="", metavar="ID", help="Only this story, e.g. US-1."),
    flag(TASK, "--skip-manual", is_flag=True, help="Pass over stories that a person has to judge."),
    flag(TASK, "--create-tasks", is_flag=True, help="Let an agent propose tasks for a story that has none."),
    flag(TASK, "--task-loop", "runs_tasks", is_flag=True, help="Do the tasks of a story first, each in a session."),
    *loop_flags.COMMON,
)


@click.group("story-loop", context_settings=NAMES, no_args_is_help=False)
def command() -> None:
    """Work through the stories in docs/prd.md that do not pass: each one is checked, then committed, and
    docs/prd-status.json says so.
    """


@command.command("start", cls=Command)
@flags.looping(_OWN, loop_flags.WITHOUT)
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    begin = Start(STORIES, given, own, "--max-stories", "the stories are in docs/prd.md")
    return begin(_settings(own))


def _settings(own: dict[str, Any]) -> dict[str, Any]:
    """The settings that only this loop has."""
    return {name: own[name] for name in ("most", "story", "skip_manual", "create_tasks", "runs_tasks")}


loop_group.add_to(command, STORIES, starting.WORKFLOW)
internal_mode.add_to(command, STORIES, _OWN[: -len(loop_flags.COMMON)], _settings)
command.commands.pop("status")


@command.command("status")
@loop_group.DOCS
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--metrics", is_flag=True, help="Show how far the stories are, and how fast.")
def status(docs: str, as_json: bool, metrics: bool) -> int:
    """Show what the loop is doing, what it did and what is left."""
    if not metrics:
        return loop_verbs.status(STORIES, docs, as_json=as_json)
    from raymond.loops import story_metrics

    checkout, loop = loop_verbs.for_person(STORIES, docs)
    documents = loop.documents if loop else checkout
    if as_json:
        print(json.dumps(story_metrics.document(documents)))
    else:
        sys.stdout.write(story_metrics.text(documents))
    return 0
