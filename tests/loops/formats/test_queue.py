"""The queue of a session log, by value."""

import pytest

from raymond.loops.formats import queue
from raymond.loops.formats.queue_item import Item, Metadata, PlanWarning, Verification

NONE = Verification()


def log(*lines: str) -> str:
    return "\n".join(["# Session", "", "## Next Steps", "", *lines, ""])


def only(*lines: str) -> Item:
    (item,) = queue.read(log(*lines)).items
    return item


def titles(text: str) -> list[str]:
    return [item.title for item in queue.read(text).items]


def warnings(*lines: str) -> list[tuple[int, str]]:
    return [(warning.line, warning.message) for warning in queue.read(log(*lines)).warnings]


@pytest.mark.parametrize(
    ("line", "title", "verification"),
    [
        ("1. Title", "Title", NONE),
        ("2) Title", "Title", NONE),
        ("- Title", "Title", NONE),
        ("* Title", "Title", NONE),
        ("+   Title  ", "Title", NONE),
        ("- [VERIFY: npm test] Title", "Title", Verification("command", "npm test")),
        ("- [verify:npm test]Title", "Title", Verification("command", "npm test")),
        ("- **[VERIFY: npm test]** Title", "Title", Verification("command", "npm test")),
        ("- [**VERIFY: npm test**] Title", "Title", Verification("command", "npm test")),
        ("- [**VERIFY:** npm test] Title", "Title", Verification("command", "npm test")),
        ("- **[VERIFY: npm test] Title**", "Title", Verification("command", "npm test")),
        ("- [VERIFY: `npm test`] **Title**", "Title", Verification("command", "npm test")),
        ("- [VERIFY: ``echo `date` ``] Title", "Title", Verification("command", "echo `date`")),
        ("- [VERIFY: `a` && `b`] Title", "Title", Verification("command", "`a` && `b`")),
        ("- [VERIFY: [ -f x ] && [[ a ]]] Title", "Title", Verification("command", "[ -f x ] && [[ a ]]")),
        ("- [VERIFY: `grep ']' x`] Title", "Title", Verification("command", "grep ']' x")),
        ('- [VERIFY: grep "it\'s" x] Title', "Title", Verification("command", 'grep "it\'s" x')),
        ("- [VERIFY: curl http://x:1/] Title", "Title", Verification("command", "curl http://x:1/")),
        ("- [NO-VERIFY] Title", "Title", NONE),
        ("- [BLOCKED: no key] Title", "Title", Verification("blocked", "", "no key")),
        ("- [BLOCKED] Title", "Title", Verification("blocked")),
        ("- [Blocked by the API] Title", "Title", Verification("blocked", "", "by the API")),
        ("- [VERIFY: a] [BLOCKED: b] Title", "Title", Verification("blocked", "a", "b")),
        ("- [VERIFY: task-loop] Title", "Title", Verification("task-loop")),
        ("- [auth](docs/auth.md): Title", "[auth](docs/auth.md): Title", NONE),
        ("- *Title* of it", "*Title* of it", NONE),
        ("- **Title** of it", "**Title** of it", NONE),
    ],
)
def test_an_item_has_a_title_and_a_verification(line: str, title: str, verification: Verification) -> None:
    item = only(line)
    assert (item.title, item.verification) == (title, verification)
    assert item.raw == line + "\n"


@pytest.mark.parametrize(
    ("line", "priority", "ticked", "proposed"),
    [
        ("- Title", 1, False, False),
        ("- [PRIORITY: 3] Title", 3, False, False),
        ("- [VERIFY: a] [priority: 2] Title", 2, False, False),
        ("- [ ] Title", 1, False, False),
        ("1. [x] [PRIORITY: 2] Title", 2, True, False),
        ("- [X] Title", 1, True, False),
        ("- *proposed* [PRIORITY: 2] Title", 2, False, True),
        ("- [ ] **Proposed** Title", 1, False, True),
        ("- [PROPOSED] Title", 1, False, True),
        ("- Title _proposed_", 1, False, True),
    ],
)
def test_marks_are_not_part_of_the_title(line: str, priority: int, ticked: bool, proposed: bool) -> None:
    item = only(line)
    assert (item.title, item.priority, item.ticked, item.proposed) == ("Title", priority, ticked, proposed)


def test_indented_lines_are_metadata_or_details() -> None:
    item = only(
        "1. [VERIFY: task-loop] Title",
        "   - Timeout: 2m",
        "   - retry: 3",
        "   - **On-fail:** Create-Fix-Task",
        "   - Tasks: 1.4.1, 1.4.2",
        "   - Seal: tests/**, `*.{js,ts}`",
        "   - May: a.txt",
        "   - Seal: b.txt",
        "   - Note: a detail",
        "",
        "   More.",
        "     Deeper.",
    )
    assert item.metadata == Metadata(
        120.0, 3, "create-fix-task", ("1.4.1", "1.4.2"), ("tests/**", "*.{js,ts}", "b.txt"), ("a.txt",)
    )
    assert item.details == "- Note: a detail\n\nMore.\n  Deeper."


