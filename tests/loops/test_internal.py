"""Internal mode: another program has the items done, and Raymond believes only that one could not be done."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inside import DONE, Inside
from looping import LOG
from typist import Typist

OPEN = (
    "error: an item is open: Write the answer\n"
    "hint: raymond continuous-session record takes what became of an item;"
    " raymond continuous-session next --resume hands it out again\n"
)


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def test_items_are_handed_out_checked_and_committed_one_after_the_other(inside: Inside) -> None:
    first = inside.begin()
    assert (first["status"], first["session"], first["most"], first["attempt"]) == ("item", 1, 5, 1)
    assert (first["title"], first["check"], first["folder"]) == ("Write the answer", "sh check.sh", str(inside.folder))
    assert (inside.state["status"], inside.state["currentSession"]) == ("running", 1)
    inside.work({"answer.txt": "42\n"})
    done = inside.record()
    assert (done["status"], done["verdict"], done["counts"], done["remaining"]) == ("recorded", "passed", True, 1)
    assert done["commit"] == inside.git("rev-parse", "raymond/n")
    assert [one["title"] for one in inside.state["completedItems"]] == ["Write the answer"]
    assert "I did it." in inside.text(done["log"])
    assert inside.next()["title"] == "Write the other"
    assert (inside.folder / done["log"]).read_text("utf-8") == inside.text(done["log"]).rstrip("\n") + "\n"
    inside.work({"two.txt": "7\n"})
    end = inside.record()
    assert (end["status"], end["verdict"], end["exit_code"]) == ("done", "passed", 0)
    assert "- Success rate: 100% (2/2)\n- Cost: unknown: paid by the program that did the items\n" in end["summary"]
    assert inside.subjects == ["start", "feat: write the answer", "feat: write the other", "chore(loop): records"]
    assert inside.state["status"] == "complete"
    assert not inside.folder.exists()
    assert inside.next() == end, "whoever asks again hears it again"


@pytest.mark.slow
def test_nothing_of_the_checkout_changes_meanwhile(inside: Inside) -> None:
    inside.write({"mine.txt": "mine\n", "README.md": "# Mine\n"})
    before = inside.git("status", "--porcelain", "--branch")
    inside.begin()
    assert (inside.folder / "mine.txt").read_text("utf-8") == "mine\n"
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["counts"]
    assert inside.git("status", "--porcelain", "--branch") == before
    assert inside.git("for-each-ref", "--format=%(refname)", "refs/heads").splitlines() == [
        "refs/heads/main",
        "refs/heads/raymond/n",
    ]


def test_the_prompt_begins_as_the_seed_has_it_and_says_where_to_work(inside: Inside) -> None:
    prompt = inside.begin()["prompt"]
    state = inside.path / "docs/.continuous-session-state.json"
    assert prompt.startswith(
        "You are continuing an autonomous continuous session loop.\n\n"
        f"1. Read {state} for current state\n"
        f"2. Read the most recent session log in {inside.folder}/docs/session_logs/\n"
        "3. Execute the next item in the queue\n\n"
        f"Current state file: {state}\n\n"
        f"Continue the continuous session loop. This is session 1 of 5. Work in `{inside.folder}`, a private checkout"
    )
    assert state.is_file()
    assert (inside.folder / LOG).is_file()
    for once in ("# Write the answer", "`sh check.sh`", "do not commit", "ITERATION_COMPLETE", "autonomous"):
        assert prompt.count(once) == 1, once
    assert "{{" not in prompt
    assert "\n\n\n" not in prompt


@pytest.mark.slow
def test_what_a_person_writes_stands_in_the_prompt_as_it_is(tmp_path: Path) -> None:
    odd = "- use `{{input}}` & <b>, not </ask>, ${HOME} or \\n"
    inside = Inside(tmp_path, f"1. [VERIFY: sh check.sh] Write <the> answer\n   {odd}\n")
    prompt = inside.begin()["prompt"]
    assert odd.replace("</ask", "< /ask") in prompt
    assert "\n# Write <the> answer\n" in prompt


@pytest.mark.slow
def test_an_open_item_is_handed_out_again_only_on_request(inside: Inside) -> None:
    first = inside.begin()
    assert inside.refused("next", "--json") == OPEN
    assert inside.refused("next", "--start", "--json") == OPEN
    assert inside.next("--resume") == first
    status = inside.call("status").stdout
    assert "Mode:     INTERNAL, RUNNING\n" in status
    assert "waits for raymond continuous-session record\nnext:   raymond continuous-session record\n" in status


@pytest.mark.slow
def test_no_loop_begins_without_a_word(inside: Inside) -> None:
    none = "error: no active continuous session\nhint: raymond continuous-session next --start begins one\n"
    for words in (("next",), ("next", "--resume"), ("record",)):
        assert inside.refused(*words) == none
    assert inside.refused("next", "--max-sessions", "1") == (
        "error: --max-sessions is for a loop that begins\n"
        "hint: raymond continuous-session next --start --max-sessions ...\n"
    )
    inside.begin("--max-sessions", "1")
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["ended"] == "limit: the maximum of 1 session was reached"
    assert inside.next()["status"] == "done", "the limit holds, however often somebody asks"
    other = inside.next("--start", "--id", "m")
    assert (other["status"], other["title"], other["workflow_id"]) == ("item", "Write the other", "m")


@pytest.mark.slow
def test_nothing_is_recorded_that_was_not_handed_out(inside: Inside) -> None:
    inside.begin()
    assert inside.refused("record") == (
        "error: there is nothing on standard input: what became of the item?\n"
        "hint: raymond continuous-session record <<'END' with what was said, or record --failed REASON\n"
    )
    assert "error: --failed needs a reason" in inside.refused("record", "--failed", " ")
    inside.work({"answer.txt": "42\n"})
    first = inside.record()
    assert inside.refused("record", said=DONE) == "error: no item is open\nhint: raymond continuous-session next\n"
    assert inside.record(None) == first, "what became of it may be asked twice"
    assert inside.subjects == ["start", "feat: write the answer"]


@pytest.mark.slow
def test_an_agent_that_says_it_is_done_is_not_believed_and_the_next_one_is_told(inside: Inside) -> None:
    inside.begin()
    again = inside.record()
    assert (again["status"], again["attempt"]) == ("item", 2)
    assert "exit code" in again["reason"]
    assert "An earlier session tried this item, and it did not count" in again["prompt"]
    assert again["prompt"].startswith("You are continuing an autonomous")
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.slow
def test_an_item_fails_after_its_attempts_and_an_agent_that_gives_up_is_believed(inside: Inside) -> None:
    inside.begin()
    inside.record()
    failed = inside.record()
    assert (failed["status"], failed["verdict"], failed["counts"]) == ("recorded", "failed", False)
    inside.next()
    end = inside.record("I cannot.\n\nITERATION_FAILED\n")
    assert (end["status"], end["verdict"], end["exit_code"]) == ("done", "gave up", 1)
    assert inside.subjects == ["start", *["chore(loop): records"] * 3]


@pytest.mark.slow
def test_an_agent_that_did_not_end_uses_up_one_attempt(inside: Inside) -> None:
    inside.begin()
    again = inside.record(None, "--failed", "it was interrupted")
    assert (again["status"], again["attempt"]) == ("item", 2)
    assert "the agent that worked on it did not end: it was interrupted" in again["reason"]
    assert inside.record(None, "--failed", "again")["verdict"] == "failed"


@pytest.mark.slow
def test_a_changed_test_does_not_count(inside: Inside) -> None:
    inside.begin()
    inside.work({"check.sh": "true\n"})
    done = inside.record()
    assert (done["verdict"], done["counts"]) == ("review", False)
    assert "check.sh" in done["reason"]
    assert inside.text("check.sh") == "grep -q 42 answer.txt\n"


@pytest.mark.slow
def test_a_test_that_the_first_attempt_changed_does_not_help_the_second(inside: Inside) -> None:
    inside.begin()
    inside.work({"check.sh": "grep -q 43 answer.txt\n"})
    assert inside.record()["attempt"] == 2
    inside.work({"answer.txt": "43\n"})
    assert inside.record()["verdict"] in ("review", "failed")
    assert not inside.has("answer.txt")


@pytest.mark.slow
def test_commits_of_an_agent_are_content(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    git = ["git", "-C", str(inside.folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["add", "-A"], ["commit", "-qm", "mine"], ["tag", "mine"], ["branch", "mine"]):
        subprocess.run([*git, *words], check=True, env=inside.room.environment)
    assert inside.record()["verdict"] == "passed"
    assert inside.subjects == ["start", "feat: write the answer"]
    assert "The agent committed: mine" in inside.git("log", "-1", "--format=%b", "raymond/n")
    assert inside.git("tag") == ""


@pytest.mark.slow
def test_what_an_agent_writes_into_the_queue_is_only_proposed(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n", LOG: inside.text(LOG) + "3. [VERIFY: true] Another\n"})
    log = inside.record()["log"]
    assert "*proposed* [VERIFY: true] Another" in inside.text(log)
    inside.next()
    inside.work({"two.txt": "7\n"})
    assert inside.record()["status"] == "done"


@pytest.mark.slow
def test_a_message_is_taken_without_its_indent_and_without_keys(inside: Inside) -> None:
    key = "ghp_" + "a1B2" * 9
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    said = f"## Summary\nIt uses {key}.\n\n## Learnings\nNone.\n\nITERATION_COMPLETE\n"
    log = inside.text(inside.record("".join(f"  {line}\n" for line in said.splitlines()))["log"])
    assert "\n\nIt uses " in log
    assert key not in log


@pytest.mark.slow
def test_of_a_long_message_the_end_counts(inside: Inside) -> None:
    inside.begin()
    end = inside.record("x" * (3 << 20) + "\n\nI cannot.\n\nITERATION_FAILED\n")
    assert end["verdict"] == "gave up"


@pytest.mark.slow
def test_the_time_is_a_limit_too(inside: Inside) -> None:
    end = inside.begin("--max-time", "1ms")
    assert (end["status"], end["ended"], end["exit_code"]) == ("done", "limit: the time is used up", 4)


@pytest.mark.slow
def test_nothing_to_do_is_no_loop(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "1. [BLOCKED: not yet] Publish it\n")
    why = f"nothing to do: {LOG} has nothing that can be worked on\n  Publish it: not yet\n"
    assert inside.begin() == {"status": "done", "ended": "nothing to do", "summary": why}
    assert not (inside.path / "docs/.continuous-session-state.json").exists()
    assert not inside.folder.exists()


@pytest.mark.slow
def test_a_check_that_cannot_be_green_refuses_the_loop_and_leaves_nothing(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "1. [VERIFY: sh ignored/check.sh] Do it\n", **{".gitignore": "ignored/\n"})
    inside.write({"ignored/check.sh": "true\n"})
    end = inside.begin()
    assert (end["status"], end["exit_code"]) == ("done", 2)
    assert end["ended"].startswith("refused before an agent was paid: ")
    assert not inside.folder.exists()
    assert inside.git("for-each-ref", "refs/raymond") == ""


@pytest.mark.slow
def test_stop_lets_the_open_item_end_first(inside: Inside) -> None:
    inside.begin()
    stopped = inside.call("stop")
    assert stopped.stdout == "Stopping n. Session 1 ends first; raymond continuous-session status shows it.\n"
    assert inside.state["status"] == "stopping"
    inside.work({"answer.txt": "42\n"})
    end = inside.record()
    assert (end["status"], end["verdict"], end["ended"]) == ("done", "passed", "stopped: on request")


@pytest.mark.slow
def test_stop_between_two_items_ends_it_now(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    inside.record()
    assert inside.call("status").stdout.endswith("next:   raymond continuous-session next\n")
    assert "- Ended: stopped: on request\n" in inside.call("stop").stdout
    assert inside.call("status").stdout.endswith("next:   raymond continuous-session next --start\n")
    assert inside.state["status"] == "complete"
    assert inside.next()["ended"] == "stopped: on request", "the program that works through it hears of it"


@pytest.mark.slow
def test_words_of_a_person_count_for_the_next_item(inside: Inside) -> None:
    inside.begin()
    assert inside.room.raymond("continuous-session", "learn", "Seven is right").returncode == 0
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed", "no difference to what git was told"
    inside.room.environment["EDITOR"] = "sed -i 's/Write the other/Write seven/'"
    assert inside.room.raymond("continuous-session", "edit").returncode == 0
    second = inside.next()
    assert (second["title"], "Seven is right" in second["prompt"]) == ("Write seven", True)


@pytest.mark.slow
def test_flags_for_a_loop_that_begins_are_named_where_one_is_open(inside: Inside) -> None:
    inside.begin()
    done = inside.call("next", "--start", "--resume", "--json", "--max-sessions", "1")
    assert (done.returncode, json.loads(done.stdout)["most"]) == (0, 5)
    assert done.stderr == "the loop goes on with the settings it has: --max-sessions does not count\n"


@pytest.mark.slow
def test_a_process_that_has_a_number_from_before_does_not_keep_a_loop_from_its_end(inside: Inside) -> None:
    inside.begin("--max-sessions", "1")
    inside.work({"answer.txt": "42\n"})
    end = inside.record()
    path = inside.path / "docs/.continuous-session-state.json"
    path.write_text(json.dumps(inside.state | {"status": "running", "pid": 2_000_000_000}), "utf-8")
    assert inside.next() == end
    assert inside.state["status"] == "paused", "it is concluded again"


@pytest.mark.slow
def test_no_time_begins_no_item(inside: Inside) -> None:
    assert inside.begin("--max-time", "0s")["ended"] == "limit: the time is used up"


@pytest.mark.slow
def test_the_commands_that_are_told_name_the_documents(inside: Inside) -> None:
    inside.git("mv", "docs", "the plan")
    inside.git("commit", "-qm", "moved")
    docs = ("--docs", "the plan")
    first = inside.begin(*docs)
    assert first["title"] == "Write the answer"
    assert "next:   raymond continuous-session record --docs 'the plan'\n" in inside.call("status", *docs).stdout
    inside.work({"answer.txt": "42\n"})
    checking = inside.record(DONE, *docs, "--wait", "0s")
    assert checking["command"] == "raymond continuous-session record --docs 'the plan' --json --wait 90s"
    assert inside.record(None, *docs)["verdict"] == "passed"


@pytest.mark.slow
def test_what_was_brought_home_is_not_brought_again(inside: Inside) -> None:
    inside.begin("--no-commit", "--max-sessions", "1")
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["status"] == "done"
    assert (inside.path / "answer.txt").read_text("utf-8") == "42\n"
    (inside.path / "answer.txt").unlink()
    for verb in ("next", "record"):
        assert json.loads(inside.call(verb, "--json").stdout)["status"] == "done"
    assert not (inside.path / "answer.txt").exists()


@pytest.mark.slow
def test_of_several_programs_that_ask_at_once_one_gets_the_item(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    inside.record()
    argv = [sys.executable, "-m", "raymond", "continuous-session", "next", "--json"]
    pipe = subprocess.PIPE
    live = [
        subprocess.Popen(argv, cwd=inside.path, env=inside.room.environment, stdout=pipe, stderr=pipe) for _ in range(4)
    ]
    said = [one.communicate()[0] for one in live]
    assert [json.loads(one)["title"] for one in said if one] == ["Write the other"]


# With others


@pytest.mark.slow
def test_such_a_loop_is_not_resumed_from_the_outside(inside: Inside) -> None:
    inside.begin()
    expected = (
        "error: n is worked through by another program (internal mode)\n"
        "hint: raymond continuous-session next --resume goes on with it, raymond cancel n ends it for good\n"
    )
    for verb in ("start", "resume"):
        done = inside.room.raymond("continuous-session", verb)
        assert (done.returncode, done.stderr) == (2, expected)
    assert inside.room.raymond("resume", "n").returncode == 3, "it still waits"
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed", "nobody has answered in its place"
    assert inside.subjects == ["start", "feat: write the answer"]


@pytest.mark.slow
def test_a_loop_with_agents_of_its_own_is_left_to_itself(inside: Inside) -> None:
    inside.agent("echo 'I cannot'; echo ITERATION_FAILED")
    assert inside.loop("--pause-on-fail").code == 3
    for words in (("next",), ("next", "--start"), ("record",)):
        assert "error: n has agents of its own, and has not ended" in inside.refused(*words)


@pytest.mark.slow
def test_a_person_is_asked_where_the_loop_was_told_to(inside: Inside) -> None:
    inside.begin("--on-fail", "pause", "--attempts", "1")
    waits = inside.record(code=3)
    assert (waits["status"], waits["command"]) == ("waiting", "raymond answer n continue")
    assert "Write the answer" in waits["question"]
    assert inside.next(code=3) == waits
    refused = inside.room.raymond("answer", "n", "continue", "--no-resume")
    assert (refused.returncode, "asks for the approval of a person" in refused.stderr) == (2, True)
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.next("--resume")["title"] == "Write the answer"


@pytest.mark.slow
def test_a_hook_that_rejects_the_commit_is_a_red_check(inside: Inside) -> None:
    hook = inside.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntest -e license.txt || { echo no license; exit 1; }\n", "utf-8")
    hook.chmod(0o755)
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    again = inside.record()
    assert (again["attempt"], "no license" in again["reason"]) == (2, True)
    inside.work({"license.txt": "MIT\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.slow
def test_a_review_that_a_person_wants_to_see_first_is_waited_for(inside: Inside) -> None:
    inside.begin("--on-review", "pause")
    inside.work({"check.sh": "true\n"})
    waits = inside.record(code=3)
    assert (waits["status"], waits["command"]) == ("waiting", "raymond review n")
    assert inside.record(None, code=3) == waits
    assert inside.subjects == ["start", "chore(loop): records"]
    assert inside.text("check.sh") == "grep -q 42 answer.txt\n"


@pytest.mark.slow
def test_a_cancelled_loop_is_told_of_and_its_tree_can_go(inside: Inside) -> None:
    inside.begin()
    assert inside.room.raymond("cancel", "n").returncode == 0
    assert inside.next()["ended"] == "cancelled"
    inside.work({"answer.txt": "half\n"})
    assert inside.room.raymond("clean", "n").returncode == 0
    assert not inside.folder.exists()


@pytest.mark.slow
def test_a_project_that_cannot_be_copied_is_refused(inside: Inside) -> None:
    (inside.path / "venv").mkdir()
    inside.write({".git/info/exclude": "venv\n", "venv/pyvenv.cfg": f"home = {inside.path}\n"})
    said = inside.refused("next", "--start", "--json")
    assert said.startswith("error: internal mode needs a copy of the project: venv/pyvenv.cfg names")
    assert said.endswith("hint: raymond continuous-session start has agents of its own, which need none\n")
    assert inside.git("for-each-ref", "refs/raymond") == ""


@pytest.mark.slow
def test_the_lines_of_the_loop_are_the_same_as_outside(inside: Inside) -> None:
    inside.begin("--max-sessions", "1")
    inside.work({"answer.txt": "42\n"})
    inside.record()
    lines = (inside.path / ".raymond/logs/continuous-session.log").read_text("utf-8").splitlines()
    assert [line.partition(": ")[2].partition(" (")[0] for line in lines] == [
        "Preparing the workspace, and trying the checks",
        "Before the first item: sh check.sh is red: grep: answer.txt: No such file or directory",
        "Starting iteration 1/1",
        'Selected item: "Write the answer"',
        "Implementation complete",
        "Running verification: sh check.sh",
        "Verification PASSED",
        "Committing changes",
        "Iteration 1 complete",
        "Running the closing checks",
    ]


@pytest.mark.slow
def test_people_may_read_it_too(inside: Inside) -> None:
    done = inside.call("next", "--start", "--id", "n")
    assert done.stdout.startswith("You are continuing an autonomous")
    assert inside.call("record", "--failed", "no time").stdout.startswith("You are continuing an autonomous")
    assert inside.call("record", "--failed", "none").stdout.startswith(
        "title: Write the answer\nstatus: recorded\nverdict: failed\nreason: "
    )
