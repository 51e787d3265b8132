"""Journals of other versions, and damaged ones: refused with everything left as it was."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from crash import record, runs
from raymond import cli
from raymond.store import journal, lock
from raymond.store.journal import FORMAT
from raymond.store.project import Project

DOCTOR = "hint: `raymond doctor --repair rich` keeps a copy, cuts the journal there and lists the lost steps\n"


def place(folder: Path, data: bytes, id: str = "rich") -> tuple[Project, Path]:
    """A project with this journal."""
    project = runs.project_in(folder)
    path = Path(project.run(id).journal)
    path.parent.mkdir()
    path.write_bytes(data)
    return project, path


@cache
def rich() -> bytes:
    """The journal of a run of the rich workflow."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        project = runs.project_in(Path(folder, "project"), Path(folder, "home"))
        id = runs.begin(project, runs.RICH, id="rich", input="the world")
        runs.finish(project, id)
        return Path(project.run(id).journal).read_bytes()


def lines() -> list[bytes]:
    """That journal, line by line; changed as it was read, every line ends in its checksum."""
    return rich().splitlines(keepends=True)


def refused(folder: Path, data: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Every command that reads the journal refuses it in the same words and leaves it alone; what it says."""
    project, path = place(folder, data)
    monkeypatch.chdir(folder)
    capsys.readouterr()
    said = set()
    for command in (["resume", "rich"], ["status", "rich"], ["stop", "rich"], ["answer", "rich", "main", "yes"]):
        assert cli.main(command) == 1
        told = capsys.readouterr()
        assert told.out == ""
        said.add(told.err.replace(str(path), "JOURNAL"))
        assert path.read_bytes() == data
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["rich", "unreadable"]
    assert cli.main(["run", str(runs.RICH), "--id", "rich"]) == 2
    assert capsys.readouterr().err.startswith("error: run `rich` already exists\n")
    assert path.read_bytes() == data
    assert [name.name for name in path.parent.iterdir()] == [path.name]
    assert os.listdir(project.runs) == ["rich"], "nothing of the second run is left"
    assert len(said) == 1, said
    return said.pop()


# --- of another version


def test_an_event_of_another_version_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lines()
    data.insert(
        11,
        record.line(b'{"seq":11,"time":"2026-11-15T08:00:00.000Z","events":[{"type":"AgentDreamt","agent":"main"}]}'),
    )
    assert refused(tmp_path, b"".join(data[:12]), capsys, monkeypatch) == (
        "error: line 12 of JOURNAL has something that this version does not know "
        "(Invalid value 'AgentDreamt' - at `$.events[0].type`)\n"
        "hint: it was written by another version of Raymond: use that one; nothing was changed\n"
    )


def test_a_value_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lines()[:3]
    data[2] = record.line(record.bare(data[2]).replace(b'"step":1', b'"step":{"number":1}'))
    assert refused(tmp_path, b"".join(data), capsys, monkeypatch) == (
        "error: line 3 of JOURNAL has something that this version does not know "
        "(Expected `int`, got `object` - at `$.events[0].step`)\n"
        "hint: it was written by another version of Raymond: use that one; nothing was changed\n"
    )


def of_format(number: int) -> bytes:
    """The journal of another version; nothing but its first line has to be known of it."""
    other = record.line(b'{"seq":1,"time":"once","mood":"new","events":[{"type":"RunDreamt"}]}')
    return record.line(b'{"format":%d,"id":"rich","mood":"new"}' % number) + other


@pytest.mark.parametrize("number", [0, 1, FORMAT - 1, FORMAT + 1, 99])
def test_every_other_format_is_refused_lower_or_higher(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(tmp_path, of_format(number), capsys, monkeypatch) == (
        f"error: JOURNAL has format {number}, but this version of Raymond reads only {FORMAT}; nothing was changed\n"
        "hint: finish it with the version that began it, or remove it: `raymond clean --force rich`\n"
    )


def test_a_run_of_another_format_is_removed_only_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, path = place(tmp_path, of_format(1))
    monkeypatch.chdir(tmp_path)
    for command in (["clean", "rich"], ["doctor", "--repair", "rich"]):
        assert cli.main(command) == 1
        assert capsys.readouterr().err.startswith(f"error: {path} has format 1, but this version of Raymond reads")
    assert cli.main(["clean", "--keep", "0s"]) == 0
    held = lock.take(project.run("rich"))
    assert cli.main(["clean", "--force", "rich"]) == 1, "a process drives it"
    held.release()
    assert path.read_bytes() == of_format(1)
    assert cli.main(["clean", "--force", "rich"]) == 0
    assert os.listdir(project.runs) == []


# --- damaged


def flipped(data: list[bytes]) -> None:
    data[20] = data[20].replace(b'"seq":', b'"sep":')


def emptied(data: list[bytes]) -> None:
    data[20] = b"\0" * (len(data[20]) - 1) + b"\n"


def joined(data: list[bytes]) -> None:
    data[20] = data[20].replace(b"\n", b" ")


def shortened(data: list[bytes]) -> None:
    data[20] = data[20][40:]


@pytest.mark.parametrize("harm", [flipped, emptied, joined, shortened])
def test_damage_in_the_middle_is_refused_with_its_line(
    harm: Callable[[list[bytes]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = lines()
    harm(data)
    said = refused(tmp_path, b"".join(data), capsys, monkeypatch)
    assert said == f"error: line 21 of JOURNAL is damaged and good lines follow it\n{DOCTOR}"


@pytest.mark.parametrize(("harm", "line", "found", "due"), [("missing", 21, 21, 20), ("twice", 22, 20, 21)])
def test_a_line_that_is_missing_or_there_twice_is_damage(
    harm: str,
    line: int,
    found: int,
    due: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = lines()
    data[20:21] = [] if harm == "missing" else [data[20], data[20]]
    said = refused(tmp_path, b"".join(data), capsys, monkeypatch)
    assert said == f"error: line {line} of JOURNAL is decision {found} where {due} is expected\n{DOCTOR}"


def test_a_damaged_first_line_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lines()
    data[0] = data[0].replace(b"format", b"farmat")
    said = refused(tmp_path, b"".join(data), capsys, monkeypatch)
    assert said == (
        "error: JOURNAL is not a journal of Raymond, or its first line is damaged\n"
        "hint: this cannot be repaired: restore a copy of the file, or move its folder away\n"
    )


def test_a_bad_last_line_with_both_ends_is_damage_and_not_torn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that a crash tore has no end: this one was written, and followed."""
    data = lines()[:-1]
    data[-1] = data[-1].replace(b"StepFinished", b"StepFinisheD")
    said = refused(tmp_path, b"".join(data), capsys, monkeypatch)
    assert said == f"error: line {len(data)} of JOURNAL is complete and damaged\n{DOCTOR}"


def test_a_line_that_cannot_follow_is_damage_in_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What two drivers at once would write: each line is good, and together they make no sense."""
    data = lines()[:21]
    event = b'{"seq":21,"time":"2026-11-15T08:00:00.000Z","events":[{"type":"AgentWoke","agent":"nobody"}]}'
    said = refused(tmp_path, b"".join([*data, record.line(event)]), capsys, monkeypatch)
    assert said == (f"error: line 22 of JOURNAL cannot follow from the lines before it (KeyError: 'nobody')\n{DOCTOR}")


def test_a_run_that_cannot_be_read_does_not_stand_in_the_way_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lines()
    flipped(data)
    project, _ = place(tmp_path, b"".join(data), "broken")
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>fine</result>'"), id="good")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["resume"]) == 2
    assert "good may not be the only one: broken cannot be read" in capsys.readouterr().err
    assert cli.main(["resume", "good"]) == 0
    assert capsys.readouterr().out == "fine\n"
    assert runs.ending(journal.read(project.run(id)).run) == ("completed", 0)


# --- the snapshot is a cache


def snap(project: Project, read: journal.Folded) -> None:
    """Write the snapshot of a run, as its driver does."""
    held = lock.take(project.run("rich"))
    book = journal.Journal(project.run("rich"), read.size, held)
    book.snapshot(read.run, force=True)
    book.close()
    held.release()


def test_a_run_read_from_a_snapshot_at_any_decision_is_the_same(tmp_path: Path) -> None:
    data = lines()
    whole, path = place(tmp_path, b"".join(data))
    decisions = journal.decisions(whole.run("rich"))
    full = runs.exactly(journal.read(whole.run("rich")).run)
    for upto in range(1, len(decisions)):
        path.write_bytes(b"".join(data[: upto + 1]))
        read = journal.read(whole.run("rich"))
        snap(whole, read)
        path.write_bytes(b"".join(data))
        again = journal.read(whole.run("rich"))
        assert again.folded_from == read.size, "it was read from the snapshot"
        assert runs.exactly(again.run) == full, f"snapshot after decision {upto}"


def test_a_snapshot_that_does_not_fit_is_not_used(tmp_path: Path) -> None:
    data = lines()
    project, path = place(tmp_path, b"".join(data))
    read = journal.read(project.run("rich"))
    snap(project, read)
    kept = Path(project.run("rich").snapshot)
    header = len(data[0])

    path.write_bytes(b"".join(data[:20]))
    assert (journal.read(project.run("rich")).folded_from, journal.read(project.run("rich")).run.seq) == (header, 19)
    path.write_bytes(b"".join(data))
    good = kept.read_bytes()
    for bad in (b"", good[:100], b"\0" * len(good), good[:-1], good.replace(b"PART.sh", b"BART.sh")):
        kept.write_bytes(bad)
        assert journal.read(project.run("rich")).folded_from == header
        assert runs.exactly(journal.read(project.run("rich")).run) == runs.exactly(read.run)
