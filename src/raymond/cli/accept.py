"""`raymond accept`: let a green check count although what decides it changed."""

import click

from raymond.cli import choice, reviewing
from raymond.cli.names import AGENT, RUN


@click.command("accept")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.argument("agent", metavar="[AGENT|ITEM]", type=AGENT, required=False)
@click.option("--no-resume", is_flag=True, help="Only record the decision.")
def command(id_: str | None, agent: str | None, no_resume: bool) -> int:
    """Accept the change that agent AGENT of run ID made to what decides its check; then the check runs once more.

    It shows the change first and asks, so it needs a terminal. ITEM is the number of an item that a loop has set aside:
    it is checked on top of the branch and committed.
    """
    run = choice.change(id_, "review")
    return reviewing.meant(run, "accept", agent, resumes=not no_resume).accept()
