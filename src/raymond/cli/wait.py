"""`raymond wait`: until a run ends."""

import sys

import click
import msgspec

from raymond import console, views
from raymond.cli import choose
from raymond.following import Follower


@click.command("wait")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(id_: str, as_json: bool) -> int:
    """Wait until nobody drives run ID any more; ends with the run's exit code, its result on stdout."""
    project, id = choose.run(id_)
    follower = Follower(project, id)
    for _ in follower.watch():
        pass
    run = follower.run
    if as_json:
        print(msgspec.json.encode(views.outcome(run)).decode())
        return views.exit_code(run)
    print(console.ending(run), file=sys.stderr)
    result = views.result(run)
    if result is not None and run.ended:
        sys.stdout.write(result if result.endswith("\n") else f"{result}\n")
    return views.exit_code(run)
