"""`raymond shell`: look around in the workspace of a run."""

from raymond.cli import choice
from raymond.cli.command import argument, as_command
from raymond.cli.values import AGENT, RUN
from raymond.control import inside, workspaces


@as_command("shell")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@argument("agent", metavar="[AGENT]", type=AGENT, required=False)
def command(id_: str | None, agent: str | None) -> int:
    """Open a shell in the workspace of run ID, where agent AGENT works; what you change there counts as its work."""
    inside.check_person("shell")
    found = choice.find(id_, "shell")
    return workspaces.shell(found.project, found.read(), agent or "")
