"""`raymond logs`: what happened in a run, and what each step was sent and said."""

import os
import sys

import click

from raymond.cli import choice
from raymond.cli.names import AGENT, RUN
from raymond.control import history
from raymond.control.follow import Follower
from raymond.errors import UsageError
from raymond.faces.history import Json, Text, turn


@click.command("logs")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the run ends.")
@click.option("--agent", type=AGENT, metavar="A", help="Only what concerns agent A.")
@click.option("--step", type=click.IntRange(1), metavar="N", help="What step N was sent and what it said.")
@click.option("--debug-dir", type=click.Path(file_okay=False), metavar="DIR", help="Write every step as files to DIR.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line on stdout.")
def command(
    id_: str | None, follow: bool, agent: str | None, step: int | None, debug_dir: str | None, as_json: bool
) -> int:
    """Print every line of run ID, as it was shown while it ran."""
    run = choice.find(id_)
    follower = Follower(run.project, run.id) if follow else None
    decisions = follower.look() if follower else run.decisions()
    if agent:
        history.check_agent(run.id, decisions, agent)
    if step:
        for one in history.step(run.project, run.id, decisions, step):
            print(turn(one.ended, one.transcript, as_json=as_json))
        return 0
    if debug_dir:
        from raymond.faces import debug_folder

        _check_empty(debug_dir)
        debug_folder.Folder(debug_dir, run.transcripts).write(decisions)
        print(f"{debug_dir} holds every step and transition of {run.id}", file=sys.stderr)
        return 0
    printed = Json(agent) if as_json else Text(agent, run.transcripts)
    printed.show(decisions)
    if follower:
        for more in follower.watch():
            printed.show(more)
    return 0


def _check_empty(path: str) -> None:
    if os.path.isdir(path) and os.listdir(path):
        raise UsageError(f"{path} is not empty", hint="name a new folder: nothing is overwritten")
