"""The snapshot of a run's workflow: one for all runs that have it, and never another than was kept."""

import errno
import os
from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.store import loader, workflow_snapshot, zips
from raymond.store.home import Home
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(Home(f"{tmp_path}/home"), f"{tmp_path}/tree")
    project.make()
    return project


def folder(project: Project, id: str = "r") -> RunFolder:
    os.mkdir(project.run(id).path)
    return project.run(id)


def workflow(tmp_path: Path, text: str = "hello") -> Loaded:
    (tmp_path / "flow").mkdir(exist_ok=True)
    (tmp_path / "flow" / "START.md").write_text(text)
    return loader.load(str(tmp_path / "flow"))


def shared(project: Project, loaded: Loaded) -> str:
    return f"{project.home.sources}/{loaded.digest}.zip"


def test_runs_of_one_workflow_share_its_snapshot(project: Project, tmp_path: Path) -> None:
    loaded = workflow(tmp_path)
    runs = [folder(project, id) for id in ("one", "two")]
    for run in runs:
        workflow_snapshot.put(run, loaded)
    paths = [shared(project, loaded), *(run.source for run in runs)]
    assert len({os.stat(path).st_ino for path in paths}) == 1
    assert [workflow_snapshot.read(run, loaded.digest) for run in runs] == [loaded.files] * 2


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOENT])
def test_a_file_system_without_links_holds_a_copy(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*names: str) -> None:
        raise OSError(number, os.strerror(number))

    loaded, run = workflow(tmp_path), folder(project)
    monkeypatch.setattr(os, "link", refuse)
    workflow_snapshot.put(run, loaded)
    assert os.stat(run.source).st_nlink == 1
    assert workflow_snapshot.read(run, loaded.digest) == loaded.files


@pytest.mark.parametrize("harm", ["other", "same size", "link"])
def test_a_shared_snapshot_that_is_not_what_its_name_says_is_not_taken(
    project: Project, tmp_path: Path, harm: str
) -> None:
    loaded, run = workflow(tmp_path), folder(project)
    path = Path(shared(project, loaded))
    planted = b"x" * len(loaded.source) if harm == "same size" else zips.write({"START.md": b"evil"})
    (tmp_path / "planted").write_bytes(planted)
    if harm == "link":
        path.symlink_to(tmp_path / "planted")
    else:
        path.write_bytes(planted)
    workflow_snapshot.put(run, loaded)
    assert workflow_snapshot.read(run, loaded.digest) == loaded.files
    assert path.read_bytes() == loaded.source
    assert (tmp_path / "planted").read_bytes() == planted, "nothing was written through a link"


def test_the_snapshot_of_a_run_outlives_the_shared_one(project: Project, tmp_path: Path) -> None:
    loaded, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, loaded)
    os.unlink(shared(project, loaded))
    assert workflow_snapshot.read(run, loaded.digest) == loaded.files


@pytest.mark.parametrize("content", [None, b"", b"no zip", zips.write({"START.md": b"evil"})])
def test_one_that_was_changed_is_read_from_the_shared_one(
    project: Project, tmp_path: Path, content: bytes | None
) -> None:
    loaded, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, loaded)
    os.unlink(run.source)
    if content is not None:
        Path(run.source).write_bytes(content)
    assert workflow_snapshot.read(run, loaded.digest) == loaded.files


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "SOURCE: no such file or directory"),
        (zips.write({"START.md": b"evil"}), "SOURCE was changed after it was kept"),
    ],
)
def test_one_that_is_nowhere_what_was_kept_is_refused(
    project: Project, tmp_path: Path, content: bytes | None, why: str
) -> None:
    loaded, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, loaded)
    os.unlink(shared(project, loaded))
    os.unlink(run.source)
    if content is not None:
        Path(run.source).write_bytes(content)
    with pytest.raises(JournalError) as caught:
        workflow_snapshot.read(run, loaded.digest)
    assert str(caught.value) == f"the snapshot of the workflow cannot be read: {why.replace('SOURCE', run.source)}"
    assert caught.value.hint == "restore the file, then `raymond resume r`"


def test_a_newer_one_is_prepared_and_then_changed_to(project: Project, tmp_path: Path) -> None:
    old, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, old)
    new = workflow(tmp_path, "newer")
    workflow_snapshot.prepare(run, new)
    assert workflow_snapshot.read(run, old.digest) == old.files
    assert workflow_snapshot.read(run, new.digest) == new.files, "killed here, the journal may name either"
    workflow_snapshot.use_prepared(run)
    assert workflow_snapshot.read(run, new.digest) == new.files
    os.unlink(shared(project, old))
    assert workflow_snapshot.read(run, old.digest) == old.files, "a repair may lead back to it"


def test_what_a_killed_process_prepared_is_settled_by_what_the_journal_names(project: Project, tmp_path: Path) -> None:
    one, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, one)
    two = workflow(tmp_path, "two")
    workflow_snapshot.prepare(run, two)
    workflow_snapshot.settle_prepared(run, one.digest)
    assert sorted(os.listdir(run.path)) == ["source.zip"], "nothing came of it"
    workflow_snapshot.prepare(run, two)
    workflow_snapshot.settle_prepared(run, two.digest)
    three = workflow(tmp_path, "three")
    workflow_snapshot.prepare(run, three)
    for path in Path(project.home.sources).iterdir():
        path.unlink()
    assert workflow_snapshot.read(run, two.digest) == two.files, "the next one to be prepared does not take its place"


def test_one_that_goes_aside_takes_the_place_of_no_other(project: Project, tmp_path: Path) -> None:
    """A repair can lead back to the first one while the second is in place; a third one then puts that aside."""
    one, run = workflow(tmp_path), folder(project)
    workflow_snapshot.put(run, one)
    two = workflow(tmp_path, "two")
    workflow_snapshot.prepare(run, two)
    workflow_snapshot.use_prepared(run)
    three = workflow(tmp_path, "three")
    workflow_snapshot.prepare(run, three)
    workflow_snapshot.settle_prepared(run, one.digest)
    assert Path(run.source).read_bytes() == two.source, "nothing came of the third"
    workflow_snapshot.prepare(run, three)
    workflow_snapshot.use_prepared(run)
    for path in Path(project.home.sources).iterdir():
        path.unlink()
    for loaded in (one, two, three):
        assert workflow_snapshot.read(run, loaded.digest) == loaded.files
