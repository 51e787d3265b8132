"""Judges: the prompts that evaluators ask. They are states by their files, and no agent ever enters one."""

from collections.abc import Iterator

from raymond.language.refusal import Refusal
from raymond.language.workflow import State, Workflow, resolve

KEYS = ("description", "model", "effort", "timeout", "max_time", "retries", "allowed_transitions")
"""What the frontmatter of a judge can say; everything else is about agents that come and go."""


def of(workflow: Workflow) -> dict[str, list[str]]:
    """Every judge -> the states that it judges."""
    if workflow.judges is None:
        workflow.judges = _find(workflow)
    return workflow.judges


def of_state(workflow: Workflow, state: State) -> str | Refusal:
    """The judge of a state, if its evaluator has one; empty when it has none."""
    evaluator = state.policy.evaluator
    return resolve(workflow, evaluator.prompt) if evaluator and evaluator.prompt else ""


def answered(workflow: Workflow) -> Iterator[State]:
    """The prompts that have a backend of their own: a judge is asked where the state that it judges is answered.

    That of a script is a prompt like the others, because the script has none.
    """
    judges = of(workflow)
    for state in workflow.states.values():
        judged = judges.get(state.name)
        if state.kind == "prompt" and (not judged or any(not name.endswith(".md") for name in judged)):
            yield state


def own(state: State, key: str) -> str:
    """What the judge itself says, and not `workflow.yaml` for all states; empty when it says nothing."""
    return str(getattr(state.policy, key)) if (key,) in state.marks else ""


def _find(workflow: Workflow) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for state in workflow.states.values():
        judge = of_state(workflow, state)
        if isinstance(judge, str) and judge and judge != state.name:
            found.setdefault(judge, []).append(state.name)
    return found
