"""The contract of a backend: the program that answers prompts.

A backend says what to start for a turn and gives a reader that is fed the lines the program prints. It starts nothing
itself, so it can be tested by feeding it a recording.
"""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from raymond.core import Spending


class Turn(Struct, frozen=True, kw_only=True):
    """One invocation of a backend."""

    agent: str
    state: str
    visit: int
    """How often the agent came into the state in its life."""
    tries: int
    """How many turns of this visit were refused or failed."""
    prompt: str
    session: str
    """The conversation this turn writes."""
    base: str = ""
    """The conversation it branches from; empty for a fresh one."""
    cwd: str
    spool: str
    """A folder for this turn alone."""
    model: str = ""
    effort: str = ""
    cap: float = 0.0
    """Dollars after which the program should end the turn itself, where it can; 0 for none."""
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    skip_permissions: bool = False


class Command(Struct, frozen=True):
    """What to start; the prompt is its standard input."""

    argv: list[str]
    environment: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Names that are not handed on to it."""
    files: dict[str, bytes] = {}
    """What it finds in the turn's spool, besides its prompt."""


class Observation(Struct, frozen=True):
    """Something seen while a turn runs; `kind` is text, tool, session or life."""

    kind: str
    text: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """The backend's final message."""

    text: str
    session: str
    spent: Spending = Spending()


class Trouble(Struct, frozen=True, kw_only=True):
    """A turn that ended without a reply; `kind` is a class of limits.py."""

    kind: str
    error: str
    retry_at: float = 0.0
    """When the program says it may be tried again; 0 when it does not say."""
    retry_after: float = 0.0
    """The same as seconds from now."""
    spent: Spending = Spending()


class Reader(Protocol):
    """Understands what the program prints."""

    ending: Reply | Trouble | None
    """Set as soon as the program has said how the turn ended."""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line without its newline."""

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """The program is gone: how the turn ended, whatever it said."""

    def spent(self) -> Spending:
        """What the turn has cost as far as it can be told."""


class Backend(Protocol):
    """A program that answers prompts."""

    name: str
    paid: bool
    """A decision that starts or follows its turns is synced before anything follows."""

    def command(self, turn: Turn) -> Command:
        """What to start for `turn`."""

    def reader(self, turn: Turn) -> Reader:
        """A reader of what it prints."""

    def recall(self, turn: Turn) -> Reply | None:
        """The reply of a turn whose output is lost, from the program's own session."""


class Delayed(Struct, frozen=True, kw_only=True):
    """An answer given in this process after `delay` seconds."""

    delay: float = 0.0
    observations: list[Observation] = []
    writes: dict[str, str] = {}
    ending: Reply | Trouble | None = None
    """None: silence for ever."""


@runtime_checkable
class Direct(Protocol):
    """A backend that answers in this process, for speed."""

    name: str
    paid: bool

    def answer(self, turn: Turn) -> Delayed:
        """What to say to `turn`, and when."""

    def finish(self, turn: Turn, answer: Delayed) -> None:
        """The time has come: leave in the session what was said."""

    def recall(self, turn: Turn) -> Reply | None:
        """The reply of a turn whose end was not journaled."""
