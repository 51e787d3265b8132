"""Loops from the inside: whoever asks for an item has it done, and Raymond believes only that it could not be."""

import json
from pathlib import Path

import pytest

from inside import DONE, Inside
from looping import LOG
from typist import Typist

OPENING = """\
You are continuing an autonomous continuous session loop.

1. Read docs/.continuous-session-state.json for current state
2. Read the most recent session log in docs/session_logs/
3. Execute the next item in the queue
4. Update state and session logs
5. If more items remain and under limit, spawn next iteration

Current state file: docs/.continuous-session-state.json

Continue the continuous session loop."""


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def test_two_items_are_handed_out_checked_and_committed_one_after_the_other(inside: Inside) -> None:
    first = inside.begin()
    assert (first["status"], first["session"], first["most"], first["attempt"]) == ("item", 1, 5, 1)
    assert first["item"] == {"title": "Write the answer", "details": "", "check": "sh check.sh", "timeout": "600s"}
    assert (first["log"], first["log_text"]) == (LOG, inside.text(LOG))
    assert first["prompt"].startswith(OPENING)
    assert "\n# Write the answer\n" in first["prompt"]
    assert "do not spawn another agent" in first["prompt"]
    assert (inside.state["status"], inside.state["currentSession"]) == ("running", 1)
    inside.write({"answer.txt": "42\n"})
    done = inside.record()
    head = inside.git("rev-parse", "HEAD")
    assert (done["status"], done["verdict"], done["commit"]) == ("recorded", "passed", head)
    assert (done["remaining"], done["next"]) == (1, True)
    assert [one["title"] for one in inside.state["completedItems"]] == ["Write the answer"]
    assert "I did it." in inside.text(done["log"])
    assert inside.next()["item"]["title"] == "Write the other"
    inside.write({"two.txt": "7\n"})
    assert inside.record()["next"] is False
    end = inside.next()
    assert (end["status"], end["exit_code"]) == ("done", 0)
    assert "- Success rate: 100% (2/2)\n- Cost: unknown: whoever does the items pays\n" in end["summary"]
    assert inside.subjects == ["start", "feat: write the answer", "feat: write the other", "chore(loop): records"]
    assert inside.git("status", "--porcelain") == ""
    assert inside.state["status"] == "complete"


@pytest.mark.slow
def test_an_open_item_is_handed_out_again_only_to_who_asks_for_that(inside: Inside) -> None:
    first = inside.begin()
    assert inside.refused("next", "--json") == (
        "error: an item is open: Write the answer\n"
        "hint: raymond continuous-session record takes what became of it;"
        " raymond continuous-session next --resume hands it out again\n"
    )
    assert inside.next("--resume") == first
    status = inside.call("status").stdout
    assert "Mode:     INTERNAL, RUNNING\n" in status
    assert "waits for raymond continuous-session record\nnext:   raymond continuous-session record\n" in status


@pytest.mark.slow
def test_nobody_can_record_what_was_not_handed_out(inside: Inside) -> None:
    none = "error: no active continuous session\nhint: raymond continuous-session next starts one\n"
    assert inside.refused("record", said=DONE) == none
    assert inside.refused("next", "--resume") == none
    inside.begin()
    assert inside.refused("record") == (
        "error: there is nothing on standard input: what became of the item?\n"
        "hint: raymond continuous-session record <<'END' with what was said, or record --failed REASON\n"
    )
    assert "error: --failed needs a reason" in inside.refused("record", "--failed", " ")
    inside.write({"answer.txt": "42\n"})
    first = inside.record()
    assert inside.refused("record", said=DONE) == (
        "error: no item is open: what became of the last one is recorded\n"
        "hint: raymond continuous-session next --json\n"
    )
    assert inside.record(None) == first, "whoever asks what became of it may ask twice"
    assert inside.subjects == ["start", "feat: write the answer"]


@pytest.mark.slow
def test_whoever_says_that_it_is_done_is_not_believed_and_told_why(inside: Inside) -> None:
    inside.begin()
    again = inside.record()
    assert (again["status"], again["attempt"], again["next"]) == ("again", 2, True)
    assert "`sh check.sh` ended with exit code" in again["reason"]
    assert "no item is open: run `next` to get it again" in inside.refused("record", said=DONE)
    second = inside.next()
    assert (second["attempt"], second["session"]) == (2, 1)
    assert "An earlier session tried this item, and it did not count" in second["prompt"]
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.slow
def test_whoever_says_that_it_cannot_be_done_is_believed(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})  # the check would be green
    done = inside.record("I cannot.\n\nITERATION_FAILED\n")
    assert (done["verdict"], done["counts"], done["commit"]) == ("gave up", False, None)
    assert done["reason"].endswith("I cannot.")
    assert inside.subjects == ["start"]
    assert not (inside.path / "answer.txt").exists(), "what it left is put away"


