"""What steps were sent and said, read back from the transcripts of a run."""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from raymond.machine.events import StepEnded, StepInterrupted
from raymond.store import transcripts

Line = dict[str, object]
_OPEN = 32
"""How many agents' files stay open; beyond that the least recently used one is closed."""

_decode = msgspec.json.Decoder(Line).decode


class Records:
    """The records of the steps of one run. Reading those of an agent in their order goes through its files once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tapes: OrderedDict[str, _Tape] = OrderedDict()
        self._ends: dict[str, int] = {}
        """Where the last record of each agent begins that has ended."""

    def of(self, agent: str, offset: int) -> list[Line]:
        """The lines of the step or turn of `agent` whose record begins at `offset`; none when that is negative."""
        if offset < 0:
            return []
        if agent not in self._tapes:
            self._tapes[agent] = _Tape(self._folder, agent)
            if len(self._tapes) > _OPEN:
                self._tapes.popitem(last=False)
        self._tapes.move_to_end(agent)
        return self._tapes[agent].record(offset)

    def ended(self, event: StepEnded) -> list[Line]:
        """The lines of the turn that ended with `event`; of one that was cut off, those that its driver had written."""
        if event.offset >= 0 or not isinstance(event, StepInterrupted):
            self.skip(event)
            return self.of(event.agent, event.offset)
        return self.so_far(event.agent, event.step)

    def skip(self, event: StepEnded) -> None:
        """Note the end of a turn that is not read."""
        self._ends[event.agent] = max(event.offset, self._ends.get(event.agent, -1))

    def so_far(self, agent: str, step: int, turn: int = 0) -> list[Line]:
        """What is written of a turn of a step of which no event has said where its record begins; 0 is the last turn.

        It is after those that have `ended`. A turn that was adopted has several records: the last one has all of it.
        """
        end = self._ends.get(agent, -1)
        lines: list[Line] = []
        is_its = False
        for at, line in _lines(self._folder, agent, max(0, end)):
            if "state" in line:
                is_its = at != end and line.get("step") == step and turn in (0, line.get("turn", turn))
                lines = [] if is_its else lines
            if is_its:
                lines.append(line)
        return lines


def is_gone(event: StepEnded, lines: Sequence[Mapping[str, object]]) -> bool:
    """Whether the turn that ended with `event` was recorded, and its `lines` cannot be read any more."""
    return event.offset >= 0 and not lines


def read(folder: str, agent: str, offset: int) -> list[Line]:
    """One record."""
    return Records(folder).of(agent, offset)


def every(folder: str, agent: str) -> Iterator[list[Line]]:
    """Every record of an agent, the oldest first."""
    record: list[Line] = []
    for _, line in _lines(folder, agent, 0):
        if record and not _continues(line, record[0]):
            yield record
            record = []
        record.append(line)
    if record:
        yield record


class _Tape:
    """The files of one agent, and how far they are read."""

    def __init__(self, folder: str, agent: str) -> None:
        self._folder = folder
        self._agent = agent
        self._rest: Iterator[tuple[int, Line]] = iter(())
        self._at = -1
        """Where the line `_ahead` begins; -1 when there is none."""
        self._ahead: Line = {}

    def record(self, offset: int) -> list[Line]:
        if offset != self._at:
            self._rest = _lines(self._folder, self._agent, offset)
            self._next()
        lines: list[Line] = []
        while self._at >= 0 and (_continues(self._ahead, lines[0]) if lines else self._at == offset):
            lines.append(self._ahead)
            self._next()
        return lines

    def _next(self) -> None:
        self._at, self._ahead = next(self._rest, (-1, {}))


def _lines(folder: str, agent: str, offset: int) -> Iterator[tuple[int, Line]]:
    """Every line from `offset` on that makes sense, and where it begins; a file that cannot be read is an end."""
    with contextlib.suppress(OSError):
        for raw in transcripts.lines_from(folder, agent, offset):
            line = _decoded(raw)
            if line:
                yield offset, line
            elif not raw.endswith(b"\n"):
                return  # it is being written, or is no line at all
            offset += len(raw)


def _decoded(raw: bytes) -> Line:
    """A line; empty when it is torn."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}


def _continues(line: Line, first: Line) -> bool:
    return "state" not in line and line.get("step") == first.get("step")
