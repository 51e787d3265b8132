"""`raymond status`: what a run is doing."""

import sys
from time import time as now

import click

from raymond import durations, journal, lock, views
from raymond.cli import choose
from raymond.run import Run


@click.command("status")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str, as_json: bool) -> int:
    """Show run ID: every agent, its state, and the command that leads on."""
    project, id = choose.run(id_)
    run = journal.read(project, id).run
    holder = lock.holder(project.beside(id, "lock"))
    if as_json:
        sys.stdout.buffer.write(views.state_file(run))
        sys.stdout.flush()
    else:
        print("\n".join(_lines(run, holder.pid if holder else 0)))
    return 0


def _lines(run: Run, pid: int) -> list[str]:
    status, why = views.status(run), views.reason(run)
    driven = f"driven by process {pid}" if pid else "no process drives it"
    lines = [f"{run.start.workflow_id}: {status}" + (f" ({why})" if why else "") + f", {driven}"]
    lines.append(f"{run.iterations} steps, {views.money(run)}, {views.lasted(run)}")
    for agent in run.agents.values():
        since = durations.show(max(0.0, now() - agent.since))
        more = agent.error or agent.question or (f"until {views.instant(agent.wake_at)}" if agent.wake_at else "")
        lines.append(f"  {agent.id}  {agent.state}  {agent.status} for {since}" + (f"  {more}" if more else ""))
    result = views.result(run)
    if result is not None:
        lines.append(f"result: {result.strip()}")
    if not pid and not run.ended:
        lines.append(f"next: raymond resume {run.start.workflow_id}")
    return lines
