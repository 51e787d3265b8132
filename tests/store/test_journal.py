"""How a journal comes into being: whole or not at all, and once for every id; and how it grows."""

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raymond.control import runs
from raymond.errors import JournalError, OtherFormat, RunExists
from raymond.machine.events import AgentStarted, Decision, RunResumed, RunStarted
from raymond.machine.run import Run
from raymond.store import journal, lock, repair, run_folder, run_snapshot
from raymond.store.home import Home
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder

START = RunStarted(
    workflow_id="r", key="k", name="n", scope_dir="", source="s", entry="A.md", cwd="/", budget_from="", version="0.1.0"
)
FIRST = Decision(seq=1, time=1.0, events=[START, RunResumed(version="x" * 1000)])
CREATE = """
import os, signal, sys

from raymond.machine.events import Decision, RunResumed, RunStarted
from raymond.store import journal
from raymond.store.home import Home
from raymond.store.project import Project

left = int(sys.argv[3])


def deadly(call):
    def count(*args, **given):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **given)

    return count


def source(folder):
    with open(folder.source, "wb") as file:
        file.write(b"zip")


start = RunStarted(workflow_id="r", key="k", name="n", scope_dir="", source="s", entry="A.md", cwd="/", budget_from="", version="0.1.0")
decision = Decision(seq=1, time=1.0, events=[start, RunResumed(version="x" * 1000)])
for name in ("open", "write", "close", "mkdir", "rename", "unlink", "fdatasync", "fsync"):
    setattr(os, name, deadly(getattr(os, name)))
journal.create(Project(Home(sys.argv[1]), sys.argv[2]).run("r"), decision, source)
"""


def project_in(folder: Path) -> Project:
    project = Project(Home(f"{folder}/home"), f"{folder}/tree")
    project.make()
    return project


def source(folder: RunFolder) -> None:
    Path(folder.source).write_bytes(b"zip")


def create(project: Project, decision: Decision = FIRST) -> RunFolder:
    journal.create(project.run("r"), decision, source)
    return project.run("r")


def test_a_new_run_is_a_private_folder_with_its_journal_and_its_source(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    folder = create(project)
    assert os.listdir(project.runs) == ["r"]
    assert sorted(os.listdir(folder.path)) == ["journal.jsonl", "source.zip"]
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (folder.path, folder.journal)]
    assert modes == [0o700, 0o600]
    assert journal.decisions(folder) == [FIRST]


def test_a_long_text_of_the_first_decision_is_in_the_folder_of_its_run(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path), Decision(seq=1, time=1.0, events=[START, RunResumed(version="x" * 20_000)]))
    assert len(os.listdir(folder.blobs)) == 1
    assert journal.decisions(folder)[0].events[1] == RunResumed(version="x" * 20_000)


def test_a_source_that_cannot_be_kept_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: RunFolder) -> None:
        source(folder)
        raise JournalError("no", path=folder.path)

    project = project_in(tmp_path)
    with pytest.raises(JournalError):
        journal.create(project.run("r"), FIRST, fail)
    assert os.listdir(project.runs) == []


@pytest.mark.slow
def test_a_kill_at_any_call_leaves_a_whole_journal_or_none(tmp_path: Path) -> None:
    """What a kill leaves never stands in the way of the id, unless the run was begun."""
    ends = []
    for call in range(1, 100):
        project = project_in(tmp_path / str(call))
        argv = [sys.executable, "-c", CREATE, project.home.path, project.tree, str(call)]
        done = subprocess.run(argv, check=False)
        if project.ids():
            assert journal.decisions(project.run("r")) == [FIRST]
            assert os.path.exists(project.run("r").source), "the folder is complete as soon as it has its name"
        else:
            create(project)
            assert project.ids() == ["r"]
        ends.append(done.returncode)
        if done.returncode == 0:
            break
    assert ends == [-signal.SIGKILL] * (len(ends) - 1) + [0]
    assert len(ends) > 8


