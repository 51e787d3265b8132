"""Whatever the text: reading a queue never raises, and changing it loses no character."""

from hypothesis import example, given
from hypothesis import strategies as st

from raymond.loops.formats import queue, queue_item
from raymond.loops.formats.document import Document
from raymond.loops.formats.queue_item import Item

PIECES = [
    *(
        "## Next Steps\n",
        "## Next Steps\r\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "    ",
        "\t",
        "\ufeff",
        "\0",
        "text",
        "x\n",
    ),
    *(
        "- ",
        "1. ",
        "2) ",
        "* ",
        "- a\n",
        "1. b\n",
        "  - c\n",
        "    - d\n",
        "# h\n",
        "### h\n",
        "    # h\n",
        "---\n",
        "- None\n",
        "-\n",
    ),
    *(
        "[VERIFY: ",
        "[VERIFY: x] ",
        "**[verify: `y`]** ",
        "[BLOCKED: z] ",
        "[PRIORITY: 2] ",
        "[NO-VERIFY]",
        "[WIP] ",
        "]",
        "[",
        "**",
        "`",
        "'",
    ),
    *(
        "[x] ",
        "[ ] ",
        "*proposed* ",
        "   - Timeout: 5s\n",
        "  - Retry: x\n",
        "\t- Seal: a,b\n",
        "<!--\n",
        "-->\n",
        "<!--",
        "-->",
    ),
    *("```\n", "  ```\n", "     ```\n", "~~~\n", "````\n", "\u2028", "\x1c", "\ud800"),
]
LOOSE = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
TEXTS = st.one_of(st.text(), LOOSE, LOOSE.map("## Next Steps\n".__add__))
LINES = st.lists(
    st.sampled_from([*PIECES, "word ", "[VERIFY: a b] ", "[PRIORITY: 1] ", "**[VERIFY: c]** "]), max_size=8
).map("".join)


def meaning(item: Item) -> tuple[object, ...]:
    return item.title, item.verification, item.priority, item.metadata, item.ticked, item.proposed


@given(TEXTS)
def test_no_text_raises_and_items_are_where_they_say(text: str) -> None:
    found = queue.read(text)
    at = found.section[0] if found.section else 0
    for item in found.items:
        assert at <= item.start < item.end <= len(text)
        assert text[item.start : item.end] == item.raw
        assert item.title == item.title.strip() != ""
        at = item.end
    assert all(1 <= warning.line <= text.count("\n") + 1 for warning in found.warnings)


@given(TEXTS)
def test_taking_out_an_item_takes_nothing_else(text: str) -> None:
    for item in queue.read(text).items:
        left = queue.without(text, item)
        assert left[: item.start] + item.raw + left[item.start :] == text


@given(TEXTS, TEXTS)
def test_every_item_can_be_added_to_every_text(text: str, other: str) -> None:
    before = [meaning(item) for item in queue.read(text).items]
    for item in queue.read(other).items:
        after = queue.added(text, item.raw)
        assert [meaning(item) for item in queue.read(after).items] == [*before, meaning(item)]
        assert kept(text, after)


def kept(text: str, after: str) -> bool:
    """Whether something was put into `text` at one place, and nothing taken out."""
    same = next((at for at, (a, b) in enumerate(zip(text, after, strict=False)) if a != b), min(len(text), len(after)))
    return any(after.endswith(text[at:]) and len(after) >= len(text) for at in range(same + 1))


@given(TEXTS, TEXTS)
def test_a_queue_can_get_the_items_of_another(text: str, other: str) -> None:
    items = queue.read(other).items
    after = queue.read(queue.rewritten(text, [item.raw for item in items]))
    assert [meaning(item) for item in after.items] == [meaning(item) for item in items]


@given(TEXTS, st.text())
@example("## Next Steps\n- a", "] [VERIFY: x")
def test_a_blocked_item_reads_as_blocked_whatever_the_reason(text: str, reason: str) -> None:
    for item in queue.read(text).items:
        block = queue.marked(item.raw, f"[BLOCKED: {reason}]")
        (blocked,) = queue.read(queue.added("", block)).items
        assert blocked.verification.kind == "blocked"
        assert blocked.title == item.title
        if not set("[]") & set(reason):
            assert blocked.verification.reason == " ".join(reason.split())


@given(TEXTS)
def test_a_proposed_item_reads_as_proposed(text: str) -> None:
    for item in queue.read(text).items:
        (proposed,) = queue.read(queue.added("", queue.marked(item.raw, "*proposed*"))).items
        assert (proposed.title, proposed.verification, proposed.proposed) == (item.title, item.verification, True)


@given(st.one_of(LINES, st.text()))
@example("[VERIFY: task-loop] a")
@example("[VERIFY: a'b] c")
@example("a\u2028")
def test_the_short_cut_for_plain_lines_says_what_the_whole_reader_says(line: str) -> None:
    line = line.replace("\n", " ")
    assert queue_item.read_head(line) == queue_item.read_whole_head(line)


@given(TEXTS)
def test_a_text_without_the_section_keeps_all_it_has(text: str) -> None:
    if Document(text).section(queue.TITLE) is None:
        assert queue.added(text, "- a").startswith(text)
