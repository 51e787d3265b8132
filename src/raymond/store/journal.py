"""The journal: the complete record of a run, one line per decision, with its snapshot and its blobs.

A line ends in a checksum of what comes before it. A torn last line is put aside; any other bad line is damage, and the
reader stops there. Texts over 16 KiB are kept outside the journal in files named for their hash.
"""

import contextlib
import gc
import os
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime
from time import strftime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond import amounts
from raymond.errors import JournalError, OtherFormat
from raymond.machine.agent import LONG_TEXT
from raymond.machine.events import Decision, Event, JournalCut, RunStarted, StepEnded
from raymond.machine.evolve import apply
from raymond.machine.run import Run
from raymond.store import run_folder, run_snapshot
from raymond.store.blobs import BadBlob, put_aside, put_back
from raymond.store.lock import Lock
from raymond.store.run_folder import BEYOND_REPAIR, RunFolder, cannot_open
from raymond.system import files, folders
from raymond.views.times import second

_T = TypeVar("_T")
_MAIN_AGENT = "main"
FORMAT = 3
"""Raised with every change of what a line says; a journal of another format is refused."""
SNAPSHOT_EVERY = 8 << 20
_TAIL = 18
"""Length of `,"sum":"01234567"}`."""
_BEGIN = b'{"seq":'
_SHORTEST = 80
"""Bytes; no line with a decision is shorter."""
_IMPOSSIBLE = (ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What folding raises for an event that cannot follow: two drivers wrote the journal, or there is a bug."""
_BEGINNING = 8 << 20
"""Bytes that hold the first decision of any run: its long texts are blobs."""

_encode = msgspec.json.Encoder().encode

LONGEST_LINE = 128 << 20
"""Bytes in a line: texts are blobs, so no decision comes near it."""

_LATEST_BYTES = 4 << 20
"""Bytes at the end of a journal where what was just written is, most likely."""


class _Line(Struct):
    seq: int
    time: str
    events: list[Event]


class _Header(Struct):
    format: int
    id: str = ""


_decode = msgspec.json.Decoder(_Line).decode


class Folded(Struct):
    """A folded journal."""

    run: Run
    size: int
    """Bytes of good lines; what comes after them is torn."""
    torn: int = 0
    folded_from: int = 0


def lost_after(run: Run, decisions: int, unreadable: int) -> JournalCut:
    """What may have been numbered by lost `decisions` and by `unreadable` bytes: a decision begins one step at most."""
    lost = decisions + unreadable // _SHORTEST + 1
    return JournalCut(steps=run.steps + lost, questions=run.questions + lost, decisions=lost)


def torn(folded: Folded) -> list[Event]:
    """What has to be written before anything else when a torn end was cut off: nothing in it is numbered again."""
    return [lost_after(folded.run, 0, folded.torn)] if folded.torn else []


class Journal:
    """The journal of one run, open for the holder of its lock."""

    def __init__(self, folder: RunFolder, size: int, held: Lock) -> None:
        self.path = folder.journal
        self.size = size
        self._folder = folder
        self._blobs = folder.blobs
        self._snapped_at = size
        self._lines: list[bytes] = []
        self._unsynced = False
        self._fd = os.dup(held.fd)
        self._inode = os.fstat(self._fd).st_ino
        self._guard(self._drop_torn)

    def _drop_torn(self) -> None:
        """Cut off what comes after the good lines; it is kept beside the journal."""
        torn = os.fstat(self._fd).st_size - self.size
        if torn > 0:
            cut = os.pread(self._fd, torn, self.size)
            files.replace(f"{self.path}.{strftime('%Y%m%dT%H%M%S')}.torn", cut, durable=True, run=self._folder.id)
            os.ftruncate(self._fd, self.size)

    def append(self, decision: Decision) -> None:
        """Add a line; the next `write` hands it to the system."""
        self._lines.append(_line(self._blobs, decision, self._folder.id))

    def decide(self, run: Run, time: float, events: list[Event]) -> None:
        """Apply these events to the run and add their line; nothing when there are none."""
        if events:
            decision = Decision(seq=run.seq + 1, time=round(time, 3), events=events)
            apply(run, decision)
            self.append(decision)

    def write(self) -> bool:
        """Hand every added line to the system; nothing may follow from a decision before this."""
        if not self._lines:
            return False
        # Whatever becomes of them, they are not written a second time: nobody followed what could not be written.
        data, self._lines = b"".join(self._lines), []
        self._check_undisturbed()
        self._put(data)
        self.size += len(data)
        self._unsynced = True
        return True

    def _check_undisturbed(self) -> None:
        """Stop at once when the file was removed, or when somebody else wrote to it."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            what = "was removed"
        else:
            if found.st_ino == self._inode and found.st_size == self.size:
                return
            what = "was replaced" if found.st_ino != self._inode else "was changed by another process"
        raise JournalError(
            f"{self.path} {what} while this process was driving the run, which stops here",
            path=self.path,
            hint=f"`raymond status {self._folder.id}` shows what is left of it",
        )

    def _guard(self, work: Callable[[], _T]) -> _T:
        return files.guard(self.path, work, run=self._folder.id)

    def _put(self, data: bytes) -> None:
        try:
            files.write_all(self._fd, data)
        except OSError as error:
            self._guard(lambda: os.ftruncate(self._fd, self.size))
            raise files.trouble(self.path, error, run=self._folder.id) from None

    def sync(self) -> None:
        """Wait until the disk has everything written."""
        if self._unsynced:
            # The system reports such an error once: asking again would look like success.
            self._unsynced = False
            self._guard(lambda: files.sync(self._fd))

    def snapshot(self, run: Run, *, force: bool = False) -> None:
        """Save the folded run if the journal has grown enough since the last snapshot."""
        if self.size - self._snapped_at < SNAPSHOT_EVERY and not force:
            return
        self._snapped_at = self.size
        # Only a cache: a full disk, or a number that does not fit into it, is no reason to end a run.
        with contextlib.suppress(OSError, JournalError, OverflowError, ValueError):
            last = os.pread(self._fd, run_snapshot.LAST, self.size - run_snapshot.LAST)
            run_snapshot.write(self._folder.snapshot, self.size, last, run)

    def close(self) -> None:
        """Write, sync and close."""
        if self._fd >= 0:
            try:
                self.write()
                self.sync()
            finally:
                os.close(self._fd)
                self._fd = -1


def create(folder: RunFolder, decision: Decision, source: Callable[[RunFolder], object]) -> None:
    """Create the folder of a run with its first decision, on disk when this returns; an id that exists is refused.

    `source` puts the snapshot of the workflow into it. The folder is complete as soon as it has its name.
    """
    aside = RunFolder(folder.home, f"{os.path.dirname(folder.path)}/{new_name(folder.id)}", folder.id)
    begun = "no run was started: fix this, then start it again"
    try:
        os.mkdir(aside.path, 0o700)
        source(aside)
        data = _sum(_encode(_Header(FORMAT, folder.id))) + _line(aside.blobs, decision)
        _write_new(aside.journal, data)
        files.sync_folder(aside.path)
        os.rename(aside.path, folder.path)
        # Once it has its name the run has begun, even if the disk reports an error later.
        begun = ""
        files.sync_folder(os.path.dirname(folder.path))
    except OSError as error:
        _remove(aside.path)
        taken = folder.in_the_way() if begun else None
        if taken:
            raise taken from None
        raise files.trouble(folder.journal, error, hint=begun, run=folder.id) from None
    except BaseException:
        _remove(aside.path)
        raise


def new_name(id: str) -> str:
    """What the folder of a run is called until it is complete."""
    return f".{id}.{os.urandom(4).hex()}.new"


def _remove(path: str) -> None:
    with contextlib.suppress(OSError), folders.opened(os.path.dirname(path)) as above:
        folders.remove(os.path.basename(path), above)


def _write_new(path: str, data: bytes) -> None:
    with open(path, "xb", buffering=0, opener=files.private) as file:
        files.write_all(file.fileno(), data)
        files.sync(file.fileno())


def read(folder: RunFolder) -> Folded:
    """Fold the journal of a run, starting from its snapshot if the rest follows from that.

    A loop that is over has come to what a person made of it since.
    """
    folded = _read(folder)
    main = folded.run.outcomes.get(_MAIN_AGENT)
    if main and folded.run.start.loop:
        with contextlib.suppress(FileNotFoundError):
            revised = files.contents(folder.revised).decode("utf-8", "surrogateescape")
            folded.run.outcomes[_MAIN_AGENT] = replace(main, result=revised)
    return folded


def _read(folder: RunFolder) -> Folded:
    with _report_lack_of_memory(folder):
        data = content(folder)
        _check_header(folder, data)
        kept = run_snapshot.read(folder.snapshot, data)
        if kept:
            with contextlib.suppress(JournalError):
                return _fold(folder, data, kept.offset, kept.run)
        return _fold(folder, data, data.index(b"\n") + 1, Run())


def _fold(folder: RunFolder, data: bytes, start: int, run: Run) -> Folded:
    """Fold the lines from `start`, where `run` ended."""
    path = folder.journal
    end = _scan(folder, data, start, lambda decision: apply(run, decision), run.seq)
    if run.begun is None:
        raise _unbegun(folder)
    if run.begun.workflow_id != folder.id:
        # Everything a run writes goes by this id: under another name it would write into other runs, or anywhere.
        message = f"{path} is the journal of another run, `{run.begun.workflow_id}`"
        raise JournalError(message, path=path, hint="a run must keep its folder: move it away")
    return Folded(run, end, torn=len(data) - end, folded_from=start)


def first(folder: RunFolder) -> RunStarted:
    """What a run was started with, without reading more of its journal."""
    data = _beginning(folder, _BEGINNING)
    _check_header(folder, data)
    found = data.split(b"\n", 2)
    if len(found) < 3 or not _whole(found[1]):
        raise _unbegun(folder)
    try:
        events = _parse(folder, found[1]).events
    except BadBlob as bad:
        raise _damaged(folder, data, data.index(b"\n") + 1, str(bad)) from None
    except ValueError as error:
        raise _unknown_to_us(folder.journal, 2, error) from None
    if not events or not isinstance(events[0], RunStarted):
        raise _unbegun(folder)
    return events[0]


def decisions(folder: RunFolder) -> list[Decision]:
    """Every decision of a journal; whether each can follow from those before it is not looked at."""
    with without_collector():
        return list(each(folder))


def each(folder: RunFolder) -> Iterator[Decision]:
    """The same, one at a time, which needs less time and memory; damage is reported only when it is reached."""
    with _report_lack_of_memory(folder):
        data = content(folder)
        _check_header(folder, data)
        for _, _, decision in _good_lines(folder, data, data.index(b"\n") + 1, 0):
            yield decision


def check(folder: RunFolder) -> None:
    """Fold a journal from its first line, whatever its snapshot says; an error names the first line that is wrong."""
    run = Run()
    with _report_lack_of_memory(folder), without_collector():
        data = content(folder)
        _check_header(folder, data)
        _scan(folder, data, data.index(b"\n") + 1, lambda decision: apply(run, decision), 0)


def tail(folder: RunFolder, offset: int, run: Run) -> tuple[list[Decision], int]:
    """The decisions after `offset`, where `run` ended, and where they end; they are applied to `run`."""
    data = files.lines(folder.journal, LONGEST_LINE, offset)
    start = data.find(b"\n") + 1 if offset == 0 else 0
    if offset == 0:
        _check_header(folder, data)
    found: list[Decision] = []

    def take(decision: Decision) -> None:
        apply(run, decision)
        found.append(decision)

    return found, offset + _scan(folder, data, start, take, run.seq)


def whole(lines: list[bytes]) -> list[bytes]:
    """Those of `lines` that are intact."""
    return [line for line in lines if _whole(line)]


def line(folder: RunFolder, decision: Decision) -> bytes:
    """The line of a decision."""
    return _line(folder.blobs, decision, folder.id)


def salvage(folder: RunFolder, lines: list[bytes]) -> Iterator[Decision]:
    """The decisions in those of `lines` that are intact, without long texts that are lost. ValueError: see `_parse`."""
    for one in whole(lines):
        try:
            yield _parse(folder, one)
        except BadBlob:
            yield _parse(folder, one, lambda _, fields: fields)


def _scan(folder: RunFolder, data: bytes, start: int, take: Callable[[Decision], object], seq: int) -> int:
    """Hand every good line from `start`, which follows decision `seq`, to `take`; returns where the good lines end."""
    good = start
    for begin, end, decision in _good_lines(folder, data, start, seq):
        try:
            take(decision)
        except _IMPOSSIBLE as error:
            how = f"cannot follow from the lines before it ({type(error).__name__}: {error})"
            raise _damaged(folder, data, begin, how) from None
        good = end
    return good


def _good_lines(folder: RunFolder, data: bytes, start: int, seq: int) -> Iterator[tuple[int, int, Decision]]:
    """Every good line from `start`, which follows decision `seq`: where it begins and ends, and its decision."""
    while start < len(data):
        end = data.find(b"\n", start)
        line = data[start:end] if end >= 0 else b""
        if not _whole(line):
            _check_torn(folder, data, start)
            return
        try:
            decision = _parse(folder, line)
        except BadBlob as bad:
            raise _damaged(folder, data, start, str(bad)) from None
        except ValueError as error:
            raise _unknown_to_us(folder.journal, data.count(b"\n", 0, start) + 1, error) from None
        seq += 1
        if decision.seq != seq:
            raise _damaged(folder, data, start, f"is decision {decision.seq} where {seq} is expected")
        yield start, end + 1, decision
        start = end + 1


def _parse(folder: RunFolder, line: bytes, fill: Callable[[str, Any], Any] = put_back) -> Decision:
    """The decision in a good line. ValueError: another version of Raymond wrote it."""
    try:
        # Not `in`, which takes ten times as long for bytes: it tries a number first.
        if line.find(b"\\u0000blob:") < 0:
            parsed = _decode(line)
        else:
            parsed = msgspec.convert(fill(folder.blobs, msgspec.json.decode(line)), _Line, str_keys=True)
        time = datetime.fromisoformat(parsed.time).timestamp()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except OverflowError:
        raise ValueError("its time cannot be read") from None
    return Decision(seq=parsed.seq, time=time, events=parsed.events)


def _check_header(folder: RunFolder, data: bytes) -> None:
    path, end = folder.journal, data.find(b"\n")
    if end < 0:
        raise _unbegun(folder)
    line = data[:end]
    if not _whole(line):
        message = f"{path} is not a journal of Raymond, or its first line is damaged"
        raise JournalError(message, path=path, line=1, hint=BEYOND_REPAIR)
    try:
        header = msgspec.json.decode(line, type=_Header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unknown_to_us(path, 1, error) from None
    if header.format != FORMAT:
        raise OtherFormat(
            f"{path} has format {header.format}, but this version of Raymond reads only {FORMAT}; nothing was changed",
            path=path,
            line=1,
            hint=f"finish it with the version that began it, or remove it: `raymond clean --force {folder.id}`",
        )


def _check_torn(folder: RunFolder, data: bytes, start: int) -> None:
    """A bad line at the end is torn, unless it has both ends: then, or with a good one after it, it is damage."""
    longest = LONGEST_LINE
    if len(data) - start >= longest and b"\n" not in data[start : start + longest]:
        raise _damaged(folder, data, start, f"is longer than {longest >> 20} MiB")
    first, *rest = data[start:].split(b"\n")
    if any(_whole(line) for line in rest):
        raise _damaged(folder, data, start, "is damaged and good lines follow it")
    if rest and first.startswith(_BEGIN) and first.endswith(b'"}') and b"\0" not in first:
        raise _damaged(folder, data, start, "is complete and damaged")
    if any(_is_merged(line) for line in (first, *rest)):
        raise _damaged(folder, data, start, "holds two good lines with something else than a line end between them")


def _is_merged(line: bytes) -> bool:
    """Whether there are two good lines in it: no write that was cut off leaves that."""
    begun = [_BEGIN + part for part in line.split(_BEGIN)[1:]]
    return sum(_whole(part[: part.rfind(b"}") + 1]) for part in begun) > 1


def _damaged(folder: RunFolder, data: bytes, start: int, how: str) -> JournalError:
    number = data.count(b"\n", 0, start) + 1
    repair = f"`raymond doctor --repair {folder.id}` keeps a copy, cuts the journal there and lists the lost steps"
    # Nothing is left of a run without its first decision, which is in line 2.
    hint = repair if number > 2 else BEYOND_REPAIR
    return JournalError(f"line {number} of {folder.journal} {how}", path=folder.journal, line=number, hint=hint)


def _unknown_to_us(path: str, number: int, error: Exception) -> JournalError:
    return OtherFormat(
        f"line {number} of {path} has something that this version does not know ({error})",
        path=path,
        line=number,
        hint="it was written by another version of Raymond: use that one; nothing was changed",
    )


def _unbegun(folder: RunFolder) -> JournalError:
    hint = f"nothing was run: delete {folder.path}, then `{folder.id}` can be an id again"
    return JournalError(f"{folder.journal} ends before its run begins", path=folder.journal, hint=hint)


def _whole(line: bytes) -> bool:
    return line[-_TAIL:] == b',"sum":"%08x"}' % zlib.crc32(line[:-_TAIL])


def _sum(body: bytes) -> bytes:
    rest = body[:-1]
    return b'%b,"sum":"%08x"}\n' % (rest, zlib.crc32(rest))


def _line(blobs: str, decision: Decision, run: str = "") -> bytes:
    line = _Line(decision.seq, instant(decision.time), decision.events)
    try:
        body = _encode(line)
    except (UnicodeEncodeError, OverflowError) as error:
        raise _unwritable(run, str(error)) from None
    # Not `in`, which takes ten times as long for bytes: it tries a number first.
    if body.find(b'":null') >= 0 or body.find(b'"cost":-') >= 0:
        _check_numbers(run, body)
    if len(body) > LONG_TEXT or body.find(b"\\u0000") >= 0:
        body = _encode(_Line(line.seq, line.time, [_short(blobs, event, run) for event in line.events]))
    if len(body) > LONGEST_LINE - _TAIL:
        raise _unwritable(run, f"a line of more than {LONGEST_LINE >> 20} MiB")
    return _sum(body)


def _short(blobs: str, event: Event, run: str) -> Any:
    """An event without its long texts; one that is short as a whole has none, and need not be taken apart."""
    data = _encode(event)
    is_short = len(data) <= LONG_TEXT and data.find(b"\\u0000") < 0
    return event if is_short else put_aside(blobs, msgspec.to_builtins(event), run)


def _check_numbers(run: str, body: bytes) -> None:
    """The last door: a number that JSON does not have would make the journal unreadable, a negative cost pays back."""
    try:
        events = _decode(body).events
    except msgspec.ValidationError as error:
        raise _unwritable(run, str(error)) from None
    if any(isinstance(event, StepEnded) and not amounts.is_cost(event.cost) for event in events):
        raise _unwritable(run, "a step with a negative cost")


def _unwritable(run: str, what: str) -> JournalError:
    then = f"nothing already written is lost: `raymond resume {run}` repeats the step" if run else ""
    return JournalError(f"a decision was not journaled, because it could not be read again: {what}", hint=then)


def instant(time: float) -> str:
    """`time` in UTC with milliseconds, as people and tools read it."""
    milliseconds = round(time * 1000)
    return f"{second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Within it, Python looks for no garbage in cycles: a third of the time where much is read that stays."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # What was read goes to the oldest generation at once: the next allocation would search all of it for garbage.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


# The file of a journal, read as far as it makes sense and memory suffices


def content(folder: RunFolder) -> bytes:
    """All of it; of a line that is too long only the beginning, and nothing after that."""
    return _read_file(folder, lambda: files.lines(folder.journal, LONGEST_LINE))


def _beginning(folder: RunFolder, most: int) -> bytes:
    """Its first `most` bytes."""
    return _read_file(folder, lambda: files.contents(folder.journal, most))


def _read_file(folder: RunFolder, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError as error:
        raise cannot_open(folder, error) from None


@contextlib.contextmanager
def _report_lack_of_memory(folder: RunFolder) -> Iterator[None]:
    """One run that is too large for this machine must not keep the others from being shown."""
    try:
        yield
    except MemoryError:
        message = f"there is not enough memory to read {folder.journal}"
        raise JournalError(message, path=folder.journal, hint="give this command more memory") from None


# The requests in it


def has_request(folder: RunFolder, request: str) -> bool:
    """Whether the request of this id is there, taken or refused."""
    try:
        return _is_in_file(folder.journal, request)
    except FileNotFoundError as error:
        raise run_folder.cannot_open(folder, error) from None
    except OSError as error:
        raise files.trouble(folder.journal, error, run=folder.id) from None


def _is_in_file(path: str, request: str) -> bool:
    with open(path, "rb", opener=files.private) as file:
        size = file.seek(0, os.SEEK_END)
        for start in (max(0, size - _LATEST_BYTES), 0):
            file.seek(start)
            if _has_intact_line(file.read(), request):
                return True
            if not start:
                break
    return False


def _has_intact_line(lines: bytes, request: str) -> bool:
    # In a text that somebody wrote, the quotes would be escaped.
    needle = f'"request":"{request}"'.encode()
    return needle in lines and any(whole([line for line in lines.split(b"\n") if needle in line]))
