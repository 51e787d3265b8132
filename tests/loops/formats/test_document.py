"""Headings, fences and lines of a markdown text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import document
from raymond.loops.formats.document import Document

PIECES = (
    "# a\n",
    "## Next Steps\n",
    "```\n",
    "````\n",
    "~~~\n",
    "   ```x\n",
    "- a\n",
    "  <!-- b\n",
    "<!--\n",
    "-->",
    "    ```\n",
    "text\n",
    "\r\n",
    "\r",
    "\0",
    "\ufeff",
    " ",
    "`",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))


def titles(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in Document(text).headings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# a\n## b", [(1, "a"), (2, "b")], id="the last line may have no ending"),
        pytest.param("   ### a\n    # b\n", [(3, "a")], id="three spaces may come before it, not four"),
        pytest.param("#a\n####### b\n#\n", [(1, "")], id="a space comes after one to six signs"),
        pytest.param("## a ##\n## b#\n", [(2, "a"), (2, "b#")], id="signs at its end are not part of it"),
        pytest.param("# a\r\n#\r\n", [(1, "a"), (1, "")], id="lines may end with CRLF"),
        pytest.param("x\r# a\n", [], id="a lone CR ends no line"),
        pytest.param("\ufeff# a\n", [(1, "a")], id="a byte order mark may come before it"),
        pytest.param("\0# a\n", [], id="a NUL may not"),
        pytest.param("```\n# a\n```\n# b\n", [(1, "b")], id="code has no headings"),
        pytest.param("~~~ x`\n# a\n```\n# b\n~~~~\n# c\n", [(1, "c")], id="only the same sign closes a fence"),
        pytest.param("````\n```\n# a\n````  \r\n# b\n", [(1, "b")], id="a shorter run closes no fence"),
        pytest.param("```\n``` x\n# a\n", [], id="a run with text after it closes no fence"),
        pytest.param("```x`\n# a\n", [(1, "a")], id="backticks in a line of backticks are inline code"),
        pytest.param("    ```\n# a\n", [(1, "a")], id="four spaces make no fence"),
    ],
)
def test_headings_are_found_outside_of_code(text: str, expected: list[tuple[int, str]]) -> None:
    assert titles(text) == expected


def body(text: str, title: str) -> str | None:
    found = Document(text).section(title)
    return text[found.body : found.end] if found else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("## next steps\na\n", "a\n", id="case does not count"),
        pytest.param("#### Next  Steps:\na\n", "a\n", id="nor do the level, double spaces and a colon"),
        pytest.param("## **Next Steps**\na\n", "a\n", id="nor does emphasis"),
        pytest.param("## Next Steps\na\n### b\nc\n## d\n", "a\n### b\nc\n", id="it ends at a heading of its level"),
        pytest.param("### Next Steps\na\n# b\n", "a\n", id="or of a higher one"),
        pytest.param("## Next Steps\na\n## Next Steps\nb\n", "a\n", id="the first one wins"),
        pytest.param("## Next Steps", "", id="it may be empty"),
        pytest.param("```\n## Next Steps\n", None, id="in code it is not one"),
        pytest.param("## Next Steps now\n", None, id="the whole title counts"),
    ],
)
def test_a_section_is_found_by_its_title(text: str, expected: str | None) -> None:
    assert body(text, "Next Steps") == expected


@given(TEXTS)
def test_lines_hold_every_character(text: str) -> None:
    lines = list(Document(text, comments=False).lines())
    assert "".join(text[line.start : line.stop] for line in lines) == text
    assert [line.text for line in lines] == [line.rstrip("\r") for line in text.removesuffix("\n").split("\n") if text]


def test_lines_say_what_they_are() -> None:
    text = "# a\nb\n```\n# c\n```\nd"
    assert [line.kind for line in Document(text).lines()] == ["heading", "", "fence", "fenced", "fenced", ""]
    assert [line.text for line in Document(text).lines(4, 10)] == ["b", "```"]


@given(TEXTS, TEXTS)
def test_fenced_text_stays_inside_of_its_fence(text: str, after: str) -> None:
    fenced = document.fence(text)
    assert text in fenced
    assert titles(fenced) == []
    assert Document(fenced).open_fence is None
    assert titles(fenced + "# a\n" + after)[:1] == [(1, "a")]


@given(TEXTS)
def test_whatever_a_text_leaves_open_can_be_closed(text: str) -> None:
    closed = text + Document(text).closing()
    assert (Document(closed).open_fence, Document(closed).open_comment) == (None, None)
    assert titles(closed + "# end\n")[-1] == (1, "end")


def test_the_line_that_closes_a_fence_is_indented_like_the_one_that_opens_it() -> None:
    assert Document("a\n  ~~~~ x\nb").closing() == "\n  ~~~~\n"
    assert Document("a\r\n```\r\nb").closing() == "\r\n```\r\n"


def test_the_first_line_says_how_lines_end() -> None:
    assert [document.newline(text) for text in ("a\r\nb\n", "a\nb\r\n", "a\r", "\n", "")] == [
        "\r\n",
        "\n",
        "\n",
        "\n",
        "\n",
    ]


@pytest.mark.parametrize(
    ("text", "counted", "unclosed"),
    [
        pytest.param("a\n", "a\n", [], id="plain"),
        pytest.param("a <!-- b --> c\n", "a            c\n", [], id="a comment in a line"),
        pytest.param("<!-- b --> c\nd\n", "            \nd\n", [], id="at its beginning, it takes the line"),
        pytest.param("a <!-- b\nc --> d\ne\n", "a       \n       \ne\n", [], id="over two lines"),
        pytest.param("a <!-- b\n\nc --> d\n", "a <!-- b\n\nc --> d\n", [], id="not closed in its paragraph"),
        pytest.param("- a <!-- b\n- c --> d\n", "- a <!-- b\n- c --> d\n", [], id="an item ends a paragraph"),
        pytest.param("a\n<!-- b\n## c\n", "a\n      \n    \n", [2], id="not closed at all"),
        pytest.param("- a\n  <!-- b\n  c\n- d\n", "- a\n        \n   \n- d\n", [6], id="it ends with its item"),
        pytest.param(
            "- a\n  <!-- b\n- c\n  -->\n", "- a\n        \n- c\n  -->\n", [6], id="even if it is closed later"
        ),
        pytest.param("  <!-- b\nc\n", "        \n \n", [2], id="without an item it goes on"),
        pytest.param("```\n<!-- b -->\n```\n", "\1\1\1\n" + "\2" * 10 + "\n\3\3\3\n", [], id="in code it is none"),
        pytest.param("`<!-- b -->` c\n", "`<!-- b -->` c\n", [], id="nor between backticks"),
        pytest.param("```\n<!-- b\n", "\1\1\1\n" + "\2" * 6 + "\n", [0], id="nor in code that is not closed"),
        pytest.param(
            "- a\n      ```\n  <!--\n      ```\n",
            "- a\n      \1\1\1\n\2\2\2\2\2\2\n\3\3\3\3\3\3\3\3\3\n",
            [],
            id="nor in the code of an item",
        ),
        pytest.param("- a\n\t```\n\tb\n- c\n", "- a\n\t\1\1\1\n\2\2\n- c\n", [4], id="which ends with the item"),
        pytest.param("a\n\n    ```\n<!-- b -->\n", "a\n\n    ```\n          \n", [], id="four blanks make no fence"),
    ],
)
def test_comments_become_blanks_and_code_becomes_marks(text: str, counted: str, unclosed: list[int]) -> None:
    found = Document(text)
    assert (found.counted, [at for at, _ in found.unclosed]) == (counted, unclosed)
