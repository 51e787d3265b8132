"""A loop that is killed with -9 at any point: no second commit, no second record, nothing lost."""

import os
import re
import signal
from pathlib import Path

import pytest

from looping import HONEST, SIGNED, Night
from running import until

QUEUE = (
    "1. [VERIFY: sh check.sh] Write the answer\n"
    "2. [VERIFY: grep -q never answer.txt] Do the impossible\n"
    "3. [NO-VERIFY] Take a note\n"
)
AGENT = f"""
if grep -q impossible "$PROMPT"; then echo try >> tries.txt; echo done
elif grep -q note "$PROMPT"; then echo note > note.txt; echo ITERATION_COMPLETE
else {HONEST}; fi
"""
SUBJECTS = ["start", "feat: write the answer", "feat: take a note", "chore(loop): records"]
BEYOND = 200
"""More decisions than the run has."""


def decisions(night: Night) -> int:
    try:
        return (night.room.folder("n") / "journal.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def kill_at(night: Night, count: int) -> bool:
    """Kill the process that drives the loop once so many decisions are on the disk; whether it was still there."""
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--attempts", "1") as live:
        until(lambda: decisions(night) >= count or live.process.poll() is not None, f"{count} decisions")
        ended = live.process.poll() is not None
        if not ended:
            live.signal(signal.SIGKILL)
            live.process.wait()
    return not ended


def check(night: Night) -> None:
    """Everything is as if nobody had killed anything."""
    assert night.subjects == SUBJECTS
    assert night.git("status", "--porcelain") == ""
    progress, failures = night.text("docs/progress.md"), night.text("docs/failures.md")
    assert re.findall(r"\(Continuous Session (\d)/5\)", progress) == ["1", "2", "3"]
    assert re.findall(r"^### Iteration (\d)", failures, re.MULTILINE) == ["2"]
    assert len(night.logs) == 4, "one log for each session"
    state = night.state
    assert (state["status"], state["currentSession"]) == ("complete", 3)
    assert [item["title"] for item in state["completedItems"]] == ["Write the answer", "Take a note"]
    assert [item["title"] for item in state["failedItems"]] == ["Do the impossible"]
    assert night.git("cat-file", "-t", "refs/raymond/n/2.1") == "commit"
    assert "its own" not in night.text(f"docs/summaries/{next((night.path / 'docs/summaries').iterdir()).name}")
    items = night.git("log", "--format=%(trailers:key=Raymond-Item,valueonly)").split()
    assert len(items) == len(set(items)) == 2, "each item has one commit"
    night.room.nothing_runs()


POINTS = os.environ.get("RAYMOND_KILLS", "3,14,20,31,44")


@pytest.mark.slow
@pytest.mark.parametrize("count", [int(one) for one in POINTS.split(",")])
def test_killed_after_so_many_decisions(tmp_path: Path, count: int) -> None:
    night = Night(tmp_path, QUEUE, AGENT)
    was_killed = kill_at(night, count)
    if was_killed:
        ran = night.loop("--yes", verb="resume")
        assert ran.code == 1, ran.err
    check(night)


KILL = (
    'if [ ! -e "$TEST_ROOM/../killed" ]; then touch "$TEST_ROOM/../killed";'
    ' kill -9 $(sed -n \'s/.*"pid": \\([0-9]*\\).*/\\1/p\' "$TEST_ROOM/docs/.continuous-session-state.json"); fi\n'
)
"""Kills the process that drives the loop, once."""


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("agent", marks=pytest.mark.slow),
        pytest.param("check", marks=pytest.mark.slow),
        pytest.param("pre-commit", marks=pytest.mark.slow),
        pytest.param("commit-msg", marks=pytest.mark.slow),
        "post-commit",
    ],
)
def test_killed_in_the_middle(tmp_path: Path, where: str) -> None:
    night = Night(tmp_path, QUEUE, AGENT)
    if where == "agent":
        night.agent(f"{KILL}{AGENT}")
    elif where == "check":
        night.write({"check.sh": f"{KILL}grep -q 42 answer.txt\n"})
        night.git("commit", "-qam", "start", "--amend")
    else:
        hook = night.path / ".git/hooks" / where
        hook.write_text(f"#!/bin/sh\n{KILL}", "utf-8")
        hook.chmod(0o755)
    ran = night.loop("--attempts", "1")
    assert ran.code == -signal.SIGKILL
    assert (tmp_path / "killed").exists()
    assert night.loop("--yes", verb="resume").code == 1
    check(night)


@pytest.mark.slow
@pytest.mark.parametrize("does", ["commits on top", "rewords it"])
def test_a_commit_is_found_again_after_a_kill_whatever_a_person_did_since(tmp_path: Path, does: str) -> None:
    night = Night(tmp_path)
    program(night.path / ".git/hooks/post-commit", KILL)
    assert night.loop().code == -signal.SIGKILL
    night.room.nothing_runs()
    (night.path / ".git/hooks/post-commit").unlink()
    night.write({"README.md": "# Room\n\nmine\n", "staged.txt": "later\n"})
    if does == "commits on top":
        night.git("commit", "-qm", "mine", "README.md")
    else:
        message = night.git("log", "-1", "--format=%B").replace("feat: write", "feat: I say, write")
        night.git("commit", "-q", "--amend", "-m", message, "README.md")
    night.git("add", "staged.txt")
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.out + ran.err
    made = ["feat: write the answer", "mine"] if does == "commits on top" else ["feat: I say, write the answer"]
    assert night.subjects == ["start", *made, "chore(loop): records"]
    assert night.git("diff", "--cached", "--name-only") == "staged.txt"
    assert night.text("docs/progress.md").count("(Continuous Session 1/5)") == 1
    assert len(night.logs) == 2
    assert [item["verdict"] for item in night.state["completedItems"]] == ["passed"]