def test_code_in_an_item_is_a_detail() -> None:
    text = log(
        "1. a",
        "   ```",
        "   2. not an item",
        "   - Timeout: 5s",
        "   ```",
        "10. b",
        "    ~~~",
        "    - Retry: 1",
        "    ~~~",
    )
    first, second = queue.read(text).items
    assert (first.details, first.metadata) == ("```\n2. not an item\n- Timeout: 5s\n```", Metadata())
    assert (second.details, second.metadata) == ("~~~\n- Retry: 1\n~~~", Metadata())


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(("1. a", "2. b"), ["a", "b"], id="in their order"),
        pytest.param(("- a", "  - b", "- c"), ["a", "c"], id="only the outermost bullets"),
        pytest.param(("  - a", "  - b", "- c"), ["a", "b", "c"], id="wherever they begin"),
        pytest.param(("\t- a", "\t\t- b", "    - c"), ["a", "c"], id="a tab is four columns"),
        pytest.param(("- a", "goes on", "", "- b"), ["a", "b"], id="a broken line is part of its item"),
        pytest.param(("- a", "", "Text", "  - b"), ["a", "b"], id="text after an empty line ends an item"),
        pytest.param(("- a", "### More", "- b"), ["a", "b"], id="so does a heading below"),
        pytest.param(("- a", "---", "- b", "* * *"), ["a", "b"], id="so does a rule"),
        pytest.param(("<!--", "- a", "-->", "- b", "<!-- - c -->"), ["b"], id="comments have no items"),
        pytest.param(("- a", "", "```", "- b", "```", "- c"), ["a", "c"], id="code has none"),
        pytest.param(("1234567890. a", "-b", "1.c"), [], id="a bullet is short and has a space after it"),
        pytest.param(("- None", "- a"), ["a"], id="none is not an item"),
    ],
)
def test_items_are_the_outermost_bullets(lines: tuple[str, ...], expected: list[str]) -> None:
    assert titles(log(*lines)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# a\n",
        "## Next Steps",
        "## NEXT STEPS\n\n## b\n- c",
        *(log(word) for word in ("", "None", "nothing.", "-", "_None._", "- None", "N/A")),
    ],
)
def test_no_section_and_an_empty_one_are_an_empty_queue(text: str) -> None:
    found = queue.read(text)
    assert (found.items, found.warnings) == ((), ())
    assert (found.section is None) == ("next steps" not in text.lower())


def test_an_item_knows_where_it_is() -> None:
    text = "\ufeff## Next Steps\r\n1. a\r\n   b\r\n\r\n2. \0c\r"
    first, second = queue.read(text).items
    assert [text[one.start : one.end] for one in (first, second)] == [first.raw, second.raw]
    assert (first.raw, second.raw) == ("1. a\r\n   b\r\n", "2. \0c\r")
    assert (first.details, second.title) == ("b", "\0c")


SO = ", so the item is not verified"


@pytest.mark.parametrize(
    ("line", "title", "message"),
    [
        (
            "- [VERIFY: npm test Title",
            "[VERIFY: npm test Title",
            f"the tag `[VERIFY: npm test Title` is not closed{SO}",
        ),
        ("- [VERIFY] Title", "Title", f"`[VERIFY]` names no command{SO}"),
        ("- [VERIFY: ``] Title", "Title", f"`[VERIFY]` names no command{SO}"),
        (
            "- [VERIFY npm test] Title",
            "[VERIFY npm test] Title",
            f"`[VERIFY npm test]` needs a colon after the name of the tag{SO}",
        ),
        ("- [VERIFY: [PRIORITY: 2]] Title", "Title", f"a tag inside of the tag `[VERIFY: [PRIORITY: 2]]`{SO}"),
        (
            "- [VERIFY: grep ']' x] Title",
            "' x] Title",
            f"a quote in `[VERIFY: grep ']` is not closed; put the command in backticks{SO}",
        ),
        ("- [WIP] Title", "[WIP] Title", "`[WIP]` is not a known tag, so it is part of the title"),
        ("- [PRIORITY: 9] Title", "Title", "`9` is not a priority from 1 to 3"),
        ("- Title [VERIFY: a]", "Title [VERIFY: a]", "tags count only before the title"),
    ],
)
def test_a_tag_that_is_wrong_is_warned_of_and_not_believed(line: str, title: str, message: str) -> None:
    found = queue.read(log("- first", line))
    assert found.items[1].title == title
    assert found.items[1].verification == NONE
    assert found.warnings == (PlanWarning(message, 6),)


