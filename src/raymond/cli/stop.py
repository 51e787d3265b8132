"""`raymond stop`: stop a run, or one agent of it."""

import sys
import uuid

import click

from raymond.cli import target
from raymond.errors import UsageError
from raymond.machine.agent import RUNNING
from raymond.machine.requests import Request
from raymond.store import journal, lock
from raymond.store.project import Project


@click.command("stop")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--now", is_flag=True, help="End the running steps; they run again on resume.")
@click.option("--agent", default="", metavar="A", help="Only agent A: its step is ended, it pauses; the others go on.")
def command(id_: str, now: bool, agent: str) -> int:
    """Let run ID finish its running steps and start nothing new."""
    project, id = target.run(id_, changes=True)
    if agent and _is_cut_off(project, id, agent):
        raise UsageError(f"no process drives {id}: {agent} was cut off", hint=f"raymond resume {id} runs it again")
    request = Request(id=str(uuid.uuid4()), kind="pause" if agent else "stop", agent=agent, now=now)
    left = target.hand_over(project, id, request)
    what = f"{agent} of {id} is paused" if agent else f"{id} is stopped"
    print(left or f"{what}; raymond resume {id} takes it up", file=sys.stderr)
    return 0


def _is_cut_off(project: Project, id: str, agent: str) -> bool:
    """Whether the driver of a step that the journal calls running is gone: there is nobody who could end it."""
    found = journal.read(project, id).run.agents.get(agent)
    return found is not None and found.status == RUNNING and lock.holder(project.beside(id, "lock")) is None
