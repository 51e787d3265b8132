"""A script that nothing can run is refused before the first turn."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import builders
from raymond import cli
from raymond.control import programs
from raymond.errors import BackendError, WorkflowError
from raymond.language import workflow
from raymond.machine import needed_states
from raymond.machine.events import AgentCalled, AgentFailed, AgentMoved, AskStarted, Event
from raymond.machine.run import Run
from raymond.system import processes
from running import Room

BASH = {"START.md": "Think. <goto>CHECK</goto>", "CHECK.sh": "echo '<result>x</result>'"}


@pytest.fixture(autouse=True)
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    processes.program.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    processes.program.cache_clear()


def test_a_script_without_its_interpreter_is_refused_like_a_prompt_without_its_program() -> None:
    with pytest.raises(BackendError) as caught:
        programs.check_scripts(workflow.build("flow", BASH))
    assert (str(caught.value), caught.value.hint, caught.value.exit_code) == (
        "CHECK.sh cannot run: there is no program `bash` on the PATH",
        "install bash",
        5,
    )


@pytest.mark.parametrize(
    "files",
    [
        {"START.md": "<result>x</result>", "CHECK.sh": "echo"},
        {"START.py": "print('<result>x</result>')"},
        {**BASH, "CHECK.py": "print('<result>x</result>')"},
        {"START.py": "", "workflow.yaml": "python: venv/bin/python"},
    ],
)
def test_only_what_is_reached_and_has_no_other_form_must_be_there(files: dict[str, str]) -> None:
    programs.check_scripts(workflow.build("flow", files))


def test_an_interpreter_that_is_there_is_found(tmp_path: Path) -> None:
    os.symlink("/bin/sh", tmp_path / "bash")
    programs.check_scripts(workflow.build("flow", BASH))


def test_a_script_for_another_system_that_a_script_leads_to_is_refused_like_one_that_a_prompt_names() -> None:
    files = {"START.py": "print('<goto>A</goto>')", "A.bat": "echo hello"}
    with pytest.raises(WorkflowError) as caught:
        programs.check_scripts(workflow.build("flow", files, platform="linux"))
    [found] = caught.value.diagnostics
    assert (found.id, found.file, found.message, found.hint) == (
        "wrong-platform",
        "A.bat",
        "`A.bat` cannot run on this machine (linux)",
        "it needs Windows; or add `A.py`, which runs everywhere",
    )
    assert caught.value.exit_code == 6


ASKS = {
    "START.sh": 'echo \'<ask next="END" timeout="1d" timeout_next="LATE">Ship it?</ask>\'',
    "END.py": "print('<result>done</result>')",
    "LATE.py": "print('<result>late</result>')",
}


def run_at(files: dict[str, str], entry: str, *events: Event) -> Run:
    """A run in which these came after its first event."""
    play = builders.Play(files, entry=entry)
    play.commit(list(events))
    return play.run


def left(files: dict[str, str], entry: str, *events: Event) -> str:
    """Why a run in which these events came is not continued."""
    flow = builders.build(files, entry)
    try:
        programs.check_scripts(flow, needed_states.reachable_states(run_at(files, entry, *events), flow), id="test-1")
    except BackendError as error:
        return f"{error}; {error.hint}"
    return ""


def test_a_run_that_can_still_come_to_the_script_is_not_continued() -> None:
    why = "there is no program `bash` on the PATH; install bash, then: raymond resume test-1"
    asked = AskStarted(agent="main", state="END.py", question="?", number=1, timeout_state="LATE.py")
    late = {**ASKS, "LATE.sh": ASKS["LATE.py"]}
    del late["LATE.py"]
    assert left(ASKS, "START.sh") == f"START.sh cannot run: {why}"
    assert left(ASKS, "START.sh", asked) == ""
    assert left(late, "START.sh", replace(asked, timeout_state="LATE.sh")) == f"LATE.sh cannot run: {why}"
    called = {"START.md": "<call return='CHECK'>PART</call>", "PART.md": "<result>x</result>", "CHECK.sh": "exit 1"}
    moved = AgentMoved(agent="main", tag="goto", state="PART.md")
    assert left(called, "START.md", moved) == ""
    inside = AgentCalled(agent="main", tag="call", state="PART.md", then="CHECK.sh")
    assert left(called, "START.md", inside) == f"CHECK.sh cannot run: {why}"
    failed = AgentFailed(agent="main", kind="script", error="no bash")
    assert left(ASKS, "START.sh", failed) == f"START.sh cannot run: {why}"
    assert left(ASKS, "START.sh", replace(failed, kind="given up")) == ""


def test_what_a_question_leads_to_when_nobody_is_asked_must_be_there() -> None:
    files = {**ASKS, "START.sh": builders.block("on_error: LAST") + ASKS["START.sh"], "LAST.sh": "exit 1"}
    asked = AskStarted(agent="main", state="END.py", question="?", number=1)
    assert left(files, "START.sh", asked).startswith("LAST.sh cannot run: ")


def test_a_wrong_python_is_corrected_in_the_files_which_the_run_then_takes() -> None:
    files = {"START.py": "print('<result>x</result>')", "workflow.yaml": "python: /nowhere/python"}
    hint = "correct `python` in workflow.yaml, then: raymond resume test-1 --latest"
    assert left(files, "START.py") == f"START.py cannot run: there is no program /nowhere/python; {hint}"


def test_a_resumed_or_answered_run_says_it_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room = Room(tmp_path)
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))
    monkeypatch.chdir(room.path)
    asks = {"START.py": "print('<ask next=\"END\">Ship it?</ask>')", "END.sh": "echo '<result>done</result>'"}
    os.symlink("/bin/sh", tmp_path / "bash")
    assert cli.main(["run", room.flow(asks), "--id", "r", "--quiet"]) == 3
    os.unlink(tmp_path / "bash")
    processes.program.cache_clear()
    why = [
        "error: END.sh cannot run: there is no program `bash` on the PATH",
        "hint: install bash, then: raymond resume r",
    ]
    capsys.readouterr()
    assert cli.main(["answer", "r", "yes"]) == 5
    kept = "the answer is kept, nothing was started"  # how to continue is in the hint
    assert capsys.readouterr().err.splitlines()[2:] == [*why, kept]
    assert cli.main(["resume", "r"]) == 5
    assert capsys.readouterr().err.splitlines() == why
    os.symlink("/bin/sh", tmp_path / "bash")
    processes.program.cache_clear()
    assert cli.main(["resume", "r", "--quiet"]) == 0
    assert len(room.steps()) == 2
