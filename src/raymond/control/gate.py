"""The gates of a workflow, tried before the night."""

import os
import tempfile
from collections.abc import Callable

from raymond.control import doubts, preflight
from raymond.errors import UsageError
from raymond.language.refusal import Refusal
from raymond.language.workflow import State, resolve
from raymond.machine import gates
from raymond.store.loader import Loaded
from raymond.verifier.assignment import Assignment, Found, Told
from raymond.verifier.environment import environment
from raymond.verifier.gate import verify


def gated(loaded: Loaded) -> list[State]:
    """The states with a gate."""
    return [state for state in loaded.workflow.states.values() if state.policy.gate]


def state_of(loaded: Loaded, name: str) -> State:
    """The state that is called so, which must have a gate; a workflow that a run would refuse is refused here too."""
    with doubts.placed(loaded):
        preflight.check_workflow(loaded.workflow, "")
    found = resolve(loaded.workflow, name)
    if isinstance(found, Refusal):
        raise UsageError(found.reason, hint=found.hint)
    state = loaded.workflow.states[found]
    if not state.policy.gate:
        names = ", ".join(one.name for one in gated(loaded))
        hint = f"these have one: {names}" if names else "put `gate: make test` at its top"
        raise UsageError(f"{found} has no gate", hint=hint)
    return state


def try_out(state: State, tell: Callable[[Told], None]) -> Found:
    """Run the gate of a state here and now, as a run would."""
    policy = state.policy
    with tempfile.TemporaryDirectory(prefix="raymond-gate-") as caches:
        given = Assignment(
            checks=policy.gate,
            timeout=policy.gate_timeout or gates.TIMEOUT,
            reruns=gates.RERUNS if policy.gate_reruns is None else policy.gate_reruns,
            environment=environment(os.environ, policy.gate_env, caches),
        )
        return verify(given, tell)
