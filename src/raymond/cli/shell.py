"""`raymond shell`: look around in the workspace of a run."""

import click

from raymond.cli import choice
from raymond.cli.values import AGENT, RUN
from raymond.control import inside, workspaces


@click.command("shell")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.argument("agent", metavar="[AGENT]", type=AGENT, required=False)
def command(id_: str | None, agent: str | None) -> int:
    """Open a shell in the workspace of run ID, where agent AGENT works; what you change there counts as its work."""
    inside.check_person("shell")
    found = choice.find(id_, "shell")
    return workspaces.shell(found.project, found.read(), agent or "")
