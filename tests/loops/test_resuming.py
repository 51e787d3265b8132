"""The edge table of loops: what is found at a start or a resume, row by row."""

import signal
from pathlib import Path

import pytest

from looping import HONEST, LOG, WAIT, Night, killed
from running import until
from typist import Typist


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
def test_stop_of_an_id_lets_the_item_end(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"
    night = Night(tmp_path, queue, f"touch $TEST_ROOM/../half\n{WAIT}echo 42 > answer.txt; echo ITERATION_COMPLETE")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        until((tmp_path / "half").exists, "the agent works")
        said = night.room.raymond("-C", str(tmp_path), "stop", "n").stdout
        assert said == "Stopping n. Session 1 ends first; raymond continuous-session status shows it.\n"
        (tmp_path / "go").touch()
        live.process.wait()
    assert night.room.raymond("list").stdout.count("stopped on request: 1 of 2 done") == 1
    again = night.room.raymond("stop", "n")
    assert "n has ended" in again.stdout + again.stderr
