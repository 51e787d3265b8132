"""The guard around backends that others wrote: whatever they raise becomes a failure."""

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from raymond.backends import Backend, Command, Found, Observation, Reader, Reply, Trouble, Turn
from raymond.machine.failures import KINDS
from raymond.machine.inputs import Spending

T = TypeVar("T")


class Guarded:
    """A backend for one turn. It may be anybody's: its faults end that turn, not the run."""

    def __init__(self, backend: Backend, turn: Turn) -> None:
        self._backend = backend
        self._turn = turn
        self._fault = ""
        self._reader: Reader | None = self._ask(lambda: backend.reader(turn), None)

    def command(self) -> Command | Trouble:
        """What to start; a backend that cannot say is not set up."""
        return self._ask(lambda: self._backend.command(self._turn), None) or Trouble(kind="setup", error=self._fault)

    def recall(self) -> Reply | None:
        """The reply of a turn whose output is lost, when the backend has it."""
        return self._ask(lambda: self._backend.recall(self._turn), None)

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except Exception as error:
            self._fault = self._fault or f"its backend is broken: {type(error).__name__}: {error}"
            return otherwise

    @property
    def ending(self) -> Reply | Trouble | None:
        """As the reader says."""
        reader = self._reader
        ending = self._ask(lambda: reader.ending, None) if reader else None
        return _known(ending) if ending else None

    @property
    def tool(self) -> str:
        """As the reader says."""
        reader = self._reader
        return self._ask(lambda: reader.tool, "") if reader else ""

    def feed(self, line: bytes) -> list[Observation]:
        """As the reader does; a line that it cannot take shows nothing."""
        reader = self._reader
        return self._ask(lambda: reader.feed(line), []) if reader else []

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """As the reader does; what it said of a turn that it could not read whole is not believed."""
        reader = self._reader
        ending = self._ask(lambda: reader.close(exit_code, errors), None) if reader else None
        if ending is None or (self._fault and isinstance(ending, Trouble)):
            return Trouble(kind="crash", error=self._fault, spent=self.spent())
        return _known(ending)

    def spent(self) -> Spending:
        """As the reader says; what cannot be told is estimated."""
        reader = self._reader
        return self._ask(reader.spent, self._turn.unpriced()) if reader else self._turn.unpriced()


def _known(ending: Reply | Trouble) -> Reply | Trouble:
    """A failure class that does not exist would make a journal that nobody can read."""
    if isinstance(ending, Reply) or ending.kind in KINDS:
        return ending
    error = f"its backend reports a failure class that does not exist, `{ending.kind}`: {ending.error}"
    return replace(ending, kind="crash", error=error)


def look(backend: Backend) -> Found:
    """What the backend can tell of its program; a fault of its own is a problem too."""
    try:
        return backend.look()
    except Exception as error:
        return Found(program="", problem=f"its backend is broken: {type(error).__name__}: {error}")
