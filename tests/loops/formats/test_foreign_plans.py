"""Lists of work of other tools: what is read of them, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import foreign_plan
from raymond.loops.formats.foreign_plan import ForeignPlan, ForeignStory, ForeignTask, Unreadable
from raymond.loops.formats.queue_item import PlanWarning

RALPH = """{
  "project": "Shop",
  "branchName": "ralph/shop",
  "userStories": [
    {
      "id": "US-001",
      "title": "Log in",
      "description": "As a user, I want to log in.",
      "acceptanceCriteria": ["a", "b"],
      "priority": 2,
      "passes": true,
      "notes": "careful"
    },
    {"id": 7, "description": "Pay\\nby card", "acceptanceCriteria": "c", "dependencies": ["US-001", "US-9"]}
  ]
}
"""
FIX = """# Fix plan

## High Priority
- [ ] Handle empty input
  - [ ] no crash
  see issue 4
- [x] **Log errors**

```
- [ ] not this
```
<!--
- [ ] nor this
-->
## Low priority

1. [ ] Colours
- plain
- [ ] colours
"""
RALPHEX = """# Plan: Add auth

## Overview
Add JWT.

## Validation Commands
- `go test ./...`
- Lint: `golangci-lint run`
- look at it

### Task 1: Add middleware

- [x] create it
- [X] use [ ] for boxes
  - [x] and test it

### Iteration 2a: Log in
**Files:**
- Modify: `a.go`

- [ ] create a handler
#### Notes
- [x] noted
### Not a task
- [x] still of it

