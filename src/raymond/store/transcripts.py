"""What each step was sent and what it said: one append-only file per agent.

A step is one or more JSON lines; the first carries its number. Long output is written as it arrives, never held whole.
"""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import BinaryIO

import msgspec

from raymond import errors
from raymond.machine.agent import file_name
from raymond.machine.events import StepEnded, StepInterrupted
from raymond.system.files import make_private, private, trouble, write_all

ROLL_AT = 64 << 20
LONGEST = 512 << 20
"""Bytes of a line that are read: all that a step may say, in whatever letters."""
PIECE = 64 << 10
MOST_RECORDED = 64 << 20
"""Characters recorded of the output of a step."""
PUBLISH_EVERY = 1.0
"""Seconds between two looks that others may take at a step while it runs."""
TAIL = 4_000
"""Characters kept of each output where only ends are kept."""
_CUT = f"more than {MOST_RECORDED >> 20} MiB of output: the rest is not recorded\n"
_MOST_OPEN = 16
"""How many files stay open; beyond that the least recently used one is closed."""

_SEARCHED = 1 << 20
"""Bytes that are searched at once."""
_LAST_BYTES = 32 << 10
_SAID = ("error", "said", "out", "err", "tools")

_encode = msgspec.json.Encoder().encode

Line = dict[str, object]
_MOST_READ = 32
"""How many agents' files stay open; beyond that the least recently used one is closed."""

_decode = msgspec.json.Decoder(Line).decode


class Transcripts:
    """The transcripts of one run."""

    def __init__(self, folder: str, run: str = "", *, tails: bool = False) -> None:
        self._folder = folder
        self.tails = tails
        """Only the end of each output is kept."""
        self._run = run
        self._files: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._made = False

    def step(self, agent: str, **fields: object) -> "Record":
        """Begin the record of a step."""
        return Record(self, agent, fields)

    def append(self, agent: str, data: bytes) -> int:
        """Add lines; returns where they begin, counted over all files of the agent."""
        try:
            fd, base = self._file(agent)
            at = os.lseek(fd, 0, os.SEEK_END)
            write_all(fd, data)
        except OSError as error:
            raise trouble(self._folder, error, run=self._run) from None
        if at + len(data) > ROLL_AT:
            self._roll(agent, base)
        return base + at

    def _file(self, agent: str) -> tuple[int, int]:
        if agent in self._files:
            self._files.move_to_end(agent)
            return self._files[agent]
        if not self._made:
            make_private(self._folder)
            self._made = True
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        path = os.path.join(self._folder, f"{file_name(agent)}.jsonl")
        try:
            fd = private(path, flags)
        except OSError as error:
            if not errors.is_passing_fault(error) or not self._files:
                raise
            self.close()  # the others can be opened again
            fd = private(path, flags)
        self._files[agent] = (fd, _rolled(self._folder, agent))
        _end_line(fd)
        if len(self._files) > _MOST_OPEN:
            os.close(self._files.popitem(last=False)[1][0])
        return self._files[agent]

    def _roll(self, agent: str, base: int) -> None:
        os.close(self._files.pop(agent)[0])
        path = os.path.join(self._folder, file_name(agent))
        os.rename(f"{path}.jsonl", f"{path}.{base:012d}.jsonl")

    def close_all_but(self, agents: Container[str]) -> None:
        """Close the files of all others; they are opened again when there is something to write."""
        for agent in [agent for agent in self._files if agent not in agents]:
            os.close(self._files.pop(agent)[0])

    def close(self) -> None:
        """Close every file."""
        while self._files:
            os.close(self._files.popitem()[1][0])


def _end_line(fd: int) -> None:
    """End a line that a killed driver left half written, so that the next one is whole."""
    size = os.lseek(fd, 0, os.SEEK_END)
    if size and os.pread(fd, 1, size - 1) != b"\n":
        write_all(fd, b"\n")


def _rolled(folder: str, agent: str) -> int:
    """Bytes in the files that were rolled before."""
    first = os.path.join(folder, f"{file_name(agent)}.{0:012d}.jsonl")
    if not os.path.exists(first):
        return 0
    return sum(os.path.getsize(path) for path in _files(folder, agent)[:-1])


def _files(folder: str, agent: str) -> list[str]:
    """All files of an agent, the oldest first; the last is the one that grows."""
    stem = file_name(agent)
    # Most agents have only one file: do not list a folder of ten thousand files for each of them.
    has_more = os.path.exists(os.path.join(folder, f"{stem}.{0:012d}.jsonl"))
    names = os.listdir(folder) if has_more else []
    rolled = [name for name in names if name.startswith(f"{stem}.") and name[len(stem) + 1 : -6].isdigit()]
    return [os.path.join(folder, name) for name in (*sorted(rolled), f"{stem}.jsonl")]


