"""The guard around backends that others wrote: whatever they raise or return becomes a failure of that turn.

What a backend reports is journaled. A value of the wrong type would make a journal that nobody can read again, so every
ending, cost and observation is checked here. So is the form of what becomes an argument of a program: the id of a
conversation comes from the output of the turn before, and a model perhaps from an agent.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from raymond import amounts, errors
from raymond.backends import (
    Backend,
    Command,
    Delayed,
    Direct,
    Found,
    Housed,
    Login,
    Observation,
    Reader,
    Reply,
    Trouble,
    Turn,
)
from raymond.errors import Error
from raymond.language.tags import NAME
from raymond.machine.failures import REPORTED
from raymond.machine.inputs import Spending
from raymond.patterns import regex

_MOST_TOKENS = 1 << 60
_SESSION = regex(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,199}")


class Guarded:
    """A backend for one turn. It may be anybody's: its faults end that turn, not the run."""

    def __init__(self, backend: Backend, turn: Turn) -> None:
        self._backend = backend
        self._turn = turn
        self._fault = ""
        self._overflow: Trouble | None = None
        self._ended: tuple[object, Reply | Trouble] | None = None
        """What the reader gave as its ending, and what is made of it: it is asked for often, and may be long."""
        try:
            self._reader: Reader | None = backend.reader(turn)
        except Exception as error:
            self._reader, self._fault = None, _broken(error)

    def command(self) -> Command | Trouble:
        """What to start; a backend that cannot say is not set up."""
        if unfit := _unfit(self._turn):
            return Trouble(kind="setup", error=f"{unfit} cannot be passed to a program")
        command = self._ask(lambda: self._backend.command(self._turn), raising=True)
        if isinstance(command, Command) and command.argv and _is_sound(command):
            return command
        fault = self._fault or "its backend is broken: it names no command to start"
        return Trouble(kind="setup", error=fault)

    def recall(self) -> Reply | None:
        """The reply of a turn whose output is lost, when the backend has it."""
        return _recalled(self._ask(lambda: self._backend.recall(self._turn)))

    def export(self, session: str) -> None:
        """Copy the conversation to the person's own folder; that this fails is no failure of the turn."""
        backend = self._backend
        if isinstance(backend, Housed) and _SESSION.fullmatch(session):
            self._ask(lambda: backend.export(self._turn, session))

    def _ask(self, question: Callable[[], object], *, raising: bool = False) -> object:
        """What the backend says; with `raising`, a fault of the machine is not taken for one of the backend."""
        try:
            return question()
        except Exception as error:
            if raising and errors.is_passing_fault(error):
                raise
            self._fault = self._fault or _broken(error)
            return None

    def overflow(self, what: str) -> None:
        """End the turn, unless it has ended: the program has written more than can be held."""
        self._overflow = Trouble(kind="crash", error=what, spent=self.spent())

    @property
    def ending(self) -> Reply | Trouble | None:
        """As the reader says."""
        reader = self._reader
        ending = self._ask(lambda: reader.ending) if reader else None
        if ending is None:
            return self._overflow
        if self._ended is None or self._ended[0] is not ending:
            self._ended = (ending, sound(ending))
        return self._ended[1]

    @property
    def tool(self) -> str:
        """As the reader says."""
        reader = self._reader
        tool = self._ask(lambda: reader.tool) if reader else ""
        return tool if isinstance(tool, str) else ""

    def feed(self, line: bytes) -> list[Observation]:
        """As the reader does; a line that it cannot take shows nothing."""
        reader = self._reader
        return _seen(self._ask(lambda: reader.feed(line))) if reader else []

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """As the reader does; a failure reported by a reader that broke is not trusted."""
        reader = self._reader
        ending = self._ask(lambda: reader.close(exit_code, errors)) if reader else None
        if ending is None or (self._fault and isinstance(ending, Trouble)):
            fault = self._fault or "its backend is broken: it says nothing of how the turn ended"
            return Trouble(kind="crash", error=fault, spent=self.spent())
        return sound(ending)

    def spent(self) -> Spending:
        """As the reader says; an unknown cost is estimated."""
        reader = self._reader
        spent = self._ask(reader.spent) if reader else None
        return spent if isinstance(spent, Spending) and _is_sound(spent) else self._turn.unpriced()


class _Effects(msgspec.Struct):
    """What an answer does besides ending the turn."""

    delay: float
    writes: dict[str, str]


