"""`raymond wait`: until a run ends."""

import click

from raymond.cli import ending, target
from raymond.control.follow import Follower


@click.command("wait")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(id_: str, as_json: bool) -> int:
    """Wait until nobody drives run ID any more; ends with the run's exit code, its result on stdout."""
    project, id = target.run(id_)
    follower = Follower(project, id)
    for _ in follower.watch():
        pass
    run = follower.run
    return ending.tell(run, as_json=as_json)
