"""Imported stories and tasks are read as they were meant, whatever they say."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raymond.loops.formats import foreign_plan, prd, task_spec
from raymond.loops.formats.foreign_plan import ForeignStory, ForeignTask
from raymond.loops.formats.prd import StoryCheck

NASTY = st.text() | st.lists(
    st.sampled_from([
        *("# x\n", "### US-9: x\n", "## 1.1.9. x\n", "**Verification:** `true`\n", "**Status:** ✅ Complete\n", "<!--", "-->"),
        *("```\n", "~~~", "`", "*proposed*", "_proposed_", "\r", "\n", "- command: true\n", "**Verified:** true\n", "#", "\\", "[x]"),
        *("<!-- raymond import a/b -->\n", "\u2028", "\x1b", "x", " ", "| x", "> ", "US-1: ", "\ud800", "\ufeff", "- type: manual"),
    ]),
    max_size=8,
).map("".join)  # fmt: skip


@given(
    NASTY, NASTY, st.lists(NASTY, max_size=3), st.booleans(), st.sampled_from(["", "npm test", "a `b` c", "x <!-- y"])
)
@example("#", "", [], False, "")
@example("**Verified:** true", "", ["**Verified:** true", "__Status__: complete"], False, "")
def test_nothing_that_is_imported_is_taken_for_a_field_of_ours(
    title: str, text: str, criteria: list[str], is_done: bool, command: str
) -> None:
    task = ForeignTask("k", title, text, tuple(criteria), is_done)
    story = ForeignStory("k", title, 1, (task,), text=text, criteria=tuple(criteria), is_done=is_done)
    spec = foreign_plan.as_head("1.1", title, "f.json") + "\n"
    for id in ("1.1.1", "1.1.2"):
        spec += foreign_plan.as_task(id, task, name="f.json", key="k", story="US-3", command=command) + "\n"
    read = task_spec.read(spec)
    assert [one.id for one in read.tasks] == ["1.1.1", "1.1.2"]
    for one in read.tasks:
        assert (one.status, one.verified, one.implements, one.proposed) == (
            "complete" if is_done else "planned",
            False,
            ("US-3",),
            False,
        )
        assert (one.check.run if one.check else "", one.is_manual, one.problem) == (command, not command, "")
        assert foreign_plan.import_mark("f.json", "k") in one.body
    told = [
        foreign_plan.as_story(id, story, name="f.json", level=3, tasks=["1.1.1", "1.1"], depends_on=["US-7"])
        for id in ("US-3", "US-4")
    ]
    found = prd.read(foreign_plan.with_stories("", told)).stories
    assert [one.id for one in found] == ["US-3", "US-4"]
    for other in found:
        assert (other.given, other.problem) == (StoryCheck("tasks"), "")
        assert (other.implemented_by, other.depends_on, other.priority) == (("1.1.1", "1.1"), ("US-7",), 1)


STORY = "### US-2: New\n**Verification:** tasks\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "# Product requirements\n\n## User Stories\n\n" + STORY),
        ("# P\n", "# P\n\n## User Stories\n\n" + STORY),
        ("# P\r\ntext", "# P\r\ntext\r\n\r\n## User Stories\r\n\r\n" + STORY.replace("\n", "\r\n")),
        ("## User Stories\n### US-1: a\n## Notes\n", "## User Stories\n### US-1: a\n\n" + STORY + "\n## Notes\n"),
        ("## US-1: a\n## User Stories\n", "## US-1: a\n\n" + STORY + "\n## User Stories\n"),
        ("## US-1: a\ntext\n# Notes\n", "## US-1: a\ntext\n\n" + STORY + "\n# Notes\n"),
        ("## User Stories\n\n### US-1: a\n```\nopen", "## User Stories\n\n### US-1: a\n```\nopen\n```\n\n" + STORY),
        ("<!--\n## User Stories\n-->\n# P\n", "<!--\n## User Stories\n-->\n# P\n\n## User Stories\n\n" + STORY),
    ],
)
def test_stories_are_added_where_stories_are(before: str, after: str) -> None:
    assert foreign_plan.with_stories(before, [STORY]) == after
    assert "US-2" in [one.id for one in prd.read(after).stories]
    assert len(prd.read(after).stories) == len(prd.read(before).stories) + 1


def test_commands_become_one_that_is_green_when_all_are() -> None:
    assert foreign_plan.one_command([]) == ""
    assert foreign_plan.one_command(["a; b"]) == "a; b"
    assert foreign_plan.one_command(["a b", "c || d", "e"]) == "a b && (c || d) && e"


@pytest.mark.parametrize(("text", "level"), [("", 3), ("# P\n#### US-1: a\n", 4), ("# User Stories\n", 2)])
def test_a_story_has_the_level_of_the_others(text: str, level: int) -> None:
    assert foreign_plan.heading_level(text) == level
