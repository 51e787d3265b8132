"""What happens in a visit: its steps begin and end; gate and evaluator hold back what they ask for."""

from typing import Literal, TypeAlias

from raymond.language.tags import Transition
from raymond.machine.agent import AskedFile
from raymond.machine.failures import Kind
from raymond.machine.run_started import ZERO, Fact

Phase: TypeAlias = Literal["", "seal", "gate", "evaluate"]
"""What a step of a visit does: take down what decides its check, the work, the check, or the second opinion on where it
leads."""
PASSED, FAILED, TIMED_OUT, COULD_NOT_START = "passed", "failed", "timed out", "could not start"
GREEN = "green"
"""What is noted of a check that passed before the work."""
TO_REVIEW = ("review", "not comparable")
"""The check is green, and a person has to say whether that counts."""
Verdict: TypeAlias = Literal["passed", "failed", "timed out", "could not start", "review", "not comparable"]
"""What a gate found. `could not start` is a mistake in the workflow, and says nothing about the work."""


class StepStarted(Fact, frozen=True, kw_only=True):
    """A script, a turn of a backend, a gate or an evaluator is about to start."""

    agent: str
    step: int
    attempt: int = 1
    phase: Phase = ""
    turn: int = 1
    backend: str = ""
    """Empty for a script."""
    session: str = ""
    """The conversation this turn writes."""
    base: str = ""
    """The conversation it branches from; empty for a fresh one."""
    model: str = ""
    """What was asked for; empty when the backend chooses."""
    cap: float = ZERO
    """Dollars that are reserved for this turn until it ends; 0 means none."""


class SessionNamed(Fact, frozen=True, kw_only=True):
    """A backend that chooses its own ids reported which conversation the running turn writes."""

    agent: str
    step: int
    session: str


class TransitionHeld(Fact, frozen=True, kw_only=True):
    """What a reply asks for counts once the gate of its state has passed, and its evaluator has agreed."""

    agent: str
    asked: list[Transition]
    places: dict[str, str] = {}
    """Every `cd` in it -> its absolute directory."""
    gated: bool = True
    """It has to pass the gate."""
    evaluated: bool = False
    """The evaluator of the state decides about it."""
    judge: str = ""
    """The prompt that the evaluator asks; empty for a pattern."""
    output: str = ""
    """The end of the final message, for the evaluator."""
    files: list[AskedFile] = []
    """Of a question: the files that are shown with it."""


class StepEnded(Fact, frozen=True, kw_only=True):
    """Base of every event that ends a step: what it cost."""

    agent: str
    step: int
    cost: float = ZERO
    estimated: bool = False
    unknown: bool = False
    """The cost is unknown; `cost` is the amount counted for such a turn."""
    tokens_in: int = 0
    tokens_out: int = 0
    meter: tuple[int, ...] = ()
    """What the program's own counter shows, if it counts over a whole conversation."""
    offset: int = -1
    """Where this step begins in the agent's transcript; -1 when it is not there."""
    denied: list[str] = []
    """What would allow the tools that the agent was denied."""
    model: str = ""
    """What answered, as the program reported it; of several, the one that did most. Empty when it reported none."""


class StepFinished(StepEnded, frozen=True, kw_only=True):
    """The output was read and its transition allowed."""

    session: str = ""


class StepRefused(StepEnded, frozen=True, kw_only=True):
    """The reply was unreadable or not allowed; the agent is asked again in the same conversation."""

    reason: str = ""
    hint: str = ""
    session: str = ""
    capped: bool = False
    """It reached its share of the budget, and continues with another one."""
    blocked: bool = False
    """It was denied tools it needs, and tries again once a person has reviewed that."""


class StepFailed(StepEnded, frozen=True, kw_only=True):
    """The step ended without a usable reply."""

    kind: Kind
    error: str
    exit_code: int | None = None
    charged: bool = True
    """Counts against `retries`."""
    fresh: bool = False
    """The next attempt starts without the conversation."""
    again: bool = False
    """The same visit is tried again."""
    retry_at: float = ZERO
    """Not before this time; 0 for at once."""
    output: str = ""
    """The last lines that a script printed, if its error does not say them."""
    phase: Phase = ""
    """`evaluate`: the evaluator failed, and not the agent."""


class StepInterrupted(StepEnded, frozen=True, kw_only=True):
    """The step was cut off with its driver or by a person; the visit runs again."""

    by_death: bool = False
    """Its driver died, or the verifier; a visit is not tried for ever while that happens."""
    cause: str = ""
    """What died, and how, if it was not the driver."""


class GateEnded(StepEnded, frozen=True, kw_only=True):
    """A gate ran; what it found decides whether the held transition counts."""

    verdict: Verdict
    command: str = ""
    """The last command that ran: the first one that was red, if any was."""
    exit_code: int | None = None
    seconds: float = ZERO
    """How long all of its commands took."""
    flaky: bool = False
    """It was red, and green when it ran once more."""
    reason: str = ""
    """Why it is not green, in a few words."""
    output: str = ""
    """The end of what the red command printed."""
    told: bool = False
    """The agent is told, and goes on in the same conversation."""
    as_before: bool = False
    """It was the same before the work: red in the same way, or green and no test was added."""
    changes: list[str] = []
    """What decides the check and is not as it was sealed: `changed tests/test_a.py`."""
    digest: str = ""
    """Of these changes, as a person accepts them."""
    twin: str = ""
    """Where the check was repeated with the sealed files: in an overlay or a checkout; empty when it was not."""
    review: str = ""
    """The folder, among the seals of the run, with what a person looks at."""
    seal: str = ""
    """Digest of what was sealed."""
    tree: str = ""
    """Hash of the work tree that was checked."""
    commit: str = ""
    """The commit that the project was at."""
    vouched: str = ""
    """Of a green check in a workspace: the tree whose deciding files count from now on."""
    wrote: list[str] = []
    """The tracked files that changed while the check ran."""


class SealEnded(StepEnded, frozen=True, kw_only=True):
    """What decides the gate of a visit was taken down."""

    seal: str = ""
    """Digest of it; empty when it could not be done."""
    sealed: int = 0
    """How many files that is."""
    commit: str = ""
    seconds: float = ZERO
    reason: str = ""
    """Why it could not be done."""
    before: str = ""
    """What the check found before the work, if it was asked for: `green`, or why it was red."""


class ReviewEnded(Fact, frozen=True, kw_only=True):
    """A person has decided whether a change of what decides the check is right."""

    agent: str
    accepted: bool = False
    digest: str = ""
    """Of the changes that the person saw."""
    reason: str = ""
    """Of a rejection, if the person gave one."""


class EvaluatorEnded(StepEnded, frozen=True, kw_only=True):
    """An evaluator gave its opinion on a transition that was held back."""

    verdict: str = ""
    """The word, as the author has written it; empty when it gave none, and the default counts."""
    requested: str = ""
    """What the agent asked for, as tags and states: `goto REVIEW.md`."""
    actual: str = ""
    """What follows instead, or the same; empty when nothing follows."""
    kept: bool = False
    """The agent gets what it asked for."""
    said: str = ""
    """The first line of what it said, when that is no verdict."""
    reason: str = ""
    """Why it gave no verdict, or why its verdict cannot be followed."""
    again: bool = False
    """It is asked once more."""
    decided: bool = False
    """The transition is held back no longer."""
