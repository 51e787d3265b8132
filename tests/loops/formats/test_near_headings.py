"""Headings that are nearly those of a story or a task are named; ordinary ones are not."""

from pathlib import Path

import pytest

from raymond.loops import spec_files
from raymond.loops.documents import Documents, Folder
from raymond.loops.formats import prd, task_spec
from raymond.loops.formats.queue_item import PlanWarning

STORY = "## User Stories\n### US-1: a\n**Priority:** 1\n**Verification:** `b`\n"
TASK = "# 1.2 Spec\n**Status:** 🟡 In Progress\n### 1.2.1. a\n**Status:** 🔵 Planned\n"


@pytest.mark.parametrize(
    ("heading", "form", "has"),
    [
        ("US3: Receipts", "US-3", ""),
        ("us-41: Receipts", "US-41", ""),
        ("US 5 - Receipts", "US-5", ""),
        ("[US-6] Receipts", "US-6", ""),
        ("Story 42: Receipts", "US-42", ""),
        ("User story #7", "US-7", ""),
        ("SHOP-3 Receipts", "SHOP-3", ""),
        ("Receipts\n**Verification:** `c`", "US-1", ", although it has `Verification`"),
        ("Receipts\n\n- __Implemented by__: 1.1.1", "US-1", ", although it has `Implemented by`"),
    ],
)
def test_a_heading_that_is_nearly_that_of_a_story_is_named(heading: str, form: str, has: str) -> None:
    title = heading.partition("\n")[0]
    message = f"`{title}` is not read as a story{has}: write `### {form}: Title`"
    assert prd.read(f"{STORY}### {heading}\n").warnings == (PlanWarning(message, 5),)


def test_a_story_that_is_too_deep_is_named_and_also_one_in_another_story() -> None:
    text = f"{STORY}###### US-2: b\n#### US3: c\n"
    assert [one.line for one in prd.read(text).warnings] == [5, 6]


@pytest.mark.parametrize(
    "heading",
    [
        "### Payments",
        "### US 2024 market",
        "### UTF8 everywhere",
        "### Story points",
        "#### Notes\n**Implemented by:** 1.1.1",
        "#### Verification notes",
        "### Example\n```\n**Verification:** `x`\n```",
        "### Example\n<!--\n**Verification:** `x`\n-->",
        "## Release\n**Verification:** `x`",
    ],
)
def test_an_ordinary_heading_of_a_prd_is_not_named(heading: str) -> None:
    assert prd.read(f"{STORY}{heading}\n").warnings == ()


@pytest.mark.parametrize(
    ("heading", "form", "has"),
    [
        ("Task 1.2.2: b", "1.2.2", ""),
        ("task 1.2.2. b", "1.2.2", ""),
        ("[1.2.5] b", "1.2.5", ""),
        ("1.2 b\n**Status:** 🔵 Planned", "1.4.1", ", although it has `Status`"),
        ("1.2 b\n\n**Verification:** `c`", "1.4.1", ", although it has `Verification`"),
        ("Add a login\n- **Status**: blocked", "1.4.1", ", although it has `Status`"),
    ],
)
def test_a_heading_that_is_nearly_that_of_a_task_is_named(heading: str, form: str, has: str) -> None:
    title = heading.partition("\n")[0]
    message = f"`{title}` is not read as a task{has}: write `### {form}. Title`"
    assert task_spec.read(f"{TASK}### {heading}\n").warnings == (PlanWarning(message, 5),)


@pytest.mark.parametrize(
    "heading",
    [
        "## Task list",
        "## 1.2 Group\n**Status:** 🟡 In Progress\n### About\n### 1.2.2. b",
        "## Overview\n**Status:** ✅ Complete",
        "## Draft\n**Status:** Draft",
        "#### Notes\n**Implements:** US-1",
        "# Another\n**Status:** ✅ Complete",
        "## Example\n```\n**Status:** Planned\n```",
        "## Since 1.2.3",
    ],
)
def test_an_ordinary_heading_of_a_spec_is_not_named(heading: str) -> None:
    assert task_spec.read(f"{TASK}{heading}\n").warnings == ()


@pytest.fixture
def found(tmp_path: Path) -> Documents:
    for name, text in {
        "1-core/1.2-a.md": TASK,
        "payments/1.4-y.md": TASK.replace("1.2", "1.4"),
        "1-core/2.1-z.md": TASK.replace("1.2", "2.1"),
        "1.3-x.md": TASK.replace("1.2", "1.3"),
        "README.md": "# Specs\n## 1.0.0 Released\nText.\n",
        "1-core/notes.txt": TASK,
    }.items():
        path = tmp_path / "docs/implementation" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return Folder(str(tmp_path), "docs", str(tmp_path))


def test_a_file_with_tasks_that_is_not_where_a_spec_has_to_be_is_named(found: Documents) -> None:
    names = ["1-core/2.1-z.md", "1.3-x.md", "payments/1.4-y.md"]
    message = (
        "this file is not a spec, so its tasks do not count:"
        " name it implementation/{N}-{name}/{N}.{M}-{topic}.md, with the same N"
    )
    assert spec_files.strays(found) == [PlanWarning(message, 3, f"implementation/{name}") for name in names]
    known = spec_files.read_tasks(found)
    assert [*known.tasks] == ["1.2.1"]
    assert [one.place for one in known.warnings] == [f"implementation/{name}" for name in names]
