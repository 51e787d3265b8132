"""`raymond wait`: wait for a run to end."""

import click

from raymond.cli import choice, watch
from raymond.cli.names import RUN
from raymond.control import left_requests, runs
from raymond.control.follow import Follower
from raymond.faces import summary


@click.command("wait")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Wait until nothing runs ID any more; print its result, or the summary of a loop, and exit with its exit code."""
    found = choice.find(id_, "wait")
    follower = Follower(found.project, found.id)
    for _ in follower.watch():
        pass
    if not as_json:
        return watch.tell(found, follower.run)
    left, whole = left_requests.of(found.project, follower.run), runs.whole(found.project, found.id)
    return summary.tell(follower.run, runs.left(follower.run), as_json=whole, left=left.lines(), then=left.next_command)