class Record:
    """The record of one step while it runs."""

    def __init__(self, transcripts: Transcripts, agent: str, fields: dict[str, object]) -> None:
        self._transcripts = transcripts
        self._agent = agent
        self._fields = fields
        self._pieces: dict[str, list[str]] = {}
        self._held = 0
        self._room = MOST_RECORDED
        self._publish_at = 0.0
        self.offset = -1

    def add(self, name: str, text: str) -> None:
        """Add output: `out`, `err` or another name; what is more than `MOST_RECORDED` is left out, which is noted."""
        if self._transcripts.tails:
            self._add_end(name, text)
            return
        if self._room <= 0:
            return
        self._room -= len(text)
        if self._room <= 0:
            text = text[: len(text) + self._room]
            self._pieces.setdefault("note", []).append(_CUT)
        self._pieces.setdefault(name, []).append(text)
        self._held += len(text)
        if self._held > PIECE:
            self.flush()

    def _add_end(self, name: str, text: str) -> None:
        """Keep the last characters of all that came under a name, until the step has ended."""
        pieces = self._pieces.setdefault(name, [])
        pieces.append(text)
        if sum(map(len, pieces)) > 2 * TAIL:
            pieces[:] = ["".join(pieces)[-TAIL:]]

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            self._write({})

    def publish(self, now: float) -> None:
        """Write what is held for those who read along, and how it began, but not more often than is worth it."""
        if self._transcripts.tails:
            return
        if now >= self._publish_at and (self._held or self.offset < 0):
            self._write({})
            self._publish_at = now + PUBLISH_EVERY

    def end(self, **fields: object) -> int:
        """Write the rest; returns where the record begins."""
        self._write(fields)
        return self.offset

    def _write(self, more: dict[str, object]) -> None:
        most = TAIL if self._transcripts.tails else MOST_RECORDED
        texts = {name: "".join(pieces)[-most:] for name, pieces in self._pieces.items()}
        line = _encode({**self._fields, **texts, **more}) + b"\n"
        self._fields = {"step": self._fields["step"]}
        self._pieces.clear()
        self._held = 0
        at = self._transcripts.append(self._agent, line)
        if self.offset < 0:
            self.offset = at


def last_line(folder: str, agent: str) -> str:
    """The last line of output that is written so far for `agent`."""
    try:
        with open(os.path.join(folder, f"{file_name(agent)}.jsonl"), "rb", opener=private) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return ""
    for raw in reversed(lines):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            fields = msgspec.json.decode(raw, type=dict[str, object])
            for name in _SAID:
                said = str(fields.get(name, "")).strip()
                if said:
                    return said.rpartition("\n")[2]
    return ""


def lines_from(folder: str, agent: str, offset: int) -> Iterator[bytes]:
    """The lines from `offset` on; a record may continue in the next file."""
    for _, file in _open_from(folder, agent, offset):
        yield from iter(partial(file.readline, LONGEST), b"")


def find_last(words: Sequence[bytes], folder: str, agent: str, offset: int) -> int:
    """Where the last one of `words` may stand that is not before `offset`; -1 when there is none. A fast search."""
    last, short = -1, max(map(len, words)) - 1
    for begin, file in _open_from(folder, agent, offset):
        size = os.fstat(file.fileno()).st_size
        if size > LONGEST:
            return begin + size  # a hole that would take hours
        kept = b""
        while piece := file.read(_SEARCHED):
            kept += piece
            at = max(kept.rfind(word) for word in words)
            last = begin + at if at >= 0 else last
            begin += max(0, len(kept) - short)
            kept = kept[max(0, len(kept) - short) :]
    return last


def _open_from(folder: str, agent: str, offset: int) -> Iterator[tuple[int, BinaryIO]]:
    """The files of an agent that go beyond `offset`, each from there on, and where that is."""
    begin = 0
    for path in _files(folder, agent):
        try:
            size = os.path.getsize(path)
        except FileNotFoundError:
            return  # rolled after the last record, and nothing was written since
        if offset < begin + size:
            with open(path, "rb", opener=private) as file:
                file.seek(max(0, offset - begin))
                yield max(begin, offset), file
        begin += size


# Reading them back


class TranscriptReader:
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
            if len(self._tapes) > _MOST_READ:
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


def is_record_gone(event: StepEnded, lines: Sequence[Mapping[str, object]]) -> bool:
    """Whether the turn that ended with `event` was recorded, and its `lines` cannot be read any more."""
    return event.offset >= 0 and not lines


def read_record(folder: str, agent: str, offset: int) -> list[Line]:
    """One record."""
    return TranscriptReader(folder).of(agent, offset)


def every_record(folder: str, agent: str) -> Iterator[list[Line]]:
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
        for raw in lines_from(folder, agent, offset):
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
