"""`raymond stop`: stop a run."""

import sys
import uuid

import click

from raymond.cli import choose
from raymond.requests import Request


@click.command("stop")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--now", is_flag=True, help="End the running steps; they run again on resume.")
def command(id_: str, now: bool) -> int:
    """Let run ID finish its running steps and start nothing new."""
    project, id = choose.run(id_, changes=True)
    left = choose.hand_over(project, id, Request(id=str(uuid.uuid4()), kind="stop", now=now))
    print(left or f"{id} is stopped; raymond resume {id} takes it up", file=sys.stderr)
    return 0
