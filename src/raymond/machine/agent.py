"""Agent, Visit, Conversation, Outcome: a thread of control, its stay in one state, its memory, and how it ended."""

from collections.abc import Callable, Container, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from raymond.digests import digest
from raymond.language import tags
from raymond.language.tags import Transition
from raymond.text import JOINERS, letters

LONG_TEXT = 16 << 10
"""Characters; a longer text is kept in a file of its own."""
_SHOWN_CHARACTERS = 1000
"""Characters of a long result that everybody can see without that file."""

READY, RUNNING, SLEEPING, WAITING, ASKING, PAUSED, FAILED = (
    "ready",
    "running",
    "sleeping",
    "waiting",
    "asking",
    "paused",
    "failed",
)
DECIDING = "deciding"
"""Between the end of a step and what follows from it; never visible outside a decision."""
SCRIPTS = "scripts"
"""The pool of script steps; every other pool is named after its backend."""
SCRIPTED = ("scripted", "scripted-program")
"""The backends that answer from a file: their dollars are invented."""
ReminderKind: TypeAlias = Literal["rejected", "capped", "blocked", "gate", "review"]
"""Why a turn is repeated: its reply was rejected, it reached its share of the budget, it was denied tools, the gate was
red, or it was green only because what decides it had changed."""

LABEL_VARIABLE = "label"
"""The variable that gives it."""
LONGEST_LABEL = 40
_CUT = "..."


# A file that is shown with a question


class AskedFile(Struct, frozen=True):
    """What the file was when the agent asked: whoever answers sees that, or is told that it is another one."""

    path: str
    """Relative to the directory of the agent."""
    size: int
    sha256: str
    folder: str = ""
    """That directory on this machine, if the agent finds it at another path."""


# Outcome: how an agent ended, and what of its result is held in memory


