"""docs/writing.md: its snippets are right, and its walk-through is typed from an empty folder as it stands on the page."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, left_out, room_with_git
from raymond.backends import scripted
from raymond.errors import Diagnostic, WorkflowError
from raymond.faces import errors as lines_module
from raymond.language import lint, reading, tags, workflow
from raymond.language.refusal import Refusal
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "writing.md").read_text("utf-8")
SNIPPET = re.compile(r"^(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`[\w./-]+`:")
"""What stands before a file of the walk-through."""
OTHERS = {"REVIEW.md": "Review. <result>fine</result>"}
ERRORS = re.findall(r"^```text\n(error: .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


# --- snippets --------------------------------------------------------------------------------------------------------


def snippets(language: str, *, wrong: bool = False) -> list[str]:
    """What is shown in a language, but for the files of the walk-through."""
    return [
        found["body"]
        for found in SNIPPET.finditer(PAGE)
        if found["language"] == language
        and found["before"].endswith("Wrong:") == wrong
        and not FILE.fullmatch(found["before"])
    ]


def built(body: str) -> list[Diagnostic]:
    return lint.errors(workflow.build("flow", {"START.md": body, **OTHERS}))


@pytest.mark.parametrize("body", snippets("markdown"))
def test_a_prompt_in_the_page_for_authors_is_right(body: str) -> None:
    said = [reading.transition(tag) for tag in reading.scan(body)]
    assert said or "{{transitions}}" in body
    assert [one for one in said if isinstance(one, Refusal)] == []
    # The states around a snippet are not on the page.
    found = lint.check(workflow.build("flow", {"START.md": body, **OTHERS}))
    assert {one.id for one in found} <= {"missing-target", "missing-include"}


@pytest.mark.parametrize("body", snippets("bash"))
def test_a_script_in_the_page_for_authors_prints_what_can_be_read(body: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test deploy:\n\t@true\n", "utf-8")
    found = workflow.build("flow", {"START.sh": body})
    assert [one for one in lint.errors(found) if one.id != "missing-target"] == []
    environment = os.environ | {"RAYMOND_TASK_FOLDER": str(tmp_path)}
    done = subprocess.run(["bash", "-c", body], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert reading.read(done.stdout, script=True).refused is None


@pytest.mark.parametrize("body", snippets("yaml"))
def test_replies_in_the_page_for_authors_can_be_used(body: str) -> None:
    scripted.Replies(body)  # raises where it cannot


def test_a_mistake_in_the_page_for_authors_gets_the_error_shown_there() -> None:
    wrong = snippets("markdown", wrong=True)
    assert len(wrong) == len(ERRORS) >= 2
    for body, error in zip(wrong, ERRORS, strict=True):
        assert lines_module.error(WorkflowError(*built(body))) == error.rstrip("\n")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("I am done.", "the output has no transition"),
        ('<goto input="a b"c">FIX</goto>', "the output has no transition"),
        (
            "<goto>FIX</goto> or <goto>REVIEW</goto>",
            "the output has two transitions: <goto>FIX</goto> and <goto>REVIEW</goto>",
        ),
    ],
)
def test_an_unreadable_output_gets_the_reason_shown_in_the_page_for_authors(output: str, reason: str) -> None:
    refused = reading.read(output).refused
    assert refused
    assert refused.reason == reason
    assert f"`{reason}`" in PAGE


def test_the_page_for_authors_shows_every_transition() -> None:
    shown = "".join((*snippets("markdown"), *snippets("bash"))).replace('\\"', '"')
    assert {tag.name for tag in reading.scan(shown)} == set(tags.TAGS) - {"print"}


# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_in_the_walk_through_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_nothing_on_the_page_is_left_out() -> None:
    """Every fence is a snippet that is checked above, or a file or a command of the walk-through."""
    checked = [one for language in ("markdown", "bash", "yaml") for one in snippets(language)]
    assert sorted(left_out(PAGE)) == sorted([*checked, *snippets("markdown", wrong=True), *ERRORS])
    typed = [block.line for block in blocks(PAGE) if isinstance(block, Typed)]
    assert {"raymond gate fix", "raymond review cheat", "raymond accept signs"} <= set(typed)


def stays_red(room: Room, prompt: str, target: str, text: str) -> tuple[int, str]:
    """How a run ends whose gate is never green, and what was told about it."""
    (room.path / "Makefile").write_text("test: ; @false\n", "utf-8")
    answers = "START: <result>fixed</result>\nEXPLAIN: <result>too hard</result>\n"
    ran = room.command({"START.md": prompt, target: text, "replies.yaml": answers}, "--strict")
    return ran.code, ran.err


@pytest.mark.slow
def test_what_a_red_gate_leads_to_ends_the_run_as_the_page_says(room: Room) -> None:
    [prompt] = [one for one in snippets("markdown") if "on_fail" in one]
    code, told = stays_red(room, prompt, "EXPLAIN.md", "Explain it. <result>WHY</result>")
    assert code == 0
    assert "completed: r " in told
    assert "why:    the gate of START.md stayed red\n" in told
    assert told.count("the agent is told") == 3


@pytest.mark.slow
def test_a_script_that_fails_lets_the_run_fail_whose_gate_stayed_red(room: Room) -> None:
    [prompt] = [one for one in snippets("markdown") if "on_fail" in one]
    code, told = stays_red(room, prompt, "EXPLAIN.sh", "exit 1\n")
    assert code == 1
    assert "failed: r " in told


def test_a_way_past_a_gate_is_named_unless_the_prompt_lists_its_transitions(room: Room) -> None:
    [prompt] = [one for one in snippets("markdown") if "on_fail" in one]
    ended = {"EXPLAIN.md": "Explain it. <result>WHY</result>"}
    assert lint.check(workflow.build("flow", {"START.md": prompt, **ended})) == []
    without = prompt.replace("allowed_transitions: [{tag: result}]\n", "")
    [found] = lint.check(workflow.build("flow", {"START.md": without, **ended}))
    assert (found.id, found.message) == (
        "gate-bypass",
        "the agent can end without this gate, for example with a `function` that returns to EXPLAIN.md",
    )
