"""A run held by a program: started, driven, followed, answered and stopped from Python."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

import raymond
from raymond.control import drive, runs
from raymond.control.follow import Follower
from raymond.control.upgrade import upgrade
from raymond.errors import RunBusy, RunExists, RunNotFound, UsageError, WorkflowError
from raymond.machine.events import AskEnded, AskStarted, RunEnded, RunStarted, RunStopped
from raymond.store import lock
from running import until

ASKS = {
    "START.sh": """echo '<ask next="END.sh">which?</ask>'""",
    "END.sh": 'echo "<result>it was $RAYMOND_INPUT</result>"',
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to work in, and nobody's settings."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith(("RAYMOND_", "XDG_"))]:
        monkeypatch.delenv(name)
    return project


def flow(files: dict[str, str], name: str = "flow") -> str:
    Path(name).mkdir(exist_ok=True)
    for file, text in files.items():
        Path(name, file).write_text(text, "utf-8")
    return name


@pytest.mark.usefixtures("here")
def test_a_run_is_begun_and_not_driven_by_start() -> None:
    handle = raymond.start(flow(ASKS), raymond.Options(id="r", budget=3))
    assert handle.id == "r"
    assert isinstance(next(handle.events()), RunStarted)
    assert handle.read().steps == 0
    assert (handle.read().limits.budget, handle.status(), handle.result) == (3, "interrupted", None)


@pytest.mark.usefixtures("here")
def test_a_run_is_driven_answered_and_driven_to_its_end() -> None:
    handle = raymond.start(flow(ASKS))
    assert handle.drive() == handle.status() == "waiting"
    assert handle.answer("", "blue") is True
    assert handle.drive() == handle.status() == "completed"
    assert handle.result == "it was blue"
    assert handle.drive() == "completed", "there is nothing left to drive"
    kinds = [type(event) for event in handle.events()]
    assert kinds.index(AskStarted) < kinds.index(AskEnded) < kinds.index(RunEnded)


def threaded(work: Callable[[], None]) -> None:
    """Do it where a web service would: in a thread that is not the main one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.usefixtures("here")
def test_a_service_starts_waits_asks_and_answers_in_a_thread() -> None:
    def serve() -> None:
        handle = raymond.start(flow(ASKS), raymond.Options(id="r"))
        handle.detach()
        assert handle.wait() == "waiting"
        assert [(one.agent, one.text) for one in handle.questions()] == [("main", "which?")]
        handle.answer("", "blue")
        handle.detach()
        assert (handle.wait(), handle.result, handle.questions()) == ("completed", "it was blue", [])
        with pytest.raises(UsageError, match="r has ended: nothing to resume"):
            handle.detach()

    threaded(serve)
    asked = [event for event in raymond.find("r").events() if isinstance(event, raymond.events.AskStarted)]
    assert [event.question for event in asked] == ["which?"]


@pytest.mark.usefixtures("here")
def test_a_wait_ends_with_its_time_and_a_cancel_ends_what_runs() -> None:
    handle = raymond.start(flow({"START.sh": "while [ ! -e go ]; do sleep 0.05; done"}))
    handle.detach()
    assert handle.wait(0.0) == "running"
    assert not Follower(handle.project, handle.id).rest(0.0)
    with pytest.raises(RunBusy):
        handle.detach()
    assert handle.cancel() is True
    assert handle.wait() == "cancelled"
    assert Follower(handle.project, handle.id).rest(0.0), "it is over"
    with pytest.raises(UsageError):
        handle.cancel()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("way", ["drive", "detach"])
