"""What a person is told who cannot go on: the place, and the command that leads on."""

import os
import signal
from pathlib import Path

import pytest

from looping import LOG, QUEUE, WAIT, Night
from running import Room, until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("editor", ["false", "no-such-editor", "'"])
def test_an_editor_that_fails_changes_nothing(tmp_path: Path, editor: str) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}")
    named = editor if editor != "'" else "''\"'\"''"
    environment = {"EDITOR": editor, "VISUAL": ""}
    done = night.room.raymond("continuous-session", "edit", environment=environment)
    assert done.returncode == 2
    told = f"error: the editor {named} failed, or is not installed\nhint: set EDITOR or VISUAL, or edit {LOG}\n"
    assert done.stderr == told
    assert night.git("status", "--porcelain") == ""
    with night.room.start("continuous-session", "start", "--id", "n"):
        until((tmp_path / "on").exists, "the agent")
        done = night.room.raymond("continuous-session", "edit", environment=environment)
        assert (done.returncode, "or try again when no agent works" in done.stderr) == (2, True)
        assert not (night.room.folder("n") / "loop/edited.md").exists()


def test_a_session_log_with_another_name(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("mv", LOG, "docs/session_logs/plan.md")
    night.commit("another name")
    for verb in ("start", "edit"):
        ran = night.loop(verb=verb)
        assert ran.code == 2
        assert "docs/session_logs/plan.md does not have the name of a session log" in ran.err
        assert "rename it to docs/session_logs/2" in ran.err
        assert "_0900_session.md" in ran.err
    night.git("rm", "-q", "docs/session_logs/plan.md")
    (night.path / "docs/session_logs").mkdir(parents=True, exist_ok=True)
    night.commit("none")
    ran = night.loop()
    assert "error: there is no session log in docs/session_logs\nhint: in docs/session_logs/2" in ran.err
    assert "_0900_session.md, write a section `## Next Steps`" in ran.err


def test_a_subfolder_says_where_the_documents_are(tmp_path: Path) -> None:
    night = Night(tmp_path)
    below = night.path / "tests/unit"
    below.mkdir(parents=True)
    for verb, more in (("start", ()), ("edit", ()), ("learn", ("The API needs a retry",))):
        done = night.room.raymond("continuous-session", verb, *more, cwd=below)
        assert done.returncode == 2
        assert "there is no folder docs here, but there is one at the top of the repository" in done.stderr
        assert f"hint: raymond -C ../.. continuous-session {verb}" in done.stderr
    done = night.room.raymond("-C", "tests", "task-loop", "start", "--dry-run", "--task", "1.1 x")
    assert done.stderr.endswith(
        "hint: raymond -C tests -C .. task-loop start --dry-run --task '1.1 x' --workspace copy\n"
    )
    assert os.listdir(below) == []
    night.git("rm", "-rq", "docs")
    done = night.room.raymond("continuous-session", "learn", "x")
    assert (done.returncode, "error: there is no folder docs here\n" in done.stderr) == (2, True)
    assert not (night.path / "docs").exists()


def test_without_a_program_for_agents_a_loop_needs_replies(tmp_path: Path) -> None:
    night = Night(tmp_path)
    ran = night.loop("--backend", "claude")
    assert ran.code == 5
    assert "without an account: --replies FILE" in ran.err
    assert "beside the workflow" not in ran.err


def test_a_loop_says_how_it_goes_on_with_an_ejected_workflow(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE + "2. Publish\n")
    told = night.room.raymond("continuous-session", "eject", "wf").stdout
    assert told == "copied to wf: change it, then start with --workflow wf\n"
    ran = night.loop("--workflow", "wf", "--max-sessions", "1")
    rest = "raymond continuous-session start --max-sessions 1 --pause 0s --workflow wf --workspace copy"
    assert (ran.code, f"- go on with the rest: {rest}\n" in ran.out) == (0, True)
    told = night.room.raymond("continuous-session", "eject", "../wf").stdout
    assert told == "copied to ../wf: change it, then start with --workflow ../wf\n"


def test_another_prompt_does_not_hide_a_loop_that_was_cut_off(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}echo done")
    night.git("rm", "-rq", "docs")
    night.write({"A.md": "Do it.\n", "B.md": "Do that.\n"})
    with night.room.start("ralph", "A.md", "--id", "n") as live:
        until((tmp_path / "on").exists, "the agent")
        told = night.room.raymond("ralph", "stop").stdout
        assert told == "Stopping n. Iteration 1 ends first; raymond ralph status shows it.\n"
        assert not (night.path / "docs").exists(), "the plain loop makes no folder"
        live.signal(signal.SIGKILL)
        live.process.wait()
    (tmp_path / "go").touch()
    assert night.room.raymond("ralph", "B.md", "--max-iterations", "1", "--id", "m").returncode == 0
    assert "next:   raymond resume n\n" in night.room.raymond("ralph", "status").stdout
    ended = night.room.raymond("ralph", "resume")
    assert "Loop was stopping. Mark complete and show summary? [Y/n] yes" in ended.stderr
    assert (ended.returncode, "- Ended: stopped: on request\n" in ended.stdout) == (0, True)
    assert not (night.path / "docs").exists()


KEEPS = "a loop keeps the limit it began with: when it has ended, start another with the limit that you want"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("story-loop start --max-iterations 3", "did you mean `--max-stories`?"),
        ("task-loop start --max-tasks 3", "did you mean `--max-iterations`?"),
        ("task-loop resume --max-iterations 2", KEEPS),
        ("ralph resume --max-iterations 2", KEEPS),
    ],
)
def test_a_flag_that_is_not_there_leads_to_the_one_that_is_meant(tmp_path: Path, typed: str, hint: str) -> None:
    done = Room(tmp_path).raymond(*typed.split())
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"hint: {hint}")
