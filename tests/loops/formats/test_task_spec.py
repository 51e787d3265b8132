"""Reading implementation specs: tasks, their fields, and what is odd about them."""

import pytest

from raymond.language.check import EXPECTED, Check
from raymond.loops.formats import task_spec
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.task_spec import Task

ONE = "a task has one command: join them with `&&`, or put them into a script"
SPEC = """# 1.4 Parser

**Status:** 🟡 In Progress

## 1.4.1. Read the header

**Status:** ✅ Complete
**Verified:** true (2026-01-17, npm test -- header)
**Verification:**
- command: `npm test -- header`
- expected: 0
- timeout: 120s
- retries: 2
- seal: tests/header/*, *.{snap,json}

**Implements:** US-1, US-2

The first line has a name and a version.

### Notes

Not a task, but part of the one above.

## 1.4.2. Report where it went wrong

**Status**: 🟡 In Progress
**Verified**: false
**Verification**:
  - command: npm run lint
  - expected: output contains "0 errors"

**Last Attempt:**
- date: 2026-01-17 10:00
- result: FAILED (exit code 1)

**Context:** Users do not find the line.
It is somewhere in the file.

```markdown
## 9.9.9. Not a task
**Status:** ✅ Complete
```

## 1.4.3: Show it in the editor

**Status:** ⏸️ Blocked (waiting for the design)
**Verification:**
- type: manual
- criteria: the line is red
- criteria:
  - a click goes there
  - the message is
    in one line
"""


def one(fields: str) -> Task:
    (task,) = task_spec.read(f"## 1.1.1. A\n\n{fields}\n").tasks
    return task


def warnings(text: str) -> list[tuple[int, str]]:
    return [(warning.line, warning.message) for warning in task_spec.read(text).warnings]


def test_a_spec_is_read_as_it_is_written() -> None:
    spec = task_spec.read(SPEC)
    first, second, third = spec.tasks
    assert spec.warnings == ()
    assert (first.id, first.title, first.status, first.verified, first.line) == (
        *("1.4.1", "Read the header", "complete", True, 5),
    )
    assert first.check == Check(run="npm test -- header", timeout=120.0)
    assert (first.retries, first.seal) == (2, ("tests/header/*", "*.{snap,json}"))
    assert first.implements == ("US-1", "US-2")
    assert first.body.startswith("**Status:** ✅")
    assert first.body.endswith("part of the one above.")
    assert (second.status, second.verified) == ("in progress", False)
    assert second.check == Check(run="npm run lint", contains="0 errors")
    assert second.last_attempt == "- date: 2026-01-17 10:00\n- result: FAILED (exit code 1)"
    assert second.context == "Users do not find the line.\nIt is somewhere in the file."
    assert "9.9.9" in second.body
    assert (third.title, third.status, third.reason) == ("Show it in the editor", "blocked", "waiting for the design")
    assert (third.is_manual, third.check, third.problem) == (True, None, "")
    assert third.criteria == ("the line is red", "a click goes there", "the message is in one line")
    assert [SPEC[task.start :].split("\n")[0][:8] for task in spec.tasks] == ["## 1.4.1", "## 1.4.2", "## 1.4.3"]
    assert SPEC[first.start : first.end].endswith("above.\n\n")
    assert third.end == len(SPEC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("## 1.1.1. A", [("1.1.1", "A")], id="a dot may follow the id"),
        pytest.param("### 1.1.1 A\n#### 1.1.2: B", [("1.1.1", "A"), ("1.1.2", "B")], id="or nothing, or a colon"),
        pytest.param(
            "## 1.4.1a. A\n## 1.4.1zb B", [("1.4.1a", "A"), ("1.4.1zb", "B")], id="a letter may be at its end"
        ),
        pytest.param("## 1.4.1.2. A", [("1.4.1.2", "A")], id="there may be more parts"),
        pytest.param("## 1.4. A\n## 1 B\n## A 1.2.3", [], id="there are at least three, before the title"),
        pytest.param("## **1.1.1. A**", [("1.1.1", "A")], id="it may be bold"),
        pytest.param("\ufeff## 1.1.1. A\r\n\r\n", [("1.1.1", "A")], id="after a byte order mark, with CRLF"),
        pytest.param("## 1.1.1.\xa0A\xa0B", [("1.1.1", "A B")], id="with blanks of another kind"),
        pytest.param("~~~\n## 1.1.1. A\n~~~\n", [], id="not in code"),
        pytest.param("<!--\n## 1.1.1. A\n-->\n## 1.1.2. B", [("1.1.2", "B")], id="not in a comment"),
        pytest.param("<!--\n```\n-->\n## 1.1.1. A", [("1.1.1", "A")], id="code does not begin in a comment"),
        pytest.param("```\n<!--\n```\n## 1.1.1. A", [("1.1.1", "A")], id="and a comment not in code"),
        pytest.param("a `<!--` b\n## 1.1.1. A", [("1.1.1", "A")], id="nor in inline code"),
        pytest.param("a <!-- b\n\n## 1.1.1. A\n-->", [("1.1.1", "A")], id="one in a paragraph ends with it"),
        pytest.param("## 1.1.1. A <!-- b -->", [("1.1.1", "A")], id="a comment is not part of the title"),
    ],
)
def test_tasks_are_headings_with_an_id(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(task.id, task.title) for task in task_spec.read(text).tasks] == expected


