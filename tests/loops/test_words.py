"""How a loop words what others said: cut after a word and marked, and no document where a sentence is wanted."""

import json
import signal
from pathlib import Path

import pytest

from looping import WAIT, Night
from raymond.loops.formats.foreign_text import cut
from running import until


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("as it is", 8, "as it is"),
        ("two\nlines of words", 12, "two lines..."),
        ("two lines of words", 13, "two lines..."),
        ("two lines of words", 15, "two lines of..."),
        ("onewordthatnobodyreads", 10, "oneword..."),
        ("a wordthatnobodyreads", 10, "a wordt..."),
    ],
)
def test_a_text_is_cut_after_a_word_and_marked(text: str, most: int, shown: str) -> None:
    assert cut(text, most) == shown
    assert len(shown) <= most


@pytest.mark.slow
def test_the_result_of_a_loop_is_told_in_a_line(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({"PROMPT.md": "Do it.\n"})
    night.commit("a prompt")
    assert night.loop("PROMPT.md", "--max-iterations", "1", loop="ralph").code == 0
    told = "1 done"
    assert night.room.raymond("wait", "n").stdout.startswith("# ralph n\n\n- Ended: limit: ")
    assert night.room.raymond("attach", "n").stdout.startswith("# ralph n\n\n- Ended: limit: ")
    assert night.room.raymond("status", "n").stdout.startswith(f"ralph n: completed ({told})\n")
    assert json.loads(json.loads(night.room.raymond("wait", "n", "--json").stdout)["result"])["text"] == told
    facts = night.loop(verb="status", loop="ralph").out.splitlines()[1:5]
    assert {one.index(one.split(":", 1)[1].strip()) for one in facts} == {11}, facts


@pytest.mark.slow
def test_what_would_be_done_is_a_document_for_programs(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [BLOCKED: later] Publish\n3. [VERIFY make] Think\n"
    night = Night(tmp_path, queue)
    night.write({f"new{number:02}.txt": "x\n" for number in range(13)})
    few = "new00.txt, new01.txt, new02.txt, new03.txt, new04.txt and 8 more"
    assert f"your changes that are not committed are taken along: {few}\n" in night.loop("--dry-run").out
    plan = json.loads(night.loop("--dry-run", "--json").out)
    assert [line["line"] for line in plan.pop("warnings")] == [7]
    assert len(plan.pop("taken_along")) == 13
    assert plan == {
        "loop": "continuous-session",
        "queue": "docs/session_logs/20250117_0900_session.md",
        "most": 5,
        "items": [
            {"title": "Write the answer", "check": "sh check.sh"},
            {"title": "[VERIFY make] Think", "check": None},
        ],
        "passed_over": [{"title": "Publish", "reason": "later"}],
        "branch": "raymond/n",
        "workspace": "copy",
        "why": None,
        "builds_on": None,
        "left_out": [],
    }
    strict = night.loop("--strict")
    assert (strict.code, strict.out) == (2, "")
    assert strict.err.startswith("error: 20250117_0900_session.md:7: ")


@pytest.mark.slow
def test_an_edit_that_removes_the_queue_is_named(tmp_path: Path) -> None:
    night = Night(tmp_path)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "# Nothing" > "$1"\n', "utf-8")
    editor.chmod(0o755)
    told = night.room.raymond("continuous-session", "edit", environment={"EDITOR": str(editor)}).stderr
    assert "20250117_0900_session.md has no `## Next Steps`, so nothing is in the queue" in told


@pytest.mark.slow
def test_a_prompt_has_no_empty_places_and_the_words_of_an_agent_that_gives_up_are_kept(tmp_path: Path) -> None:
    agent = "cp $PROMPT $TEST_ROOM/../seen; echo 'I lack a key.'; echo; echo 'It is not here.'; echo ITERATION_FAILED"
    night = Night(tmp_path, "1. Think\n", agent)
    assert night.loop().code == 1
    seen = (tmp_path / "seen").read_text("utf-8")
    assert "There is no check for this item: it counts when something was changed." in seen
    assert "``" not in seen
    assert "What earlier sessions learned" not in seen
    summary = night.text(f"docs/session_logs/{night.logs[-1]}").partition("## Summary")[2].partition("\n## ")[0]
    assert "\n\nI lack a key.\n\nIt is not here.\n" in summary
    night.room.raymond("continuous-session", "learn", "Keys are in the safe.")
    night.write({"docs/session_logs/20300101_0900_session.md": "## Next Steps\n\n1. [VERIFY: sh check.sh] Look\n"})
    night.commit("a learning")
    night.loop("--id", "m")
    seen = (tmp_path / "seen").read_text("utf-8")
    assert "How it is checked: `sh check.sh`. Raymond runs" in seen
    assert "What earlier sessions learned:\n\n" in seen
    assert "Keys are in the safe." in seen


@pytest.mark.slow
def test_a_loop_that_was_paused_in_its_first_item_says_that_one_was_begun(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}")
    with night.room.start("continuous-session", "start", "--id", "n", "--max-sessions", "0") as live:
        until((tmp_path / "on").exists, "the agent")
        live.signal(signal.SIGINT)
        live.sees("Ctrl-C again")
        live.signal(signal.SIGINT)
        live.process.wait()
        for line in (
            "Ended: paused with Ctrl-C",
            "Sessions used: 1 (no limit)",
            "Success rate: an item was begun, and none has ended",
        ):
            assert f"- {line}\n" in live.out
    assert "Session:  1 (no limit)\n" in night.loop(verb="status").out
