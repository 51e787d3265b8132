"""What happened: the facts a run is made of, in past tense.

A change of an event raises the format of the journal (store/journal.py). Names of states are resolved, directories
absolute, times UTC seconds: folding a journal needs nothing else.
"""

from typing import Literal, TypeAlias, TypeGuard

import msgspec
from msgspec import Struct

from raymond.machine.agent import AskedFile
from raymond.machine.failures import Kind
from raymond.machine.run_started import UNRECORDED as UNRECORDED
from raymond.machine.run_started import ZERO as ZERO
from raymond.machine.run_started import Fact as Fact
from raymond.machine.run_started import Program as Program
from raymond.machine.run_started import Recording as Recording
from raymond.machine.run_started import RunStarted as RunStarted
from raymond.machine.sender import Sender
from raymond.machine.step_events import EvaluatorEnded as EvaluatorEnded
from raymond.machine.step_events import GateEnded as GateEnded
from raymond.machine.step_events import ReviewEnded as ReviewEnded
from raymond.machine.step_events import SealEnded as SealEnded
from raymond.machine.step_events import SessionNamed as SessionNamed
from raymond.machine.step_events import StepEnded as StepEnded
from raymond.machine.step_events import StepFailed as StepFailed
from raymond.machine.step_events import StepFinished as StepFinished
from raymond.machine.step_events import StepInterrupted as StepInterrupted
from raymond.machine.step_events import StepRefused as StepRefused
from raymond.machine.step_events import StepStarted as StepStarted
from raymond.machine.step_events import TransitionHeld as TransitionHeld
from raymond.machine.step_events import Verdict as Verdict


class RunResumed(Fact, frozen=True, kw_only=True):
    """A driver resumed the run."""

    version: str
    driven: float = ZERO
    """Seconds for which the driver before had driven it after its last decision; it was killed."""
    programs: list[Program] = []
    """What answers its prompts from now on; empty in a run of scripts."""
    recording: Recording = UNRECORDED


class JournalCut(Fact, frozen=True, kw_only=True):
    """The end of the journal was lost; what it may have numbered is not numbered a second time."""

    steps: int = 0
    """The next step has a higher number, and so have the sessions and processes that are named after it."""
    questions: int = 0
    """The next question has a higher number."""
    decisions: int = 0
    """How many decisions may have been lost."""
    cost: float = ZERO
    """What the lost steps have cost, as far as that can still be read: it stays spent."""
    scripted: float = ZERO
    """What of it scripted replies are said to have cost."""
    paid: dict[int, float] = {}
    """What of it steps have cost that began before the cut: they end a second time, and are not paid for twice."""


class ClockSet(Fact, frozen=True, kw_only=True):
    """The wall clock was set, or the machine slept: it moved otherwise than the time that passed for the driver."""

    seconds: float
    """By how much; negative when the clock was set back."""


class RunMoved(Fact, frozen=True, kw_only=True):
    """A person resumed the run in the directory that its project was moved to."""

    cwd: str
    before: str
    after: str
    """The directory that was moved, before and after."""
    lost: list[str] = []
    """The conversations that could not be brought along."""
    commit: str = ""
    """Where the repository there is."""


class WorkflowChanged(Fact, frozen=True, kw_only=True):
    """A person resumed the run with newer files than it began with."""

    source: str
    """SHA-256 of the new snapshot."""
    renamed: dict[str, str] = {}
    """States that were renamed: old name -> new name."""
    backends: dict[str, str] = {}
    in_place: list[str] = []


class RunStopped(Fact, frozen=True, kw_only=True):
    """No new step starts."""

    kind: Literal["paused", "stop", "signal", "limit", "cancelled"]
    """`cancelled` is for good."""
    limit: Literal["", "budget", "iterations", "turns", "unpriced", "time", "wait"] = ""
    amount: float = ZERO
    """What the limit allowed: dollars, a number, or seconds."""
    backend: str = ""
    """The closed backend that the run will not wait for."""
    wait: float = ZERO
    """How many seconds it is closed for."""
    signal: int = 0
    at_once: bool = False
    """Steps were asked to be ended, not waited for."""
    by: Literal["", "step", "unknown"] = ""
    """Of a stop on request: who asked, if not a person; unknown when nothing tells."""


