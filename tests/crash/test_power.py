"""What a loss of power may take: nothing that paid work was started from, or that followed from it."""

import os
import shutil
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec import Struct

from crash import runs, torture
from crash.person import Person
from raymond.errors import JournalError
from raymond.machine.events import Decision, EvaluatorEnded, StepFinished, StepStarted
from raymond.store import journal
from raymond.store.project import Project
from raymond.workspace.place import Place

T = TypeVar("T")


class Spawned(Struct):
    """A process that was started, and how much was safe at that moment."""

    program: str
    session: str
    written: int
    """Bytes of the journal."""
    synced: int
    """Bytes that a loss of power could not have taken."""


class Watched(Struct):
    """What the system was asked to do."""

    spawned: list[Spawned] = []
    synced: int = 0
    folders: list[str] = []
    """Folders that were synced, in order."""


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The system calls themselves, which do what they always do."""
    watched = Watched()
    fdatasync, fsync, spawn = os.fdatasync, os.fsync, os.posix_spawn

    def name(fd: int) -> str:
        return os.readlink(f"/proc/self/fd/{fd}")

    def size(path: str) -> int:
        return os.path.getsize(path) if path else 0

    journals: list[str] = []

    def sync_file(fd: int) -> None:
        fdatasync(fd)
        if name(fd).endswith("/r/journal.jsonl"):
            journals.append(name(fd))
            watched.synced = os.fstat(fd).st_size

    def sync_folder(fd: int) -> None:
        fsync(fd)
        watched.folders.append(os.path.basename(name(fd)))

    def start(path: str, argv: list[str], env: dict[bytes, bytes], **given: Any) -> int:
        session = argv[argv.index("--session-id") + 1] if "--session-id" in argv else ""
        written = size(journals[-1] if journals else "")
        watched.spawned.append(Spawned(os.path.basename(argv[-1]), session, written, watched.synced))
        return spawn(path, argv, env, **given)

    monkeypatch.setattr(os, "fdatasync", sync_file)
    monkeypatch.setattr(os, "fsync", sync_folder)
    monkeypatch.setattr(os, "posix_spawn", start)
    return watched


def started_in(project: Project) -> dict[str, int]:
    """Where the line ends that starts each turn, by session."""
    return {event.session: end for end, event in events_of(project, StepStarted) if event.session}


def finished_in(project: Project) -> list[int]:
    """Where the lines end that say what a turn, or a judge, has replied."""
    turns = [end for end, event in events_of(project, StepFinished) if event.session]
    return turns + [end for end, event in events_of(project, EvaluatorEnded) if event.cost]


def events_of(project: Project, kind: type[T]) -> list[tuple[int, T]]:
    """Every event of this kind, and where its line ends."""
    data = Path(project.run("r").journal).read_bytes()
    lines: list[tuple[int, Decision]] = list(
        zip(runs.boundaries(data)[1:], journal.decisions(project.run("r")), strict=True)
    )
    return [(end, event) for end, one in lines for event in one.events if isinstance(event, kind)]


@pytest.mark.slow
def test_no_turn_starts_and_nothing_follows_from_one_before_the_disk_has_it(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("RAYMOND_HOME", str(tmp_path / "new" / "home"))
    project = runs.project_in(tmp_path)
    id = runs.begin(project, torture.FLOW, id="r", input="it", backend="scripted-program")
    made = {tmp_path.name, "new", "home", "projects", os.path.basename(project.root)}
    assert made <= set(watched.folders), "the names of new folders are safe"
    [unfinished] = [one for one in watched.folders if one.startswith(".r.")]
    assert watched.folders[-3:] == ["sources", unfinished, "runs"], "and those of new files, before the run has its own"
    run = runs.drive(project, id).run

    assert runs.ending(run) == ("completed", 0)
    started, finished = started_in(project), finished_in(project)
    turns = [one for one in watched.spawned if one.session]
    assert len(turns) == len(started) == len(finished) == 9
    for turn in turns:
        assert turn.synced >= started[turn.session], "the turn was started before it was safe that it was"
    for one in watched.spawned:
        followed = [end for end in finished if end <= one.written]
        assert one.synced >= max(followed, default=0), f"{one.program} followed from a turn whose end was not safe"
    assert watched.synced == os.path.getsize(project.run(id).journal), "at the end everything is"


def test_a_long_text_is_safe_before_the_line_that_refers_to_it(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="printf '<goto input=\"'; head -c 40000 /dev/zero | tr '\\0' x; echo '\">END.sh</goto>'",
        END_sh='echo "<result>$(wc -c < "$RAYMOND_INPUT_FILE")</result>"',
    )
    id = runs.begin(project, flow, id="r")
    watched.folders.clear()
    runs.drive(project, id)
    assert [one for one in watched.folders if one in ("r", "blobs")] == ["r", "blobs"]
    assert runs.outcomes(journal.read(project.run(id)).run)["main"][2] == "40000"


def test_a_run_with_long_texts_is_cut_anywhere_and_ends_the_same(tmp_path: Path) -> None:
    """The text stands beside the journal; a cut leaves it there, unused or used again."""
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="printf '<goto input=\"'; head -c 40000 /dev/zero | tr '\\0' x; echo '\">END.sh</goto>'",
        END_sh='echo "<result>$(cat "$RAYMOND_INPUT_FILE")</result>"',
    )
    id = runs.begin(project, flow, id="r")
    whole = runs.outcomes(runs.drive(project, id).run)
    data = Path(project.run(id).journal).read_bytes()
    assert len(data) < 4000
    for line, end in enumerate(runs.boundaries(data)[1:]):
        copy = runs.copy(project, tmp_path / f"{line}")
        Path(copy.run(id).journal).write_bytes(data[:end])
        assert runs.outcomes(runs.drive(copy, id).run) == whole


def test_a_long_text_that_is_gone_is_damage_of_the_line_that_needs_it(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="exit 1"), id="r", input="x" * 20_000)
    (blob,) = Path(project.run(id).blobs).iterdir()
    blob.unlink()
    with pytest.raises(JournalError) as caught:
        journal.read(project.run(id))
    path = project.run(id).journal
    assert str(caught.value) == f"line 2 of {path} needs {blob}: no such file or directory"
    assert caught.value.line == 2


TRACED = '#!/bin/sh\nexport GIT_TRACE2_EVENT={log}\nexec {git} "$@"\n'


def flushed(log: Path) -> list[str]:
    """The commands of git that had something on the disk when they ended, in order."""
    told = [msgspec.json.decode(line) for line in log.read_text("utf-8").splitlines()]
    names = {one["sid"]: one["name"] for one in told if one["event"] == "cmd_name"}
    return [names[id] for id in dict.fromkeys(one["sid"] for one in told if one.get("category") == "fsync")]


def test_a_tree_and_the_work_in_it_are_on_the_disk_before_anything_names_them(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin, log, slots = tmp_path / "bin", tmp_path / "log", tmp_path / "slots"
    bin.mkdir()
    (bin / "git").write_text(TRACED.format(log=log, git=shutil.which("git")), "utf-8")
    (bin / "git").chmod(0o755)
    (tmp_path / "room").mkdir()
    person = Person(tmp_path / "room", str(slots))
    monkeypatch.setenv("PATH", f"{bin}:{os.environ['PATH']}")
    place = Place(str(slots), str(person.room), "r", str(tmp_path), "isolated")
    watched.folders.clear()
    place.open([], print, 0.0)
    assert flushed(log)[-2:] == ["unpack-objects", "update-ref"], "what the tree began with"
    assert watched.folders == ["1"], "last comes what makes it a tree"
    log.unlink()
    Path(place.slot.tree, "new").write_text("by an agent\n", "utf-8")
    with place.alone():
        place.save(place.harvest(), "work\n", 0.0)
    assert flushed(log) == ["hash-object", "write-tree", "commit-tree", "unpack-objects", "update-ref"]
