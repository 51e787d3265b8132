"""`raymond cancel`: end a run for good."""

import sys

import click

from raymond.cli import choice, delivery
from raymond.cli.names import RUN
from raymond.control import steer
from raymond.faces.lines import Lines


@click.command("cancel")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--force", is_flag=True, help="Even if a process on another machine may still drive it.")
def command(id_: str | None, force: bool) -> int:
    """End run ID and its running steps for good: it cannot be resumed. What it did stays in its journal."""
    found = choice.change(id_, "cancel")
    id = found.id
    done = steer.cancel(found.project, id, force=force, face=Lines())
    told = delivery.words(done, id) or f"{id} is cancelled; to remove it: raymond clean {id}"
    print("\n".join([told, *delivery.leftovers(done, id, now=True)]), file=sys.stderr)
    return 0