class RunEnded(Fact, frozen=True, kw_only=True):
    """No agent is left to move."""

    status: Literal["completed", "failed"]


class LeftoversEnded(Fact, frozen=True, kw_only=True):
    """The driver left the run, and ended what finished steps had left running."""

    count: int = 0
    """How many processes."""


class ProgramAdded(Fact, frozen=True, kw_only=True):
    """A program that nobody had named before is about to answer its first prompt."""

    program: Program


class RequestTaken(Fact, frozen=True, kw_only=True):
    """A request from outside was carried out, or refused for `problem`."""

    request: str
    kind: str
    problem: str = ""
    sender: Sender | None = None
    """Who asked."""


class LimitsChanged(Fact, frozen=True, kw_only=True):
    """A person changed limits; None leaves a limit as it is."""

    budget: float | None = None
    max_iterations: int | None = None
    max_time: float | None = None
    max_turns: int | None = None
    allowed_tools: list[str] = []
    """Further tools that agents may use from now on."""
    roots: list[str] = []
    """Further directories that agents may change to."""
    on_ask: str = ""
    """What becomes of questions from now on: `wait`, or `fail` (see RunStarted)."""


class AgentStarted(Fact, frozen=True, kw_only=True):
    """An agent was created at `state`."""

    agent: str
    state: str
    parent: str = ""
    cwd: str = ""
    input: str = ""
    variables: dict[str, str] = {}
    wake_at: float = ZERO
    label: str = ""
    """What people tell it apart by."""


class AgentMoved(Fact, frozen=True, kw_only=True):
    """The agent continues at `state`."""

    agent: str
    tag: str
    """goto, reset, fork, on_error, on_fail, or moved when a person did it."""
    state: str
    input: str = ""
    fresh: bool = False
    cwd: str = ""
    wake_at: float = ZERO
    error: str = ""
    instead_of: str = ""
    """The state whose `max_visits` were used up."""
    gate: str = ""
    """Of `on_fail`: the end of what the red check printed."""


class AgentCalled(Fact, frozen=True, kw_only=True):
    """The agent entered a subtask; it returns to `then`."""

    agent: str
    tag: str
    state: str
    then: str
    input: str = ""
    model: str = ""
    effort: str = ""


class AgentReturned(Fact, frozen=True, kw_only=True):
    """The subtask ended with `result`; the caller continues at `state`."""

    agent: str
    state: str
    result: str
    instead_of: str = ""


class AgentWoke(Fact, frozen=True, kw_only=True):
    """The agent's sleep is over."""

    agent: str


class WaitStarted(Fact, frozen=True, kw_only=True):
    """The agent sleeps until the agents it forked have ended."""

    agent: str
    state: str
    input: str | None = None
    deadline: float = ZERO
    timeout_state: str = ""
    failed_state: str = ""
    """Where it continues when one of them has failed."""
    failures: str = ""
    """`ok`: those that fail do not fail the run."""


class WaitEnded(Fact, frozen=True, kw_only=True):
    """The agent continues at `state` with the results of the agents that have ended."""

    agent: str
    state: str
    timed_out: bool = False
    instead_of: str = ""


class AskStarted(Fact, frozen=True, kw_only=True):
    """The agent sleeps until a person answers."""

    agent: str
    question: str
    state: str
    deadline: float = ZERO
    timeout_state: str = ""
    approve: str = ""
    """`person`: only an answer that a person gave at a terminal counts."""
    number: int
    """Of all questions of the run."""
    choices: list[str] = []
    files: list[AskedFile] = []


class AskEnded(Fact, frozen=True, kw_only=True):
    """A person answered, or nobody did in time."""

    agent: str
    state: str
    answer: str = ""
    timed_out: bool = False
    instead_of: str = ""


