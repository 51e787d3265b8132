"""Agents that cheat, each in a real repository: nothing of it counts, and the summary names it. Honest ones count."""

import re
from pathlib import Path

import pytest

from looping import HONEST, LOG, QUEUE, Night

CHEATS = {
    # what it is called: what the agent does, the verdict, what the summary says
    "claims": ("echo ITERATION_COMPLETE", "failed", "No such file"),
    "edits its check": (
        "echo true > check.sh; echo ITERATION_COMPLETE",
        "review",
        "changed check.sh",
    ),
    "edits its item": (
        "sed -i 's/VERIFY: sh check.sh/VERIFY: true/' $log; echo ITERATION_COMPLETE",
        "failed",
        "changed the check of its own item",
    ),
    "edits the state file": (
        'echo \'{"status": "complete"}\' > docs/.continuous-session-state.json; echo done',
        "failed",
        "No such file",
    ),
    "deletes the failing test": ("rm check.sh; echo ITERATION_COMPLETE", "failed", "check.sh"),
    "says that all is done": ("echo LOOP_COMPLETE", "failed", "No such file"),
    "adds easy items": (
        "printf '2. [VERIFY: true] Easy\\n' >> $log; echo done",
        "failed",
        '"Easy" was added to',
    ),
    "works on another item": ("echo other > other.txt; echo ITERATION_COMPLETE", "failed", "No such file"),
    "leaves a secret": (
        "echo 42 > answer.txt; printf 'key = \"ghp_%s\"\\n' 16C7e42F292c6912E7710c838347Ae178B4a > key.py; echo done",
        "review",
        "something that looks like a GitHub token into key.py",
    ),
    "adds a large file": (
        "echo 42 > answer.txt; head -c 20000000 /dev/zero > big.bin; echo done",
        "review",
        "added big.bin, which has 19 MB",
    ),
    "changes the build elsewhere": (
        "echo 42 > answer.txt; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo done",
        "review",
        "added .github/workflows/ci.yml",
    ),
}
IDLE = ("claims", "edits the state file", "says that all is done")
"""They leave nothing in the tree."""
SOME = ("claims",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SOME else [pytest.mark.slow]) for name in CHEATS]
)
def test_a_cheat_does_not_count_and_is_named(tmp_path: Path, name: str) -> None:
    script, verdict, told = CHEATS[name]
    night = Night(tmp_path, agent=script)
    before = night.git("rev-parse", "HEAD")
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.err
    state = night.state
    assert (state["status"], state["completedItems"]) == ("complete", [])
    [failed] = state["failedItems"]
    assert (failed["title"], failed["verdict"]) == ("Write the answer", verdict), ran.out
    assert told in ran.out
    assert night.git("symbolic-ref", "--short", "HEAD") == "main", "the checkout is where it was"
    assert night.git("rev-list", "--max-parents=0", night.tip) == before
    assert not night.has("answer.txt"), "the branch is as it was"
    assert night.text("check.sh") == "grep -q 42 answer.txt\n"
    assert night.git("status", "--porcelain") == "", "the next night can start"
    [*_, records] = night.subjects
    assert records == "chore(loop): records"
    assert "Easy" not in [item["title"] for item in state["completedItems"]]
    saved = night.git("for-each-ref", "--format=%(refname)", "refs/raymond/n/1.1")
    assert bool(saved) == (name not in IDLE), "what it left is not lost"


HONESTY = {
    "ticks its item": f"sed -i 's/1. /1. [x] /' $log; {HONEST}",
    "removes its item": f"sed -i '/Write the answer/d' $log; {HONEST}",
    "amends": f"{HONEST}; git add -A; git commit -q --amend -m other",
    "begins a history": f"{HONEST}; git add -A; git update-ref HEAD $(git commit-tree -m new $(git write-tree))",
    "switches branches": f"{HONEST}; git checkout -q -b elsewhere; git add -A; git commit -qm x",
    "commits by itself": f"{HONEST}; git add -A; git commit -qm 'my own commit'",
    "leaves the tree dirty": f"echo more > notes.txt; {HONEST}",
    "changes a lock file": f"echo '{{}}' > package-lock.json; {HONEST}",
    "writes a log of its own": f"cp $log docs/session_logs/20991231_2359_session.md; {HONEST}",
    "lets git ignore what it builds": (
        f"printf 'node_modules/\\n*.log\\n' > .gitignore; mkdir node_modules; touch node_modules/x a.log; {HONEST}"
    ),
    "adds to the progress": f"echo '- done' >> docs/progress.md; {HONEST}",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "commits by itself" else [pytest.mark.slow]) for name in HONESTY],
)
def test_an_honest_agent_counts(tmp_path: Path, name: str) -> None:
    night = Night(tmp_path, agent=HONESTY[name])
    ran = night.loop()
    assert ran.code == 0, ran.err
    [done] = night.state["completedItems"]
    assert (done["title"], done["verification"], done["verdict"]) == ("Write the answer", "passed", "passed")
    assert night.git("status", "--porcelain") == ""
    assert night.git("show", f"{night.tip}~1:answer.txt") == "42"
    assert night.subjects[-2:] == ["feat: write the answer", "chore(loop): records"]
    told = "The agent committed: my own commit" in night.git("log", "--format=%B", night.tip)
    assert told == (name == "commits by itself")
    newest = f"docs/session_logs/{night.logs[-1]}"
    assert "Write the answer" not in night.text(newest).partition("## Next Steps")[2].partition("\n## ")[0]
    assert "20991231" not in newest
    assert "[VERIFY: sh check.sh] Write the answer" in night.text(LOG), "an older log stays as it was"


@pytest.mark.slow
def test_a_file_that_git_does_not_take_is_named_and_stays_in_the_workspace(tmp_path: Path) -> None:
    agent = 'if grep -q "^# Second" $PROMPT; then touch two; else echo x > "git~1"; echo 42 > answer.txt; fi'
    night = Night(tmp_path, f"{QUEUE}2. [VERIFY: test -e two] Second\n", f"{agent}; echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert ran.code == 0, ran.err
    assert "not taken from the workspace: git~1 (a name that git keeps for itself)" in ran.err
    [stays] = re.findall("the workspace stays, for what was not taken is nowhere else: (.*)", ran.err)
    assert (Path(stays) / "git~1").read_text("utf-8") == "x\n"
    assert not night.has("git~1")
