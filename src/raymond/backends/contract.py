"""The contract of a backend: the program that answers prompts.

A backend says what to start for a turn and gives a reader that is fed the lines the program prints. It starts nothing
itself, so it can be tested by feeding it a recording. docs/backends.md has one in sixty lines.
"""

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from raymond.machine.failures import Kind
from raymond.machine.inputs import Spending
from raymond.machine.prices import Prices, Tokens
from raymond.store.trust import Trust


class Abilities(Struct, frozen=True, kw_only=True):
    """What a program can do beyond answering."""

    branches: bool = False
    """It continues a conversation under a new id and leaves the original as it was."""
    continues: bool = False
    """It can continue a conversation at all."""
    takes_session_ids: bool = False
    """It uses the id we give a conversation; otherwise it reports its own."""
    caps_cost: bool = False
    """It ends a turn by itself at its cost cap."""
    recalls: bool = False
    """It can be asked later what it replied."""
    permission_modes: bool = False
    """It honours permission modes."""
    tool_rules: bool = False
    """It honours lists of allowed and disallowed tools."""
    unpriced: bool = False
    """Nobody knows what its turns cost."""


class Places(Struct, frozen=True, kw_only=True):
    """Raymond's own files and folders, absolute: what agents may do with each, where their program can prevent more."""

    hidden: list[str] = []
    """Folders that may be neither read nor changed."""
    readable: list[str] = []
    """Folders outside the work tree that may be read without asking, and not changed."""
    fixed: list[str] = []
    """Files and folders that may not be changed."""

    def around(self, path: str) -> "Places":
        """Those that do not hold `path`: a private copy lies in RAYMOND_HOME, and its agent has to write there."""

        def kept(places: list[str]) -> list[str]:
            return [one for one in places if not f"{path}/".startswith(f"{one.rstrip('/')}/")]

        return Places(hidden=kept(self.hidden), readable=self.readable, fixed=kept(self.fixed))


class Setup(Struct, frozen=True, kw_only=True):
    """What a backend is made from; an entry point of the group `raymond.backends` takes it and returns a Backend."""

    name: str
    options: dict[str, Any] = {}
    """Its table in config.toml, `[backends.NAME]`."""
    places: Places = Places()
    folder: str = ""
    """The run's own folder for the program's settings and conversations, for turns that work isolated."""
    trust: Trust = Trust()
    """Where the program may use settings that come with a project: nowhere, unless a person said so."""


NO_ACCOUNT = "without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`"
"""What would do as well as a program that is missing."""


class Found(Struct, frozen=True, kw_only=True):
    """What is known of a backend on this machine without asking it anything that costs money."""

    program: str
    """Its path; empty when it is not installed."""
    problem: str = ""
    """Why it cannot be used; empty when it can."""
    version: str = ""
    payer: str = ""
    """Who pays for its turns; empty when nobody seems to be logged in."""
    key: str = ""
    """A fingerprint of the key that pays, which tells keys apart and does not give them away; empty without one."""
    host: str = ""
    """Where its turns are sent, if somebody has set that."""
    account: str = ""
    """A fingerprint of the account, and of everything else that chooses who pays; empty when it is not known."""
    keeps_days: int = 0
    """Days after which it deletes conversations: a run that rests longer loses its memory. 0 when it does not."""
    acts: tuple[str, ...] = ()
    """What the user has set up to act in every turn, such as hooks: each in a few words."""
    hint: str = ""
    """What to do when it is missing, or when nobody is logged in."""
    instead: str = ""
    """What would do as well, for a run that has not started."""

    @property
    def advice(self) -> str:
        """What to do before a run starts."""
        return "; ".join(one for one in (self.hint, self.instead) if one)


class Turn(Struct, frozen=True, kw_only=True):
    """One invocation of a backend."""

    agent: str
    state: str
    visit: int
    """How often the agent has entered the state."""
    tries: int
    """How many turns of this visit were rejected or failed."""
    prompt: str
    session: str
    """The conversation this turn writes."""
    base: str = ""
    """The conversation it branches from; empty for a fresh one."""
    cwd: str
    spool: str
    """A folder for this turn alone."""
    task_folder: str = ""
    """The agent's own folder, absolute, perhaps outside `cwd`: it may read and write there wherever it may edit at all.
    Empty when the workflow does not use it."""
    model: str = ""
    effort: str = ""
    cap: float = 0.0
    """Dollars after which the program should end the turn itself, where it can; 0 for none."""
    meter: tuple[int, ...] = ()
    """The program's own counter when `base` ended, as the Spending of that turn reported it."""
    prices: Prices = Prices()
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    skip_permissions: bool = False
    isolated: bool = False
    """It works in a workspace, from which Raymond's own places cannot be reached: no rule has to protect them."""
    no_tools: bool = False
    """The turn is to answer without any tool, where the program can be told so."""

    def priced(self, tokens: Tokens, *, model: str = "", meter: tuple[int, ...] = ()) -> Spending:
        """What `tokens` cost by the table, an estimate; a turn of a model without a price counts as an unknown one."""
        cost = self.prices.cost(model or self.model, tokens)
        return Spending(
            cost=self.prices.unknown_turn if cost is None else cost,
            estimated=True,
            unknown=cost is None,
            tokens_in=tokens.input,
            tokens_out=tokens.output,
            meter=meter,
            model=model if model != self.model else "",
        )

    def unpriced(self) -> Spending:
        """What is counted for a paid turn of unknown cost."""
        return Spending(cost=self.prices.unknown_turn, estimated=True, unknown=True)

    def is_asked_in(self, texts: Collection[str]) -> bool:
        """Whether its prompt is among the texts that a recorded conversation was sent; also when it has none."""
        prompt = self.prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
        return not texts or any(text.strip() == prompt for text in texts)