class AgentEnded(Fact, frozen=True, kw_only=True):
    """The agent returned with an empty stack."""

    agent: str
    result: str


class AgentFailed(Fact, frozen=True, kw_only=True):
    """The agent's attempts are used up."""

    agent: str
    kind: Kind | Literal["visits", "given up", "asked", "approval", "gate", "evaluator"]
    error: str


class AgentPaused(Fact, frozen=True, kw_only=True):
    """The agent needs a person before it can continue."""

    agent: str
    reason: str = ""
    """What the program said."""
    kind: Literal["person", "step", "unknown", "denied", "auth", "billing", "overload", "review"]
    tools: list[str] = []
    """What would allow the tools it was denied."""
    backend: str = ""


class AgentRetried(Fact, frozen=True, kw_only=True):
    """A failed or paused agent retries its visit with new attempts."""

    agent: str
    fresh: bool = False
    """Without its conversation."""


class AgentHeld(Fact, frozen=True, kw_only=True):
    """The agent's next turn waits for its model, which is closed although the backend is open."""

    agent: str
    pool: str


class TreeMade(Fact, frozen=True, kw_only=True):
    """The tree of the run's workspace was made."""

    head: str
    """The commit that the project stood at."""
    commit: str
    """The same with what was not committed; the same one if there was nothing."""


class WorkSaved(Fact, frozen=True, kw_only=True):
    """What agents did in the workspace is under a reference of the repository."""

    commit: str


class BackendClosed(Fact, frozen=True, kw_only=True):
    """No turn of `backend` starts before `until`; 0 means before a person resumes the run.

    `BACKEND/MODEL` stands for the turns of one model alone.
    """

    backend: str
    kind: Kind
    error: str
    until: float = ZERO
    tries: int = 0
    since: float = ZERO
    most: int = 0
    """Of a fault of the machine, which can also close `scripts`: how many steps run at once meanwhile."""


class BackendOpened(Fact, frozen=True, kw_only=True):
    """Turns of `backend` may start again; only one while `probing`."""

    backend: str
    probing: bool = False


Event: TypeAlias = (
    StepStarted
    | StepFinished
    | AgentMoved
    | AgentStarted
    | AgentEnded
    | AgentCalled
    | AgentReturned
    | AgentWoke
    | StepRefused
    | StepFailed
    | StepInterrupted
    | SealEnded
    | EvaluatorEnded
    | TransitionHeld
    | GateEnded
    | ReviewEnded
    | WaitStarted
    | WaitEnded
    | AskStarted
    | AskEnded
    | AgentFailed
    | AgentPaused
    | AgentRetried
    | AgentHeld
    | SessionNamed
    | RunStarted
    | RunResumed
    | RunStopped
    | RunEnded
    | LeftoversEnded
    | ProgramAdded
    | RequestTaken
    | JournalCut
    | ClockSet
    | LimitsChanged
    | RunMoved
    | WorkflowChanged
    | BackendClosed
    | BackendOpened
    | TreeMade
    | WorkSaved
)


class Decision(Struct, frozen=True, kw_only=True):
    """Events decided together: one line of the journal."""

    seq: int
    time: float
    events: list[Event]


_Entry: TypeAlias = AgentStarted | AgentMoved | AgentCalled | AgentReturned | WaitEnded | AskEnded
_ENTRIES = frozenset((AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded))
_ENDS = frozenset((StepFinished, StepRefused, StepFailed, StepInterrupted, GateEnded, SealEnded, EvaluatorEnded))


def is_end(event: Event) -> TypeGuard[StepEnded]:
    """Whether `event` ends a step; `isinstance` of its base class takes five times as long."""
    return type(event) in _ENDS


def is_entry(event: Event) -> TypeGuard[_Entry]:
    """Whether its agent enters a state with `event`; as fast."""
    return type(event) in _ENTRIES


encode = msgspec.json.Encoder().encode
