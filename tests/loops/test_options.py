"""Options of a loop that change where and how it works."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from looping import HONEST, LOG, Night

pytestmark = pytest.mark.slow


def test_a_closing_paragraph_of_an_agent_stands_beside_the_summary(tmp_path: Path) -> None:
    agent = f"""
    if grep -q 'loop in this repository has ended' "$PROMPT"; then echo "## Completed"; echo "It was a calm night."
    else {HONEST}; fi
    """
    night = Night(tmp_path, agent=agent)
    ran = night.loop("--summary-prompt", "Say how the night was.")
    assert ran.code == 0, ran.err
    assert ran.out.rstrip().endswith("## In the words of an agent\n\n### Completed\nIt was a calm night.")
    assert night.state["status"] == "complete"
    assert len(night.state["completedItems"]) == 1


def test_without_commits_the_work_comes_into_the_checkout(tmp_path: Path) -> None:
    night = Night(tmp_path)
    ran = night.loop("--no-commit", "--workspace", "copy")
    assert ran.code == 0, ran.err
    assert night.git("log", "--branches", "--format=%s") == "start"
    assert (night.path / "answer.txt").read_text("utf-8") == "42\n"


def test_items_without_a_check_are_passed_over_if_one_is_required(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [NO-VERIFY] Think\n2. [VERIFY: sh check.sh] Write the answer\n")
    ran = night.loop("--require-verify")
    assert ran.code == 0, ran.err
    assert "Think: it has no [VERIFY: ...], and --require-verify asks for one" in ran.out


def test_checks_are_allowed_and_denied_by_pattern(tmp_path: Path) -> None:
    queue = "1. [VERIFY: make test && sh check.sh] A\n2. [VERIFY: sh check.sh] Write the answer\n"
    night = Night(tmp_path, queue)
    ran = night.loop("--allow", "sh *", "--deny", "make *")
    assert "A: its check matches --deny make *" in ran.out
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


def test_another_log_can_be_the_first_queue(tmp_path: Path) -> None:
    night = Night(tmp_path)
    older = "docs/session_logs/20240101_0900_session.md"
    night.write({older: "## Next Steps\n\n- [VERIFY: sh check.sh] From an older log\n"})
    night.commit("older")
    assert night.loop("--from-session", older).code == 0
    assert [item["title"] for item in night.state["completedItems"]] == ["From an older log"]
    assert night.state["sourceSession"] == older


def test_the_queue_of_an_older_commit_is_the_one_that_counts_there(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({"docs/session_logs/20260101_0900_session.md": "## Next Steps\n\n- [VERIFY: sh check.sh] Newer\n"})
    night.commit("newer")
    ran = night.loop("--from", "HEAD~1")
    assert ran.code == 0, ran.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


def test_priorities_decide_the_order_and_proposed_items_run_if_accepted(tmp_path: Path) -> None:
    queue = (
        "1. [PRIORITY: 3] [VERIFY: sh check.sh] Last\n"
        "2. *proposed* [VERIFY: sh check.sh] Of an agent\n"
        "3. [PRIORITY: 2] [VERIFY: sh check.sh] Second\n"
        "4. [VERIFY: sh check.sh] First\n"
    )
    night = Night(tmp_path, queue)
    ran = night.loop("--accept-proposed")
    assert ran.code == 0, ran.err
    done = [(item["title"], item["verdict"]) for item in night.state["completedItems"]]
    assert done == [
        ("Of an agent", "own check"),
        ("First", "no change"),
        ("Second", "no change"),
        ("Last", "no change"),
    ]
    assert "- Success rate: 100% (3/3); apart from 1 item with a check of an agent's own" in ran.out


@pytest.mark.parametrize(
    ("on_fail", "titles", "left"),
    [
        ("retry", ["Impossible", "Write the answer"], "[BLOCKED: failed 2 times in a row"),
        ("create-fix-task", ["Impossible", "Fix: Impossible", "Write the answer"], "Fix: Impossible"),
    ],
)
def test_what_follows_a_failure(tmp_path: Path, on_fail: str, titles: list[str], left: str) -> None:
    queue = "1. [VERIFY: sh never.sh] Impossible\n2. [VERIFY: sh check.sh] Write the answer\n"
    night = Night(tmp_path, queue, f'grep -q "# Write" "$PROMPT" && {{ {HONEST}; }}; echo try >> tries.txt; echo done')
    night.write({"never.sh": "exit 1\n"})
    night.commit("never")
    ran = night.loop("--on-fail", on_fail, "--attempts", "1", "--max-failures", "2")
    assert ran.code == 1, ran.err
    worked = {item["title"] for key in ("completedItems", "failedItems") for item in night.state[key]}
    assert worked == set(titles)
    assert left in night.text(f"docs/session_logs/{night.logs[-1]}")
    assert ran.err.count(" (again)\n") == ran.err.count("Starting iteration") - len(titles), ran.err
    assert night.git("status", "--porcelain") == "", "the next night can start"


def test_a_fix_item_keeps_the_tags_the_backticks_and_the_timeout_of_its_item(tmp_path: Path) -> None:
    head, rest = (
        '1. [PRIORITY: 2] [VERIFY: `sh never.sh "[x]"`] ',
        "   Look at `c`.\n   - Timeout: 20m\n   - Retry: 0\n",
    )
    night = Night(tmp_path, f"{head}Repair `a.b` well\n{rest}", "echo try >> tries.txt; echo done")
    night.write({"never.sh": "exit 1\n"})
    night.commit("never")
    assert night.loop("--on-fail", "create-fix-task", "--max-sessions", "1").code == 1
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert f"{head}Fix: Repair `a.b` well\n{rest}   It failed: " in log.partition("## Next Steps")[2]


def test_an_agent_that_cannot_is_believed(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo 42 > answer.txt; echo 'I lack a key.'; echo ITERATION_FAILED")
    ran = night.loop()
    assert ran.code == 1
    assert [item["verdict"] for item in night.state["failedItems"]] == ["gave up"]
    assert "the agent said that it cannot do this: I lack a key." in ran.out
    assert ran.err.count("Running verification") == 0


def test_a_budget_stops_the_loop_and_more_of_it_goes_on(tmp_path: Path) -> None:
    queue = "".join(f"{number}. [VERIFY: sh check.sh] Item {number}\n" for number in range(1, 4))
    night = Night(tmp_path, queue)
    ran = night.loop("--budget", "0.0125")
    assert ran.code == 4, ran.out
    assert night.state["status"] == "paused"
    assert "raymond resume n --budget 0.04" in ran.out
    assert "80% of the budget is spent" in ran.err
    again = night.loop("--yes", "--budget", "5", verb="resume")
    assert again.code == 0, again.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Item 1", "Item 2", "Item 3"]


def test_a_pause_after_a_failure_waits_for_a_person_and_resuming_is_an_answer(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: false] A\n2. [VERIFY: sh check.sh] Write the answer\n")
    ran = night.loop("--pause-on-fail", "--attempts", "1")
    assert ran.code == 3, ran.out
    assert night.state["status"] == "paused"
    status = json.loads(night.room.raymond("status", "n", "--json").stdout)
    assert "Iteration failed. Pausing for review." in str(status)
    assert "Press enter to continue or Ctrl+C to abort..." in str(status)
    assert night.loop("--yes", verb="resume").code == 1
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]


def test_edit_counts_from_the_next_item_on_also_while_an_agent_works(tmp_path: Path) -> None:
    agent = f"while [ ! -e $TEST_ROOM/../go ]; do sleep 0.02; done; {HONEST}"
    night = Night(tmp_path, agent=agent)
    editor = tmp_path / "editor"
    typed = "2. [VERIFY: sh check.sh] Typed in edit\n3. [VERIFY sh check.sh] Without a colon"
    editor.write_text(f'#!/bin/sh\necho "{typed}" >> "$1"\n', "utf-8")
    editor.chmod(0o755)
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--strict") as live:
        live.sees("Selected item")
        done = night.room.raymond("continuous-session", "edit", environment={"EDITOR": str(editor)})
        assert done.stderr == (
            "warning: what you wrote:7: `[VERIFY sh check.sh]` needs a colon after the name of the tag, so the item is not verified\n"
            "3 items in the queue\ncommitted on raymond/n: an agent is at work, so it counts from the next item on\n"
        )
        told = night.room.raymond("continuous-session", "learn", "the answer is a number")
        assert "an agent is at work" in told.stdout
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0, live.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer", "Typed in edit"]
    assert "the answer is a number" in night.text("docs/critical-learnings.md")
    assert "the agent" not in live.out
    assert "Typed in edit" not in (night.path / LOG).read_text("utf-8")
    assert "[VERIFY sh check.sh] Without a colon: `[VERIFY sh check.sh]` needs a colon" in live.out, (
        "and is passed over"
    )


def test_an_ejected_workflow_is_a_loop_that_can_be_changed(tmp_path: Path) -> None:
    night = Night(tmp_path)
    folder = tmp_path / "mine"
    assert night.room.raymond("continuous-session", "eject", str(folder)).returncode == 0
    work = folder / "WORK.md"
    work.write_text(work.read_text("utf-8") + "\nSing while you work.\n", "utf-8")
    ran = night.loop("--workflow", str(folder))
    assert ran.code == 0, ran.err
    assert any("Sing while you work." in str(one.get("sent", "")) for one in ran.transcript("main_work1"))
    again = night.room.raymond("continuous-session", "eject", str(folder))
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("loop", "other", "missing"),
    [("continuous-session", "ralph", "FAILED.py"), ("ralph", "continuous-session", "BEFORE.py")],
)
def test_a_workflow_of_the_other_loop_or_of_none_is_refused(
    tmp_path: Path, loop: str, other: str, missing: str
) -> None:
    night = Night(tmp_path, PROMPT="Do it.\n")
    folder = tmp_path / "other"
    assert night.room.raymond(other, "eject", str(folder)).returncode == 0
    for one in (str(folder), night.room.flow({"START.md": "Say hello."})):
        ran = night.loop(*(["PROMPT"] if loop == "ralph" else []), "--workflow", one, loop=loop)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"error: {one} is not a workflow of {loop}: it has no {missing}\nhint: raymond {loop} eject DIR makes one\n"
        )
        assert not night.room.folder("n").exists()
        assert night.git("rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_a_dry_run_says_what_is_taken_along(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert "taken along" not in night.loop("--dry-run").out
    night.write({"README.md": "# Changed\n", "new.txt": "new\n", "docs/progress.md": "# Progress\n"})
    ran = night.loop("--dry-run")
    assert ran.code == 0, ran.err
    assert "your changes that are not committed are taken along: README.md, new.txt\nrights:" in ran.out


def test_the_queue_is_read_from_a_folder_of_any_name(tmp_path: Path) -> None:
    night = Night(tmp_path)
    os.rename(night.path / "docs", night.path / "plans")
    night.commit("renamed")
    ran = night.loop("--docs", "plans")
    assert ran.code == 0, ran.err
    assert "(Continuous Session 1/5)" in night.text("plans/progress.md")


@pytest.mark.slow
def test_the_pause_before_an_item_is_no_part_of_its_duration(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh check.sh] Look at it\n")
    assert night.loop("--pause", "6s").code == 0
    state = night.state
    began, ended = (datetime.fromisoformat(state[name]) for name in ("startedAt", "lastUpdated"))
    spent = sum(item["duration"] for item in state["completedItems"]) / 1000
    assert len(state["completedItems"]) == 2
    assert spent + 6 <= (ended - began).total_seconds()
