"""The jobs of an evaluator: a pattern that is searched, or one turn of a judge."""

import os

from raymond.backends import Turn
from raymond.language import judges
from raymond.language.evaluator import Evaluator, transition
from raymond.language.policy import Policy
from raymond.language.tags import Transition
from raymond.language.workflow import State
from raymond.machine import prompts
from raymond.machine.agent import Agent, Pending
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.prices import Prices
from raymond.machine.run import Run

NOTHING = Policy()
_MODE = "default"
"""The permission mode of a judge, which has no tools: it allows least of those that every program has."""


def judge_of(placed: PlacedWorkflow, agent: Agent) -> State | None:
    """The judge of the state that an agent is in; None when it has none."""
    name = judges.of_state(placed.workflow, placed.workflow.states[agent.state])
    return placed.workflow.states[name] if isinstance(name, str) and name else None


def evaluator_of(placed: PlacedWorkflow, agent: Agent) -> Evaluator:
    """The evaluator of the state that an agent is in; one that finds nothing when the workflow has changed."""
    return placed.workflow.states[agent.state].policy.evaluator or Evaluator()


def pending_of(agent: Agent) -> Pending:
    """What is evaluated."""
    assert agent.visit.pending is not None, f"{agent.id} has nothing to evaluate"
    return agent.visit.pending


def chosen(evaluator: Evaluator, said: str) -> list[Transition]:
    """The transition that follows if an evaluator says this; none when the agent gets what it asked for."""
    made = transition(evaluator.choice(evaluator.pick(said)))
    return [] if made is None else [made]


def turn_of(run: Run, placed: PlacedWorkflow, agent: Agent, spool: str, sent: str | None) -> Turn:
    """The turn of the judge: a fresh conversation without tools or rights."""
    judge, pending = judge_of(placed, agent), pending_of(agent)
    name = judge.name if judge else pending.judge
    return Turn(
        agent=agent.id,
        state=name,
        visit=(agent.prompted or {}).get(pending.judge, 1),
        tries=pending.tries,
        prompt=prompts.judge(run, placed, agent) if sent is None else sent,
        session=agent.turn_session,
        cwd=agent.cwd or run.start.cwd,
        spool=os.path.join(spool, folder_of(agent)),
        model=agent.turn_model,
        effort=judges.own(judge, "effort") if judge else "",
        cap=agent.cap,
        prices=Prices(run.start.prices, run.start.unknown_turn_cost),
        permission_mode=_MODE,
        no_tools=True,
    )


def folder_of(agent: Agent) -> str:
    """The folder of a judge's turn, in the spool."""
    return f"{agent.step}.1"