def test_a_task_ends_at_a_heading_of_its_level_or_at_the_next_task() -> None:
    text = "## 1.1.1 A\na\n#### 1.1.2 B\nb\n##### C\nc\n### D\nd\n## 1.1.3 E\ne\n# F\n"
    tasks = task_spec.read(text).tasks
    assert [text[task.start : task.end] for task in tasks] == [
        "## 1.1.1 A\na\n",
        "#### 1.1.2 B\nb\n##### C\nc\n",
        "## 1.1.3 E\ne\n",
    ]
    assert [task.line for task in tasks] == [1, 3, 9]


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [
        ("🔵 Planned", "planned", ""),
        ("🟡", "in progress", ""),
        ("in-progress", "in progress", ""),
        ("✅\ufe0f complete", "complete", ""),
        ("Completed 2026-01-17", "complete", ""),
        ("⏸ Blocked", "blocked", ""),
        ("⏸️ waiting for X", "blocked", "waiting for X"),
        ("BLOCKED: no (real) password", "blocked", "no (real) password"),
        ("⏸️ Blocked (a) and (b)", "blocked", "a) and (b"),
        ("**Complete**", "complete", ""),
        ("✅ Complete <!-- at last -->", "complete", ""),
        ("\xa0✅\t", "complete", ""),
    ],
)
def test_a_status_is_a_sign_or_a_word_or_both(value: str, status: str, reason: str) -> None:
    task = one(f"**Status:** {value}")
    assert (task.status, task.reason) == (status, reason)
    assert warnings(f"## 1.1.1 A\n**Status:** {value}") == []


@pytest.mark.parametrize("value", ["", "Not complete", "✅ Planned", "Completely", "🟢 Done"])
def test_an_unknown_status_counts_as_planned_and_is_told(value: str) -> None:
    assert one(f"**Status:** {value}").status == "planned"
    assert [line for line, _ in warnings(f"## 1.1.1 A\n**Status:** {value}")] == [2]


