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
from raymond.system.marks import MARK, Marks
from raymond.verifier.assignment import Assignment, Found, Told
from raymond.verifier.environment import environment
from raymond.verifier.gate import verify

_STEP = 1
"""The only step there is."""
_NONE = "put `gate: make test` at the top of a state"


def gated(loaded: Loaded) -> list[State]:
    """The states with a gate."""
    return [state for state in loaded.workflow.states.values() if state.policy.gate]


def chosen(loaded: Loaded, name: str | None) -> list[State]:
    """The state that is called so, which must have a gate, or all that have one.

    A workflow that a run would refuse is refused here too.
    """
    with doubts.placed(loaded):
        preflight.check_workflow(loaded.workflow, "")
    states = gated(loaded)
    if name is None:
        if not states:
            raise UsageError(f"no state of {loaded.workflow.name} has a gate", hint=_NONE)
        return states
    found = resolve(loaded.workflow, name)
    if isinstance(found, Refusal):
        raise UsageError(found.reason, hint=found.hint)
    if not loaded.workflow.states[found].policy.gate:
        names = ", ".join(one.name for one in states)
        raise UsageError(f"{found} has no gate", hint=f"these have one: {names}" if names else _NONE)
    return [loaded.workflow.states[found]]


def try_out(state: State, tell: Callable[[Told], None]) -> Found:
    """Run the gate of a state here and now, as a run would; whatever it started ends with it."""
    policy, key = state.policy, f"gate-{os.urandom(8).hex()}"
    marks = Marks(key, "")
    with tempfile.TemporaryDirectory(prefix="raymond-gate-") as caches:
        more = {**policy.gate_env, MARK: marks.of(_STEP)}
        given = Assignment(
            checks=policy.gate,
            timeout=policy.gate_timeout or gates.TIMEOUT,
            reruns=gates.RERUNS if policy.gate_reruns is None else policy.gate_reruns,
            environment=environment(os.environ, more, caches),
            key=key,
            step=_STEP,
        )
        try:
            return verify(given, tell)
        finally:
            marks.end()
