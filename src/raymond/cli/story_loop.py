"""`raymond story-loop`: work through the stories of the PRD that do not pass."""

import json
import sys
from typing import Any

import click

from raymond.cli import flags, internal_mode, loop_flags, loop_group, loop_verbs
from raymond.cli.flags import StartFlags
from raymond.cli.help import NAMES, Command
from raymond.cli.loop_start import Start
from raymond.loops import starting
from raymond.loops.settings import STORIES


@click.group("story-loop", context_settings=NAMES, no_args_is_help=False)
def command() -> None:
    """Work through the stories in docs/prd.md that do not pass: each one is checked, then committed, and
    docs/prd-status.json says so.
    """


@command.command("start", cls=Command)
@flags.looping(loop_flags.own(STORIES))
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    return Start(STORIES, given, own, "the stories are in docs/prd.md")()


loop_group.add_to(command, STORIES, starting.WORKFLOW)
internal_mode.add_to(command, STORIES)
command.commands.pop("status")


@command.command("status")
@loop_flags.DOCS
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--metrics", is_flag=True, help="Show how far the stories are, and how fast.")
def status(docs: str, as_json: bool, metrics: bool) -> int:
    """Show what the loop is doing, what it did and what is left."""
    if not metrics:
        return loop_verbs.status(STORIES, docs, as_json=as_json)
    from raymond.loops import metrics as story_metrics

    checkout, loop = loop_verbs.for_person(STORIES, docs)
    documents = loop.documents if loop else checkout
    if as_json:
        print(json.dumps(story_metrics.story_document(documents)))
    else:
        sys.stdout.write(story_metrics.story_text(documents))
    return 0
