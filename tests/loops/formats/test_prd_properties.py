"""Whatever the text: reading stories never raises, and each is where it says."""

from hypothesis import example, given
from hypothesis import strategies as st

from raymond.loops.formats import document, prd
from raymond.loops.formats.document import Document

PIECES = [
    *("## User Stories\n", "### US-1: a\n", "#### US-2: b\r\n", "### US-3\n", "## x\n", "# y\n", "### US-4 c\n", "\n"),
    *("**Acceptance Criteria:**\n", "- [ ] c\n", "- [x]\n", "- d\n", "  more\n", "**Priority:** ", "1\n", "US-1\n"),
    *("**Verification:**", " `a`\n", " manual\n", " tasks\n", "- command: b\n", "- expected: ", "0\n", "maybe\n"),
    *(
        "- type: manual\n",
        "- type: x\n",
        "- criteria:\n",
        "    - e\n",
        "- timeout: 1m\n",
        "- `f`\n",
        "#### Verification\n",
    ),
    *(
        "**Implemented by:** ",
        "1.4.1, ",
        "1.4\n",
        "**Depends on:** ",
        "<!--\n",
        "-->\n",
        "<!--",
        "-->",
        "```\n",
        "~~~\n",
    ),
    *(
        "    ```\n",
        "\ufeff",
        "\r",
        "\t",
        " ",
        "`",
        "**",
        "As a ",
        "I want ",
        "so that ",
        "\0",
        "\u2028",
        "\ud800",
        "text\n",
    ),
]
LOOSE = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
TEXTS = st.one_of(st.text(), LOOSE, LOOSE.map("## User Stories\n### US-1: a\n".__add__))


@given(TEXTS)
@example("### US-1: a\n**Verification:**\n```\n```\n")
@example("### US-1: a\n**Verification:** `a`\n```\nb\n")
def test_any_text_has_stories_that_stand_where_they_say(text: str) -> None:
    found = prd.read(text)
    lines = text.split("\n")
    for story in found.stories:
        assert text[story.start :].startswith(lines[story.line - 1])
        assert story.id in lines[story.line - 1]
        assert story.body in text[story.start : story.end]
        assert not (story.problem and story.given)
        assert story.check().kind in ("command", "manual", "tasks", "composite")
        assert "**Verification:**" not in story.body or story.given or story.problem or is_hidden(text)
    assert len({story.id for story in found.stories}) == len(found.stories)
    assert all(1 <= warning.line <= len(lines) for warning in found.warnings)


def is_hidden(text: str) -> bool:
    """Whether something of it can be in a comment or in code, or is not at the beginning of a line."""
    return any(mark in text for mark in ("<!--", "```", "~~~")) or "\n**Verification:**" not in text


@given(TEXTS)
def test_what_does_not_count_is_blotted_out_in_its_place(text: str) -> None:
    found = Document(text)
    assert len(found.counted) == len(text)
    assert [at for at, one in enumerate(found.counted) if one in "\r\n"] == [
        at for at, one in enumerate(text) if one in "\r\n"
    ]
    marks = (document.OPENING, document.INSIDE, document.CLOSING)
    for one, other in zip(found.counted, text, strict=True):
        assert one == other or one in (" ", *marks) or (other in marks and one == "\0")
    assert found.open_comment is None or text.startswith("<!--", found.open_comment)
