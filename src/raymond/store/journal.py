"""The journal: the complete record of a run, one line per decision, with its snapshot and its blobs.

A line ends in a checksum of what comes before it. A torn last line is dropped; a bad line with a good one after it is
damage, and the reader stops there. Texts over 16 KiB are kept outside the journal in files named for their hash.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Struct

from raymond.errors import JournalError, RunExists
from raymond.machine.events import Decision, Event
from raymond.machine.evolve import apply
from raymond.machine.failures import KINDS
from raymond.machine.run import Run
from raymond.store import snapshot
from raymond.store.blobs import LONG, put_aside, put_back
from raymond.store.project import Project
from raymond.system import files
from raymond.views.times import second

_T = TypeVar("_T")
FORMAT = 1
SNAPSHOT_EVERY = 8 << 20
_TAIL = 18
"""Length of `,"sum":"01234567"}`."""
_CLASSES = (*KINDS, "visits", "given up")
_BEYOND_REPAIR = "this cannot be repaired: restore a copy of the file, or move it away"


class _Line(Struct):
    seq: int
    time: str
    events: list[Event]


class _Header(Struct):
    format: int
    id: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


class Folded(Struct):
    """A folded journal."""

    run: Run
    size: int
    """Bytes of good lines; what comes after them is torn."""
    torn: int = 0
    folded_from: int = 0


class Journal:
    """The journal of one run, open for the holder of its lock."""

    def __init__(self, project: Project, id: str, size: int) -> None:
        self.path = project.journal(id)
        self.size = size
        self._project = project
        self._id = id
        self._snap = project.beside(id, "snap")
        self._snapped_at = size
        self._lines: list[bytes] = []
        self._unsynced = False
        self._fd = self._guard(lambda: os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
        if os.fstat(self._fd).st_size > size:
            os.ftruncate(self._fd, size)

    def append(self, decision: Decision) -> None:
        """Add a line; the next `write` hands it to the system."""
        self._lines.append(_line(self._project, decision, self._id))

    def write(self) -> bool:
        """Hand every added line to the system; nothing may follow from a decision before this."""
        if not self._lines:
            return False
        data = b"".join(self._lines)
        self._guard(lambda: self._put(data))
        self._lines.clear()
        self.size += len(data)
        self._unsynced = True
        return True

    def _guard(self, work: Callable[[], _T]) -> _T:
        return files.guard(self.path, work, run=self._id)

    def _put(self, data: bytes) -> None:
        try:
            files.write_all(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise

    @property
    def unsynced(self) -> bool:
        """Whether something was written that a power failure could still lose."""
        return self._unsynced

    def sync(self) -> None:
        """Wait until the disk has everything written."""
        if self._unsynced:
            self._guard(lambda: files.sync(self._fd))
            self._unsynced = False

    def snapshot(self, run: Run, *, force: bool = False) -> None:
        """Save the folded run if the journal has grown enough since the last snapshot."""
        if self.size - self._snapped_at < SNAPSHOT_EVERY and not force:
            return
        self._snapped_at = self.size
        with open(self.path, "rb") as file:
            file.seek(self.size - _TAIL)
            last = file.read(_TAIL)
        snapshot.write(self._snap, self.size, last, run)

    def close(self) -> None:
        """Write, sync and close."""
        if self._fd >= 0:
            self.write()
            self.sync()
            os.close(self._fd)
            self._fd = -1


def create(project: Project, id: str, decision: Decision) -> None:
    """Create a journal with its first decision, on disk when this returns; an id that exists is refused."""
    path = project.journal(id)
    data = _sum(_encode(_Header(FORMAT, id))) + _line(project, decision)
    project.folder("workflows")
    try:
        _appear(path, data)
        files.sync_folder(os.path.dirname(path))
    except FileExistsError:
        raise RunExists(
            f"run `{id}` already exists", path=path, hint=f"`raymond status {id}` shows it; choose another --id"
        ) from None
    except OSError as error:
        # Once its file has its name the run has begun, even if the disk reports an error later.
        hint = "" if os.path.exists(path) else "no run was started: fix this, then start it again"
        raise files.trouble(path, error, hint=hint, run=id) from None


def _appear(path: str, data: bytes) -> None:
    """Create a file that is complete as soon as it is visible; a name that exists is refused."""
    aside = f"{path}.{os.urandom(4).hex()}.new"
    _write_new(aside, data)
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links: a kill may leave an incomplete file, which then blocks its id.
        _write_new(path, data)
    finally:
        os.unlink(aside)


def _write_new(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        files.write_all(fd, data)
        files.sync(fd)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def read(project: Project, id: str) -> Folded:
    """Fold the journal of `id`, starting from its snapshot if that is valid."""
    path = project.journal(id)
    data = files.read(path, run=id)
    _check_header(path, data)
    kept = snapshot.read(project.beside(id, "snap"), data)
    start = kept.offset if kept else data.index(b"\n") + 1
    run = kept.run if kept else Run()
    end = _fold(project, path, data, start, run)
    if run.begun is None:
        raise _unbegun(path)
    if run.begun.workflow_id != id:
        # Everything a run writes goes by this id: under another name it would write into other runs, or anywhere.
        message = f"{path} is the journal of another run, `{run.begun.workflow_id}`"
        raise JournalError(message, path=path, hint="a journal must keep its name: move the file away")
    return Folded(run, end, torn=len(data) - end, folded_from=start)


def decisions(project: Project, id: str) -> list[Decision]:
    """Every decision of a journal."""
    path = project.journal(id)
    data = files.read(path, run=id)
    _check_header(path, data)
    found: list[Decision] = []
    _scan(project, path, data, data.index(b"\n") + 1, found.append, 0)
    return found


def tail(project: Project, id: str, offset: int, seq: int) -> tuple[list[Decision], int]:
    """The decisions after `offset`, where decision `seq` ended, and where they end; 0 is the beginning."""
    path = project.journal(id)
    with open(path, "rb") as file:
        file.seek(offset)
        data = file.read()
    start = data.find(b"\n") + 1 if offset == 0 else 0
    if offset == 0:
        _check_header(path, data)
    found: list[Decision] = []
    return found, offset + _scan(project, path, data, start, found.append, seq)


def salvage(project: Project, path: str, lines: list[bytes]) -> Iterator[Decision]:
    """The decisions in those of `lines` that are intact."""
    for line in lines:
        if _whole(line):
            yield _parse(project, path, b"", 0, line)


def _fold(project: Project, path: str, data: bytes, start: int, run: Run) -> int:
    return _scan(project, path, data, start, lambda decision: apply(run, decision), run.seq)


def _scan(project: Project, path: str, data: bytes, start: int, take: Callable[[Decision], object], seq: int) -> int:
    """Hand every good line from `start`, which follows decision `seq`, to `take`; returns where the good lines end."""
    while start < len(data):
        end = data.find(b"\n", start)
        line = data[start:end] if end >= 0 else data[start:]
        if end < 0 or not _whole(line):
            _check_torn(path, data, start)
            return start
        decision = _parse(project, path, data, start, line)
        seq += 1
        if decision.seq != seq:
            raise _damaged(path, data, start, f"is decision {decision.seq} where {seq} is expected")
        take(decision)
        start = end + 1
    return start


def _parse(project: Project, path: str, data: bytes, start: int, line: bytes) -> Decision:
    try:
        if b"\\u0000blob:" in line:
            fields = put_back(project, msgspec.json.decode(line))
            parsed = msgspec.convert(fields, _Line)
        else:
            parsed = _decode_any(line)
        return Decision(seq=parsed.seq, time=datetime.fromisoformat(parsed.time).timestamp(), events=parsed.events)
    except (msgspec.ValidationError, ValueError) as error:
        raise _unknown(path, data.count(b"\n", 0, start) + 1, error) from None


def _decode_any(line: bytes) -> _Line:
    """A line; a failure class that a foreign backend of an earlier release made up counts as a crash."""
    try:
        return _decode(line)
    except msgspec.ValidationError:
        fields = msgspec.json.decode(line)
        for event in fields["events"]:
            if event.get("type") in ("StepFailed", "AgentFailed", "BackendClosed") and event["kind"] not in _CLASSES:
                event["error"] = f"{event['kind']}: {event['error']}"
                event["kind"] = "crash"
        return msgspec.convert(fields, _Line)


def _check_header(path: str, data: bytes) -> None:
    end = data.find(b"\n")
    if end < 0:
        raise _unbegun(path)
    line = data[:end]
    if not _whole(line):
        message = f"{path} is not a journal of Raymond, or its first line is damaged"
        raise JournalError(message, path=path, line=1, hint=_BEYOND_REPAIR)
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.DecodeError as error:
        raise _unknown(path, 1, error) from None
    if header.format > FORMAT:
        raise JournalError(
            f"{path} has format {header.format}; this Raymond reads up to {FORMAT}",
            path=path,
            line=1,
            hint="use the newer Raymond that wrote it; nothing was changed",
        )


def _check_torn(path: str, data: bytes, start: int) -> None:
    """A bad line at the end is torn; with a good one after it, it is damage."""
    rest = data[start:].split(b"\n")[1:]
    if any(_whole(line) for line in rest):
        raise _damaged(path, data, start, "is damaged and good lines follow it")


def _damaged(path: str, data: bytes, start: int, how: str) -> JournalError:
    number = data.count(b"\n", 0, start) + 1
    repair = f"`raymond doctor --repair {_id(path)}` keeps a copy, cuts the journal there and lists the lost steps"
    # Nothing is left of a run without its first decision, which is in line 2.
    hint = repair if number > 2 else _BEYOND_REPAIR
    return JournalError(f"line {number} of {path} {how}", path=path, line=number, hint=hint)


def _unknown(path: str, number: int, error: Exception) -> JournalError:
    return JournalError(
        f"line {number} of {path} has something that this version does not know ({error})",
        path=path,
        line=number,
        hint="it was written by a newer Raymond: use that one; nothing was changed",
    )


def _unbegun(path: str) -> JournalError:
    hint = f"nothing was run: delete the file, then `{_id(path)}` can be an id again"
    return JournalError(f"{path} ends before its run begins", path=path, hint=hint)


def _id(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def _whole(line: bytes) -> bool:
    return line[-_TAIL:-10] == b',"sum":"' and line[-10:-2] == b"%08x" % zlib.crc32(line[:-_TAIL])


def _sum(body: bytes) -> bytes:
    return b'%b,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body[:-1]))


def _line(project: Project, decision: Decision, run: str = "") -> bytes:
    line = _Line(decision.seq, instant(decision.time), decision.events)
    body = _encode(line)
    if len(body) > LONG or b"\\u0000" in body:
        body = _encode(put_aside(project, msgspec.to_builtins(line), run))
    return _sum(body)


def instant(time: float) -> str:
    """`time` in UTC with milliseconds, as people and tools read it."""
    milliseconds = round(time * 1000)
    return f"{second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"