## Success criteria
- [ ] not work
"""


def test_the_stories_of_ralph_have_one_task_each() -> None:
    first = ForeignTask("US-001", "Log in", "As a user, I want to log in.\n\nNotes: careful", ("a", "b"), True)
    second = ForeignTask("7", "Pay", "Pay\nby card", ("c",), False)
    assert foreign_plan.read_ralph_prd(RALPH) == ForeignPlan(
        "Shop, ralph/shop",
        (
            ForeignStory(
                *("US-001", "Log in", 5, (first,), "US-001", "As a user, I want to log in.", ("a", "b"), 2, True)
            ),
            ForeignStory(
                *("7", "Pay", 14, (second,), "7", "Pay\nby card", ("c",), 1, False), depends_on=("US-001", "US-9")
            ),
        ),
        warnings=(PlanWarning("it depends on US-9, which is not there", 14),),
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("{\n,", 2, "it is not valid JSON: Expecting property name enclosed in double quotes"),
        ("[]", 1, "it is not a JSON object"),
        ("{}", 1, "it has no list `userStories`"),
        ('{"userStories": [\n1]}', 2, "`userStories[0]` is not an object"),
        ('{"userStories": [{"id": "a", "title": "b"},\n\n{"title": "b"}]}', 3, "`userStories[1].id` is not a text or a number"),
        ('{"userStories": [{"id": "a"}]}', 1, "`userStories[0]` has no `title`"),
        ('{"userStories": [{"id": "a", "title": 1}]}', 1, "`userStories[0].title` is not a text"),
        ('{"userStories": [{"id": "a", "title": "b", "passes": "no"}]}', 1, "`userStories[0].passes` is not true or false"),
        ('{"userStories": [{"id": "a", "title": "b", "priority": "high"}]}', 1, "`userStories[0].priority` is not a whole number from 0 to 9999"),
        ('{"userStories": [{"id": "a", "title": "b", "acceptanceCriteria": {}}]}', 1, "`userStories[0].acceptanceCriteria` is not a list of texts"),
        ('{"userStories": [{"id": "a", "title": "b", "acceptanceCriteria": [null]}]}', 1, "`userStories[0].acceptanceCriteria[0]` is not a text"),
    ],
)  # fmt: skip
def test_a_prd_json_that_is_wrong_says_where(text: str, line: int, reason: str) -> None:
    with pytest.raises(Unreadable) as wrong:
        foreign_plan.read_ralph_prd(text)
    assert (wrong.value.line, str(wrong.value)) == (line, reason)


def test_a_checklist_has_a_story_for_each_box() -> None:
    found = foreign_plan.read_fix_plan(FIX)
    assert [(one.title, one.line, one.priority, one.is_done, one.criteria) for one in found.stories] == [
        ("Handle empty input", 4, 1, False, ("no crash",)),
        ("Log errors", 7, 1, True, ()),
        ("Colours", 17, 3, False, ()),
    ]
    assert found.stories[0].text == "Area: High Priority\n\nsee issue 4"
    assert found.warnings == (PlanWarning("this is there twice, and only the first one counts", 19),)
    assert found.title == "Fix plan"


def test_an_item_of_a_checklist_has_the_same_key_wherever_it_moves() -> None:
    moved = foreign_plan.read_fix_plan("## High Priority\n- [x] Log errors\n- [ ] Handle empty input\n")
    before = {one.title: one.key for one in foreign_plan.read_fix_plan(FIX).stories}
    assert {one.title: one.key for one in moved.stories} == {
        name: before[name] for name in ("Log errors", "Handle empty input")
    }


def test_items_whose_digests_begin_alike_are_both_kept() -> None:
    text = "# fix\n- [ ] do the thing number 480\n- [ ] do the thing number 6170\n- [ ] do the thing number 6170\n"
    found = foreign_plan.read_fix_plan(text)
    assert [one.title[-4:].strip() for one in found.stories] == ["480", "6170"]
    assert (found.stories[0].key, len(found.stories[1].key)) == ("783d3619", 64)
    assert [one.line for one in found.warnings] == [4]


@pytest.mark.parametrize(
    ("heading", "key", "title"),
    [
        ("### Task 3", "Task 3", "Task 3"),
        ("### Task 3 - Receipts", "Task 3", "Receipts"),
        ("## Task 3: Receipts", "Task 3", "Receipts"),
        ("### **Iteration 3.1 – Receipts**", "Task 3.1", "Receipts"),
        ("### task 3b. Receipts", "Task 3b", "Receipts"),
        ("### Task 3-4: Receipts", "Task 3-4", "Receipts"),
        ("### Task 3 – Receipts: all", "Task 3", "Receipts: all"),
    ],
)
def test_the_heading_of_a_task_of_ralphex_may_look_different(heading: str, key: str, title: str) -> None:
    plan = f"# P\n## Validation Commands\n- `a`\n### Task 2: b\n- [x] c\n{heading}\n- [ ] d\n"
    (story,) = foreign_plan.read_ralphex(plan).stories
    assert [(one.key, one.title, one.criteria, one.is_done) for one in story.tasks] == [
        ("Task 2", "b", ("c",), True),
        (key, title, ("d",), False),
    ]
    assert foreign_plan.is_ralphex(plan.replace("### Task 2: b", "### Task 2"))


def test_other_headings_of_a_plan_are_no_tasks() -> None:
    text = (
        "# P\n### Task 1: a\n- [ ] b\n### Task list\n- [ ] c\n#### Task 2: notes\n- [ ] d\n## Task force: e\n- [ ] f\n"
    )
    (story,) = foreign_plan.read_ralphex(text).stories
    assert [(one.key, one.criteria) for one in story.tasks] == [("Task 1", ("b", "c", "d"))]
    assert not foreign_plan.is_ralphex("# P\n## Task 1 - a\n- [ ] b\n"), "a checklist, as before"


def test_a_plan_of_ralphex_is_one_story_with_its_tasks() -> None:
    found = foreign_plan.read_ralphex(RALPHEX)
    assert found.commands == ("go test ./...", "golangci-lint run")
    (story,) = found.stories
    assert (story.key, story.title, story.text, story.is_done) == ("plan", "Add auth", "Add JWT.", False)
    first, second = story.tasks
    assert first == ForeignTask("Task 1", "Add middleware", "", ("create it", "and test it"), True)
    assert (second.key, second.title, second.is_done) == ("Task 2a", "Log in", False)
    assert second.criteria == ("create a handler", "noted", "still of it")
    assert "**Files:**\n- Modify: `a.go`" in second.text
    assert found.warnings == (PlanWarning("there is not one command in backticks here, so this is left out", 9),)


def test_validation_commands_may_be_a_block_of_code_or_missing() -> None:
    text = "# P\n## Validation Commands\n```bash\n# all of it\nnpm test\nnpm run lint\n```\n### Task 1: a\n- [ ] b\n"
    assert foreign_plan.read_ralphex(text).commands == ("npm test", "npm run lint")
    assert foreign_plan.read_ralphex("### Task 1: a\n").warnings == (
        PlanWarning("it has no `## Validation Commands`", 1),
    )


def test_a_list_without_work_is_refused() -> None:
    with pytest.raises(Unreadable, match=r"no item begins with `- \[ \]`"):
        foreign_plan.read_fix_plan("# Fix plan\n- a\n")
    with pytest.raises(Unreadable, match="no heading is like `### Task 1: Title`"):
        foreign_plan.read_ralphex("# Plan\n## Task force: a\n")


PIECES = [
    *("# Plan: a\n", "## Overview\n", "## Validation Commands\n", "### Task 1: b\n", "### Iteration x:\n", "## High\n"),
    *(
        "- [ ] c\n",
        "  - [x] d\n",
        "- [x]\n",
        "1. [X] e\n",
        "- `f`\n",
        "text\n",
        "```\n",
        "<!--\n",
        "-->\n",
        "\r\n",
        "\ufeff",
    ),
]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.sampled_from(["", "US-1", "a\n", "x" * 9]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("id title description acceptanceCriteria priority passes notes dependsOn".split()),
            inner,
            max_size=6,
        )
    ),
    max_leaves=9,
)


@given(TEXTS)
def test_any_text_is_a_list_or_unreadable(text: str) -> None:
    for read in (foreign_plan.read_fix_plan, foreign_plan.read_ralphex, foreign_plan.read_ralph_prd):
        check(read, text)
    assert foreign_plan.is_ralphex(text) in (True, False)


@given(st.lists(VALUES, max_size=4))
def test_any_json_is_a_list_or_unreadable(stories: list[Any]) -> None:
    check(foreign_plan.read_ralph_prd, json.dumps({"userStories": stories}, indent=1))


def check(read: Any, text: str) -> None:
    lines = text.count("\n") + 1
    try:
        plan = read(text)
    except Unreadable as error:
        plan, line = ForeignPlan("", ()), error.line
    else:
        line = 1
    assert 1 <= line <= lines
    assert len({one.key for one in plan.stories}) == len(plan.stories)
    for one in plan.stories:
        assert one.title
        assert 1 <= one.line <= lines
        assert one.tasks
        assert len({task.key for task in one.tasks}) == len(one.tasks)
