"""How a loop words what others said: cut after a word and marked, and no document where a sentence is wanted."""

import json
import re
from pathlib import Path

import pytest

from looping import Night
from raymond.loops.formats.foreign_text import cut


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
def test_a_long_error_is_cut_after_a_word_wherever_it_is_told(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="git tag -d keep; echo done")
    night.write({"check.sh": "echo first; for n in $(seq 1000); do echo wording; done; exit 1\n"})
    night.commit("a loud check")
    night.git("tag", "keep")
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.err
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert re.search(r"\[BLOCKED: waits for a person: removed tags/keep; [^]]* wording\.\.\.\]", log), log
    assert re.search(r"^Not done \(tampered\): .* wording\.\.\.$", log, re.MULTILINE)
    assert re.search(r"failed \(tampered, .* wording\.\.\.$", ran.err, re.MULTILINE)
    assert re.search(r"\(TAMPERED\): removed tags/keep; .* wording\.\.\.; its changes", ran.out)
    assert re.search(r"^      removed tags/keep; .* wording\.\.\.$", night.loop(verb="status").out, re.MULTILINE)
    why = night.room.raymond("review", "n").stdout
    assert "why:    removed tags/keep; " in why
    assert " ... wording wording" in why, "the end of what the check printed"
    assert "\\n" not in why


@pytest.mark.slow
def test_the_result_of_a_loop_is_told_in_a_line(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({"PROMPT.md": "Do it.\n"})
    night.commit("a prompt")
    assert night.loop("PROMPT.md", "--max-iterations", "1", loop="ralph").code == 0
    told = "limit: 1 done, 0 failed, 0 left"
    assert night.room.raymond("wait", "n").stdout == f"{told}\n"
    assert f"\nresult: {told}\n" in night.room.raymond("attach", "n").stderr
    assert f"\nresult: {told}\n" in night.room.raymond("status", "n").stdout
    assert json.loads(json.loads(night.room.raymond("wait", "n", "--json").stdout)["result"])["text"] == told
    facts = night.loop(verb="status", loop="ralph").out.splitlines()[1:6]
    assert {one.index(one.split(":", 1)[1].strip()) for one in facts} == {11}, facts
