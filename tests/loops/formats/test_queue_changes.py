"""Changes of a queue: what is not named stays byte for byte."""

import pytest

from raymond.loops.formats import queue

TEXT = "# S\r\n\r\n## Next Steps\r\n\r\n1. a\r\n   - Retry: 1\r\n\r\n2. b\r\n\r\n## Learnings\r\nx"


def test_an_item_is_taken_out_with_all_its_lines() -> None:
    first, second = queue.read(TEXT).items
    assert queue.without(TEXT, first) == TEXT.replace("1. a\r\n   - Retry: 1\r\n", "")
    assert queue.without(TEXT, second) == TEXT.replace("2. b\r\n", "")


def test_a_text_that_changed_meanwhile_loses_nothing() -> None:
    item = queue.read(TEXT).items[0]
    assert queue.without("x" + TEXT, item) == "x" + TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "## Next Steps\n\n- new\n"),
        ("\ufeff", "\ufeff## Next Steps\n\n- new\n"),
        ("# S", "# S\n\n## Next Steps\n\n- new\n"),
        ("# S\n\n", "# S\n\n## Next Steps\n\n- new\n"),
        ("# S\r\n```\r\nx", "# S\r\n```\r\nx\r\n```\r\n\r\n## Next Steps\r\n\r\n- new\r\n"),
        ("## Next Steps", "## Next Steps\n\n- new\n"),
        ("## Next Steps\n\n## L\n", "## Next Steps\n\n- new\n## L\n"),
        ("## Next Steps\n\n\n## L\n", "## Next Steps\n\n- new\n\n## L\n"),
        ("## Next Steps\n- a", "## Next Steps\n- a\n- new\n"),
        ("## Next Steps\n- a\n\n## L\n", "## Next Steps\n- a\n- new\n\n## L\n"),
        ("## Next Steps\n- a\n  ```\n  x\n", "## Next Steps\n- a\n  ```\n  x\n  ```\n- new\n"),
        ("## Next Steps\n<!--\n- a\n", "## Next Steps\n<!--\n- a\n-->\n- new\n"),
    ],
)
def test_an_item_is_added_at_the_end_of_the_queue(text: str, expected: str) -> None:
    assert queue.added(text, "- new") == expected
    assert queue.read(expected).items[-1].title == "new"


def test_a_block_that_is_added_stands_as_an_item_of_its_own() -> None:
    assert (
        queue.added("## Next Steps\n- a\n", "  1. b\r\n     - Retry: 1\r\n")
        == "## Next Steps\n- a\n1. b\n     - Retry: 1\n"
    )
    assert queue.added("## Next Steps\n- a\n", "b") == "## Next Steps\n- a\n- b\n"
    assert queue.added("## Next Steps\n", "- b\n  ```\n  x", "- c") == "## Next Steps\n\n- b\n  ```\n  x\n  ```\n- c\n"


@pytest.mark.parametrize(
    ("block", "tag", "expected"),
    [
        ("1. [VERIFY: x] a\n   b\n", "[BLOCKED: why]", "1. [BLOCKED: why] [VERIFY: x] a\n   b\n"),
        ("- [ ] a", "*proposed*", "- [ ] *proposed* a"),
        ("- *proposed* a", "*proposed*", "- *proposed* a"),
        ("-", "*proposed*", "- *proposed* "),
        ("a", "*proposed*", "- *proposed* a"),
        ("- a", "[BLOCKED: see [1]]", "- [BLOCKED: see [1]] a"),
        ("- a", "[BLOCKED: a ] b\n[ c]", "- [BLOCKED: a ) b ( c] a"),
        ("- a", "[BLOCKED: [VERIFY: x]]", "- [BLOCKED: (VERIFY: x)] a"),
        ("- a", "[BLOCKED: x", "- [BLOCKED: x] a"),
    ],
)
def test_a_tag_is_put_before_the_title(block: str, tag: str, expected: str) -> None:
    assert queue.marked(block, tag) == expected


@pytest.mark.parametrize(
    ("text", "blocks", "expected"),
    [
        ("## Next Steps\n\n1. a\n\n2. b\n\n## L\n", ["- c", "- d"], "## Next Steps\n\n- c\n- d\n\n## L\n"),
        ("## Next Steps\n- a\n\nText\n\n- b\n", ["- c"], "## Next Steps\n- c\n\nText\n\n"),
        ("## Next Steps\n\n- a\n\n## L\n", [], "## Next Steps\n\n_None._\n\n## L\n"),
        ("## Next Steps\n\n_None._\n\n## L\n", ["- a"], "## Next Steps\n\n- a\n\n## L\n"),
        ("## Next Steps\n\n_None._\n", [], "## Next Steps\n\n_None._\n"),
        ("# S\n", ["- a"], "# S\n\n## Next Steps\n\n- a\n"),
        ("# S\n", [], "# S\n"),
        ("## Next Steps\r\n- a\r\n", ["- b\n"], "## Next Steps\r\n- b\r\n"),
    ],
)
def test_a_queue_gets_other_items(text: str, blocks: list[str], expected: str) -> None:
    assert queue.rewritten(text, blocks) == expected


def test_a_mark_that_the_reader_would_not_see_is_not_taken_for_one() -> None:
    marked = queue.marked("- *proposed*Greet in Latin\n", "*proposed*")
    [item] = queue.read(f"## Next Steps\n\n{marked}").items
    assert item.proposed
    assert queue.marked(marked, "*proposed*") == marked
