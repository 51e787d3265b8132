"""`raymond wait`: until a run ends."""

import click

from raymond.control import handle, runs
from raymond.control.follow import Follower
from raymond.faces import summary


@click.command("wait")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(id_: str, as_json: bool) -> int:
    """Wait until nobody drives run ID any more; ends with the run's exit code, its result on stdout."""
    found = handle.find(id_)
    follower = Follower(found.project, found.id)
    for _ in follower.watch():
        pass
    return summary.tell(follower.run, runs.left(follower.run), as_json=as_json)