class Outcome(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """How an agent ended."""

    agent: str
    state: str
    status: str
    result: str = ""
    """All of it, or the beginning of a long one."""
    error: str = ""
    long: str = ""
    """The name of a long result, which is kept outside of the journal."""
    length: int = 0
    """How many characters a long result has."""
    label: str = ""
    """What people tell the agent apart by."""


Whole: TypeAlias = Callable[[Outcome], str]
"""Gives all of a result, also of one that is only referred to."""


def done_outcome(agent: str, state: str, result: str, label: str = "") -> Outcome:
    """The agent has returned; a long result is only referred to."""
    # That of the whole run is there once, and shown as soon as it has ended.
    if len(result) <= LONG_TEXT or agent == "main":
        return Outcome(agent, state, "done", result, label=label)
    return Outcome(
        agent,
        state,
        "done",
        result[:_SHOWN_CHARACTERS],
        "",
        long_text_name(long_text_bytes(result)),
        len(result),
        label,
    )


def long_text_bytes(text: str) -> bytes:
    """A long text as it is kept in a file."""
    return text.encode("utf-8", "surrogatepass")


def long_text_name(data: bytes) -> str:
    """The name of the file that keeps a long text."""
    return digest(data)


# The agent


class Conversation(Struct, frozen=True, array_like=True, gc=False):
    """What the next turn branches from."""

    backend: str
    session: str
    meter: tuple[int, ...] = ()
    """What the program's own counter showed when the conversation was last written."""


class Rest(Struct, frozen=True, array_like=True, gc=False):
    """What an agent that waits or asks continues with."""

    state: str
    question: str = ""
    input: str | None = None
    timeout_state: str = ""
    number: int = 0
    """Of the question: the how manyth of the run it is."""
    approve: str = ""
    """Who may answer it: anybody, or a `person` at a terminal."""
    failed_state: str = ""
    """Where a wait leads when one of those it collects has failed."""
    failures: str = ""
    """Of a wait: `ok` when failures are expected."""
    asked_at: float = 0.0
    choices: tuple[str, ...] = ()
    """The answers that are taken; any when there are none."""
    files: tuple[AskedFile, ...] = ()


class Stuck(Struct, frozen=True, array_like=True, gc=False):
    """Why an agent failed or is paused."""

    kind: str
    error: str = ""
    """What the program or the script said."""
    tools: tuple[str, ...] = ()
    """The tools it was denied."""
    backend: str = ""


class Pending(Struct, frozen=True, array_like=True, gc=False):
    """A transition that counts once the gate has passed, and the evaluator has agreed."""

    asked: tuple[Transition, ...]
    places: dict[str, str] = {}
    """Every `cd` in it -> its absolute directory."""
    gate: bool = True
    """The gate is due, or runs; otherwise the evaluator."""
    passed: bool = False
    """The gate has passed."""
    evaluated: bool = False
    """The evaluator decides about it, after the gate."""
    judge: str = ""
    """The prompt that the evaluator asks; empty for a pattern."""
    output: str = ""
    """The end of the final message."""
    files: tuple[AskedFile, ...] = ()
    begun: bool = False
    """The evaluator was started."""
    again: bool = False
    """The judge was not clear, and is asked once more."""
    tries: int = 0
    """How often the evaluator was not clear, or failed."""
    failures: int = 0
    """How often it failed by itself."""


class Sealed(Struct, frozen=True, array_like=True, gc=False):
    """What decides the gate of a visit, as it was taken down."""

    step: int
    """The step that did it."""
    cwd: str
    digest: str = ""


class Review(Struct, frozen=True, array_like=True, gc=False):
    """A green check that counts when a person says so."""

    step: int
    """The gate that found it."""
    verdict: str
    digest: str
    folder: str = ""
    changes: tuple[str, ...] = ()


class GateResult(Struct, frozen=True, omit_defaults=True, gc=False):
    """How a gate ended, as the next state is told."""

    verdict: str
    step: int
    command: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    reason: str = ""
    flaky: bool = False
    as_before: bool = False
    changes: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    digest: str = ""
    review: str = ""
    """The folder, among the seals of the run, with what a person looks at."""
    tree: str = ""
    commit: str = ""


class Visit(Struct, array_like=True, omit_defaults=True, gc=False):
    """An agent's stay in one state: everything here ends with the transition that leaves it."""

    state: str
    input: str = ""
    since: float = 0.0
    """When the agent entered the state."""
    cause: str = ""
    """The failure of the previous visit, when `on_error` led here."""
    results: list[Outcome] | None = None
    """What a wait collected for this visit."""
    results_are_input: bool = False
    attempt: int = 0
    turn: int = 0
    failures: int = 0
    tries: int = 0
    """Steps and turns that ended in a rejected reply or a failure."""
    reminders: int = 0
    reminder: str = ""
    reminded_for: ReminderKind = "rejected"
    freshened: bool = False
    interrupted: bool = False
    cost: float = 0.0
    held: str = ""
    """The closed model that the next turn waits for, as BACKEND/MODEL."""
    stuck: Stuck | None = None
    given_up: bool = False
    """Set when a person decided that it is not retried automatically."""
    wake_at: float = 0.0
    rest: Rest | None = None
    asleep: float = 0.0
    """Until when an agent that was paused in its sleep would have slept."""
    due: float = 0.0
    """What `wake_at` was when it was set; it differs after the clock was set back."""
    clock: float = 0.0
    """By how much the clock had been set then."""
    deaths: int = 0
    """How often in a row its step was cut off by the death of the driver."""
    output: str = ""
    """The last lines that its failed script printed."""
    detour: tuple[str, str] | None = None
    """The state it came from, and the one it was to go to, whose `max_visits` were used up."""
    pending: Pending | None = None
    """What it has asked for, while its gate or its evaluator is due or runs."""
    checks: int = 0
    """How often its gate was started."""
    gate_tries: int = 0
    """How often the agent was told that its gate is red."""
    gate: str = ""
    """The end of what the red check printed, when `on_fail` led here."""
    turns: tuple[int, ...] = ()
    """The steps in which an agent worked: what they left running is ended before the gate."""
    phase: str = ""
    """What its running step does: the work, or `seal` or `gate`."""
    seal: Sealed | None = None
    review: Review | None = None
    """What a person has to look at."""
    accepted: str = ""
    """The digest of the changes that a person has accepted."""
    before: str = ""
    """What its check found before the work: `green`, why it was red, or nothing when it did not run."""
    asked_why: bool = False
    """The agent was asked why it changed what decides its check."""
    checked: GateResult | None = None
    """How its gate ended last."""
    gate_result: GateResult | None = None
    """How the gate of the visit before ended, if it had one."""

    def is_overdue(self, now: float) -> bool:
        """Whether the time until which it rests is over."""
        return 0.0 < self.wake_at <= now


class Frame(Struct, array_like=True, gc=False):
    """Where a call returns to, and with what."""

    state: str
    conversation: Conversation | None = None
    cwd: str = ""
    visits: dict[str, int] = field(default_factory=dict)
    model: str = ""
    effort: str = ""


class Agent(Struct, array_like=True, omit_defaults=True, gc=False):
    """One thread of control."""

    id: str
    visit: Visit
    status: str = DECIDING
    pool: str = ""
    parent: str = ""
    cwd: str = ""
    conversation: Conversation | None = None
    stack: list[Frame] | None = None
    variables: dict[str, str] | None = None
    counts: dict[str, int] | None = None
    """See `visits`; None for one that has entered no state but its first: most of thousands of forks."""
    model: str = ""
    effort: str = ""
    entered: int = 0
    """How many visits it has made in total; also the number of the current visit."""
    prompted: dict[str, int] | None = None
    """How often it has entered each prompt in total."""

    step: int = 0
    turn_session: str = ""
    turn_base: str = ""
    turn_model: str = ""
    cap: float = 0.0
    """Dollars reserved for the running turn."""

    children: dict[str, None] | None = None
    """The agents it forked and has not collected, in the order of forking."""
    alive: int = 0
    forks: int = 0
    label: str = ""
    """What people tell it apart by: one short line that is safe to print; may be empty."""

    cost: float = 0.0
    """Dollars that its steps have cost."""
    scripted: float = 0.0
    """What of it scripted replies are said to have cost."""
    estimated: bool = False
    """Part of that is an estimate."""
    began: float = 0.0
    """When its last step began."""

    @property
    def state(self) -> str:
        """The state it is in."""
        return self.visit.state

    @property
    def visits(self) -> dict[str, int]:
        """How often it entered each state within its frame."""
        return {self.visit.state: 1} if self.counts is None else self.counts

    @property
    def session(self) -> str:
        """The conversation that its next turn branches from; empty for none."""
        return self.conversation.session if self.conversation else ""

    @property
    def error(self) -> str:
        """What went wrong, in the words of what failed; empty when nothing did."""
        return self.visit.stuck.error if self.visit.stuck else ""

    @property
    def question(self) -> str:
        """Its open question; empty when there is none."""
        return self.visit.rest.question if self.visit.rest else ""

    @property
    def asks(self) -> int:
        """The number of its open question; 0 when there is none."""
        return self.visit.rest.number if self.visit.rest else 0

    def remembers(self, backend: str) -> bool:
        """Whether its conversation belongs to `backend`."""
        return self.conversation is not None and self.conversation.backend == backend


class Closed(Struct, frozen=True, array_like=True, gc=False):
    """Why no turn of a backend starts, and until when."""

    kind: str
    error: str
    until: float
    tries: int
    since: float
    most: int = 0
    """How many of its steps may run at once all the same."""


def backend_of(pool: str) -> str:
    """The backend of a pool; a pool can also hold the turns of a single model."""
    return pool.partition("/")[0]


def file_name(agent: str) -> str:
    """The agent's name shortened for file systems that allow 255 bytes: forks of forks have long names."""
    data = agent.encode()
    if len(data) <= 150:
        return agent
    return f"{data[:100].decode(errors='ignore')}-{digest(data)[:16]}"


def rename(agent: Agent, names: dict[str, str]) -> None:
    """Rename states wherever the agent remembers one."""
    visit = agent.visit
    visit.state = names.get(visit.state, visit.state)
    if visit.rest:
        state, late, bad = visit.rest.state, visit.rest.timeout_state, visit.rest.failed_state
        visit.rest = replace(
            visit.rest,
            state=names.get(state, state),
            timeout_state=names.get(late, late),
            failed_state=names.get(bad, bad),
        )
    if visit.pending:
        asked = tuple(tags.renamed(one, lambda name: names.get(name, name)) for one in visit.pending.asked)
        judge = names.get(visit.pending.judge, visit.pending.judge)
        visit.pending = replace(visit.pending, asked=asked, judge=judge)
    if visit.detour:
        source, target = visit.detour
        visit.detour = names.get(source, source), names.get(target, target)
    agent.counts = _renamed(agent.counts, names)
    agent.prompted = _renamed(agent.prompted, names)
    for frame in agent.stack or ():
        frame.state = names.get(frame.state, frame.state)
        frame.visits = _renamed(frame.visits, names) or {}


def relocate(agent: Agent, old: str, new: str, lost: Container[str]) -> None:
    """Follow a move from directory `old` to `new`, without the conversations that were `lost` on the way."""
    agent.cwd = rebased(agent.cwd, old, new)
    if agent.visit.seal:
        agent.visit.seal = replace(agent.visit.seal, cwd=rebased(agent.visit.seal.cwd, old, new))
    if agent.session in lost:
        agent.conversation = None
    for frame in agent.stack or ():
        frame.cwd = rebased(frame.cwd, old, new)
        if frame.conversation and frame.conversation.session in lost:
            frame.conversation = None


def rebased(path: str, old: str, new: str) -> str:
    """`path`, if it is `old` or below it, in `new`."""
    if path == old:
        return new
    below = f"{old.rstrip('/')}/"
    return f"{new.rstrip('/')}/{path[len(below) :]}" if path.startswith(below) else path


def _renamed(counts: dict[str, int] | None, names: dict[str, str]) -> dict[str, int] | None:
    if not counts:
        return counts
    found: dict[str, int] = {}
    for state, count in counts.items():
        name = names.get(state, state)
        found[name] = found.get(name, 0) + count
    return found


# Its label


def label_of(variables: Mapping[str, str]) -> str:
    """The label of an agent with these variables: `label`, else the first one; empty when there is none.

    It is one short line that is safe to print. A long one keeps its beginning and its end: paths differ in either.
    """
    if not variables:
        return ""
    text = variables[LABEL_VARIABLE] if LABEL_VARIABLE in variables else next(iter(variables.values()))
    if len(text) <= LONGEST_LABEL and text.isascii() and text.isprintable():
        return " ".join(text.split())
    # An escape is left out as a whole.
    shown = letters(" ".join(text[: 100 * LONGEST_LABEL].split()))
    if sum(map(len, shown)) <= LONGEST_LABEL:
        return "".join(shown)
    end = (LONGEST_LABEL - len(_CUT)) // 2
    head = _first_within(shown, LONGEST_LABEL - len(_CUT) - end)
    tail = _first_within(shown[::-1], end)[::-1]
    return f"{''.join(head).rstrip(JOINERS)}{_CUT}{''.join(tail).lstrip(JOINERS)}"


def _first_within(shown: list[str], room: int) -> list[str]:
    """The first of them that have no more than `room` characters together."""
    for number, one in enumerate(shown):
        room -= len(one)
        if room < 0:
            return shown[:number]
    return shown


def named(agent: str, label: str) -> str:
    """How people read an agent: `name (label)`."""
    return f"{agent} ({label})" if label else agent
