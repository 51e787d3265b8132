"""`raymond stop`: stop a run, or one agent of it."""

import sys

import click

from raymond.cli import choice, delivery
from raymond.cli.names import AGENT, RUN
from raymond.control import steer
from raymond.faces.lines import Lines


@click.command("stop")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--now", is_flag=True, help="Stop the running steps too; they run again on resume.")
@click.option("--agent", type=AGENT, metavar="A", help="Only agent A: stop its step and pause it; the others continue.")
def command(id_: str | None, now: bool, agent: str | None) -> int:
    """Let run ID finish its running steps and start nothing new."""
    found = choice.change(id_, "stop")
    project, id, face = found.project, found.id, Lines()
    if agent:
        done = steer.pause(project, id, agent, now=now, face=face)
    else:
        done = steer.stop(project, id, now=now, face=face)
    what = f"{agent} of {id} is paused" if agent else f"{id} is stopped"
    told = delivery.words(done, id) or f"{what}; to continue: raymond resume {id}"
    print("\n".join([told, *delivery.leftovers(done, id, now=now)]), file=sys.stderr)
    return 0
