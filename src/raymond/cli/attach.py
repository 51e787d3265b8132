"""`raymond attach`: watch a run that another process drives, or answer one that waits for that."""

import click

from raymond.cli import choice, company
from raymond.cli.names import RUN


@click.command("attach")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
def command(id_: str | None) -> int:
    """Watch run ID as if it ran here, and answer its questions; Ctrl-C leaves it running."""
    return company.keep(choice.find(id_, "attach"))