class GuardedDirect:
    """The same for a backend that answers in this process; a full disk stops the run, as everywhere."""

    def __init__(self, backend: Direct, turn: Turn) -> None:
        self._backend = backend
        self._turn = turn

    def answer(self) -> Delayed:
        """What to say, and when; a fault is a crash."""
        try:
            answer: object = self._backend.answer(self._turn)
        except (OSError, Error):
            raise
        except Exception as error:
            return Delayed(ending=Trouble(kind="crash", error=_broken(error)))
        if not isinstance(answer, Delayed):
            return Delayed(ending=sound(answer))
        if not _is_sound(_Effects(answer.delay, answer.writes)):
            return Delayed(ending=Trouble(kind="crash", error="its backend is broken: its answer cannot be used"))
        ending = sound(answer.ending) if answer.ending is not None else None
        return replace(answer, ending=ending, observations=_seen(answer.observations))

    def finish(self, answer: Delayed) -> Trouble | None:
        """Leave in the session what was said; what went wrong."""
        try:
            self._backend.finish(self._turn, answer)
        except (OSError, Error):
            raise
        except Exception as error:
            return Trouble(kind="crash", error=_broken(error))
        return None

    def recall(self) -> Reply | None:
        """The reply of a turn whose end was not journaled."""
        try:
            return _recalled(self._backend.recall(self._turn))
        except (OSError, Error):
            raise
        except Exception:
            return None


def sound(ending: object) -> Reply | Trouble:
    """`ending` as a backend reports it, or a crash that says what is wrong with it."""
    if not isinstance(ending, Reply | Trouble):
        return Trouble(kind="crash", error=f"its backend is broken: it ends a turn with {type(ending).__name__}")
    if isinstance(ending, Trouble) and ending.kind not in REPORTED:
        error = f"its backend reports an unknown failure class, `{ending.kind}`: {ending.error}"
        spent = ending.spent if _is_sound(ending.spent) else Spending()
        return Trouble(kind="crash", error=error, spent=spent)
    if not _is_sound(ending):
        return Trouble(kind="crash", error="its backend is broken: it ends a turn with values that cannot be stored")
    if ending.session and not _SESSION.fullmatch(ending.session):
        error = f"it names a conversation that cannot be continued: {ending.session[:80]!a}"
        return Trouble(kind="crash", error=error, spent=ending.spent)
    return ending


def _is_sound(value: msgspec.Struct) -> bool:
    """Whether every field has its type, as the journal would find it: JSON has no NaN, infinity or half a character."""
    spent = value if isinstance(value, Spending) else getattr(value, "spent", None)
    if isinstance(spent, Spending) and not _is_counted(spent):
        return False
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return False


def _is_counted(spent: Spending) -> bool:
    """Whether the amounts can be added up: a negative cost would raise the budget."""
    try:
        return amounts.is_cost(spent.cost) and all(
            0 <= one <= _MOST_TOKENS for one in (spent.tokens_in, spent.tokens_out, *spent.meter)
        )
    except TypeError:
        return False


def _recalled(reply: object) -> Reply | None:
    return reply if isinstance(reply, Reply) and sound(reply) is reply else None


def _seen(seen: object) -> list[Observation]:
    found = seen if isinstance(seen, list) else []
    return [one for one in found if isinstance(one, Observation) and _is_sound(one) and _is_fit(one)]


def _is_fit(seen: Observation) -> bool:
    return seen.kind != "session" or bool(_SESSION.fullmatch(seen.text))


def _unfit(turn: Turn) -> str:
    """What a program could take for something else than it is."""
    for what, form, value in (
        ("the model", NAME, turn.model),
        ("the effort", NAME, turn.effort),
        ("the conversation", _SESSION, turn.session),
        ("the conversation", _SESSION, turn.base),
    ):
        if value and not form.fullmatch(value):
            return f"{what} {value[:80]!a}"
    return ""


def _broken(error: Exception) -> str:
    if isinstance(error, Error):
        return str(error)
    return f"its backend is broken: {type(error).__name__}: {error}"


def login(backend: object) -> Login:
    """What a workspace would get of the login of a backend's program; an exception is a problem too."""
    try:
        found: object = backend.login() if isinstance(backend, Housed) else Login()
    except Exception as error:
        return Login(problem=_broken(error))
    return found if isinstance(found, Login) and _is_sound(found) else Login(problem="its backend is broken")


def look(backend: Backend, *, raising: bool = False) -> Found:
    """What the backend knows of its program; an exception is a problem too.

    With `raising`, a fault of the machine is not taken for one of the program.
    """
    try:
        found: object = backend.look()
    except Exception as error:
        if not errors.is_passing_fault(error):
            return Found(program="", problem=_broken(error))
        if raising:
            raise
        return Found(program="", problem=f"this machine cannot start it: {(error.strerror or '').lower()}")
    if isinstance(found, Found) and _is_sound(found):
        return found
    return Found(program="", problem="its backend is broken: it cannot say whether its program is there")
