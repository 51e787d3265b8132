"""What a person's decision about an item that was set aside does to specs and to the status of stories."""

import json
from datetime import UTC, datetime

from planned import STATUS, TASKS
from raymond.loops import person
from raymond.loops.ledger import REVIEW, Entry

NAME, OTHER = "implementation/1-core/1.4-answers.md", "implementation/1-core/1.5-more.md"
FIXED = TASKS + "\n### 1.4.2a. Fix: Explain it\n\n**Verification:** `grep -q because why.txt`\n"
TEXTS = {
    NAME: FIXED,
    OTHER: "### 1.5.1. More\n\n**Verification:** `true`\n\n### 1.5.2. Untouched\n\n**Verification:** `true`\n",
    "prd-status.json": '{"stories": [{"id": "US-1", "passes": false, "history": []}]}',
}
WHEN = datetime(2026, 1, 17, 12, tzinfo=UTC)


def settled(entry: Entry, again: str | None = None) -> dict[str, str]:
    return person.settled_plan(entry, lambda name: TEXTS.get(name, ""), (NAME, OTHER), again, WHEN)


def story(*tasks: str) -> Entry:
    return Entry(number=1, key="US-1", title="US-1: X", verdict=REVIEW, group="US-1", tasks=tasks, place="prd.md")


def test_the_tasks_of_a_story_that_is_accepted_are_verified_with_it() -> None:
    found = settled(story("1.4.1", "1.5.1"))
    assert found[NAME].count("**Verified:** true (2026-01-17, sh check.sh)") == 1
    assert found[NAME].count("**Verified:**") == 1
    assert found[OTHER].partition("### 1.5.2")[0].count("**Verified:** true (2026-01-17, true)") == 1
    assert "Verified" not in found[OTHER].partition("### 1.5.2")[2]
    assert json.loads(found["prd-status.json"])["stories"][0]["passes"] is True
    assert STATUS.endswith("prd-status.json")


def test_the_tasks_of_a_story_that_is_rejected_stay_as_they_are() -> None:
    found = settled(story("1.4.1"), "no")
    assert list(found) == ["prd-status.json"]


def test_what_a_fix_task_repairs_is_verified_when_it_is_accepted() -> None:
    entry = Entry(number=1, key="1.4.2a", title="1.4.2a. Fix", verdict=REVIEW, tasks=("1.4.2a",), place=NAME)
    found = settled(entry)
    assert found[NAME].count("**Verified:** true (2026-01-17, grep -q because why.txt)") == 2
    assert "Verified" not in found[NAME].partition("### 1.4.2")[0]


def test_a_task_that_is_gone_or_there_twice_is_left_alone() -> None:
    entry = Entry(number=1, key="1.4.9", title="1.4.9. Gone", verdict=REVIEW, tasks=("1.4.9",), place=NAME)
    assert settled(entry) == settled(entry, "no") == {}
    entry = Entry(number=1, key="1.1.1", title="1.1.1. A", verdict=REVIEW, tasks=("1.1.1",), place="a.md")
    twice = "### 1.1.1. A\n\n### 1.1.1. B\n"
    assert person.settled_plan(entry, lambda _: twice, ("a.md",), None, WHEN) == {}
    assert person.settled_plan(entry, lambda _: twice, ("a.md",), "no", WHEN) == {}
