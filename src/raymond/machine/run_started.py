"""RunStarted: the first event of a run, and what every event has in common."""

from typing import Any

from msgspec import Struct

from raymond.machine.prices import UNKNOWN_TURN, Price

ZERO = 0.0
"""A single object, so that msgspec recognises a field that holds it as the default and leaves it out."""
MAX_WAIT, PATIENCE = 86400.0, 21600.0
"""Seconds to wait for a usage limit, and for an overloaded backend."""
TURNS_AT_ONCE = 4


class Fact(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True, gc=False):
    """Base of every event."""


class Program(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What answers the prompts of a run while one driver drives it."""

    name: str
    """Of the backend."""
    version: str = ""
    payer: str = ""
    """Who pays, with a fingerprint of the key if there is one; of scripted replies, where they are."""
    path: str = ""
    """Of the program, with links followed; empty if the backend has none."""
    host: str = ""
    """Where turns are sent, if somebody has set that."""
    account: str = ""
    """A fingerprint of the account and of what else chooses who pays."""


class Recording(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Where else what happens is written while one driver drives a run, as whoever started it asked."""

    log_file: str = ""
    log_format: str = "text"
    debug: bool = False


UNRECORDED = Recording()
"""A single object, like ZERO."""


class RunStarted(Fact, frozen=True, kw_only=True):
    """A run was created; everything needed to resume it is here or in its source."""

    workflow_id: str
    key: str
    """Random; ids of sessions and marks of processes are derived from it."""
    name: str
    scope_dir: str
    source: str
    """SHA-256 of the snapshot of the workflow."""
    entry: str
    cwd: str
    input: str = ""
    metadata: dict[str, str] = {}
    backend: str = "scripted"
    backends: dict[str, str] = {}
    """The states whose policy names another backend."""
    model: str = ""
    effort: str = ""
    small_model: str = ""
    """What judges where the backend has no small model that we know."""
    budget: float = ZERO
    """Dollars; 0 means none."""
    max_iterations: int = 0
    max_time: float = ZERO
    """Seconds the run may be driven; 0 means no limit."""
    timeout: float = ZERO
    """Seconds of silence allowed in states that do not set it; 0 means the default."""
    max_agents: int = 10_000
    max_turns_at_once: int = TURNS_AT_ONCE
    max_scripts_at_once: int = 4
    max_wait: float = MAX_WAIT
    patience: float = PATIENCE
    roots: list[str] = []
    overrides: dict[str, dict[str, Any]] = {}
    """`--set STATE.KEY=VALUE`."""
    replies: str = ""
    """The text of `--replies FILE`."""
    permission_mode: str = ""
    allowed_tools: list[str] = []
    skip_permissions: bool = False
    notify: list[str] = []
    """Commands and URLs to notify when the run asks or ends."""
    budget_from: str
    """Where the budget was set."""
    max_turns: int = 0
    """Turns of backends; 0 means at most 200 turns of unknown cost."""
    tool_timeout: float = ZERO
    """Seconds a tool may be silent in states that do not set it; 0 means the default."""
    retryable: list[str] = []
    """Patterns of errors that count as an overload."""
    prices: dict[str, Price] = {}
    """Prices of models, as a person configured them."""
    unknown_turn_cost: float = UNKNOWN_TURN
    in_place: list[str] = []
    """The backends that cannot branch: they continue in the same conversation."""
    version: str
    commit: str = ""
    """Where the repository of its directory was: the run belongs to a repository that has it."""
    inside: list[str] = []
    """The runs in whose steps it was started, by their keys, the innermost first."""
    allow_start: bool = False
    """Its steps may start runs that outlive it."""
    decide_by: str = ""
    """Who may approve in the name of a person: a `program` of theirs, or only they themselves, at a terminal."""
    red_first: bool = False
    """Checks also run before the work."""
    allow_test_edits: bool = False
    """Changes of what decides a check are accepted in advance."""
    on_ask: str = ""
    """`fail`: an agent that asks a person fails, instead of waiting for an answer."""
    apart: bool = False
    """It outlives the run in whose step it was started."""
    programs: list[Program] = []
    """What answers its prompts; empty in a run of scripts."""
    recording: Recording = UNRECORDED
    workspace: str = "here"
    """Where agents work, unless their state says it more narrowly: `here`, `copy` or `isolated`."""
    carry: list[str] = []
    """What is shown to agents in a workspace besides what git tracks."""
    lend: list[str] = []
    """What of the person's agents in a workspace may use."""
    net: str = ""
    """Whether agents in a workspace have a network, `on` or `off`; empty: yes, and checks only if they need it."""
    setup: str = ""
    """The command that installs what work in a workspace depends on before it is checked; empty when none is known."""
    may_change: list[str] = []
    """Patterns of the only files that agents in a workspace may change, unless their state says it; empty for all."""
    loop: str = ""
    """The loop that it is, if it is one: `continuous-session` or `ralph`."""
