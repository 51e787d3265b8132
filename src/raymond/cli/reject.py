"""`raymond reject`: send an agent back that changed what decides its check."""

import click

from raymond.cli import choice, reviewing
from raymond.cli.names import AGENT, RUN


@click.command("reject")
@click.argument("id_", metavar="ID", type=RUN)
@click.argument("agent", metavar="[AGENT|ITEM]", type=AGENT, required=False)
@click.argument("reason", metavar="[REASON]", required=False, default="")
@click.option("--no-resume", is_flag=True, help="Only record the decision.")
def command(id_: str, agent: str | None, reason: str, no_resume: bool) -> int:
    """Reject the change that agent AGENT of run ID made to what decides its check: it is told REASON and goes on.

    Without REASON, it shows the change and asks for one. That needs a terminal, as `accept` does. ITEM is the number of
    an item that a loop has set aside: it goes back to the queue, which needs none.
    """
    run = choice.change(id_, "review")
    is_reason = agent and not reason and " " in agent.strip() and agent not in reviewing.names(run)
    name = None if is_reason else agent  # a sentence that names nothing is the reason
    return reviewing.meant(run, "reject", name, resumes=not no_resume).reject(reason or (agent or "") * (not name))
