"""A loop that is killed with -9 between two decisions: no second commit, no second record, nothing lost."""

import re
import shutil
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
SUBJECTS = [
    *("start", "feat: write the answer", "chore(loop): records"),
    *("feat: take a note", "chore(loop): records"),
]
"""One commit for each item, in order, and the summary."""


def check(night: Night, pauses: int = 0) -> None:
    """Everything is as if nobody had killed anything; each pause has a summary of its own."""
    assert night.subjects == [*SUBJECTS[:1], *["chore(loop): records"] * pauses, *SUBJECTS[1:]]
    assert (night.git("status", "--porcelain"), night.git("rev-parse", "--abbrev-ref", "HEAD")) == ("", "main")
    assert night.git("rev-parse", "raymond/n") == night.git("rev-parse", night.tip)
    progress, failures = night.text("docs/progress.md"), night.text("docs/failures.md")
    assert re.findall(r"\(Continuous Session (\d)/5\)", progress) == ["1", "2", "3"]
    assert re.findall(r"^### Iteration (\d)", failures, re.MULTILINE) == ["2"]
    assert len(night.logs) == 4, "one log for each session"
    state = night.state
    assert (state["status"], state["currentSession"]) == ("complete", 3)
    assert [item["title"] for item in state["completedItems"]] == ["Write the answer", "Take a note"]
    assert [item["title"] for item in state["failedItems"]] == ["Do the impossible"]
    assert night.git("cat-file", "-t", "refs/raymond/n/2.1") == "commit"
    summaries = night.git("ls-tree", "--name-only", night.tip, "docs/summaries/").splitlines()
    assert len(summaries) == 1 + pauses
    items = night.git("log", "--format=%(trailers:key=Raymond-Item,valueonly)", night.tip).split()
    assert len(items) == len(set(items)) == 3, "each item has one commit"
    assert night.git("fsck", "--strict") == ""
    night.room.nothing_runs()


HANG = '[ -z "$HANG" ] || [ ! -e answer.txt ] || exec sleep 1000'
"""Hangs where the item was done, if the test says so; not when the check is tried before the first turn."""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["agent", "check", "commit-msg", "pre-commit"])
def test_killed_in_the_middle(tmp_path: Path, where: str) -> None:
    night = Night(tmp_path, QUEUE, AGENT)
    if where == "agent":
        night.agent(f'[ -z "$HANG" ] || exec sleep 1000\n{AGENT}')
    elif where == "check":
        night.write({"check.sh": f"{HANG}\ngrep -q 42 answer.txt\n"})
        night.git("commit", "-qam", "start", "--amend")
    else:
        program(night.path / ".git/hooks" / where, f"{HANG}\n")
    started = ("continuous-session", "start", "--id", "n", "--pause", "0s", "--attempts", "1")
    with night.room.start(*started, HANG="1") as live:
        until(lambda: any("sleep 1000" in one for one in night.room.processes().values()), where)
        live.signal(signal.SIGKILL)
        live.process.wait()
        if where == "agent":
            night.room.clear()
    assert night.loop("--yes", verb="resume").code == 1
    check(night)


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}", "utf-8")
    path.chmod(0o755)
    return str(path)


IS_CLOSED = 'git -C "$TEST_ROOM" log -1 --format=%B refs/raymond/n/tip | grep -q "^continuous-session: every item"'


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before the last commit", "after the last commit"])
def test_killed_while_the_loop_ends(tmp_path: Path, where: str) -> None:
    """The summary is the last commit, and the state file, which comes after it, says that the loop has ended."""
    night = Night(tmp_path, QUEUE, AGENT)
    signs = 'cat > "$TEST_ROOM/../signed"\n[ -z "$HANG" ] || ! grep -q "^continuous-session: every item" "$TEST_ROOM/../signed" || '
    signs += f'{{ touch "$TEST_ROOM/../last"; exec sleep 1000; }}\n{SIGNED}'
    if where.startswith("before"):
        night.git("config", "gpg.program", program(tmp_path / "sign", signs))
        night.git("config", "commit.gpgsign", "true")
        ended = (tmp_path / "last").exists
    else:
        fake = tmp_path / "bin"
        fake.mkdir()
        follows = f'case "$*" in *"refs/heads/raymond/n "*) {IS_CLOSED} && touch "$TEST_ROOM/../last" && exec sleep 1000;; esac'
        program(fake / "git", f'[ -z "$HANG" ] || {{ {follows}; }}\nexec {shutil.which("git")} "$@"\n')
        night.room.environment["PATH"] = f"{fake}:{night.room.environment['PATH']}"
        ended = (tmp_path / "last").exists
    started = ("continuous-session", "start", "--id", "n", "--pause", "0s", "--attempts", "1")
    with night.room.start(*started, HANG="1") as live:
        until(ended, where)
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    assert night.subjects == (SUBJECTS[:-1] if where.startswith("before") else SUBJECTS)
    assert night.state["status"] == "running"
    again = ("resume", "n") if where.startswith("before") else ("continuous-session", "resume", "--yes")
    assert night.room.raymond(*again).returncode == 1
    check(night)
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
    check(night, pauses=1)