def test_of_many_that_create_the_same_id_at_once_one_does(tmp_path: Path) -> None:
    project = project_in(tmp_path)

    def attempt(number: int) -> str:
        try:
            create(project, Decision(seq=1, time=1.0, events=[RunResumed(version=str(number))]))
        except RunExists as error:
            return str(error)
        return str(number)

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(attempt, range(32)))
    [winner] = [one for one in said if one.isdigit()]
    assert said.count("run `r` already exists") == 31
    [decision] = journal.decisions(project.run("r"))
    assert decision.events == [RunResumed(version=winner)]
    assert os.listdir(project.runs) == ["r"]


def test_a_journal_that_does_not_fit_on_the_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    project = project_in(tmp_path)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError) as caught:
        create(project)
    assert str(caught.value) == f"{project.run('r').journal}: no space left on device"
    assert caught.value.hint == "no run was started: fix this, then start it again"
    assert os.listdir(project.runs) == []


def test_a_disk_that_fails_before_the_name_is_in_place_has_begun_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    project = project_in(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(JournalError) as caught:
        create(project)
    assert caught.value.hint == "no run was started: fix this, then start it again"
    assert os.listdir(project.runs) == []


def test_a_disk_that_fails_when_the_name_is_in_place_has_begun_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail(fd: int) -> None:
        if os.path.samestat(os.fstat(fd), os.stat(project.runs)):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(fd)

    project = project_in(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(JournalError) as caught:
        create(project)
    assert str(caught.value) == f"{project.run('r').journal}: input/output error"
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume r`"
    assert journal.decisions(project.run("r")) == [FIRST]


@contextlib.contextmanager
def opened(folder: RunFolder) -> Iterator[journal.Journal]:
    """The journal of a run, as its driver has it."""
    held = lock.take(folder)
    book = journal.Journal(folder, journal.read(folder).size, held)
    try:
        yield book
    finally:
        book.close()
        held.release()


def resumed(seq: int, version: str = "v") -> Decision:
    return Decision(seq=seq, time=1.0, events=[RunResumed(version=version)])


def test_a_journal_that_was_removed_stops_its_driver(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        os.unlink(folder.journal)
        book.append(resumed(2))
        with pytest.raises(JournalError) as caught:
            book.write()
        assert book.write() is False, "it is not tried again"
    what = "was removed while this process was driving the run, which stops here"
    assert str(caught.value) == f"{folder.journal} {what}"
    assert caught.value.hint == "`raymond status r` shows what is left of it"


def test_a_journal_that_somebody_else_wrote_to_stops_its_driver(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        with open(folder.journal, "ab") as other:
            other.write(b"mine\n")
        after = Path(folder.journal).read_bytes()
        book.append(resumed(2))
        with pytest.raises(JournalError) as caught:
            book.write()
    what = "was changed by another process while this process was driving the run, which stops here"
    assert str(caught.value) == f"{folder.journal} {what}"
    assert Path(folder.journal).read_bytes() == after


def test_a_write_that_failed_is_taken_back_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody followed what could not be written: later it would be a second truth."""
    write, folder = os.write, create(project_in(tmp_path))
    before = Path(folder.journal).read_bytes()

    def half(fd: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data[:-10])

    with opened(folder) as book:
        book.append(resumed(2, "lost"))
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(JournalError) as caught:
            book.write()
        monkeypatch.undo()
        assert str(caught.value) == f"{folder.journal}: no space left on device"
        assert Path(folder.journal).read_bytes() == before
        book.append(resumed(2, "next"))
    assert [one.events for one in journal.decisions(folder)][1:] == [[RunResumed(version="next")]]


def test_a_sync_that_failed_is_not_reported_as_done_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system reports such an error once: what it did with the bytes nobody knows."""
    asked: list[int] = []

    def fail(fd: int) -> None:
        asked.append(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        book.append(resumed(2))
        book.write()
        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(JournalError) as caught:
            book.sync()
        book.sync()
    assert str(caught.value) == f"{folder.journal}: input/output error"
    assert len(asked) == 1


def test_the_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    """Everything a run writes goes by its id."""
    project = project_in(tmp_path)
    os.rename(create(project).path, project.run("s").path)
    with pytest.raises(JournalError) as caught:
        journal.read(project.run("s"))
    assert str(caught.value) == f"{project.run('s').journal} is the journal of another run, `r`"
    assert caught.value.hint == "a run must keep its folder: move it away"


def test_the_tail_of_a_journal_is_what_came_after_a_place_in_it(tmp_path: Path) -> None:
    folder, run = create(project_in(tmp_path)), Run()
    first, end = journal.tail(folder, 0, run)
    assert (first, end) == ([FIRST], os.path.getsize(folder.journal))
    with opened(folder) as book:
        book.append(resumed(2))
    with open(folder.journal, "ab") as file:
        file.write(b'{"seq":3')
    assert journal.tail(folder, end, run) == ([resumed(2)], os.path.getsize(folder.journal) - 8)
    assert run.seq == 2


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a few kilobytes are too long, so that a test need not read many megabytes."""
    monkeypatch.setattr(journal, "LONGEST_LINE", 5 << 10)


@pytest.mark.usefixtures("short")
def test_a_journal_that_ends_in_a_hole_of_terabytes_is_damaged_and_can_be_repaired(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        book.append(resumed(2))
    os.truncate(folder.journal, 8 << 40)
    for look in (journal.read, journal.decisions, journal.check, lambda folder: journal.tail(folder, 0, Run())):
        with pytest.raises(JournalError, match=r"^line 4 of .* is longer than ") as caught:
            look(folder)
        assert caught.value.hint.startswith("`raymond doctor --repair r`")
    assert repair.repair(folder).line == 4
    assert journal.read(folder).run.seq == 3
    (copy,) = Path(folder.path).glob("*.damaged")
    assert copy.stat().st_size == 8 << 40


@pytest.mark.usefixtures("short")
def test_a_line_that_would_be_too_long_to_be_read_is_not_written(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path))
    with opened(folder) as book, pytest.raises(JournalError, match="could not be read again: a line of more than"):
        book.append(resumed(2, "x" * 6000))
    assert journal.read(folder).run.seq == 1


def test_a_long_text_that_cannot_be_kept_names_the_run_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(old: str, new: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(JournalError) as caught:
            book.append(Decision(seq=2, time=1.0, events=[RunResumed(version="x" * 20_000)]))
    assert caught.value.path.startswith(folder.blobs)
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume r`"


@pytest.mark.parametrize("between", [b"\0", b"\0\0\0\0", b"x", b""])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_two_good_lines_without_a_line_end_between_them_are_damage(tmp_path: Path, between: bytes, end: bytes) -> None:
    """Both were followed: a write that was cut off, or a power failure, leaves no such line."""
    folder = create(project_in(tmp_path))
    with opened(folder) as book:
        book.append(resumed(2))
        book.append(resumed(3))
    *good, one, two, _ = Path(folder.journal).read_bytes().split(b"\n")
    Path(folder.journal).write_bytes(b"\n".join(good) + b"\n" + one + between + two + end)
    with pytest.raises(JournalError) as caught:
        journal.read(folder)
    assert (caught.value.line, caught.value.hint.split("`")[1]) == (3, "raymond doctor --repair r")


TIME = b'"time":"2026-01-01T00:00:00.000Z"'
DEEP = b"[" * 200_000 + b"]" * 200_000
SHAPES = {
    "a list": b'[{"seq":2,"events":[]}',
    "a list that ends like a line": b'[{"seq":2}',
    "nothing": b'{"seq":2',
    "no events": b'{"seq":2,%b' % TIME,
    "no time": b'{"seq":2,"events":[]',
    "a time that is none": b'{"seq":2,"time":"soon","events":[]',
    "a time before all times": b'{"seq":2,"time":"0001-01-01T00:00:00.000","events":[]',
    "events that are a number": b'{"seq":2,%b,"events":5' % TIME,
    "an event that is a text": b'{"seq":2,%b,"events":["StepFailed"]' % TIME,
    "an event without a type": b'{"seq":2,%b,"events":[{}]' % TIME,
    "a failure without a class": b'{"seq":2,%b,"events":[{"type":"BackendClosed"}]' % TIME,
    "a failure whose class is a list": b'{"seq":2,%b,"events":[{"type":"StepFailed","kind":[]}]' % TIME,
    "a failure of a class that is unknown": b'{"seq":2,%b,"events":[{"type":"StepFailed","kind":"x"}]' % TIME,
    "deep events": b'{"seq":2,%b,"events":%b' % (TIME, DEEP),
    "a deep event": b'{"seq":2,%b,"events":[{"type":"RunResumed","more":%b}]' % (TIME, DEEP),
    "a deep field": b'{"seq":2,%b,"events":[],"more":%b' % (TIME, DEEP),
    "a deep field with a long text": b'{"seq":2,"x":"\\u0000blob:","more":%b' % DEEP,
    "no UTF-8": b'{"seq":2,"time":"\xff"',
}


def add_line(folder: RunFolder, body: bytes) -> None:
    """A line with a checksum that is right."""
    with open(folder.journal, "ab") as file:
        file.write(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)))


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_a_line_of_an_unexpected_shape_is_an_error_with_its_number(tmp_path: Path, body: bytes) -> None:
    project = project_in(tmp_path)
    folder = create(project)
    add_line(folder, body)
    for look in (journal.read, journal.decisions, lambda folder: journal.tail(folder, 0, Run())):
        with pytest.raises(JournalError) as caught:
            look(folder)
        assert str(caught.value).startswith(f"line 3 of {folder.journal} ")
        assert caught.value.line == 3
    with pytest.raises(OtherFormat):
        repair.repair(folder)
    assert runs.row(project, "r").status == "unreadable"


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_a_beginning_of_an_unexpected_shape_is_an_error(tmp_path: Path, body: bytes) -> None:
    folder = create(project_in(tmp_path))
    os.truncate(folder.journal, Path(folder.journal).read_bytes().index(b"\n") + 1)
    add_line(folder, body)
    with pytest.raises(JournalError) as caught:
        journal.first(folder)
    assert "line 2 of" in str(caught.value) or "has not begun" in str(caught.value)