@pytest.mark.parametrize(
    ("line", "command", "message"),
    [
        ("- [VERIFY: a] [VERIFY: b] T", "a", "the item has two commands to verify it, and only the first one counts"),
        ("- [NO-VERIFY] [VERIFY: a] T", "a", "the item has both VERIFY and NO-VERIFY: it is verified"),
        ("- [WIP] [VERIFY: a] T", "a", "`[WIP]` is not a known tag, so it is part of the title"),
        ("- [PRIORITY: x] [VERIFY: a] T", "a", "`x` is not a priority from 1 to 3"),
    ],
)
def test_an_item_with_a_warning_can_still_be_verified(line: str, command: str, message: str) -> None:
    assert only(line).verification == Verification("command", command)
    assert warnings(line) == [(5, message)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Timeout: 120", "`120` is not a duration such as 120s, so the default counts"),
        ("Timeout: 0s", "`0s` is not a duration such as 120s, so the default counts"),
        ("Retry: -1", "`-1` is not a number of retries, so the default counts"),
        ("Retry: " + "9" * 9, "`999999999` is not a number of retries, so the default counts"),
        ("On-fail: stop", "`stop` is not one of retry, create-fix-task, skip, pause, so the default counts"),
    ],
)
def test_metadata_that_is_wrong_is_warned_of_and_not_used(line: str, message: str) -> None:
    assert only("- a", f"  - {line}").metadata == Metadata()
    assert warnings("- a", f"  - {line}") == [(6, message)]


@pytest.mark.parametrize("indent", ["  ", "      ", "\t"])
def test_a_comment_that_an_item_quotes_hides_no_other_item(indent: str) -> None:
    quotes = "\n".join(f"{indent}{line}" for line in ("```html", "<!-- never closed", "```"))
    assert titles(log("- a", quotes, "- b", "  <!-- nor this", "- c")) == ["a", "b", "c"]


def test_a_reason_that_opens_a_comment_leaves_its_item_blocked() -> None:
    item = only("- Draw a --> b")
    blocked = only(queue.marked(item.raw, "[BLOCKED: it printed <!-- x]"))
    assert (blocked.title, blocked.verification.kind) == ("Draw a --> b", "blocked")


def test_a_comment_in_an_item_sets_nothing_and_does_not_end_it() -> None:
    item = only("- a", "<!--", "  - Retry: 1", "-->", "  - Timeout: 5s", "  more")
    assert item.metadata == Metadata(timeout=5.0)
    assert "<!--\n  - Retry: 1\n-->" in item.details, "the agent sees it as it stands there"


def test_a_queue_in_a_comment_is_none() -> None:
    text = "<!--\n## Next Steps\n- a\n-->\n## Next Steps\n- b\n"
    assert titles(text) == ["b"]
    assert titles(queue.added(text, "- c")) == ["b", "c"]
    hidden = "# S\n<!-- never closed\n## Next Steps\n- a\n"
    assert [one.line for one in queue.read(hidden).warnings] == [2]
    assert titles(queue.added(hidden, "- c")) == ["c"], "the comment is closed first"


def test_what_hides_items_is_warned_of() -> None:
    assert warnings("- a", "", "```", "- b") == [(7, "this block of code is not closed, so what follows is part of it")]
    assert warnings("- a", "<!--", "- b") == [(6, "this comment is not closed, so what follows is part of it")]
    for indent in ("  ", "      "):
        assert warnings("- a", f"{indent}```", "- b") == [
            (6, "this block of code is not closed, so the rest of its item is part of it")
        ]
        assert titles(log("- a", f"{indent}```", "code", "- b", "## c")) == ["a", "b"]
    assert warnings("- a", "  <!--", "- b") == [
        (6, "this comment is not closed, so the rest of its item is part of it")
    ]
    assert warnings("- a", "- b", "- A") == [(7, "the item in line 5 has the same title, so this one is not taken")]
    assert warnings("Do it.") == [(5, "there is text under `Next Steps`, but no item begins with a number or `-`")]
    assert warnings("- a", "- [NO-VERIFY]") == [(6, "an item without a title is left out")]
    assert warnings("- [VERIFY: task-loop] a") == [
        (5, "`[VERIFY: task-loop]` names no tasks: add a line `- Tasks: 1.4.1`")
    ]
    assert warnings("- a", "  - Retry: 1", "  - Retry: 2") == [
        (7, "`retry` is given twice, and only the first one counts")
    ]


def test_items_are_ordered_by_priority_and_then_as_they_are() -> None:
    items = queue.read(log("- [PRIORITY: 3] a", "- b", "- [PRIORITY: 2] c", "- d")).items
    assert [item.title for item in queue.ordered(items)] == ["b", "d", "c", "a"]


def test_what_is_blocked_done_or_proposed_is_not_run() -> None:
    items = queue.read(log("- [BLOCKED: x] a", "- [x] b", "- *proposed* c", "- d", "- [VERIFY: e] f")).items
    assert [item.title for item in queue.runnable(items)] == ["d", "f"]


def test_two_items_with_the_same_words_are_the_same() -> None:
    assert (
        queue.key(only("- [VERIFY: a]  The  TITLE")) == queue.key(only("1. the\ttitle", "   - Retry: 1")) == "the title"
    )


def test_the_first_of_many_items_is_found() -> None:
    text = log(*(f"{n}. [VERIFY: t {n}] [PRIORITY: {n % 3 + 1}] Item {n}" for n in range(1, 10_001)))
    assert [item.title for item in queue.ordered(queue.read(text).items)[:2]] == ["Item 3", "Item 6"]
