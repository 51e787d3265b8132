"""What steps were sent and said, read back from the transcripts of a run."""

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

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

    def so_far(self, agent: str, step: int, ended: int) -> list[Line]:
        """What is written of a step that runs; `ended` is where the record before it begins, -1 for none."""
        lines: list[Line] = []
        skips = ended >= 0
        for number, raw in enumerate(transcripts.lines_from(self._folder, agent, max(0, ended))):
            try:
                line = _decode(raw)
            except (msgspec.DecodeError, RecursionError):
                break  # it is being written
            if "state" in line:
                lines, skips = [], skips and number == 0
            if not skips and line.get("step") == step:
                lines.append(line)
        return lines


def read(folder: str, agent: str, offset: int) -> list[Line]:
    """One record."""
    return Records(folder).of(agent, offset)


class _Tape:
    """The files of one agent, and how far they are read."""

    def __init__(self, folder: str, agent: str) -> None:
        self._folder = folder
        self._agent = agent
        self._rest: Iterator[bytes] = iter(())
        self._at = -1
        """Where the line `_ahead` begins; -1 when there is none."""
        self._ahead: Line = {}
        self._size = 0

    def record(self, offset: int) -> list[Line]:
        if offset != self._at:
            self._rest = transcripts.lines_from(self._folder, self._agent, offset)
            self._at, self._size = offset, 0
            self._next()
        lines: list[Line] = []
        while self._at >= 0 and not (lines and _begins_another(self._ahead, lines[0])):
            lines.append(self._ahead)
            self._next()
        return lines

    def _next(self) -> None:
        """Take the next line; a file that cannot be read, or a line that makes no sense, is an end."""
        try:
            raw = next(self._rest)
            self._ahead = _decode(raw)
        except (StopIteration, OSError, msgspec.DecodeError, RecursionError):
            self._at = -1
        else:
            self._at, self._size = self._at + self._size, len(raw)


def _begins_another(line: Line, first: Line) -> bool:
    return "state" in line or line.get("step") != first.get("step")