@pytest.mark.slow
def test_a_commit_that_replaces_those_of_the_agent_is_found_again_after_a_kill(tmp_path: Path) -> None:
    own = "echo 1 > own.txt; git add own.txt; git -c core.hooksPath=/dev/null commit -q -m own"
    night = Night(tmp_path, agent=f"{own}; {HONEST}")
    program(night.path / ".git/hooks/post-commit", KILL)
    assert night.loop("--squash").code == -signal.SIGKILL
    night.room.nothing_runs()
    made = night.git("rev-parse", "raymond/n")
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert night.git("rev-parse", "HEAD~1") == made


STEP = '[ -e "$TEST_ROOM/../killed" ] || step=$(cut -d " " -f 4 "/proc/$PPID/stat")\n'
"""Notes the step that runs the git which runs this, unless the loop was killed before."""


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}", "utf-8")
    path.chmod(0o755)
    return str(path)


ASIDE = f"mkdir .github; echo x > .github/ci.yml; echo other > notes.txt; {HONEST}"


def check_aside(night: Night) -> None:
    """The item is set aside once, with all that its agent did, and the tree is as it was."""
    assert night.git("for-each-ref", "--format=%(refname)", "refs/raymond/n/1.[0-9]*") == "refs/raymond/n/1.1"
    left = [night.git("show", f"refs/raymond/n/1.1:{name}") for name in ("answer.txt", ".github/ci.yml", "notes.txt")]
    assert left == ["42", "x", "other"]
    [failed] = night.state["failedItems"]
    assert (failed["verdict"], failed["error"].count(".github/ci.yml")) == ("review", 1)
    assert night.text("docs/failures.md").count("### Iteration") == 1
    assert night.text("docs/progress.md").count("(Continuous Session 1/5)") == 1
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert log.count("[BLOCKED: waits for a person (raymond review n): ") == 1
    assert "which Raymond writes" not in log, "its own records are not taken for the agent's"
    assert night.git("for-each-ref", "refs/raymond/n/1.documents") == "", "the agent left none"
    assert (night.text("notes.txt"), night.git("status", "--porcelain")) == ("mine\n", "")


@pytest.mark.slow
def test_killed_while_an_item_is_put_away(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=ASIDE)
    night.write({"notes.txt": "mine\n", ".gitattributes": "notes.txt filter=kill\n"})
    night.commit("notes")
    smudges = program(tmp_path / "smudge", f'{STEP}{KILL}[ -z "$step" ] || kill -9 "$step"\ncat\n')
    night.git("config", "filter.kill.smudge", smudges)
    ran = night.loop()
    assert ran.code == -signal.SIGKILL
    assert ran.run.agents["main_work1"].state == "ASIDE.py"
    night.room.nothing_runs()
    assert not (night.path / "answer.txt").exists(), "half of it was put away"
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.err
    check_aside(night)


@pytest.mark.slow
def test_killed_while_it_is_written_down_that_an_item_was_set_aside(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=ASIDE)
    night.write({"notes.txt": "mine\n"})
    night.commit("notes")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        until((night.path / "docs/failures.md").exists, "the record of the failure")
        live.signal(signal.SIGKILL)
        night.room.clear()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.err
    check_aside(night)


IS_CLOSED = '[ "$(git -C "$TEST_ROOM" log -1 --format=%s)" = "chore(loop): records" ]'


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before the last commit", "after the last commit", "after it, with git"])
def test_killed_while_the_loop_ends(tmp_path: Path, where: str) -> None:
    night = Night(tmp_path, QUEUE, AGENT)
    if where.startswith("before"):
        signs = f'cat > "$TEST_ROOM/../signed"\nif grep -q records "$TEST_ROOM/../signed"; then {KILL}fi\n{SIGNED}'
        night.git("config", "gpg.program", program(tmp_path / "sign", signs))
        night.git("config", "commit.gpgsign", "true")
    else:
        night.write({".git/info/attributes": "docs/summaries/* filter=kill\n"})
        git = 'first=; [ -e "$TEST_ROOM/../killed" ] || first=1\n' if where.endswith("git") else ""
        cleans = f'{git}if {IS_CLOSED}; then {KILL}[ -z "$first" ] || kill -9 "$PPID"; fi\ncat\n'
        night.git("config", "filter.kill.clean", program(tmp_path / "clean", cleans))
    ran = night.loop("--attempts", "1")
    assert ran.code == -signal.SIGKILL
    night.room.nothing_runs()
    assert night.subjects == (SUBJECTS[:-1] if where.startswith("before") else SUBJECTS)
    assert night.state["status"] == "running"
    assert not (night.path / ".git/index.lock").exists()
    assert night.loop("--yes", verb="resume").code == 1
    check(night)
    assert len(list((night.path / "docs/summaries").iterdir())) == 1
    assert night.loop("--yes", verb="resume").out == "no active continuous session\n"


@pytest.mark.slow
def test_a_signal_saves_everything_and_the_loop_goes_on(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, f"while [ ! -e $TEST_ROOM/../go ]; do sleep 0.02; done\n{AGENT}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--attempts", "1") as live:
        live.sees("Selected item")
        live.signal(signal.SIGTERM)
        live.signal(signal.SIGTERM)
        assert live.process.wait(60) == 128 + signal.SIGTERM
        assert "- Ended: paused" in live.out
    assert night.state["status"] == "paused"
    (tmp_path / "go").touch()
    ran = night.loop()
    assert "Found paused loop. Resume from session 1? [Y/n] yes" in ran.err
    assert ran.code == 1
    check(night)
