"""The status of stories: nothing that somebody wrote there is lost, and nothing passes that was not verified."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import prd, prd_status
from raymond.loops.formats.prd import Story
from raymond.loops.formats.prd_status import Status
from raymond.loops.formats.state_file import Broken

NIGHT = "2026-01-17T14:00:00Z"
PRD = """## User Stories
### US-1: Log in
**Verification:** `npm test`
### US-2: Pay
**Acceptance Criteria:**
- [ ] a receipt is sent
### US-3: Search
**Implemented by:** 1.4
"""
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = st.none() | st.booleans() | st.integers(0, 9) | TEXT
NAMES = st.sampled_from([*"version stories statistics id title passes history verification implementedBy mine".split()])
VALUES = st.recursive(
    SCALARS | st.sampled_from(["US-1", "US-2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


def stories(text: str = PRD) -> tuple[Story, ...]:
    return prd.read(text).stories


def fresh(text: str = PRD) -> Status:
    return prd_status.merged(prd_status.empty("docs/prd.md"), stories(text), date=NIGHT)


def test_a_new_status_has_the_schema_in_its_order() -> None:
    status = json.loads(prd_status.write(fresh()))
    assert [*status] == ["version", "lastUpdated", "prdFile", "stories", "statistics"]
    assert status["stories"] == [
        {
            "id": "US-1",
            "title": "Log in",
            "passes": False,
            "lastVerified": None,
            "verification": {"type": "command", "command": "npm test", "expected": 0},
            "implementedBy": [],
            "history": [],
        },
        {
            "id": "US-2",
            "title": "Pay",
            "passes": False,
            "lastVerified": None,
            "verification": {"type": "manual", "criteria": ["a receipt is sent"]},
            "implementedBy": [],
            "history": [],
        },
        {
            "id": "US-3",
            "title": "Search",
            "passes": False,
            "lastVerified": None,
            "verification": {"type": "tasks"},
            "implementedBy": ["1.4"],
            "history": [],
        },
    ]
    assert status["statistics"] == {"total": 3, "passed": 0, "failed": 0, "pending": 3}
    assert (status["lastUpdated"], status["prdFile"], status["version"]) == (NIGHT, "docs/prd.md", 1)


def test_a_composite_check_lists_its_parts() -> None:
    text = '### US-1: a\n**Verification:**\n- command: b\n- expected: output contains "ok"\n- timeout: 90s\n- tasks\n'
    assert fresh(text)["stories"][0]["verification"] == {
        "type": "composite",
        "checks": [
            {"type": "command", "command": "b", "expected": 'output contains "ok"', "timeout": "90s"},
            {"type": "tasks"},
        ],
    }


def test_what_is_recorded_counts_once() -> None:
    passed = prd_status.recorded(fresh(), "US-1", "passed", NIGHT, "exit 0")
    assert prd_status.recorded(passed, "US-1", "passed", NIGHT, "exit 0") is passed
    failed = prd_status.recorded(passed, "US-1", "failed", "2026-01-18T00:00:00Z", "exit 1")
    again = prd_status.recorded(failed, "US-1", "passed", NIGHT, "exit 0")
    assert (again["stories"][0]["passes"], again["stories"][0]["lastVerified"]) == (False, NIGHT)
    assert [one["result"] for one in again["stories"][0]["history"]] == ["passed", "failed"]
    assert again["statistics"] == {"total": 3, "passed": 0, "failed": 1, "pending": 2}
    assert passed["statistics"]["passed"] == 1
    waiting = prd_status.recorded(failed, "US-1", "pending", "2026-01-19T00:00:00Z", "ask a person")
    assert waiting["statistics"]["pending"] == 3
    with pytest.raises(Broken, match="it has no story US-9"):
        prd_status.recorded(passed, "US-9", "passed", NIGHT)


def test_a_merge_keeps_passes_history_order_and_fields_of_others() -> None:
    status = prd_status.recorded(fresh(), "US-1", "passed", NIGHT)
    status["mine"] = {"a": 1}
    status["statistics"]["mine"] = 2
    status["stories"][0] |= {"owner": "Ada"}
    status["stories"][0]["verification"]["tool"] = "npm"
    status["stories"][0]["history"][0]["who"] = "loop"
    text = PRD.replace("### US-2: Pay", "### US-4: New\n**Priority:** 1\n### US-2: Pay").replace("Log in", "Sign in")
    after = prd_status.merged(status, stories(text), date="2026-02-01T00:00:00Z")
    assert [one["id"] for one in after["stories"]] == ["US-1", "US-2", "US-3", "US-4"]
    first = after["stories"][0]
    assert (first["title"], first["passes"], first["lastVerified"], first["owner"]) == ("Sign in", True, NIGHT, "Ada")
    assert first["history"] == [{"date": NIGHT, "result": "passed", "notes": "", "who": "loop"}]
    assert first["verification"]["tool"] == "npm"
    assert (after["mine"], after["statistics"]["mine"], after["lastUpdated"]) == ({"a": 1}, 2, "2026-02-01T00:00:00Z")
    assert prd_status.merged(after, stories(text), date="2026-03-01T00:00:00Z") == after, "nothing changed"


def test_a_story_that_is_verified_otherwise_now_does_not_pass_any_more() -> None:
    status = prd_status.recorded(fresh(), "US-1", "passed", NIGHT)
    after = prd_status.merged(status, stories(PRD.replace("npm test", "true")), date="2026-02-01T00:00:00Z")
    assert after["stories"][0]["passes"] is False
    assert after["stories"][0]["history"][-1] == {
        "date": "2026-02-01T00:00:00Z",
        "result": "pending",
        "notes": "its verification changed",
    }
    broken = prd_status.merged(status, stories(PRD.replace("`npm test`", "soon")), date=NIGHT)
    assert broken["stories"][0]["passes"] is False
    assert broken["stories"][0]["problem"] == "`soon` is not a command in backticks, `manual` or `tasks`"
    assert "problem" not in prd_status.merged(broken, stories())["stories"][0]


def test_a_story_of_tasks_that_gets_another_one_does_not_pass_any_more() -> None:
    status = prd_status.recorded(fresh(), "US-3", "passed", NIGHT)
    same = prd_status.merged(status, stories(), {"US-3": ["1.4"]})
    assert same["stories"][2]["passes"] is True
    more = prd_status.merged(status, stories(), {"US-3": ["1.4", "1.5.1"]}, NIGHT)
    assert (more["stories"][2]["passes"], more["stories"][2]["implementedBy"]) == (False, ["1.4", "1.5.1"])
    assert more["stories"][2]["history"][-1]["notes"] == "it has more tasks now: 1.5.1"


def test_a_story_that_is_gone_stays_and_comes_back() -> None:
    status = prd_status.recorded(fresh(), "US-1", "passed", NIGHT)
    gone = prd_status.merged(status, stories()[1:])
    assert (gone["stories"][0]["removed"], gone["stories"][0]["passes"]) == (True, True)
    assert gone["statistics"] == {"total": 2, "passed": 0, "failed": 0, "pending": 2}
    back = prd_status.merged(gone, stories())
    assert "removed" not in back["stories"][0]
    assert back["stories"][0]["passes"] is True


def test_tasks_that_were_taken_stay_unless_the_prd_or_a_person_says_otherwise() -> None:
    status = prd_status.merged(fresh(), stories(), {"US-2": ["2.1.1"], "US-3": ["1.4"]})
    assert [one["implementedBy"] for one in prd_status.merged(status, stories())["stories"]] == [[], ["2.1.1"], ["1.4"]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not valid JSON: Expecting property name enclosed in double quotes in line 1"),
        ("[]", "it is not a JSON object"),
        ('{"stories": {}}', "`stories` is not a list"),
        ('{"statistics": 1}', "`statistics` is not an object"),
        ('{"stories": [1]}', "`stories[0]` is not an object"),
        ('{"stories": [{"id": "A-1"}, {"title": "b"}]}', "`stories[1].id` is not a text"),
        ('{"stories": [{"id": "A-1"}, {"id": "A-1"}]}', "`stories[0]` and `stories[1]` are both A-1"),
        ('{"stories": [{"id": "A-1", "history": {}}]}', "`stories[0].history` is not a list"),
        ('{"stories": [{"id": "A-1", "history": [1]}]}', "`stories[0].history[0]` is not an object"),
        ('{"stories": [{"id": "A-1", "passes": "yes"}]}', "`stories[0].passes` is not true or false"),
        ('{"stories": [{"id": "A-1", "implementedBy": [1]}]}', "`stories[0].implementedBy[0]` is not a text"),
        ('{"stories": [{"id": "A-1", "verification": "npm"}]}', "`stories[0].verification` is not an object"),
    ],
)
def test_a_broken_file_says_what_is_wrong_and_where(text: str, reason: str) -> None:
    with pytest.raises(Broken) as broken:
        prd_status.read(text)
    assert str(broken.value) == reason


def test_a_file_of_others_with_little_in_it_is_read() -> None:
    status = prd_status.read('{"version": "1.0", "stories": [{"id": "US-1", "history": null}]}')
    after = prd_status.recorded(prd_status.merged(status, stories()), "US-1", "passed", NIGHT)
    assert (after["version"], after["statistics"]["passed"]) == ("1.0", 1)


@given(VALUES)
def test_any_json_is_broken_or_kept_through_every_change(value: Any) -> None:
    text = json.dumps(value)
    try:
        status = prd_status.read(text)
    except Broken:
        return
    assert prd_status.read(prd_status.write(status)) == status
    after = prd_status.recorded(prd_status.merged(status, stories(), date=NIGHT), "US-1", "failed", NIGHT, "x")
    assert prd_status.read(prd_status.write(after)) == after
    assert status.keys() <= after.keys()
    for one in status["stories"]:
        kept = prd_status.story(after, one["id"])
        assert kept is not None
        assert one.keys() <= kept.keys() | {"removed", "problem"}
        assert (
            (one.get("history") or []) == kept["history"][: len(one.get("history") or [])]
            if kept.get("history")
            else True
        )
