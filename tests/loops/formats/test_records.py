"""Records for people: every entry once, and nothing in it that could be taken for another."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import records
from raymond.loops.formats.document import Document, Fence

WHEN = datetime(2025, 1, 17, 15, 30, tzinfo=UTC)
PIECES = (
    "# Progress\n",
    "```\n",
    "~~~",
    "\n",
    "\r\n",
    "\r",
    "<!-- raymond r/1 -->",
    "<!-- raymond r/2 -->\n",
    "-->",
    "<!--",
    "\ufeff",
    "\0",
    "x",
    "## Failure Log\n",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=10).map("".join))


def failure(task: str = "Add it", output: str = "bad\n", command: str = "npm test") -> str:
    return records.failure_entry(
        records.Failure(3, WHEN, task, command, output, "Created fix task 3.2.1a", "Continuing to next item")
    )


def progress(done: str = "Added it.", command: str = "npm test", sessions: int = 5) -> str:
    log = "session_logs/20250117_1400_session.md"
    return records.progress_entry(records.Progress(WHEN, 1, sessions, done, command, "passed (exit 0)", log))


def test_a_failure_is_told_in_full() -> None:
    assert failure(output="one\ntwo\n") == (
        "### Iteration 3 - 2025-01-17T15:30:00Z\n\n"
        "**Task:** Add it\n"
        "**Verification:** npm test\n"
        "**Result:** FAILED\n\n"
        "**Error Output:**\n```\none\ntwo\n```\n\n"
        "**Action Taken:** Created fix task 3.2.1a\n"
        "**State:** Continuing to next item\n"
    )


def test_a_failure_shows_the_last_forty_lines() -> None:
    shown = failure(output="\n".join(map(str, range(100))))
    assert "```\n60\n" in shown
    assert "\n99\n```" in shown


def test_progress_says_what_was_done_and_how_it_was_verified() -> None:
    assert progress() == (
        "### 2025-01-17 15:30 (Continuous Session 1/5)\n\n"
        "Added it.\n\n"
        "**Verification:** `npm test`: passed (exit 0)\n"
        "**Session log:** [20250117_1400_session.md](session_logs/20250117_1400_session.md)\n"
    )
    assert "(Continuous Session 1)\n" in progress(sessions=0)
    assert "**Verification:** passed (exit 0)\n" in progress(command="")
    assert "`` echo `date` ``" in progress(command="echo `date`")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "# Progress\n\n<!-- raymond r/1 -->\nentry\n"),
        ("\ufeff", "\ufeff# Progress\n\n<!-- raymond r/1 -->\nentry\n"),
        ("# Mine", "# Mine\n\n# Progress\n\n<!-- raymond r/1 -->\nentry\n"),
        ("# progress\nold", "# progress\nold\n\n<!-- raymond r/1 -->\nentry\n"),
        ("# Progress\r\n```\r\n", "# Progress\r\n```\r\n```\r\n\r\n<!-- raymond r/1 -->\r\nentry\r\n"),
    ],
)
def test_an_entry_is_added_at_the_end(text: str, expected: str) -> None:
    assert records.with_entry(text, "r/1", "entry\n", records.PROGRESS) == expected


def test_entries_are_apart_and_the_heading_is_there_once() -> None:
    text = records.with_entry("", "r/1", "one", records.FAILURES)
    assert records.with_entry(text, "r/2", "two", records.FAILURES) == (
        "## Failure Log\n\n<!-- raymond r/1 -->\none\n\n<!-- raymond r/2 -->\ntwo\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- raymond r/1 -->", True),
        ("a\r\n<!-- raymond r/1 -->\r\n", True),
        ("<!-- raymond r/10 -->", False),
        ("a <!-- raymond r/1 -->", False),
        ("  <!-- raymond r/1 -->", False),
        ("```\n<!-- raymond r/1 -->\n```\n", False),
    ],
)
def test_a_mark_is_a_line_of_its_own_outside_of_code(text: str, expected: bool) -> None:
    assert records.has_entry(text, "r/1") is expected


def test_a_name_cannot_end_its_mark() -> None:
    assert records.entry_mark("a -->\n# b") == "<!-- raymond a --&gt; # b -->"


@given(TEXTS, st.text(), TEXTS)
def test_an_entry_is_added_once_and_all_before_it_stays(text: str, name: str, entry: str) -> None:
    once = records.with_entry(text, name, entry, records.PROGRESS)
    assert once.startswith(text)
    assert records.has_entry(once, name)
    assert records.with_entry(once, name, entry, records.PROGRESS) == once


@given(TEXTS, TEXTS)
def test_what_others_wrote_forges_no_mark_and_no_section(one: str, other: str) -> None:
    for entry in (failure(one, other, one), progress(one, other)):
        text = records.with_entry("", "run/step", entry, records.PROGRESS)
        assert not records.has_entry(text, "r/1")
        assert not records.has_entry(text, "r/2")
        assert Document(text).open_fence is None
        levels = [heading.level for heading in Document(text).headings]
        assert levels[:2] == [1, 3]
        assert all(level > 3 for level in levels[2:])


@given(TEXTS, TEXTS)
def test_what_others_wrote_opens_no_comment_outside_of_code(one: str, other: str) -> None:
    for entry in (failure(one, other, one), progress(one)):
        assert "<!--" not in "".join(outside(entry, Document(entry).fences))


def test_a_mark_in_the_output_of_a_program_is_shown_as_text() -> None:
    assert "```\n&lt;!-- raymond r/1 -->\n<!-- other -->\n```" in failure(output="<!-- raymond r/1 -->\n<!-- other -->")


def outside(text: str, fences: list[Fence]) -> list[str]:
    """The text that is not code."""
    cuts = [0, *(place for fence in fences for place in (fence.start, fence.stop)), len(text)]
    return [text[start:stop] for start, stop in zip(cuts[::2], cuts[1::2], strict=True)]