def test_nothing_that_a_step_has_started_outlives_the_process_that_drives_it(way: str) -> None:
    """A survivor could answer in the place of a person: nothing of it says that it was a step."""
    hides = "(setsid env -i sh -c 'echo $$ > pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 &)"
    waits = "while [ ! -s pid ]; do sleep 0.02; done"
    asks = """echo '<ask next="END.sh" approve="person">deploy?</ask>'"""
    handle = raymond.start(flow({**ASKS, "START.sh": f"{hides}\n{waits}\n{asks}"}))
    getattr(handle, way)()
    assert handle.wait() == "waiting"
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", ":", "."])
def test_detach_imports_nothing_of_the_project(here: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("PYTHONPATH", path + os.environ.get("PYTHONPATH", ""))
    for module in ("msgspec", "click", "contextlib", "raymond", "sitecustomize"):
        (here / f"{module}.py").write_text("open('imported', 'w')\n", "utf-8")
    handle = raymond.start(flow({"START.sh": "echo '<result>x</result>'"}))
    handle.detach()
    assert handle.wait() == "completed"
    assert not (here / "imported").exists()


@pytest.mark.usefixtures("here")
def test_what_keeps_a_run_from_being_driven_is_told_by_detach() -> None:
    handle = raymond.start(flow({"START.sh": "echo '<result>x</result>'"}))
    Path(handle.project.run(handle.id).journal).write_text("nonsense\n")
    with pytest.raises(raymond.Error, match="is not a journal of Raymond"):
        handle.detach()


@pytest.mark.slow
@pytest.mark.parametrize("decide_by", ["terminal", "program"])
def test_a_program_decides_a_review_only_where_a_person_lets_programs_decide(here: Path, decide_by: str) -> None:
    (here / "check.sh").write_text("grep -q right answer.txt\n")
    (here / "answer.txt").write_text("wrong\n")
    settings = here.parent / "home" / ".config" / "raymond"
    settings.mkdir(parents=True)
    agent = "cat > /dev/null; echo true > check.sh; echo '<result>done</result>'"
    settings.joinpath("config.toml").write_text(f"[backends.mine]\ncommand = {json.dumps(['sh', '-c', agent])}\n")
    gated = "---\ngate: sh check.sh\ngate_reruns: 0\n---\nWrite the answer, then <result>done</result>.\n"
    options = raymond.Options(backend="mine", decide_by=decide_by)  # type: ignore[arg-type]  # both are right
    handle = raymond.start(flow({"START.md": gated}), options)
    handle.detach()
    handle.wait()
    [review] = handle.reviews()
    assert (review.agent, review.changes) == ("main", ("changed check.sh",))
    assert "+true" in review.texts["what changed"]
    if decide_by == "terminal":
        with pytest.raises(UsageError, match="waits for the review of a person"):
            handle.accept(review)
        return
    with pytest.raises(UsageError, match="another change"):
        handle.accept(msgspec.structs.replace(review, digest="0" * 64))
    handle.accept(review)
    handle.detach()
    assert handle.wait() == "completed"


def test_a_misspelt_option_is_told() -> None:
    with pytest.raises(UsageError, match="Options: there is no `budgt`") as error:
        raymond.Options(budgt=2)  # type: ignore[call-arg]
    assert error.value.hint == "did you mean `budget`?"


@pytest.mark.usefixtures("here")
def test_every_decision_is_followed_from_the_first_one_on() -> None:
    handle = raymond.start(flow(ASKS))
    handle.drive()
    seen = [decision.seq for decision in handle.follow()]
    assert seen == [*range(1, handle.read().seq + 1)]


@pytest.mark.slow
def test_a_run_that_another_process_drives_is_followed_and_answered(here: Path) -> None:
    flow({**ASKS, "START.sh": "echo '<fork>HOLD.sh</fork><goto>ASK.sh</goto>'"})
    flow({"ASK.sh": ASKS["START.sh"], "HOLD.sh": "while [ ! -e go ]; do sleep 0.02; done; echo '<result>ok</result>'"})
    command = [sys.executable, "-m", "raymond", "run", "flow", "--id", "r", "-q"]
    folder = runs.here().run("r")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        until(lambda: folder.exists, "the run")
        handle = raymond.find("r")
        with pytest.raises(UsageError):
            handle.answer("nobody", "blue")
        kinds = []
        for decision in handle.follow():
            for event in decision.events:
                kinds.append(type(event))
                if isinstance(event, AskStarted):
                    with pytest.raises(RunBusy):
                        raymond.resume("r")
                    assert handle.answer(event.agent, "blue") is True
                if isinstance(event, AskEnded):
                    (here / "go").touch()
        driver.communicate()
    assert kinds[-1] is RunEnded
    assert (handle.status(), handle.result) == ("completed", "it was blue")


@pytest.mark.usefixtures("here")
def test_a_stopped_run_is_resumed() -> None:
    handle = raymond.start(flow({"START.sh": "echo '<result>done</result>'"}))
    assert handle.stop() is True
    assert handle.status() == "stopped"
    assert any(isinstance(event, RunStopped) for event in handle.events())
    assert raymond.resume(handle.id).drive() == "completed"
    with pytest.raises(UsageError, match="has ended: nothing to resume"):
        raymond.resume(handle.id)


@pytest.mark.usefixtures("here")
def test_what_cannot_be_done_is_an_error() -> None:
    with pytest.raises(RunNotFound):
        raymond.find("r")
    handle = raymond.start(flow(ASKS), raymond.Options(id="r"))
    with pytest.raises(RunExists):
        raymond.start("flow", raymond.Options(id="r"))
    with pytest.raises(UsageError, match="no agent is waiting for an answer"):
        handle.answer("", "blue")
    with pytest.raises(WorkflowError):
        raymond.start(flow({"START.md": "<goto>NOWHERE.md</goto>"}, "broken"))
    with pytest.raises(raymond.Error, match="missing"):
        raymond.load("missing")


@pytest.mark.usefixtures("here")
def test_a_secret_is_refused_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "tok-4f9a8b7c6d5e")
    with pytest.raises(UsageError, match="input contains the value of"):
        raymond.start(flow(ASKS), raymond.Options(input="use tok-4f9a8b7c6d5e"))
    assert runs.here().ids() == []
    assert not Path(".raymond").exists()
    handle = raymond.start("flow")
    handle.drive()
    with pytest.raises(UsageError, match="the answer contains the value of"):
        handle.answer("", "tok-4f9a8b7c6d5e")