@pytest.mark.slow
def test_a_sub_agent_that_died_uses_up_an_attempt(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})  # the check would be green
    again = inside.record(None, "--failed", "agent died")
    assert (again["status"], again["attempt"]) == ("again", 2)
    assert again["reason"].endswith("not done: agent died")
    assert (
        "waits for raymond continuous-session next\nnext:   raymond continuous-session next\n"
        in inside.call("status").stdout
    )
    assert "not done: agent died" in inside.next()["prompt"]
    done = inside.record(None, "--failed", "it died again")
    assert (done["verdict"], done["reason"]) == ("failed", "not done: it died again")
    assert inside.subjects == ["start"]
    assert not (inside.path / "answer.txt").exists(), "what it left is put away"


@pytest.mark.slow
def test_a_changed_test_does_not_count(inside: Inside) -> None:
    inside.begin()
    inside.write({"check.sh": "true\n"})
    done = inside.record()
    assert (done["verdict"], done["counts"]) == ("review", False)
    assert "check.sh" in done["reason"]
    assert inside.text("check.sh") == "grep -q 42 answer.txt\n"
    assert inside.subjects == ["start"]


@pytest.mark.slow
def test_a_test_that_the_first_attempt_changed_does_not_help_the_second(inside: Inside) -> None:
    inside.begin()
    inside.write({"check.sh": "grep -q 43 answer.txt\n"})
    assert inside.record()["status"] == "again"
    inside.next()
    inside.write({"answer.txt": "43\n"})
    assert inside.record()["verdict"] in ("review", "failed")
    assert inside.subjects == ["start"]


