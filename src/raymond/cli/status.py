"""`raymond status`: what a run is doing."""

import sys
from time import time as now

import click

from raymond import durations
from raymond.cli import target
from raymond.faces.summary import next_command, one_line
from raymond.machine import prices
from raymond.machine.agent import Agent
from raymond.machine.run import Run
from raymond.store import journal, lock, transcripts
from raymond.store.project import Project
from raymond.views import documents, times, words
from raymond.views.status import main_result, run_status

SHOWN = 50
"""Agents that are shown without --all."""
_ORDER = ("failed", "asking", "paused", "running", "ready", "sleeping", "waiting")


@click.command("status")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--all", "every", is_flag=True, help=f"Every agent, not only {SHOWN} of them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str, every: bool, as_json: bool) -> int:
    """Show run ID: every agent, its state, its last line, and the command that leads on."""
    project, id = target.run(id_)
    run = journal.read(project, id).run
    holder = lock.holder(project.beside(id, "lock"))
    if as_json:
        sys.stdout.buffer.write(documents.state_file(run))
        sys.stdout.flush()
    else:
        print("\n".join(_lines(project, run, holder.pid if holder else 0, every)))
    return 0


def _lines(project: Project, run: Run, pid: int, every: bool) -> list[str]:
    id, status, why = run.start.workflow_id, run_status(run), words.reason(run, now())
    status = "abandoned" if status == "running" and not pid else status
    driven = f"driven by process {pid}" if pid else "no process drives it"
    spent = f"{words.money(run)} of {prices.show(run.budget)}" if run.budget else words.money(run)
    lines = [
        f"{id}: {status}" + (f" ({why})" if why else "") + (f", {driven}" if not run.ended else ""),
        f"  {run.start.name} from {run.start.scope_dir}",
        f"  {words.many(run.iterations, 'step')}, {spent}, {words.lasted(run, now() if pid else 0.0)}",
    ]
    agents = sorted(run.agents.values(), key=lambda agent: _ORDER.index(agent.status) if not every else 0)
    for agent in agents if every else agents[:SHOWN]:
        lines += _agent(project, run, agent)
    if not every and len(agents) > SHOWN:
        lines.append(f"  ... and {len(agents) - SHOWN} more agents: raymond status {id} --all")
    lines += [f"refused: {one}" for one in words.denied(run)]
    result = main_result(run)
    if result is not None:
        lines.append(f"result: {one_line(result)}")
    if pid and not run.ended:
        lines.append(f"next: raymond attach {id}")
    else:
        lines.append(f"next: {next_command(run)}")
    return lines


def _agent(project: Project, run: Run, agent: Agent) -> list[str]:
    id = run.start.workflow_id
    since = durations.brief(max(0.0, now() - agent.since))
    until = f" until {times.instant(agent.wake_at)}" if agent.wake_at else ""
    lines = [f"  {agent.id}  {agent.state}  {agent.status} for {since}{until}"]
    last = transcripts.last_line(project.path("transcripts", id), agent.id)
    if last:
        lines.append(f"      last:  {one_line(last)}")
    if agent.question:
        lines.append(f"      asks:  {one_line(agent.question)}")
        lines.append(f"      next:  raymond answer {id} {agent.id} TEXT")
    elif agent.error:
        lines.append(f"      error: {one_line(agent.error)}")
        lines.append(f"      next:  raymond resume {id} --agent {agent.id} --retry (or --goto STATE, --give-up)")
    return lines
