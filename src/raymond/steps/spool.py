"""The folder of a running turn: the next driver reads what a killed one left there."""

import contextlib
import os
import stat

from raymond.backends import Backend, Turn
from raymond.backends.guard import Guarded
from raymond.machine import evaluators, limits, prompts
from raymond.machine.agent import Agent
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.prices import Prices
from raymond.machine.run import Run
from raymond.steps import evaluation
from raymond.system.files import contents, private

MOST_LINE = 64 << 20
"""Bytes in one line of a program's output: it has to be held whole."""


def turn_of(run: Run, placed: PlacedWorkflow, agent: Agent, spool: str, sent: str | None = None) -> Turn:
    """The turn that `agent` takes; its folder is inside `spool`. `sent` is what it was sent, if that is known."""
    if evaluators.is_due(agent):
        return evaluation.turn_of(run, placed, agent, spool, sent)
    policy = placed.workflow.states[agent.state].policy
    may = limits.narrowed_rights(run.rights, policy)
    return Turn(
        agent=agent.id,
        state=agent.state,
        visit=(agent.prompted or {}).get(agent.state, 1),
        tries=agent.visit.tries,
        prompt=prompts.prompt(run, placed, agent) if sent is None else sent,
        session=agent.turn_session,
        base=agent.turn_base,
        cwd=agent.cwd or run.start.cwd,
        task_folder=placed.task_folder(agent.id) if placed.uses_task_folder else "",
        spool=os.path.join(spool, folder_of(agent)),
        model=policy.model or agent.model or run.start.model,
        effort=policy.effort or agent.effort or run.start.effort,
        cap=agent.cap,
        meter=agent.conversation.meter if agent.turn_base and agent.conversation else (),
        prices=Prices(run.start.prices, run.start.unknown_turn_cost),
        permission_mode=may.mode,
        allowed_tools=may.allowed,
        disallowed_tools=may.denied,
        skip_permissions=may.skip,
    )


def folder_of(agent: Agent) -> str:
    """The folder of the turn that `agent` takes, in the spool."""
    return evaluation.folder_of(agent) if evaluators.is_due(agent) else f"{agent.step}.{agent.visit.turn}"


def read(backend: Backend, turn: Turn) -> Guarded:
    """What a turn has said and cost, as far as its spool tells."""
    reader = Guarded(backend, turn)
    with contextlib.suppress(OSError), os.fdopen(output(turn.spool), "rb") as file:
        # A line that is too long ended the turn; what comes after it counts no more than it did then.
        while (line := file.readline(MOST_LINE + 1)) and len(line) <= MOST_LINE:
            reader.feed(line.rstrip(b"\n"))
    return reader


def output(folder: str) -> int:
    """A descriptor of what a turn has printed; OSError when there is no such file, or something else in its place."""
    return _regular(os.path.join(folder, "out"))


def sent(folder: str) -> str | None:
    """The prompt of a turn as it was sent; None when that is not there any more."""
    try:
        return contents(os.path.join(folder, "prompt")).decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _regular(path: str) -> int:
    fd = private(path, os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(path)
    return fd