@pytest.mark.slow
def test_commits_of_its_own_stay_and_a_rewritten_history_is_put_back(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    inside.commit("mine")
    assert inside.record()["verdict"] == "passed"
    assert inside.subjects == ["start", "mine", "feat: write the answer"]
    inside.next()
    inside.write({"two.txt": "7\n"})
    inside.git("add", "-A")
    inside.git("commit", "-q", "--amend", "-m", "mine now")
    done = inside.record()
    assert (done["verdict"], done["counts"]) == ("passed", True)
    assert inside.subjects[2:4] == ["feat: write the answer", "feat: write the other"]


@pytest.mark.slow
def test_what_it_writes_into_the_queue_is_only_proposed(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n", LOG: inside.text(LOG) + "3. [VERIFY: true] Another\n"})
    log = inside.record()["log"]
    assert "*proposed* [VERIFY: true] Another" in inside.text(log)
    inside.next()
    inside.write({"two.txt": "7\n"})
    assert inside.record()["next"] is False


@pytest.mark.slow
def test_a_message_may_have_been_indented_on_its_way(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    done = inside.record("".join(f"  {line}\n" for line in DONE.splitlines()))
    assert "\n\nI did it.\n\n## Implementation Details\n" in inside.text(done["log"])


@pytest.mark.slow
def test_a_message_with_a_key_is_taken_without_it(inside: Inside) -> None:
    key = "ghp_" + "a1B2" * 9
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    done = inside.record(f"## Summary\nIt uses {key} now.\n\nITERATION_COMPLETE\n")
    assert done["verdict"] == "passed"
    log = inside.text(done["log"])
    assert "It uses " in log
    assert key not in log


@pytest.mark.slow
def test_the_limit_holds_and_the_rest_is_for_the_next_loop(inside: Inside) -> None:
    inside.begin("--max-sessions", "1")
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["next"] is False
    end = inside.next()
    assert (end["status"], end["ended"]) == ("done", "limit: the maximum of 1 session was reached")
    assert inside.state["status"] == "paused"
    other = inside.next("--max-sessions", "1")
    assert (other["status"], other["item"]["title"], other["session"]) == ("item", "Write the other", 1)
    assert other["workflow_id"] != "n"


@pytest.mark.slow
def test_the_time_is_a_limit_too(inside: Inside) -> None:
    end = inside.begin("--max-time", "1ms")
    assert (end["status"], end["ended"], end["exit_code"]) == ("done", "limit: the time is used up", 4)


@pytest.mark.slow
def test_nothing_to_do_is_no_loop(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "1. [BLOCKED: not yet] Publish it\n")
    end = inside.begin()
    assert end == {
        "status": "done",
        "ended": "nothing to do",
        "summary": f"nothing to do: {LOG} has nothing that can be worked on",
    }
    assert not (inside.path / "docs/.continuous-session-state.json").exists()


@pytest.mark.slow
def test_stop_lets_the_open_item_end_first(inside: Inside) -> None:
    inside.begin()
    stopped = inside.call("stop")
    assert stopped.stdout == "Stopping n. Session 1 ends first; raymond continuous-session status shows it.\n"
    assert inside.state["status"] == "stopping"
    inside.write({"answer.txt": "42\n"})
    done = inside.record()
    assert (done["verdict"], done["next"]) == ("passed", False)
    assert inside.next()["ended"] == "stopped: somebody asked for it"


@pytest.mark.slow
def test_stop_between_two_items_ends_it_now(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    inside.record()
    assert inside.call("status").stdout.endswith("next:   raymond continuous-session next\n")
    assert inside.call("stop").stdout == "n has stopped; raymond continuous-session status shows it.\n"
    assert inside.call("status").stdout.endswith("next:   raymond continuous-session next\n"), "it pays no agents"
    assert inside.state["status"] == "complete"
    assert inside.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert inside.call("stop").stdout == "no active continuous session\n"
    assert inside.next("--id", "m")["workflow_id"] == "m"


# With others


@pytest.mark.slow
def test_a_loop_from_the_inside_is_not_resumed_from_the_outside(inside: Inside) -> None:
    inside.begin()
    expected = (
        "error: n is being run by another program (internal mode)\n"
        "hint: raymond continuous-session next --resume goes on with it, raymond cancel n ends it for good\n"
    )
    for verb in ("start", "resume"):
        done = inside.room.raymond("continuous-session", verb)
        assert (done.returncode, done.stderr) == (2, expected)
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed", "nobody has answered in its place"


@pytest.mark.slow
def test_a_loop_with_agents_of_its_own_is_left_to_itself(inside: Inside) -> None:
    inside.agent("echo 'I cannot'; echo ITERATION_FAILED")
    assert inside.loop("--on-fail", "pause").code == 3
    assert "error: n has agents of its own, and has not ended" in inside.refused("next", "--json")


@pytest.mark.slow
def test_a_person_is_asked_where_the_loop_was_told_to(inside: Inside) -> None:
    inside.begin("--on-fail", "pause", "--attempts", "1")
    waits = inside.record(code=3)
    assert (waits["status"], waits["command"]) == ("waiting", "raymond answer n continue")
    assert "Write the answer" in waits["question"]
    assert inside.call("next", "--json").returncode == 3
    refused = inside.room.raymond("answer", "n", "continue", "--no-resume")
    assert (refused.returncode, "asks for the approval of a person" in refused.stderr) == (2, True)
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.next()["item"]["title"] == "Write the answer"


@pytest.mark.slow
def test_a_hook_that_rejects_the_commit_is_a_red_check(inside: Inside) -> None:
    hook = inside.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntest -e license.txt || { echo no license; exit 1; }\n", "utf-8")
    hook.chmod(0o755)
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    again = inside.record()
    assert (again["status"], "no license" in again["reason"]) == ("again", True)
    inside.next()
    inside.write({"license.txt": "MIT\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.slow
def test_a_dirty_tree_is_refused_before_anything_is_handed_out(inside: Inside) -> None:
    inside.write({"mine.txt": "mine\n"})
    assert "error: the tree has changes that are not committed: mine.txt" in inside.refused("next", "--json")
    assert inside.begin("--on-dirty", "continue")["status"] == "item"


@pytest.mark.slow
def test_a_review_that_a_person_wants_to_see_first_is_waited_for(inside: Inside) -> None:
    inside.begin("--on-review", "pause")
    inside.write({"check.sh": "true\n"})
    waits = inside.record(code=3)
    assert (waits["status"], waits["command"]) == ("waiting", "raymond review n")
    assert inside.record(None, code=3) == waits
    assert inside.subjects == ["start"]


@pytest.mark.slow
def test_a_branch_that_a_person_has_switched_to_is_not_worked_on(inside: Inside) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    inside.record()
    inside.git("switch", "-q", "main")
    waits = inside.call("next", "--json")
    assert waits.returncode == 3
    assert "The loop works on raymond/n, and main is checked out" in json.loads(waits.stdout)["question"]
    inside.git("switch", "-q", "raymond/n")
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.next()["item"]["title"] == "Write the other"


@pytest.mark.slow
def test_flags_that_come_too_late_are_named(inside: Inside) -> None:
    inside.begin()
    done = inside.call("next", "--json", "--resume", "--max-sessions", "1", "--max-time", "1h")
    told = "the loop is resumed with the settings it has: --max-time, --max-sessions do not apply\n"
    assert (done.returncode, done.stderr) == (0, told)


@pytest.mark.slow
def test_a_cancelled_loop_is_told_of_once(inside: Inside) -> None:
    inside.begin()
    assert inside.room.raymond("cancel", "n").returncode == 0
    assert inside.next()["ended"] == "cancelled"
    assert inside.next("--id", "m")["workflow_id"] == "m"


@pytest.mark.slow
def test_the_lines_of_the_loop_are_the_same_as_outside(inside: Inside) -> None:
    inside.begin("--max-sessions", "1")
    inside.write({"answer.txt": "42\n"})
    inside.record()
    lines = inside.text(".raymond/logs/continuous-session.log").splitlines()
    assert [line.partition(": ")[2].partition(" (")[0] for line in lines] == [
        "Starting iteration 1/1",
        'Selected item: "Write the answer"',
        "Implementation complete",
        "Running verification: sh check.sh",
        "Verification PASSED",
        "Committing changes",
        "Iteration 1 complete",
    ]


@pytest.mark.slow
def test_people_may_read_it_too(inside: Inside) -> None:
    done = inside.call("next", "--id", "n")
    assert done.stdout.startswith(OPENING)
    told = inside.call("record", "--failed", "no time")
    assert told.stdout.startswith("Write the answer: again: An earlier session tried this item")
    assert "not done: no time" in told.stdout