@pytest.mark.parametrize(
    "field",
    ["**Status:** ✅", "**Status**: ✅", "__status:__ ✅", "- **STATUS:** ✅", "  ** Status :** ✅", "**Status:**✅"],
)
def test_the_name_of_a_field_is_bold(field: str) -> None:
    assert one(field).status == "complete"


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n**Status:** ✅\n```",
        "<!-- **Status:** ✅ -->",
        "<!--\n**Status:** ✅\n-->",
        "text <!-- more\n**Status:** ✅\n-->",
        "    **Status:** ✅",
        "\t**Status:** ✅",
        "Status: ✅",
        "~~~\n**Status:** ✅",
        "<!--\n**Status:** ✅",
    ],
)
def test_what_is_code_or_comment_is_no_field(hidden: str) -> None:
    assert one(hidden).status == "planned"


@pytest.mark.parametrize(
    ("value", "verified"), [("true (2026-01-17, x)", True), ("yes", True), ("false", False), ("maybe", False)]
)
def test_verified_is_true_or_false(value: str, verified: bool) -> None:
    assert one(f"**Verified:** {value}").verified is verified


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("**Verification:** `npm test`", Check(run="npm test")),
        ("**Verification:**\n```sh\nnpm test\n```", Check(run="npm test")),
        ("**Verification:**\n\n```sh\nnpm test\n```\n\n```\nnot this\n```", Check(run="npm test")),
        ("### Verification\n\n`npm test`\n", Check(run="npm test")),
        ("### Verification: `npm test`\n\nText.\n", Check(run="npm test")),
        ("**Verification:**\n- command: a\n  expected: 1", Check(run="a", exit=1)),
        (
            "**Verification:** `npm test`\n- expected: exit code 3\n\n- timeout: 2m",
            Check(run="npm test", exit=3, timeout=120),
        ),
        ("**Verification:**\n\n- Command: ``echo `date` ``", Check(run="echo `date`")),
        ("**Verification:**\n- **command:** a\n- expected: `Output matches /^a$/`", Check(run="a", matches="^a$")),
        ("**Verification:**\n* command: a | b # c\n* expected: 255", Check(run="a | b # c", exit=255)),
        ("**Verification:** `a <!-- b -->`", Check(run="a <!-- b -->")),
        ("**Verification:**\n- command: a\n\n**Other:** x\n- command: b", Check(run="a")),
        ("**Verification:**\n- command: a <!-- b -->\n", Check(run="a")),
        ("**Verification:**\r\n- command: a\r\n- expected: 1\r\n", Check(run="a", exit=1)),
        ("**Verification:**\n- command: a\n\nText.\n- expected: 1", Check(run="a")),
    ],
)
def test_a_verification_is_a_command_and_what_is_expected(field: str, check: Check) -> None:
    task = one(field)
    assert (task.check, task.problem, task.is_manual) == (check, "", False)


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("**Verification:**", "it names no command: add a line `- command: ...` or `- type: manual`"),
        ("**Verification:**\n- comand: x", "it names no command: add a line `- command: ...` or `- type: manual`"),
        ("**Verification:**\n- command: ", "it names no command: add a line `- command: ...` or `- type: manual`"),
        ("**Verification:** run `a`", '"run `a`" is not a command in backticks or `manual`'),
        ("**Verification:** `a`\n- command: b", ONE),
        ("**Verification:**\n- command: a\n- expected: 0\n- expected: 1", "`expected` is given twice"),
        ("**Verification:** `a`\n\n**Verification:** `b`", "`Verification` is given twice"),
        ("**Verification:** `a`\n- expected: 256", f"`expected` is an exit code of 0 to 255 ({EXPECTED})"),
        (
            "**Verification:** `a`\n- expected: green",
            f"`expected` must be an exit code or say what the output contains or matches ({EXPECTED})",
        ),
        ("**Verification:** `a`\n- expected:", "its `expected` is empty"),
        ("**Verification:** manual\n- command: a", "it is manual, and has a command"),
        ("**Verification:** `a`\n- manual: b", "it is manual, and has a command"),
        ("**Verification:** `a` and `b`", ONE),
        (
            "**Verification:**\n```\na\nb\n```",
            "a block of code holds one command: join them with `&&`, or put them into a script",
        ),
        ("### Verfication\n`a`", "`Verfication` is not read: did you mean `Verification`?"),
        ("**Verification:** `a`\n- type: smoke", "`type: smoke` is not one of command, manual, none"),
        ("**Verification:**\n```\ntrue\n```\n```\nsh check.sh\n```", ONE),
        ("**Verification:** `true`\n```\nsh check.sh\n```", ONE),
        ("**Verification:** `true`\nand `sh check.sh`", f'"and `sh check.sh`" is not read: {ONE}'),
        ("**Verification:**\n- command: `true`\n  && `sh check.sh`", f'"&& `sh check.sh`" is not read: {ONE}'),
        ("**Verification:** tasks", "`tasks` is for stories: a task has a command, or is `manual`"),
        ("**Verification:** none\n- command: a", "it says both that there is none and a command"),
        ("**Verification:** none\n- expected: 0", "it says that there is none, and has more to say"),
        (
            "**Verification:**\n- command: a &&\n  b",
            "its `command` continues in the next line: write it in one line",
        ),
        (
            "**Verification:**\n- command: a <!-- b --> c",
            "there is a comment in its `command`: put the command in backticks",
        ),
    ],
)
def test_a_check_that_cannot_be_read_is_a_problem_and_not_no_check(field: str, problem: str) -> None:
    task = one(field)
    assert task.check is None
    assert task.problem == f"its check cannot be read: {problem}"
    assert task.problem in [message for _, message in warnings(f"## 1.1.1 A\n{field}")]


def test_no_verification_is_not_a_problem() -> None:
    for field in ("", "**Verification:** none", "**Verification:** n/a"):
        assert (one(field).check, one(field).problem, one(field).is_manual) == (None, "", False)


def test_criteria_for_a_person_can_be_written_in_several_ways() -> None:
    assert one("**Verification:** manual (look at it)\n- [ ] a\n- b: c").criteria == ("look at it", "a", "b: c")
    assert one("**Verification:**\n- type: Manual\n- criteria: a\n  b").criteria == ("a b",)
    for field in ("**Verification:** manual: a", "**Verification:**\n- manual: a"):
        assert (one(field).is_manual, one(field).criteria, one(field).problem) == (True, ("a",), "")


def test_an_agent_may_have_proposed_it() -> None:
    assert one("**Proposed:** yes").proposed
    assert one("**Proposed:** perhaps").proposed
    assert not one("**Proposed:** no").proposed
    assert not one("").proposed
    (task,) = task_spec.read("## *proposed* 1.1.1. A\n").tasks
    assert (task.title, task.proposed) == ("A", True)
    (task,) = task_spec.read("## 1.1.1. A _Proposed_\n**Proposed:** no").tasks
    assert (task.title, task.proposed) == ("A", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## 1.1.1 A\n## 1.1.1 B", [(2, "the task 1.1.1 is also in line 1: an id is for one task")]),
        (
            "## 1.1.x A\n\n## 1.1.1-b C",
            [
                (1, "`1.1.x` is not the id of a task, such as 1.4.1 or 1.4.1a, so no task begins here"),
                (3, "`1.1.1-b` is not the id of a task, such as 1.4.1 or 1.4.1a, so no task begins here"),
            ],
        ),
        ("##### 1.1.1 A", [(1, "the heading of a task has two to four `#`, so `1.1.1` is not one")]),
        ("## 1.1.1", [(1, "the task 1.1.1 has no title")]),
        ("## 1.1.1 A\n```\nb", [(2, "this block of code is not closed, so what follows is part of it")]),
        ("## 1.1.1 A\n\n<!-- b", [(3, "this comment is not closed, so what follows is part of it")]),
        (
            "## 1.1.1 A\n**Status:** ✅\n**Status:** 🔵",
            [(3, "`Status` is given twice, and only the first one counts")],
        ),
        (
            "## 1.1.1 A\n**Verification:** `a`\n- timeout: 5 minutes\n- retries: many\n- note: b",
            [
                (3, "`5 minutes` is not a duration such as 120s, so the default counts"),
                (4, "`many` is not a number of retries, so the default counts"),
                (
                    5,
                    "`note: b` is not read: a verification has command, expected, timeout, retries, type, criteria, seal, may",
                ),
            ],
        ),
    ],
)
def test_what_is_odd_is_told_with_its_line(text: str, expected: list[tuple[int, str]]) -> None:
    assert warnings(text) == expected


