"""`raymond reject`: send an agent back that changed what decides its check."""

import click

from raymond.cli import choice, reviewing
from raymond.cli import loop_accepting as loops
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
    if (loop := loops.aside(run)) is not None:
        return loops.reject(loop, *_split(agent, reason, loops.names(loop)))
    agent, reason = _split(agent, reason, reviewing.waiting(run))
    return reviewing.decide(run, agent, accepted=False, reason=reason, no_resume=no_resume)


def _split(name: str | None, reason: str, names: list[str]) -> tuple[str | None, str]:
    """What is named, and the reason: a sentence that names nothing is the reason alone."""
    is_reason = name is not None and not reason and name not in names and " " in name.strip()
    return (None, name or "") if is_reason else (name, reason)
