"""`raymond cancel`: end a run for good."""

import sys
from functools import partial

import click

from raymond.cli import choice, delivery, many
from raymond.cli.names import RUN
from raymond.control import request
from raymond.control.handle import RunHandle
from raymond.faces.lines import Lines


@click.command("cancel")
@click.argument("ids", metavar="[ID]...", type=RUN, nargs=-1)
@click.option("--force", is_flag=True, help="Even if a process on another machine may still drive it.")
def command(ids: tuple[str, ...], force: bool) -> int:
    """End the runs ID and their running steps for good: none can be resumed. What they did stays in their journals."""
    return many.each(
        [choice.change(id_, "cancel") for id_ in dict.fromkeys(ids) or [None]], partial(_cancel, force=force)
    )


def _cancel(found: RunHandle, *, force: bool) -> int:
    id = found.id
    done = request.cancel(found.project, id, force=force, face=Lines())
    told = delivery.words(done, id) or f"{id} is cancelled; to remove it: raymond clean {id}"
    print("\n".join([told, *delivery.leftovers(done, id, now=True)]), file=sys.stderr)
    return 0
