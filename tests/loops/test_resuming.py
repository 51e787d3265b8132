"""The edge table of loops: what is found at a start or a resume, row by row."""

import json
import os
import signal
from pathlib import Path

import pytest

from looping import HONEST, LOG, WAIT, Night, killed
from running import Live, until
from typist import Typist

STATE = "docs/.continuous-session-state.json"


def begun(night: Night, live: Live) -> None:
    live.sees("Selected item")


def test_running_with_no_process_is_resumed_and_goes_on_with_what_was_changed(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    assert night.state["status"] == "running"
    ran = night.loop("--id", "other", "--pause", "0s")
    assert "Found in-progress loop (session 1/5). Resume? [Y/n] yes" in ran.err
    assert "the loop is resumed with the settings it has: --pause, --id, --workspace do not apply" in ran.err
    assert ran.code == 0
    assert night.state["workflow_id"] == "n"
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert (night.text("half.txt"), night.text("answer.txt")) == ("half\n", "42\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "subjects", "half"),
    [
        ("continue", [], True),
        ("discard", [], False),
        ("commit", ["chore: commit an interrupted session"], True),
    ],
)
def test_after_a_kill_a_person_says_what_becomes_of_the_interrupted_session(
    tmp_path: Path, answer: str, subjects: list[str], half: bool
) -> None:
    night = Night(tmp_path)
    killed(night)
    person = Typist(night.room, "continuous-session", "resume")
    person.sees(r"Found in-progress loop \(session 1/5\). Resume\? \[Y/n\]")
    person.type("\n")
    person.sees("The interrupted session has changed 1 file, not committed yet.")
    person.type(f"{answer}\n")
    assert person.end() == 0, person.said
    assert night.subjects == ["start", *subjects, "feat: write the answer", "chore(loop): records"]
    assert (night.has("half.txt"), night.text("answer.txt")) == (half, "42\n")
    kept = night.git("for-each-ref", "--format=%(refname)", "refs/raymond/n/1.interrupted")
    assert bool(kept) == (answer != "continue")
    if kept:
        assert night.git("show", f"{kept}:half.txt") == "half"


@pytest.mark.slow
def test_every_interruption_keeps_the_work_and_the_state_names_who_drives(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    for number in (2, 3):
        (tmp_path / "go").unlink()
        night.agent(f"echo {number} > half{number}.txt; touch $TEST_ROOM/../half{number}\n{WAIT}{HONEST}")
        with night.room.start("continuous-session", "resume") as live:
            until((tmp_path / f"half{number}").exists, "a turn")
            assert (night.state["status"], night.state["pid"]) == ("running", live.pid)
            live.signal(signal.SIGKILL)
            live.process.wait()
            night.room.clear()
        (tmp_path / "go").touch()
    assert night.loop("--yes", verb="resume").code == 0
    assert [night.text(f"half{number}.txt") for number in ("", 2, 3)] == ["half\n", "2\n", "3\n"]


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
    assert (night.path / f"{STATE}.broken").read_text("utf-8") == '{"status": "runn'
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
        assert "- Ended: stopped: on request" in live.out


@pytest.mark.slow
def test_stopping_when_it_was_cut_off_is_marked_complete(tmp_path: Path) -> None:
    """The open item stays in the queue, its changes are kept and taken out, and a new loop can begin."""
    night = Night(tmp_path)
    killed(night, stopping=True)
    ran = night.loop("--yes", verb="resume")
    assert "Loop was stopping. Mark complete and show summary? [Y/n] yes" in ran.err
    why = "stopped: on request; what the interrupted session has changed is kept in"
    assert f"- Ended: {why} refs/raymond/n/1.interrupted" in ran.out
    assert "## Remaining\n\n- Write the answer\n" in ran.out
    assert (ran.code, night.state["status"], night.state["queueSnapshot"]) == (0, "complete", ["Write the answer"])
    assert night.git("show", "refs/raymond/n/1.interrupted:half.txt") == "half"
    assert night.git("status", "--porcelain") == ""
    assert night.subjects == ["start", "chore(loop): records"]
    shown = night.loop(verb="status").out
    assert "EXTERNAL, COMPLETE" in shown
    assert (
        f"\n{why} refs/raymond/n/1.interrupted\nnext:   raymond continuous-session start --pause 0s --workspace copy\n"
        in shown
    )
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
    assert night.git("show", "refs/raymond/n/1.interrupted:half.txt") == "half"
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
    assert shown.endswith("\ninterrupted: its process is gone\nnext:   raymond resume n\n")
    found = json.loads(night.loop("--json", verb="status").out)
    assert (found["status"], found["ended"], found["exit_code"]) == (
        "interrupted",
        "interrupted: its process is gone",
        None,
    )
    assert found["next"] == ["go on: raymond resume n"]


@pytest.mark.slow
def test_a_loop_whose_branch_was_removed_is_not_resumed(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    tip = night.git("rev-parse", night.tip)
    night.git("update-ref", "-d", night.tip)
    told = (
        "error: refs/raymond/n/tip is gone, so what the loop has done cannot be found\nhint: raymond cancel n ends it\n"
    )
    refused = night.room.resume(id="n")
    assert (refused.code, refused.err) == (2, told)
    every = night.room.raymond("resume", "--all")
    assert (every.returncode, f"n was not resumed\n{told}" in every.stderr) == (2, True)
    night.git("update-ref", "refs/raymond/n/tip", tip)
    assert (night.room.resume(id="n").code, night.subjects[1]) == (0, "feat: write the answer")


@pytest.mark.slow
def test_a_loop_in_the_checkout_is_not_resumed_on_another_branch(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo 41 > answer.txt; echo done")
    assert night.loop("--workspace", "here", "--budget", "0.01").code == 4
    night.git("stash", "-qu")
    night.git("checkout", "-q", "main")
    night.agent(HONEST)
    refused = night.room.resume("--budget", "5", id="n")
    told = "error: this loop runs on raymond/n, which is not checked out\nhint: git switch raymond/n\n"
    assert (refused.code, refused.err) == (2, told)
    assert night.git("branch", "--show-current") == "main"
    night.git("checkout", "-q", "raymond/n")
    ran = night.room.resume("--budget", "5", id="n")
    assert (ran.code, "feat: write the answer" in night.subjects) == (0, True), ran.err


@pytest.mark.slow
def test_resume_all_resumes_loops_and_runs(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed(night)
    flow = night.room.flow({"START.sh": f"{WAIT}echo '<result>done</result>' > $RAYMOND_OUT\n"})
    (tmp_path / "go").unlink()
    with night.room.start("run", flow, "--id", "r") as live:
        live.sees("START.sh")
        live.signal(signal.SIGKILL)
        live.process.wait()
    (tmp_path / "go").touch()
    every = night.room.raymond("resume", "--all")
    assert (every.returncode, sorted(every.stdout.split())) == (0, ["n", "r"]), every.stderr
    assert [night.room.raymond("wait", one).returncode for one in ("r", "n")] == [0, 0]


@pytest.mark.slow
def test_another_hosts_process_is_not_taken_for_dead(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({STATE: '{"status": "running", "pid": 12, "host": "elsewhere", "workflow_id": "x", "mine": 1}'})
    ran = night.loop()
    assert ran.code == 2
    assert "process 12 on elsewhere" in ran.err
    assert night.state["mine"] == 1


@pytest.mark.slow
def test_a_state_file_without_a_journal_is_foreign(tmp_path: Path) -> None:
    night = Night(tmp_path)
    state = {"status": "running", "currentSession": 2, "maxSessions": 5, "host": os.uname().nodename}
    night.write({STATE: json.dumps({**state, "workflow_id": "lost"})})
    told = f"the state file says running, but it was written by lost on {state['host']}, whose journal is not here\n"
    refused = night.loop("--yes", verb="resume")
    hint = "hint: raymond continuous-session start goes on with what the documents here say\n"
    assert (refused.code, refused.err) == (2, f"error: {told}{hint}")
    shown = night.loop(verb="status")
    assert (shown.out, shown.err) == ("no active continuous session\n", told)
    ran = night.loop()
    assert told in ran.err
    assert "Resume?" not in ran.err
    assert (ran.code, night.state["workflow_id"]) == (0, "n")
    kept = [name for name in os.listdir(night.path / "docs") if name.startswith(".continuous-session-state.json.")]
    assert len(kept) == 1


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
def test_an_answer_continues_the_loop_whatever_the_person_does_in_the_checkout(tmp_path: Path) -> None:
    night = paused(tmp_path)
    night.git("switch", "-q", "-c", "other")
    night.write({"mine.txt": "mine\n"})
    assert night.room.raymond("answer", "n", "continue").returncode == 0
    assert night.room.raymond("wait", "n").returncode == 1
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]
    assert (night.git("branch", "--show-current"), night.git("status", "--porcelain")) == ("other", "?? mine.txt")


@pytest.mark.slow
def test_two_loops_in_the_checkout_exclude_each_other(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: false] A\n2. [VERIFY: sh check.sh] Write the answer\n")
    night.write({"PROMPT.md": "go\n"})
    night.commit("prompt")
    assert night.loop("--workspace", "here", "--pause-on-fail", "--attempts", "1").code == 3
    night.agent(f"{WAIT}{HONEST}")
    with night.room.start("ralph", "PROMPT.md", "--id", "r", "--max-iterations", "1", "--workspace", "here") as live:
        live.sees("Selected item")
        refused = [night.room.raymond(*args) for args in (("resume", "n"), ("answer", "n", "continue"))]
        assert refused[0].returncode in (1, 2)
        assert refused[1].returncode == 5
        assert all("a ralph is running here: r" in one.stderr for one in refused)
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0


@pytest.mark.slow
def test_flags_that_a_resumed_loop_does_not_take_are_refused_or_named(tmp_path: Path) -> None:
    night = paused(tmp_path)
    refused = night.loop("--attempts", "3", verb="resume")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: there is no flag `--attempts`")
    named = night.loop("--id", "n", "--budget", "5", "--attempts", "3", "--max-sessions", "1")
    assert "it has: --max-sessions, --attempts, --id, --workspace do not apply\n" in named.err
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
def test_what_is_typed_into_the_checkout_does_not_count_until_it_is_taken_over(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"{WAIT}{HONEST}; echo 1 >> n.txt")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        with (night.path / LOG).open("a", encoding="utf-8") as log:
            log.write("2. [VERIFY: grep -q 1 n.txt] Typed in an editor\n")
        shown = night.loop(verb="status").out
        assert f"edited in the checkout, which does not count: {LOG}; " in shown
        done = night.room.raymond("continuous-session", "edit", "--from-checkout")
        assert f"{LOG} taken over: an agent is at work, so it counts from the next item on" in done.stderr
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
    assert night.subjects == [
        *("start", "docs(loop): take over what was edited in the checkout"),
        *("feat: write the answer", "feat: typed in an editor", "chore(loop): records"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["resume", "start"])
def test_a_loop_that_failed_says_why_and_is_resumed_or_replaced(tmp_path: Path, verb: str) -> None:
    night = Night(tmp_path)
    flow = tmp_path / "flow"
    assert night.loop(str(flow), verb="eject").code == 0
    script, fails = (
        flow / "NEXT.py",
        "import os\nif os.path.exists(os.environ['TEST_ROOM'] + '/../boom'):\n    raise ValueError('boom')\n",
    )
    script.write_text(script.read_text("utf-8").replace("end(*", f"{fails}end(*"), "utf-8")
    (tmp_path / "boom").touch()
    ran = night.loop("--workflow", str(flow))
    assert (ran.code, night.state["status"]) == (1, "failed")
    assert "ValueError: boom" in night.state["error"]
    assert "- Ended: failed: " in ran.out
    assert "ValueError: boom" in ran.out
    if verb == "resume":
        assert "EXTERNAL, FAILED" in night.loop(verb="status").out
        (tmp_path / "boom").unlink()
        assert night.loop("--yes", verb="resume").code == 0
    else:
        ran = night.loop("--id", "m")
        assert "the loop n is ended for good" in ran.err
        assert ran.code == 0, ran.err
    assert (night.state["status"], "error" in night.state) == ("complete", False)
    assert night.text("answer.txt") == "42\n"
