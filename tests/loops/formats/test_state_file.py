"""State files of loops."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raymond.loops.formats import state_file
from raymond.loops.formats.state_file import Broken, CompletedItem, FailedItem, RalphState, SessionState

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(st.one_of(st.sampled_from(state_file.ORDER), TEXT), VALUES, max_size=5)


def test_a_state_is_written_in_the_order_of_its_schema() -> None:
    state = SessionState(
        *("running", "2025-01-17T14:00:00Z", "2025-01-17T14:04:00Z", 5, 2, "docs/session_logs/a.md"),
        (CompletedItem("Grüße", "b.md", "passed", 228_000, "own check"),),
        (FailedItem("c", "exit 1", "d.md", "review"),),
        ("e",),
    )
    text = state_file.write({"workflow_id": "r", "mine": 1, "version": 1, **state_file.known(state)})
    assert list(json.loads(text)) == [
        *("status", "startedAt", "lastUpdated", "maxSessions", "currentSession", "sourceSession"),
        *("completedItems", "failedItems", "queueSnapshot", "version", "workflow_id", "mine"),
    ]
    assert text.startswith('{\n  "status": "running",\n  "startedAt": "2025-01-17T14:00:00Z",\n')
    assert text.endswith('  "mine": 1\n}\n')
    assert json.loads(text)["completedItems"] == [
        {"title": "Grüße", "sessionLog": "b.md", "verification": "passed", "duration": 228000, "verdict": "own check"}
    ]
    assert json.loads(text)["failedItems"] == [
        {"title": "c", "error": "exit 1", "sessionLog": "d.md", "verdict": "review"}
    ]
    assert "Grüße" in text


def test_the_plain_loop_has_a_smaller_schema() -> None:
    assert state_file.known(RalphState("paused", "a", "b", 10, 3)) == {
        "status": "paused",
        "startedAt": "a",
        "lastUpdated": "b",
        "maxIterations": 10,
        "currentIteration": 3,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not valid JSON: Expecting value in line 1"),
        ('{"a": 1,\n}', "it is not valid JSON: Expecting property name enclosed in double quotes in line 2"),
        ("[]", "it is not a JSON object"),
        ('{"a": NaN}', "it is not valid JSON: NaN is not a number"),
        ('{"a": -Infinity}', "it is not valid JSON: -Infinity is not a number"),
        ('{"a": 1e999}', "it is not valid JSON: 1e999 is too large"),
        (b"\xff{}", "it is not valid UTF-8"),
        ('{"a": "\\ud800"}', "it is not valid UTF-8"),
        ('{"\ud800": 1}', "it is not valid UTF-8"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "it is nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(text: str | bytes, reason: str) -> None:
    with pytest.raises(Broken) as broken:
        state_file.read(text)
    assert str(broken.value) == reason


def test_a_number_that_python_does_not_read_is_broken() -> None:
    with pytest.raises(Broken):
        state_file.read('{"a": ' + "9" * 5000 + "}")


def test_what_other_programs_write_is_read() -> None:
    assert state_file.read(b'\xef\xbb\xbf{"a": 1, "a": 2, "b": "\\u00fc\\ud83d\\ude00"}') == {"a": 2, "b": "ü😀"}


@given(OBJECTS, OBJECTS)
def test_fields_that_we_do_not_know_are_kept(known: dict[str, Any], before: dict[str, Any]) -> None:
    text = state_file.write(known, before)
    assert state_file.read(text) == state_file.read(text.encode()) == {**before, **known}
    assert state_file.write({}, state_file.read(text)) == text


@given(st.text() | st.binary())
def test_any_text_is_an_object_or_broken(text: str | bytes) -> None:
    assert readable(text) in (True, False)


def readable(text: str | bytes) -> bool:
    """Whether it is an object; nothing else than `Broken` is raised."""
    try:
        return isinstance(state_file.read(text), dict)
    except Broken:
        return False


@given(st.text())
@example("\udc80")  # a byte of a path that is not UTF-8
def test_whatever_a_title_holds_can_be_read_again(title: str) -> None:
    text = state_file.write({"queueSnapshot": [title]})
    assert state_file.read(text)["queueSnapshot"] == [title.encode("utf-8", "replace").decode()]
