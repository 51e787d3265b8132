"""How a journal comes into being: whole or not at all, and once for every id."""

import errno
import os
import signal
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.machine.events import Decision, RunResumed, RunStarted
from raymond.store import journal
from raymond.store.project import Project

FIRST = Decision(seq=1, time=1.0, events=[RunResumed(version="x" * 1000)])
CREATE = """
import os, signal, sys

from raymond.machine.events import Decision, RunResumed, RunStarted
from raymond.store import journal
from raymond.store.project import Project

left = int(sys.argv[2])


def deadly(call):
    def count(*args, **given):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **given)

    return count


decision = Decision(seq=1, time=1.0, events=[RunResumed(version="x" * 1000)])
for name in ("open", "write", "close", "link", "unlink", "fdatasync", "fsync", "makedirs"):
    setattr(os, name, deadly(getattr(os, name)))
journal.create(Project(sys.argv[1]), "r", decision)
"""


def project_in(folder: Path) -> Project:
    (folder / ".raymond").mkdir(parents=True)
    return Project(str(folder / ".raymond"))


def names(project: Project) -> list[str]:
    return sorted(os.listdir(project.path("workflows")))


def test_a_new_journal_is_the_only_file_that_is_left(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    journal.create(project, "r", FIRST)
    assert names(project) == ["r.jsonl"]
    path = Path(project.journal("r"))
    assert (path.stat().st_mode & 0o777, path.stat().st_nlink) == (0o600, 1)
    assert journal.decisions(project, "r") == [FIRST]


def test_a_kill_at_any_call_leaves_a_whole_journal_or_none(tmp_path: Path) -> None:
    """What a kill leaves never stands in the way of the id, unless the run was begun."""
    ends = []
    for call in range(1, 100):
        project = project_in(tmp_path / str(call))
        done = subprocess.run([sys.executable, "-c", CREATE, project.root, str(call)], check=False)
        if project.ids():
            assert journal.decisions(project, "r") == [FIRST]
        else:
            journal.create(project, "r", FIRST)
            assert project.ids() == ["r"]
        ends.append(done.returncode)
        if done.returncode == 0:
            break
    assert ends == [-signal.SIGKILL] * (len(ends) - 1) + [0]
    assert len(ends) > 8


def test_of_many_that_create_the_same_id_at_once_one_does(tmp_path: Path) -> None:
    project = project_in(tmp_path)

    def create(number: int) -> str:
        try:
            journal.create(project, "r", Decision(seq=1, time=1.0, events=[RunResumed(version=str(number))]))
        except JournalError as error:
            return str(error)
        return str(number)

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(create, range(32)))
    [winner] = [one for one in said if one.isdigit()]
    assert said.count("run `r` already exists") == 31
    [decision] = journal.decisions(project, "r")
    assert decision.events == [RunResumed(version=winner)]
    assert names(project) == ["r.jsonl"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS])
def test_a_file_system_without_links_holds_journals_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*names: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    project = project_in(tmp_path)
    journal.create(project, "r", FIRST)
    assert journal.decisions(project, "r") == [FIRST]
    with pytest.raises(JournalError) as caught:
        journal.create(project, "r", FIRST)
    assert str(caught.value) == "run `r` already exists"
    assert names(project) == ["r.jsonl"]


def test_a_journal_that_does_not_fit_on_the_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    project = project_in(tmp_path)
    with pytest.raises(JournalError) as caught:
        journal.create(project, "r", FIRST)
    assert str(caught.value) == f"{project.journal('r')}: no space left on device"
    assert caught.value.hint == "no run was started: fix this, then start it again"
    assert names(project) == []


def test_a_disk_that_fails_when_the_name_is_in_place_has_begun_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    project = project_in(tmp_path)
    with pytest.raises(JournalError) as caught:
        journal.create(project, "r", FIRST)
    assert str(caught.value) == f"{project.journal('r')}: input/output error"
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume r`"
    assert journal.decisions(project, "r") == [FIRST]


def test_a_long_text_that_cannot_be_kept_names_the_run_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(old: str, new: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    project = project_in(tmp_path)
    journal.create(project, "r", FIRST)
    book = journal.Journal(project, "r", os.path.getsize(project.journal("r")))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(JournalError) as caught:
        book.append(Decision(seq=2, time=1.0, events=[RunResumed(version="x" * 20_000)]))
    assert caught.value.path.startswith(project.path("blobs"))
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume r`"
    book.close()


def test_a_failure_class_that_a_backend_of_an_earlier_release_made_up_is_read_as_a_crash(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    start = RunStarted(workflow_id="r", key="k", name="n", scope_dir="", source="s", entry="A.md", cwd="/")
    journal.create(project, "r", Decision(seq=1, time=1.0, events=[start]))
    body = b'{"seq":2,"time":"2026-01-01T00:00:00.000Z","events":[{"type":"BackendClosed","backend":"b","kind":"wat","error":"e"}]'
    with open(project.journal("r"), "ab") as file:
        file.write(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)))
    closed = journal.read(project, "r").run.closed["b"]
    assert (closed.kind, closed.error) == ("crash", "wat: e")