@pytest.mark.usefixtures("here")
def test_options_that_are_not_said_come_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYMOND_MAX_ITERATIONS", "7")
    monkeypatch.setenv("RAYMOND_BUDGET", "4")
    started = raymond.start(flow(ASKS), raymond.Options(budget=0)).read()
    assert (started.limits.max_iterations, started.limits.budget) == (7, 0)
    assert raymond.start("flow").read().limits.budget == 4


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_handle_drives_the_files_the_run_was_changed_to() -> None:
    handle = raymond.start(flow(ASKS))
    handle.drive()
    flow({"END.sh": "echo '<result>other files</result>'"})
    upgrade(handle.project, handle.id, {})
    handle.answer("main", "blue")
    handle.drive()
    assert handle.result == "other files"


@pytest.mark.usefixtures("here")
def test_a_workflow_is_read_and_checked() -> None:
    workflow = raymond.load(flow({"START.md": "<goto>NOWHERE.md</goto>"}))
    assert isinstance(workflow, raymond.Workflow)
    assert [(one.id, one.severity) for one in raymond.check(workflow)] == [("missing-target", "error")]
    assert raymond.check(raymond.load(flow(ASKS, "good"))) == []


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_runs_are_rows_the_latest_first() -> None:
    for id in ("a", "b"):
        raymond.start(flow(ASKS), raymond.Options(id=id))
    raymond.find("b").drive()
    rows = {row.workflow_id: row for row in raymond.runs()}
    assert {id: row.status for id, row in rows.items()} == {"a": "interrupted", "b": "waiting"}
    done = subprocess.run([sys.executable, "-m", "raymond", "list", "--json"], capture_output=True, check=True)
    assert {row["workflow_id"] for row in json.loads(done.stdout)} == set(rows)


# --- what was interrupted


@pytest.mark.parametrize(
    ("status", "seen"), [("running", "interrupted"), ("waiting", "waiting"), ("completed", "completed")]
)
def test_a_run_that_should_run_and_has_no_driver_was_interrupted(status: str, seen: str) -> None:
    assert runs.status_without_driver(status) == seen


@pytest.mark.parametrize(
    ("stopped", "expected"),
    [
        (RunStopped(kind="signal", signal=15), True),
        (RunStopped(kind="signal", signal=1), True),
        (RunStopped(kind="signal", signal=2), False),
        (RunStopped(kind="stop"), False),
    ],
    ids=["SIGTERM", "SIGHUP", "Ctrl-C", "on request"],
)
@pytest.mark.usefixtures("here")
def test_an_orderly_shutdown_is_resumed_and_a_ctrl_c_is_not(stopped: RunStopped, expected: bool) -> None:
    run = raymond.start(flow(ASKS)).read()
    run.stop = stopped
    assert runs.was_shut_down(run) is expected
    run.final_status = "failed"
    assert runs.was_shut_down(run) is False


@pytest.mark.usefixtures("here")
def test_only_what_nobody_drives_is_resumable() -> None:
    for id in ("begun", "held", "waits"):
        raymond.start(flow(ASKS), raymond.Options(id=id))
    raymond.find("waits").drive()
    project = runs.here()
    held = lock.take(project.run("held"))
    try:
        Path(project.run("bad").path).mkdir()
        Path(project.run("bad").journal).write_text("nonsense\n")
        found = list(drive.resumable(project))
    finally:
        held.release()
    assert [one for one in found if isinstance(one, str)] == ["begun"]
    assert [str(one) for one in found if not isinstance(one, str)] == [
        f"{project.run('bad').journal} is not a journal of Raymond, or its first line is damaged"
    ]
