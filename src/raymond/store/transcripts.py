"""What each step was sent and what it said: one append-only file per agent.

A step is one or more JSON lines; the first carries its number. Long output is written as it arrives, never held whole.
"""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import BinaryIO

import msgspec

from raymond import errors
from raymond.machine.agent import file_name
from raymond.system.files import make_private, private, trouble, write_all

ROLL_AT = 64 << 20
LONGEST = 512 << 20
"""Bytes of a line that are read: all that a step may say, in whatever letters."""
PIECE = 64 << 10
MOST = 64 << 20
"""Characters recorded of the output of a step."""
PUBLISH_EVERY = 1.0
"""Seconds between two looks that others may take at a step while it runs."""
TAIL = 4_000
"""Characters kept of each output where only ends are kept."""
_CUT = f"more than {MOST >> 20} MiB of output: the rest is not recorded\n"
_OPEN = 16
"""How many files stay open; beyond that the least recently used one is closed."""

_SEARCHED = 1 << 20
"""Bytes that are searched at once."""
_LAST = 32 << 10
_SAID = ("error", "said", "out", "err", "tools")

_encode = msgspec.json.Encoder().encode


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
        if len(self._files) > _OPEN:
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
        self._room = MOST
        self._publish_at = 0.0
        self.offset = -1

    def add(self, name: str, text: str) -> None:
        """Add output: `out`, `err` or another name. What is more than `MOST` is left out, and that is noted."""
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
        most = TAIL if self._transcripts.tails else MOST
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
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST))
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


def last_of(words: Sequence[bytes], folder: str, agent: str, offset: int) -> int:
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