def test_a_first_line_that_is_nested_too_deeply_is_an_error(tmp_path: Path) -> None:
    folder = create(project_in(tmp_path))
    os.truncate(folder.journal, 0)
    add_line(folder, b'{"format":3,"id":"r","more":%b' % DEEP)
    with pytest.raises(JournalError) as caught:
        journal.read(folder)
    assert caught.value.line == 1


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\x1b[2Jb", "a\u202eb", "a/b", "..", ""])
def test_an_agent_whose_name_cannot_be_that_of_a_file_is_damage(tmp_path: Path, name: str) -> None:
    folder = create(project_in(tmp_path))
    event = AgentStarted(agent=name, state="A.md")
    with opened(folder) as book:
        book.append(Decision(seq=2, time=1.0, events=[event]))
    with pytest.raises(JournalError) as caught:
        journal.read(folder)
    assert (caught.value.line, caught.value.hint.split("`")[1]) == (3, "raymond doctor --repair r")


FORGED = {
    "beyond": (10**12, b""),
    "negative": (-5, b""),
    "beginning": (0, b""),
    "end": (None, b""),
    "long ago": (None, b"x"),
    "whole": (None, None),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_snapshot_that_somebody_else_wrote_does_not_keep_a_run_from_being_read(tmp_path: Path, how: str) -> None:
    """It is a file like others, and its checksum is no secret: it has to fit, and the rest has to follow from it."""
    folder = create(project_in(tmp_path))
    right = journal.read(folder)
    data = Path(folder.journal).read_bytes()
    first = data.index(b"\n") + 1
    offset, last = FORGED[how]
    offset = first if offset is None else offset
    run = Run(seq=7)
    Path(folder.snapshot).write_bytes(
        run_snapshot.pack(offset, data[first - 18 : first] if last is None else last, run)
    )
    found = journal.read(folder)
    assert (found.run.seq, found.size, found.torn, found.folded_from) == (1, right.size, 0, first)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EIO, "nothing was changed: fix this, then the same command again; `raymond doctor` looks at every run"),
        (errno.EACCES, "chmod u+rw JOURNAL, as the user it belongs to; then the same command again"),
        (errno.ELOOP, "this cannot be repaired: restore a copy of the file, or move its folder away"),
        (errno.ENOENT, "`raymond list` shows the runs that are there"),
    ],
)
def test_a_journal_that_cannot_be_opened_is_not_to_be_resumed(tmp_path: Path, number: int, hint: str) -> None:
    folder = project_in(tmp_path).run("r")
    error = run_folder.cannot_open(folder, OSError(number, os.strerror(number)))
    assert error.hint == hint.replace("JOURNAL", folder.journal)