def test_ids_are_sorted_as_a_person_counts() -> None:
    ids = ["1.4.1", "1.4.1a", "1.4.1b", "1.4.1z", "1.4.1za", "1.4.1.2", "1.4.2", "1.4.10", "2.1.1", "x"]
    keys = [task_spec.order(id) for id in ids]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(ids)
    assert (task_spec.area("1.4.10a"), task_spec.group("1.4.10a")) == ("1", "1.4")


def test_a_task_that_implements_more_than_ids_has_a_problem() -> None:
    text = "### 1.1.1. a\n**Implements:** US-1 to US-3\n**Verification:** `true`\n"
    (task,) = task_spec.read(text).tasks
    assert task.implements == ("US-1", "US-3")
    assert task.problem == "`to` in `Implements` is not read: name each story, as in `US-1, US-2`"
    assert task.check is None
    assert PlanWarning(task.problem, 2) in task_spec.read(text).warnings


def test_a_task_may_list_what_it_implements_and_may_implement_something_else() -> None:
    (task,) = task_spec.read("### 1.1.1. a\n**Implements:**\n- US-1\n- [US-2](../prd.md)\n\nText.\n").tasks
    assert (task.implements, task.problem) == (("US-1", "US-2"), "")
    (task,) = task_spec.read("### 1.1.1. a\n**Implements:** US-1,\nUS-2\nand US-3\nText.\n").tasks
    assert (task.implements, task.problem) == (("US-1", "US-2", "US-3"), "")
    (task,) = task_spec.read("### 1.1.1. a\n- **Implements:** US-1\n- **Owner:** Bob\n").tasks
    assert (task.implements, task.problem) == (("US-1",), "")
    text = "### 1.1.1. a\n**Implements:** the RFC\n**Verification:** `true`\n"
    (task,) = task_spec.read(text).tasks
    assert (task.implements, task.problem, bool(task.check)) == ((), "", True)
    assert [one.line for one in task_spec.read(text).warnings] == [2]
