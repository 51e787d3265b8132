"""Agent, Frame, Outcome: one thread of control, where it returns to, how it ended."""

import hashlib

from msgspec import Struct, field

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
"""Between the end of a step and what follows from it; never outlasts a decision."""
SCRIPTS = "scripts"
"""The pool of script steps; every other pool is named for its backend."""


class Frame(Struct):
    """Where a call returns to, and with what."""

    state: str
    session: str = ""
    backend: str = ""
    cwd: str = ""
    visits: dict[str, int] = field(default_factory=dict)
    model: str = ""
    effort: str = ""
    meter: tuple[int, ...] = ()


class Outcome(Struct, frozen=True):
    """How an agent ended."""

    agent: str
    state: str
    status: str
    result: str = ""
    error: str = ""


class Agent(Struct):
    """One thread of control."""

    id: str
    state: str
    status: str = DECIDING
    pool: str = ""
    parent: str = ""
    cwd: str = ""
    since: float = 0.0
    """When it came into its state."""

    session: str = ""
    """The conversation its next turn branches from."""
    backend: str = ""
    stack: list[Frame] | None = None
    variables: dict[str, str] | None = None
    visits: dict[str, int] | None = None
    """How often it came into each state within its frame."""
    model: str = ""
    effort: str = ""
    entered: int = 0
    """How many visits it made in its life; names the visit it is in."""
    prompted: dict[str, int] | None = None
    """How often it came into each prompt in its life."""

    input: str = ""
    results: list[Outcome] | None = None
    """What a wait collected for this visit."""
    results_are_input: bool = False
    cause: str = ""
    """The failure of the visit before, when `on_error` led here."""
    error: str = ""
    """Why it failed or is paused."""
    given_up: bool = False
    """A person said that it is not to be tried again by itself."""
    step: int = 0
    attempt: int = 0
    turn: int = 0
    failures: int = 0
    tries: int = 0
    """Steps and turns of this visit that ended in a refusal or a failure."""
    reminders: int = 0
    reminder: str = ""
    capped: bool = False
    """Its last turn reached its share of the budget."""
    blocked: bool = False
    """Its last turn was refused tools, and a person was to allow them."""
    freshened: bool = False
    interrupted: bool = False
    turn_session: str = ""
    turn_base: str = ""
    turn_model: str = ""
    cap: float = 0.0
    """Dollars reserved for the turn that runs."""
    visit_cost: float = 0.0
    meter: tuple[int, ...] = ()
    """What the program's own counter stood at when `session` ended."""
    held: str = ""
    """The closed model that its next turn waits for, as BACKEND/MODEL."""

    wake_at: float = 0.0
    question: str = ""
    next_state: str = ""
    next_input: str | None = None
    timeout_state: str = ""
    children: dict[str, None] | None = None
    """Those it forked and has not collected, in the order of forking."""
    alive: int = 0
    forks: int = 0


class Closed(Struct, frozen=True):
    """Why no turn of a backend starts, and until when."""

    kind: str
    error: str
    until: float
    tries: int
    since: float


def backend_of(pool: str) -> str:
    """The backend of a pool, which may be for the turns of one model alone."""
    return pool.partition("/")[0]


def file_name(agent: str) -> str:
    """The name of an agent where a file system takes no more than 255 bytes: forks of forks have long names."""
    return agent if len(agent) <= 150 else f"{agent[:100]}-{hashlib.sha256(agent.encode()).hexdigest()[:16]}"


def rename(agent: Agent, names: dict[str, str]) -> None:
    """States have other names now, wherever the agent remembers one."""
    agent.state = names.get(agent.state, agent.state)
    agent.next_state = names.get(agent.next_state, agent.next_state)
    agent.timeout_state = names.get(agent.timeout_state, agent.timeout_state)
    agent.visits = _renamed(agent.visits, names)
    agent.prompted = _renamed(agent.prompted, names)
    for frame in agent.stack or ():
        frame.state = names.get(frame.state, frame.state)
        frame.visits = _renamed(frame.visits, names) or {}


def _renamed(counts: dict[str, int] | None, names: dict[str, str]) -> dict[str, int] | None:
    if not counts:
        return counts
    found: dict[str, int] = {}
    for state, count in counts.items():
        name = names.get(state, state)
        found[name] = found.get(name, 0) + count
    return found
