"""The edge table of loops: what is found at a start or a resume, row by row."""

import json
import os
import signal
from pathlib import Path

import pytest

from looping import HONEST, LOG, WAIT, Night, killed
from running import Live, until

STATE = "docs/.continuous-session-state.json"


def begun(night: Night, live: Live) -> None:
    live.sees("Selected item")


def test_running_with_no_process_is_resumed_and_what_was_changed_is_kept(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    assert night.state["status"] == "running"
    ran = night.loop("--id", "other", "--pause", "0s")
    assert "Found in-progress loop (session 1/5). Resume? [Y/n] yes" in ran.err
    assert "the loop is resumed with the settings it has: --pause, --id do not apply" in ran.err
    assert "what the interrupted session has changed is kept in refs/raymond/n/1.interrupted" in ran.err
    assert ran.code == 0
    assert night.git("show", "refs/raymond/n/1.interrupted:half.txt") == "half"
    assert night.state["workflow_id"] == "n"
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]


@pytest.mark.slow
def test_every_interruption_keeps_what_it_saved_and_the_state_names_who_drives(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    for number in (2, 3):
        (tmp_path / "go").unlink()
        night.agent(f"echo {number} > half.txt; touch $TEST_ROOM/../half{number}\n{WAIT}{HONEST}")
        with night.room.start("continuous-session", "resume") as live:
            until((tmp_path / f"half{number}").exists, "a turn")
            assert (night.state["status"], night.state["pid"]) == ("running", live.pid)
            live.signal(signal.SIGKILL)
            live.process.wait()
            night.room.clear()
        (tmp_path / "go").touch()
    assert night.loop("--yes", verb="resume").code == 0
    names = ("1.interrupted", "1.interrupted-2", "1.interrupted-3")
    assert [night.git("show", f"refs/raymond/n/{name}:half.txt") for name in names] == ["half", "2", "3"]


@pytest.mark.slow
def test_a_resume_that_is_killed_while_it_takes_over_a_persons_work_can_be_repeated(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../began\n{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        until((tmp_path / "began").exists, "a turn")
        live.signal(signal.SIGTERM)
        live.signal(signal.SIGTERM)
        assert live.process.wait(60) == 128 + signal.SIGTERM
    night.write({"mine.txt": "mine\n"})
    night.commit("mine")
    paused, resumed = (night.room.folder("n") / "loop" / name for name in ("paused", "resumed-1"))
    noted = paused.read_bytes()
    with night.room.start("continuous-session", "resume") as live:
        until(lambda: resumed.exists() and not paused.exists(), "the new baseline")
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    resumed.unlink()  # as if the kill had come before the digest was written
    paused.write_bytes(noted)
    (tmp_path / "go").touch()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.err
    assert night.subjects == ["start", "mine", "feat: write the answer", "chore(loop): records"]


@pytest.mark.slow
def test_without_a_loop_there_is_nothing_to_resume_stop_or_show(tmp_path: Path) -> None:
    night = Night(tmp_path)
    for verb in ("resume", "stop", "status"):
        ran = night.loop(verb=verb)
        assert (ran.code, ran.out) == (0, "no active continuous session\n")
    assert json.loads(night.loop("--json", verb="status").out)["status"] is None


@pytest.mark.slow
def test_complete_at_the_start_is_archived(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert night.loop().code == 0
    night.write({"docs/session_logs/20991231_0900_session.md": "## Next Steps\n\n- [VERIFY: sh check.sh] Once more\n"})
    ran = night.loop("--id", "second")
    assert ran.code == 0, ran.err
    assert "Found" not in ran.err
    assert [name for name in os.listdir(night.path / "docs") if name.startswith(".continuous-session-state.json.")]
    assert (night.state["workflow_id"], night.state["completedItems"][0]["verdict"]) == ("second", "no change")


@pytest.mark.slow
def test_a_broken_state_file_is_kept_aside_and_rebuilt(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night, files={STATE: '{"status": "runn'})
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.err
    assert night.text(f"{STATE}.broken") == '{"status": "runn'
    assert night.state["status"] == "complete"
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


@pytest.mark.slow
def test_a_second_loop_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        second = night.loop("--id", "m")
        assert second.code == 2
        assert "a continuous-session is running here: n" in second.err
        shown = night.loop(verb="status")
        assert "EXTERNAL, RUNNING" in shown.out
        assert "Current:  Write the answer" in shown.out
        told = night.loop(verb="stop")
        assert told.out == "Stopping n. Session 1 ends first; raymond continuous-session status shows it.\n"
        assert night.state["status"] == "stopping"
        assert "STOPPING" in night.loop(verb="status").out
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
        assert "- Ended: stopped: somebody asked for it" in live.out


@pytest.mark.slow
def test_stopping_when_it_was_cut_off_is_marked_complete(tmp_path: Path) -> None:
    """The open item stays in the queue, its changes are kept and taken out, and a new loop can begin."""
    night = Night(tmp_path)
    killed(night, stopping=True)
    ran = night.loop("--yes", verb="resume")
    assert "Loop was stopping. Mark complete and show summary? [Y/n] yes" in ran.err
    why = "stopped: somebody asked for it; what the interrupted session has changed is kept in"
    assert f"- Ended: {why} refs/raymond/n/1.interrupted" in ran.out
    assert "## Remaining\n\n- Write the answer\n" in ran.out
    assert (ran.code, night.state["status"], night.state["queueSnapshot"]) == (0, "complete", ["Write the answer"])
    assert night.git("show", "refs/raymond/n/1.interrupted:half.txt") == "half"
    assert night.git("status", "--porcelain") == ""
    assert night.subjects == ["start", "chore(loop): records"]
    shown = night.loop(verb="status").out
    assert "EXTERNAL, COMPLETE" in shown
    assert f"\n{why} refs/raymond/n/1.interrupted\nnext:   raymond continuous-session start\n" in shown
    assert night.loop("--id", "m").code == 0


@pytest.mark.slow
def test_what_its_agent_committed_is_taken_out_too(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.agent(
        f"echo half > half.txt; git add half.txt; git commit -qm mine; touch $TEST_ROOM/../half\n{WAIT}{HONEST}"
    )
    with night.room.start("continuous-session", "start", "--id", "n") as live:
        until((tmp_path / "half").exists, "the commit of the agent")
        night.loop(verb="stop")
        live.signal(signal.SIGKILL)
        live.process.wait()
        ran = night.loop("--yes", verb="resume")  # its agent, which outlived it, is ended
    assert ran.code == 0, ran.err
    assert night.subjects == ["start", "chore(loop): records"]
    assert night.git("log", "--format=%s", "refs/raymond/n/1.interrupted").splitlines()[1:] == ["mine", "start"]
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_loop_that_nobody_drives_is_not_asked_to_stop(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    told = night.loop(verb="stop")
    then = "raymond continuous-session resume continues it, raymond cancel n ends it for good"
    assert (told.code, told.out) == (0, f"n is not running: {then}\n")
    assert night.state["status"] == "running"
    assert night.loop("--yes", verb="resume").code == 0
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]


@pytest.mark.slow
def test_status_says_that_its_process_is_gone_and_what_is_next(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    shown = night.loop(verb="status").out
    assert shown.endswith("\ninterrupted: its process is gone\nnext:   raymond continuous-session resume\n")
    found = json.loads(night.loop("--json", verb="status").out)
    assert (found["status"], found["ended"], found["exit_code"]) == (
        "interrupted",
        "interrupted: its process is gone",
        None,
    )
    assert found["next"] == ["go on: raymond continuous-session resume"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["paused", "killed"])
def test_every_way_of_resuming_wants_the_branch_of_the_loop(tmp_path: Path, how: str) -> None:
    night = Night(tmp_path)
    if how == "killed":
        killed(night)
    else:
        night.agent("echo half > half.txt; echo done")  # the check is red
        assert night.loop("--budget", "0.01").code == 4
    night.git("stash", "-qu")
    night.git("checkout", "-q", "main")
    night.agent(HONEST)
    told = "error: the loop works on raymond/n, and main is checked out\nhint: git switch raymond/n, then try again\n"
    refused = night.room.resume("--budget", "5", id="n")
    assert (refused.code, refused.err) == (2, told)
    if how == "killed":
        every = night.room.raymond("resume", "--all")
        assert (every.returncode, f"n was not resumed\n{told}" in every.stderr) == (2, True)
    assert night.git("branch", "--show-current") == "main"
    night.git("checkout", "-q", "raymond/n")
    ran = night.room.resume("--budget", "5", id="n")
    assert (ran.code, night.subjects[1]) == (0, "feat: write the answer"), ran.err


@pytest.mark.slow
def test_resume_of_a_run_keeps_what_the_session_changed_and_takes_over_what_a_person_did(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n", f"touch $TEST_ROOM/../on\n{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n") as live:
        until((tmp_path / "on").exists, "the agent")
        live.signal(signal.SIGTERM)
        live.signal(signal.SIGTERM)
        assert live.process.wait(60) == 128 + signal.SIGTERM
    night.write({"ci.sh": "true\n", "half.txt": "half\n"})
    night.git("add", "ci.sh")
    night.git("commit", "-qm", "of a person")
    (tmp_path / "go").touch()
    ran = night.room.resume(id="n")
    assert "what the interrupted session has changed is kept in refs/raymond/n/1.interrupted" in ran.err
    assert ran.code == 0, ran.out
    assert night.subjects == ["start", "of a person", "feat: write the answer", "chore(loop): records"]
    assert "the agent" not in ran.out.partition("## Noticed")[2]


@pytest.mark.slow
def test_resume_all_goes_on_with_the_others(tmp_path: Path) -> None:
    """Two loops of one checkout cannot both run; a run that is no loop is not held up by them."""
    night = Night(tmp_path)
    killed(night)
    night.git("checkout", "-q", "main", "--force")
    flow = night.room.flow({"START.sh": f"{WAIT}echo '<result>done</result>' > $RAYMOND_OUT\n"})
    (tmp_path / "go").unlink()
    with night.room.start("run", flow, "--id", "r") as live:
        live.sees("START.sh")
        live.signal(signal.SIGKILL)
        live.process.wait()
    (tmp_path / "go").touch()
    every = night.room.raymond("resume", "--all")
    assert (every.returncode, "n was not resumed" in every.stderr, every.stdout) == (2, True, "r\n")
    assert night.room.raymond("wait", "r").returncode == 0


@pytest.mark.slow
def test_another_hosts_process_is_not_taken_for_dead(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({STATE: '{"status": "running", "pid": 12, "host": "elsewhere", "workflow_id": "x", "mine": 1}'})
    ran = night.loop()
    assert ran.code == 2
    assert "process 12 on elsewhere" in ran.err
    assert json.loads(night.text(STATE))["mine"] == 1


@pytest.mark.slow
def test_a_state_file_without_a_journal_starts_anew(tmp_path: Path) -> None:
    night = Night(tmp_path)
    here = os.uname().nodename
    night.write({STATE: json.dumps({"status": "running", "currentSession": 2, "maxSessions": 5, "host": here})})
    ran = night.loop()
    assert "Found in-progress loop (session 2/5). Resume? [Y/n] yes" in ran.err
    assert ran.code == 0
    assert night.state["workflow_id"] == "n"


def paused(path: Path) -> Night:
    """A loop that waits for a person, because its first item failed."""
    night = Night(path, "1. [VERIFY: false] A\n2. [VERIFY: sh check.sh] Write the answer\n")
    assert night.loop("--pause-on-fail", "--attempts", "1").code == 3
    return night


@pytest.mark.slow
def test_an_unattended_start_does_not_answer_for_a_person(tmp_path: Path) -> None:
    night = paused(tmp_path)
    journal = night.room.folder("n") / "journal.jsonl"
    before, subjects = journal.read_bytes(), night.subjects
    for more in ((), ("--yes",)):
        ran = night.loop(*more)
        assert (ran.code, ran.out) == (3, "")
        assert "it waits for a person: raymond continuous-session resume, or raymond answer n continue\n" in ran.err
    assert journal.read_bytes() == before
    assert (night.subjects, night.state["status"]) == (subjects, "paused")


@pytest.mark.slow
def test_an_answer_on_another_branch_is_kept_and_nothing_is_done_there(tmp_path: Path) -> None:
    night = paused(tmp_path)
    night.git("switch", "-q", "main")
    night.write({"mine.txt": "mine\n"})
    told = night.room.raymond("answer", "n", "continue")
    assert told.returncode == 5
    assert "error: the loop works on raymond/n, and main is checked out\nhint: git switch" in told.stderr
    assert "the answer is kept, nothing was started" in told.stderr
    assert (night.subjects, night.git("status", "--porcelain")) == (["start"], "?? mine.txt")
    (night.path / "mine.txt").unlink()
    night.git("switch", "-q", "raymond/n")
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


@pytest.mark.slow
def test_no_item_begins_on_another_branch(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh check.sh] Once more\n")
    hook = night.path / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\ngit switch -q main\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 3, ran.err
    asked = night.room.raymond("inbox").stdout
    assert "The loop works on raymond/n, and main is checked out: git switch raymond/n first." in asked
    assert (night.subjects, night.state["status"]) == (["start"], "paused")
    hook.unlink()
    night.git("switch", "-q", "raymond/n")
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.err
    assert night.subjects == ["start", "feat: write the answer", "feat: once more", "chore(loop): records"]


@pytest.mark.slow
def test_however_a_loop_is_continued_it_has_the_checkout_for_itself(tmp_path: Path) -> None:
    night = paused(tmp_path)
    night.write({"PROMPT.md": "go\n"})
    night.agent(f"{WAIT}{HONEST}")
    with night.room.start("ralph", "PROMPT.md", "--id", "r", "--max-iterations", "1") as live:
        live.sees("Selected item")
        refused = [night.room.raymond(*args) for args in (("resume", "n"), ("answer", "n", "continue"))]
        assert refused[0].returncode in (1, 2)
        assert refused[1].returncode == 5
        assert all("a ralph is running here: r" in one.stderr for one in refused)
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


@pytest.mark.slow
def test_flags_that_a_resumed_loop_does_not_take_are_refused_or_named(tmp_path: Path) -> None:
    night = paused(tmp_path)
    refused = night.loop("--attempts", "3", verb="resume")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: there is no flag `--attempts`")
    named = night.loop("--id", "n", "--budget", "5", "--attempts", "3", "--max-sessions", "1")
    assert "it has: --max-sessions, --attempts, --id do not apply\n" in named.err
    taken = night.loop("--budget", "5", verb="resume")
    assert "not apply" not in taken.err
    assert taken.code == 1, taken.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


@pytest.mark.slow
def test_an_empty_queue_while_running_is_complete(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    ran = night.loop("--yes", verb="resume")
    assert (ran.code, night.state["status"], night.state["queueSnapshot"]) == (0, "complete", [])


@pytest.mark.slow
def test_a_check_that_timed_out_is_red_and_interrupted_it_runs_again(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh slow.sh] Write the answer\n   - Timeout: 1s\n   - Retry: 0\n"
    night = Night(tmp_path, queue, slow__sh="sleep 30\n".replace("__", "."))
    night.write({"slow.sh": "sleep 30\n"})
    night.commit("slow")
    ran = night.loop()
    assert ran.code == 1
    assert [item["verdict"] for item in night.state["failedItems"]] == ["timed out"]


@pytest.mark.slow
def test_a_session_log_that_is_gone_is_written_anew_from_the_commits(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n2. [BLOCKED: later] Publish\n")
    assert night.loop().code == 0
    [_, written] = night.logs
    (night.path / "docs/session_logs" / written).unlink()
    night.git("commit", "-qam", "lost")
    night.write({"docs/session_logs/20991231_0900_session.md": "## Next Steps\n\n- [VERIFY: sh check.sh] More\n"})
    ran = night.loop("--id", "second")
    assert f"docs/session_logs/{written} was gone: written anew from its commit" in ran.err
    assert "Publish" in night.text(f"docs/session_logs/{written}")


@pytest.mark.slow
def test_the_queue_is_a_persons_between_items_and_an_agents_during_a_turn(tmp_path: Path) -> None:
    """What is in the newest log when an item begins counts; what is put there while an agent works is proposed."""
    night = Night(tmp_path, agent=f"{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        with (night.path / LOG).open("a", encoding="utf-8") as log:
            log.write("2. [VERIFY: true] Typed in an editor\n")
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
    assert '"Typed in an editor" was added to' in live.out
    assert "*proposed* [VERIFY: true] Typed in an editor" in night.text(f"docs/session_logs/{night.logs[-1]}")