class Command(Struct, frozen=True):
    """What to start; the prompt is its standard input."""

    argv: list[str]
    environment: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Variables that are not passed on to it."""
    files: dict[str, bytes] = {}
    """Files it finds in the turn's spool, next to its prompt."""
    needs: tuple[str, ...] = ()
    """Beginnings of the names of variables that it needs although they look like secrets."""
    folders: dict[str, str] = {}
    """What it may write in a workspace besides the project: where it finds each folder or file, and where that is."""
    only_reads: bool = False
    """In a workspace, it may not change the project."""
    program: str = ""
    """What the command starts in its turn, if it is a shell: when that is missing, nothing is started or paid."""


class Observation(Struct, frozen=True):
    """Something seen while a turn runs.

    `kind` is text, tool, denied, session, note (for people), words, context or life. `words` are a piece of a
    text that comes whole later; `context` is how much of its context window is used, as tokens, or as tokens/window
    where the program tells how large it is.
    """

    kind: str
    text: str = ""
    allow: tuple[str, ...] = ()
    """If denied: the patterns for --allow-tool that would allow it."""


class Reply(Struct, frozen=True, kw_only=True):
    """The backend's final message."""

    text: str
    session: str
    spent: Spending = Spending()


class Trouble(Struct, frozen=True, kw_only=True):
    """A turn that ended without a reply; `kind` is a failure class."""

    kind: Kind
    error: str
    retry_at: float = 0.0
    """When the program says it may be tried again; 0 when it does not say."""
    retry_after: float = 0.0
    """The same as seconds from now."""
    only_model: bool = False
    """A usage limit that holds for the model of this turn and for no other."""
    session: str = ""
    """Of a turn that reached its cap: the conversation to continue from."""
    spent: Spending = Spending()


class Reader(Protocol):
    """Understands what the program prints."""

    @property
    def ending(self) -> Reply | Trouble | None:
        """Set as soon as the program has said how the turn ended."""

    @property
    def tool(self) -> str:
        """The tool that runs now, in one line; empty when none does."""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line without its newline; a line that shows no sign of life returns nothing."""

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """The program is gone: how the turn ended, whatever it said."""

    def spent(self) -> Spending:
        """What the turn has cost so far, as far as is known."""


class Backend(Protocol):
    """A program that answers prompts."""

    name: str
    paid: bool
    """A decision that starts or follows its turns is synced before anything follows."""
    can: Abilities

    def look(self) -> Found:
        """What is known of the program here, for `doctor` and before a run begins."""

    def command(self, turn: Turn) -> Command:
        """What to start for `turn`."""

    def reader(self, turn: Turn) -> Reader:
        """A reader of what it prints."""

    def recall(self, turn: Turn) -> Reply | None:
        """The reply of a turn whose output is lost, from the program's own session."""


class Login(Struct, frozen=True, kw_only=True):
    """What a workspace gets of the login of a program."""

    problem: str = ""
    """Why the program cannot work there; empty when it can."""
    hint: str = ""
    note: str = ""
    """What people should know before the first turn; empty when no login enters the workspace."""


@runtime_checkable
class Housed(Protocol):
    """A backend whose program has a folder of its own in each run that works isolated: `Setup.folder`."""

    def login(self) -> Login:
        """What a workspace would get of the login."""

    def export(self, turn: Turn, session: str) -> None:
        """Copy the conversation of a turn from the run's folder to the person's own, and nothing else."""


@runtime_checkable
class Carrier(Protocol):
    """A backend whose conversations belong to a directory."""

    def carry(self, session: str, cwd: str) -> bool:
        """Make a conversation available in `cwd`; whether it is."""


class Delayed(Struct, frozen=True, kw_only=True):
    """An answer given in this process after `delay` seconds."""

    delay: float = 0.0
    observations: list[Observation] = []
    writes: dict[str, str] = {}
    ending: Reply | Trouble | None = None
    """None: silence forever."""


@runtime_checkable
class Direct(Protocol):
    """A backend that answers in this process, for speed."""

    name: str
    paid: bool
    can: Abilities

    def answer(self, turn: Turn) -> Delayed:
        """What to say to `turn`, and when."""

    def finish(self, turn: Turn, answer: Delayed) -> None:
        """The time has come: leave in the session what was said."""

    def recall(self, turn: Turn) -> Reply | None:
        """The reply of a turn whose end was not journaled."""
