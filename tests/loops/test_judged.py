"""What a person decides about tasks and stories: criteria that no command checks, and what was set aside."""

import json
from pathlib import Path

import pytest

from looping import Night
from raymond.workspace.slot import Slot
from typist import Typist

pytestmark = pytest.mark.slow
SPEC = "docs/implementation/1-core/1.1-pictures.md"
MANUAL = """### 1.1.1. Draw it

**Status:** 🔵 Planned
**Verification:**
- type: manual
- criteria: It is pretty
- criteria: The colours of {{brand}} are right </ask>

The picture goes to art.txt.
"""
AGENT = "echo art >> art.txt; echo 'I drew it.'; echo ITERATION_COMPLETE"


def drawn(path: Path, spec: str = MANUAL, agent: str = AGENT, **files: str) -> Night:
    return Night(path, agent=agent, **{SPEC.replace("/", "__"): spec, **files})


def test_a_person_is_asked_with_the_whole_text_and_says_yes(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s")
    said = " ".join(person.sees("Answer `yes`, or say what is missing.").split())
    person.type("yes\n")
    assert person.end() == 0
    for text in ("Is this done? 1.1.1. Draw it", "It is pretty", "{{brand}}", "I drew it.", "goes to art.txt"):
        assert text in said
    assert "**Verified:** true (" in night.text(SPEC)
    assert ", manual)" in night.text(SPEC)
    assert night.subjects[-2:] == ["feat: draw it (1.1.1)", "chore(loop): records"]


def test_what_is_missing_goes_to_another_session(tmp_path: Path) -> None:
    night = drawn(tmp_path, agent='cp "$PROMPT" $TEST_ROOM/../prompt; ' + AGENT)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s")
    person.sees("Answer `yes`, or say what is missing.")
    person.type("more red\n")
    person.sees("Answer `yes`, or say what is missing.")
    person.type("yes\n")
    assert person.end() == 0
    assert "a person says that it is not done: more red" in (tmp_path / "prompt").read_text("utf-8")
    assert night.text("art.txt") == "art\nart\n"


def test_an_answer_that_may_mean_yes_is_asked_back_and_costs_no_turn(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s", "--attempts", "1", columns=160)
    assert "`yes` commits it as done; any other text is a no" in person.sees(r"Answer `yes`.*no") + person.said
    person.type("Yes, great work\n")
    assert "You said: Yes, great work\n" in person.sees("Does that mean yes")
    person.sees(ASKS)
    person.type("Done!\n")
    assert person.end() == 0
    assert night.text("art.txt") == "art\n"
    assert ", manual)" in night.text(SPEC)


def test_what_a_person_refused_has_no_empty_command_and_no_empty_output(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s", "--attempts", "1")
    person.sees(ASKS)
    person.type("more red\n")
    assert person.end() == 1
    told = night.text(SPEC)
    assert (
        "- result: FAILED (failed: a person says that it is not done: more red)\n- attempts: 1\n- output: none\n"
        in told
    )
    assert ("- command:" in told, "```" in told) == (False, False)


def test_one_that_is_pending_is_judged_later_without_an_agent(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    assert night.loop(loop="task-loop").code == 0
    night.agent("touch $TEST_ROOM/../paid")
    person = Typist(night.room, "task-loop", "start", "--id", "m", "--pause", "0s")
    person.sees("Answer `yes`, or say what is missing.")
    person.type("yes\n")
    assert person.end() == 0
    assert not (tmp_path / "paid").exists()
    assert "**Verified:** true (" in night.text(SPEC)


ASKS = "Answer `yes`, or say what is missing."


def test_a_yes_counts_only_for_the_files_that_were_asked_about(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s")
    person.sees(ASKS)
    tree = Path(Slot(f"{night.room.project.run('n').workspace}/1").tree)
    (tree / "art.txt").write_text("swapped\n", "utf-8")
    (tree / "more.txt").write_text("x\n", "utf-8")
    person.type("yes\n")
    again = " ".join(person.sees(ASKS).replace("|", " ").split())
    assert "You said yes, but these files have changed since: art.txt, more.txt Is this done?" in again
    assert "- more.txt" in again
    person.type("yes\n")
    assert person.end() == 0
    assert night.text("art.txt") == "swapped\n"


@pytest.mark.parametrize("later", ["echo no; exit 1", "echo other > art.txt"], ids=["rejects", "changes"])
def test_what_follows_a_hook_after_a_yes_is_asked_about_again(tmp_path: Path, later: str) -> None:
    seen, twice = tmp_path / "seen", tmp_path / "twice"
    lint = f"if [ -e {seen} ] && [ ! -e {twice} ]; then touch {twice}; {later}; fi; touch {seen}"
    agent = "grep -q 'A hook of this project' $PROMPT && echo other > art.txt; [ -e art.txt ] || echo art > art.txt"
    night = drawn(tmp_path, agent=f"{agent}; echo ITERATION_COMPLETE")
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\necho linting\n{lint}\n")
    hook.chmod(0o755)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s")
    person.sees(ASKS)
    assert night.git("show", "refs/raymond/n/1.judged:art.txt") == "art"
    person.type("yes\n")
    person.sees(ASKS)
    assert night.git("show", "refs/raymond/n/1.judged:art.txt") == "other"
    person.type("yes\n")
    assert person.end() == 0


def test_only_a_person_at_a_terminal_judges(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s")
    person.sees(ASKS)
    refused = night.room.raymond("answer", "n", "yes")
    assert refused.returncode != 0
    assert "asks for the approval of a person" in refused.stderr
    other = Typist(night.room, "answer", "n", "yes")
    assert other.end() == 0
    assert person.end() == 0
    assert ", manual)" in night.text(SPEC)


FORGES = """
for number in $(seq 60); do echo x > a$number.txt; done
touch "$(printf 'b\\n\\nChanged (1):\\n- art.txt')"
seq 100
printf 'Changed (1):\\n- art.txt\\n'
echo ITERATION_COMPLETE
"""


def test_nothing_that_an_agent_writes_looks_like_a_line_of_the_question(tmp_path: Path) -> None:
    night = drawn(tmp_path, agent=FORGES)
    person = Typist(night.room, "task-loop", "start", "--id", "n", "--pause", "0s", columns=160)
    said = [line.strip().removeprefix("|").strip() for line in person.sees(ASKS).splitlines()]
    assert [line for line in said if line.startswith("Changed")] == ["Changed (61):"]
    assert "- art.txt" not in said
    assert "> Changed (1):" in said
    assert "> 40" not in said
    assert any(line.startswith("The agent says (without its first 4") for line in said)
    assert said.index("> Changed (1):") < said.index("Changed (61):")
    [more] = [line for line in said if line.startswith("... and 11 more: git diff --stat ")]
    assert "61 files changed" in night.git("diff", *more.split(": git diff ")[1].split())
    person.type("yes\n")
    assert person.end() == 0


def test_whoever_judges_later_is_told_which_commit(tmp_path: Path) -> None:
    night = drawn(tmp_path)
    assert night.loop(loop="task-loop").code == 0
    commit = night.git("log", "--format=%h", "--grep=draw it (1.1.1)", "--fixed-strings", "raymond/n")
    person = Typist(night.room, "task-loop", "start", "--id", "m", "--pause", "0s", columns=160)
    said = [line.strip().removeprefix("|").strip() for line in person.sees(ASKS).splitlines()]
    at = said.index("Commits that name it:")
    assert said[at - 1 : at + 3] == [
        "Nothing was changed for it now.",
        "Commits that name it:",
        f"- {commit} feat: draw it (1.1.1)",
        "",
    ]
    person.type("yes\n")
    assert person.end() == 0


FORGED = """
if grep -q Later $PROMPT; then
  for number in $(seq 10); do
    git commit -q --allow-empty -m "$(printf 'feat: draw it (1.1.1)\\n\\nx\\xe2\\x80\\xa8Log: docs/x.md\\n%s: x' Raymond-Items)"
  done
  echo later > later.txt
else
  echo art >> art.txt
fi
echo ITERATION_COMPLETE
"""


def test_no_commit_of_an_agent_s_own_is_shown_to_whoever_judges(tmp_path: Path) -> None:
    later = "### 1.1.2. Later\n\n**Status:** 🔵 Planned\n**Verification:** `cat later.txt`\n"
    night = drawn(tmp_path, f"{MANUAL}\n{later}", FORGED)
    assert night.loop(loop="task-loop").code == 0
    real = night.git("log", "--format=%h", "--grep=^Raymond-Item: ", "raymond/n", "--", "art.txt")
    person = Typist(night.room, "task-loop", "start", "--id", "m", "--pause", "0s", columns=160)
    said = [line.strip().removeprefix("|").strip() for line in person.sees(ASKS).splitlines()]
    at = said.index("Commits that name it:")
    assert said[at + 1 : at + 3] == [f"- {real} feat: draw it (1.1.1)", ""]
    person.type("yes\n")
    assert person.end() == 0


CHECKED = "### 1.1.1. Write it\n\n**Status:** 🔵 Planned\n**Verification:** `sh check.sh`\n**Implements:** US-1\n"
ASIDE = "echo 42 > answer.txt; mkdir -p .github; echo x > .github/ci.yml; echo ITERATION_COMPLETE"


def test_a_task_that_was_set_aside_is_accepted(tmp_path: Path) -> None:
    night = drawn(tmp_path, CHECKED, ASIDE)
    assert night.loop(loop="task-loop").code == 1
    assert "**Status:** ⏸️ Blocked (waits for a person (raymond review n): added .github/ci.yml" in night.text(SPEC)
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0
    assert "**Status:** ✅ Complete" in night.text(SPEC)
    assert ", sh check.sh)" in night.text(SPEC)
    assert night.git("status", "--porcelain") == ""


def test_a_task_that_was_set_aside_is_rejected_and_done_again(tmp_path: Path) -> None:
    night = drawn(tmp_path, CHECKED, ASIDE)
    night.loop(loop="task-loop")
    assert night.room.raymond("reject", "n", "1", "not in CI").returncode == 0
    assert "**Status:** 🟡 In Progress" in night.text(SPEC)
    assert "rejected by a person: not in CI" in night.text(SPEC)
    night.agent('cp "$PROMPT" $TEST_ROOM/../prompt; echo 42 > answer.txt; echo ITERATION_COMPLETE')
    assert night.loop("--id", "m", loop="task-loop").code == 0
    assert "not in CI" in (tmp_path / "prompt").read_text("utf-8")


def test_a_story_that_was_set_aside_is_accepted(tmp_path: Path) -> None:
    prd = "## User Stories\n\n### US-1: The answer\n\n**Verification:** `sh check.sh`\n"
    night = drawn(tmp_path, CHECKED, ASIDE, **{"docs__prd.md": prd})
    assert night.room.raymond("prd", "status-init", "--yes").returncode == 0
    night.commit("status")
    assert night.loop(loop="story-loop").code == 1
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0
    [story] = json.loads(night.text("docs/prd-status.json"))["stories"]
    assert (story["passes"], story["history"][-1]["notes"]) == (True, "accepted by a person")
    assert night.git("status", "--porcelain") == ""


QUEUE = "1. [VERIFY: task-loop] Draw and check\n   - Tasks: 1.1\n"
BOTH = f"{MANUAL}\n### 1.1.2. Check it\n\n**Status:** 🔵 Planned\n**Verification:** `cat art.txt`\n"


def test_tasks_of_the_queue_wait_for_a_person_too(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, AGENT, **{SPEC.replace("/", "__"): BOTH})
    done = night.loop()
    assert done.code == 0, done.err
    assert night.text(SPEC).count("**Status:** ✅ Complete\n**Verified:** false (waits for a person)\n") == 1
    assert night.text(SPEC).count(", cat art.txt)\n") == 1
    told = "raymond task-loop start --task ID, for each of 1.1.1, 1.1.2"
    assert f"- say whether `Draw and check` is done, on a terminal: {told}\n" in done.out
    person = Typist(night.room, "task-loop", "start", "--id", "m", "--task", "1.1.1")
    person.sees("Answer `yes`, or say what is missing.")
    person.type("yes\n")
    assert person.end() == 0
    assert ", manual)" in night.text(SPEC)


def test_tasks_of_the_queue_are_verified_by_a_yes(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, AGENT, **{SPEC.replace("/", "__"): BOTH})
    person = Typist(night.room, "continuous-session", "start", "--id", "n", "--pause", "0s")
    person.sees("Answer `yes`, or say what is missing.")
    person.type("yes\n")
    assert person.end() == 0
    assert night.text(SPEC).count("**Verified:** true (") == 2
    assert ", manual)" in night.text(SPEC)
    assert ", cat art.txt)" in night.text(SPEC)
