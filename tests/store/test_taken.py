"""Whether a request is in the journal of a run."""

import contextlib
import shutil
from pathlib import Path

import pytest

from crash import runs
from raymond.control.request import deliver
from raymond.errors import RunNotFound
from raymond.store import journal
from raymond.store.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The project of a run `r` that asks something."""
    project = runs.project_in(tmp_path)
    flow = runs.workflow(tmp_path / "flow", START_sh="""echo '<ask next="END">"request":"quoted"</ask>'""", END_sh="")
    with contextlib.chdir(tmp_path):
        runs.drive(project, runs.begin(project, flow, id="r"))
    return project


def test_what_was_taken_is_found_also_far_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, request = project.run("r"), runs.request("answer", text="yes")
    assert not journal.has_request(folder, request.id)
    deliver(project, "r", request)
    assert journal.has_request(folder, request.id)
    monkeypatch.setattr(journal, "_LATEST_BYTES", 10)
    assert journal.has_request(folder, request.id)


def test_a_run_that_was_removed_meanwhile_is_not_to_be_resumed(project: Project) -> None:
    shutil.rmtree(project.run("r").path)
    with pytest.raises(RunNotFound) as caught:
        journal.has_request(project.run("r"), "any")
    assert str(caught.value) == "run `r` no longer exists"


def test_what_somebody_wrote_is_no_request(project: Project) -> None:
    folder = project.run("r")
    assert b"quoted" in Path(folder.journal).read_bytes()
    assert not journal.has_request(folder, "quoted")
    with open(folder.journal, "ab") as file:
        file.write(b'{"seq":9,"events":[{"type":"RequestTaken","request":"torn"')
    assert not journal.has_request(folder, "torn")
