"""Programs may pass anything: what cannot be stored or is not allowed is refused before anything is written."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import raymond
from raymond.control import runs
from raymond.control.attach import attach
from raymond.control.drive import hold
from raymond.control.follow import Follower
from raymond.drivers.face import Quiet
from raymond.errors import JournalError, UsageError
from raymond.machine.events import RunStopped
from raymond.store import lock
from running import until

SECRET = "s3cr3tv4lu3-abcdef99"


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A workflow that asks, in a project without runs."""
    folder = tmp_path / "flow"
    folder.mkdir()
    (folder / "START.sh").write_text("echo '<ask next=\"END\">Really?</ask>'")
    (folder / "END.sh").write_text('echo "<result>$RAYMOND_INPUT</result>"')
    monkeypatch.chdir(tmp_path)
    return str(folder)


def journals() -> list[str]:
    return [row.workflow_id for row in runs.rows()]


BAD: dict[str, dict[str, Any]] = {
    "budget nan": {"budget": float("nan")},
    "budget inf": {"budget": float("inf")},
    "budget huge": {"budget": 1e308},
    "iterations huge": {"max_iterations": 10**23},
    "time huge": {"max_time": 10**400},
    "budget text": {"budget": "5"},
    "budget bool": {"budget": True},
    "budget negative": {"budget": -5},
    "time text": {"max_time": "8h"},
    "time nan": {"max_time": float("nan")},
    "timeout negative": {"timeout": -1.0},
    "iterations": {"max_iterations": -1},
    "turns": {"max_turns": -2},
    "parallel": {"max_parallel": 0},
    "tools": {"allow_tools": "Bash"},
    "notify": {"notify": "x"},
    "input none": {"input": None},
    "input surrogate": {"input": "\ud800"},
    "id": {"id": 5},
    "mode": {"permission_mode": "foo"},
    "variable name": {"variables": {"a=b": "x"}},
    "variable value": {"variables": {"a": 5}},
}


@pytest.mark.parametrize("given", BAD.values(), ids=list(BAD))
def test_options_that_make_no_sense_are_refused_and_nothing_is_written(flow: str, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        raymond.start(flow, raymond.Options(**given))
    assert journals() == []


def test_options_that_are_no_options_are_refused(flow: str) -> None:
    with pytest.raises(UsageError, match=r"raymond\.Options"):
        raymond.start(flow, {"input": "x"})  # type: ignore[arg-type]  # what a hurried caller passes


def test_every_option_that_is_set_reaches_the_run(flow: str) -> None:
    said = {"max_wait": 1.0, "patience": 2.0, "tool_timeout": 3.0, "retryable": ["zz"], "max_time": 4.0}
    start = raymond.start(flow, raymond.Options(**said)).read().start  # type: ignore[arg-type]  # one dict for many types
    assert {name: getattr(start, name) for name in said} == said


def test_a_large_budget_is_a_budget(flow: str) -> None:
    handle = raymond.start(flow, raymond.Options(budget=1e9))
    assert handle.drive() == "waiting"


@pytest.mark.parametrize(
    "given", [{"overrides": {"START.sh": {"model": SECRET}}}, {"variables": {"x": SECRET}}, {"input": SECRET}]
)
def test_a_secret_is_refused_wherever_a_program_says_it(
    flow: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with pytest.raises(UsageError, match="MY_TOKEN"):
        raymond.start(flow, raymond.Options(**given))
    assert journals() == []


@pytest.mark.parametrize("answer", [None, 5, "\ud800"])
def test_an_answer_that_is_no_text_is_refused_and_the_journal_stays_readable(flow: str, answer: Any) -> None:
    handle = raymond.start(flow)
    handle.drive()
    with pytest.raises(UsageError):
        handle.answer("main", answer)
    assert handle.status() == "waiting"


class Typing(Quiet):
    """A face into which somebody types an answer."""

    def __init__(self, answer: str) -> None:
        self.reader, writer = os.pipe()
        os.write(writer, b"x")
        os.close(writer)
        self.stdin = self.reader
        self.answer = answer
        self.notes: list[str] = []

    def answers(self) -> list[tuple[str, str]]:
        """The one answer, then nobody types any more."""
        self.stdin = -1
        return [("main", self.answer)]

    def on_note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


def test_a_secret_that_is_typed_into_any_face_is_not_taken(flow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    handle, face = raymond.start(flow), Typing(SECRET)
    with hold(handle.project, handle.id, face) as held:
        held.drive()
    assert handle.status() == "waiting"
    assert face.notes == ["the answer to main contains the value of MY_TOKEN, so it was not taken"]
    assert SECRET not in Path(handle.project.run(handle.id).journal).read_text("utf-8")


def test_a_run_that_a_program_drives_notifies_as_any_other(flow: str, tmp_path: Path) -> None:
    handle = raymond.start(flow, raymond.Options(notify=[f"touch {tmp_path}/told"]))
    handle.drive()
    until(lambda: (tmp_path / "told").exists(), "the notification")


def test_a_journal_under_another_name_is_refused_and_no_other_run_changes(flow: str) -> None:
    """Whatever it says of itself, a request to `two` must not write into `one`."""
    one = raymond.start(flow, raymond.Options(id="one"))
    one.drive()
    project = one.project
    shutil.copytree(project.run("one").path, project.run("two").path)
    one.answer("main", "yes")
    before = Path(project.run("one").journal).read_bytes()
    with pytest.raises(JournalError, match="journal of another run, `one`"):
        raymond.find("two").answer("main", "no")
    assert Path(project.run("one").journal).read_bytes() == before


def test_a_stop_turns_a_paused_run_into_a_stopped_one(flow: str) -> None:
    handle = raymond.start(flow)
    run = handle.read()
    run.stop = RunStopped(kind="paused")
    from raymond.machine import requests
    from raymond.store.workflow_snapshot import placed_workflow as placed_of

    placed = placed_of(handle.project, run)
    taken = requests.take(run, placed, requests.Request(id="q", kind="stop"))
    assert taken[1:] == [RunStopped(kind="stop")]
    run.stop = RunStopped(kind="limit", limit="budget", amount=1.0)
    assert requests.take(run, placed, requests.Request(id="q2", kind="stop"))[1:] == []


def test_a_secret_that_is_typed_while_watching_is_not_left_for_the_driver(
    flow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    handle, face = raymond.start(flow), Typing(SECRET)
    handle.drive()
    held = lock.take(handle.project.run(handle.id))
    follower = Follower(handle.project, handle.id)

    def answers() -> list[tuple[str, str]]:
        held.release()  # the driver leaves, and with it the watching ends
        return Typing.answers(face)

    monkeypatch.setattr(face, "answers", answers)
    attach(handle.project, handle.id, follower, face, "watching")
    assert "the answer contains the value of MY_TOKEN, so it was not taken" in face.notes
    assert list(Path(handle.project.run(handle.id).inbox).glob("*")) == []
