"""Session logs: their names, and what agents told for them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import queue, records
from raymond.loops.formats.document import Document
from raymond.loops.formats.records import HEADINGS, SessionLog

WHEN = datetime(2025, 1, 17, 14, 0, tzinfo=UTC)
PIECES = (
    "# a\n",
    "## Next Steps\n",
    "### Learnings\n",
    "#### summary\n",
    "- x\n",
    "- [VERIFY: y] z\n",
    "text\n",
    "```\n",
    "<!--\n",
    "-->\n",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\ufeff",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))


def test_a_second_log_of_a_minute_has_a_number() -> None:
    first = records.log_name(WHEN, ())
    second = records.log_name(WHEN, {first})
    third = records.log_name(WHEN, {first, second})
    assert (first, second, third) == (
        "20250117_1400_session.md",
        "20250117_1400_session_2.md",
        "20250117_1400_session_3.md",
    )
    assert records.newest_log([third, first, second]) == third


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], None),
        (["notes.md", "20250117_1400_session.txt", "20251317_1400_session.md", "20250117_2400_session.md"], None),
        (["20250117_1400_session_1.md", "20250117_1400_session_02.md", "x20250117_1400_session.md"], None),
        (["20250117_1400_session.md", "20250116_2359_session_9.md"], "20250117_1400_session.md"),
        (["20250117_1400_session_10.md", "20250117_1400_session_9.md"], "20250117_1400_session_10.md"),
        (["20250117_1401_session.md", "20250117_1400_session_2.md"], "20250117_1401_session.md"),
    ],
)
def test_the_newest_log_is_found_by_its_name(names: list[str], expected: str | None) -> None:
    assert records.newest_log(names) == expected
    assert records.newest_log(reversed(names)) == expected


def test_a_log_has_every_section() -> None:
    log = SessionLog("Add\nit", {"Summary": "Done.\n", "Learnings": "# Much\n"}, ("1. a\n   b\n", "- c"))
    assert records.log_text(log) == (
        "# Session: Add it\n\n"
        "## Session Goals\n\n_None._\n\n"
        "## Related Specs\n\n_None._\n\n"
        "## Summary\n\nDone.\n\n"
        "## Implementation Details\n\n_None._\n\n"
        "## Key Decisions\n\n_None._\n\n"
        "## Challenges & Solutions\n\n_None._\n\n"
        "## Code Areas Touched\n\n_None._\n\n"
        "## Spec Updates Needed\n\n_None._\n\n"
        "## Next Steps\n\n1. a\n   b\n- c\n\n"
        "## Learnings\n\n### Much\n"
    )


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("", {}),
        ("Done.\n", {"Summary": "Done."}),
        ("Done.\n\n# LEARNINGS\nMuch.\n", {"Summary": "Done.", "Learnings": "Much."}),
        ("a\r\n## Summary\r\nb\r\n", {"Summary": "a\n\nb"}),
        (
            "## Summary\na\n### Next Steps\n- b\n#### Key decisions:\nc",
            {"Summary": "a", "Key Decisions": "c", "Next Steps": "- b"},
        ),
        ("## Learnings\na\n### More\nb\n## Other\nc\n", {"Summary": "## Other\nc", "Learnings": "a\n### More\nb"}),
        ("## Learnings\n_None._\n## Next Steps\nNone\n", {}),
        ("```\n## Learnings\n```\n", {"Summary": "```\n## Learnings\n```"}),
        ("## Learnings\na\n## Learnings\nb\n", {"Learnings": "a\n\nb"}),
    ],
)
def test_an_agent_tells_sections_in_its_last_message(reply: str, expected: dict[str, str]) -> None:
    assert records.sections_of(reply) == expected
    assert list(records.sections_of(reply)) == [heading for heading in HEADINGS if heading in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("Rest.", ()),
        ("1. [VERIFY: x] a\n   b\n- c", ("1. *proposed* [VERIFY: x] a\n   b\n", "- *proposed* c\n")),
        ("- [x] a\n- [ ] b\n- _proposed_ c", ("- [ ] *proposed* b\n", "- _proposed_ c\n")),
        ("- a\n# More\n- b", ("- *proposed* a\n", "- *proposed* b\n")),
        ("- a\n  <!-- raymond r/1 -->", ("- *proposed* a\n  &lt;!-- raymond r/1 -->\n",)),
    ],
)
def test_steps_that_an_agent_tells_are_only_proposed(text: str, expected: tuple[str, ...]) -> None:
    assert records.proposals(text) == expected


@given(TEXTS)
def test_what_an_agent_tells_brings_no_section_and_nothing_that_runs(reply: str) -> None:
    told = records.sections_of(reply)
    blocks = ("- [VERIFY: mine] Mine", *records.proposals(told.get("Next Steps", "")))
    text = records.log_text(SessionLog(reply, told, blocks))
    headings = Document(text).headings
    assert [heading.title for heading in headings if heading.level == 2] == list(HEADINGS)
    assert [heading.level for heading in headings].count(1) == 1
    assert [item.title for item in queue.runnable(queue.read(text).items)] == ["Mine"]
    assert len(queue.read(text).items) == len(blocks)


@given(TEXTS)
def test_any_text_in_any_section_leaves_the_others_as_they_are(text: str) -> None:
    composed = records.log_text(SessionLog("a", dict.fromkeys(HEADINGS, text), ("- b",)))
    assert [one.title for one in Document(composed).headings if one.level == 2] == list(HEADINGS)
    assert [item.title for item in queue.read(composed).items] == ["b"]
    assert Document(composed).open_fence is None
