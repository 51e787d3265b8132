"""Whatever the text and the output: reading a spec never raises, and an edit changes one task."""

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from raymond.loops.formats import foreign_text, task_edit, task_spec
from raymond.loops.formats.document import Document
from raymond.loops.formats.task_spec import Task

PIECES = [
    *("## 1.1.1. A\n", "### 1.1.2 B\r\n", "#### 1.1.1a: C\n", "# D\n", "##### E\n", "## 1.1.x F\n", "## 2.1.1 *proposed*"),
    *("\n", "\r\n", "\r", " ", "  ", "    ", "\t", "\xa0", "\ufeff", "\0", "\x01", "\x03", "text", "x\n", "\ud800", "\u2028"),
    *("**Status:** ✅ Complete\n", "**Status**: ⏸ (x)\n", "- **Status:**", "**Verified:** true\n", "__verified__:no\n"),
    *("**Verification:**\n", "**Verification:** `a`\n", "**Verification:** manual", "- command: b\n", "  - command: c\n"),
    *("- expected: 1\n", "- expected: output matches /(/\n", "- timeout: 5s\n", "- type: manual\n", "- criteria: d\n"),
    *("**Last Attempt:**\n", "**Last Attempt:** e\n", "- date: f\n", "- output:\n", "**Context:** g\n", "**Other:** h\n"),
    *("- i\n", "  - j\n", "    k\n", "---\n", "**Implements:** US-1", "**Proposed:** yes\n", "**", ":", "`", "(", ")"),
    *("<!--", "<!--\n", "-->", "-->\n", "<!-- l -->", "<!-- raymond m -->\n", "```\n", "  ```\n", "~~~\n", "````\n", "     ```\n"),
]  # fmt: skip
LOOSE = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
TEXTS = st.one_of(st.text(), LOOSE, LOOSE.map("## 1.1.1. A\n".__add__))
OUTPUTS = st.one_of(st.text(), LOOSE)


def meaning(task: Task) -> dict[str, object]:
    return {name: value for name, value in asdict(task).items() if name not in ("line", "start", "end")}


def unique(text: str) -> list[Task]:
    """The tasks that can be edited: not before indented code or comments that are never closed, which are malformed.

    They would become part of a list that is written before them, and end with it.
    """
    if any(text[at] in " \t" or text[max(0, at - 1)] in " \t" for at, _ in Document(text).unclosed):
        return []
    tasks = task_spec.read(text).tasks
    ids = [task.id for task in tasks]
    return [task for task in tasks if ids.count(task.id) == 1]


def others(text: str, *ids: str) -> list[dict[str, object]]:
    return [meaning(task) for task in task_spec.read(text).tasks if task.id not in ids]


def is_edit(text: str, after: str, task: Task) -> bool:
    """Whether everything outside of the section of a task is as it was."""
    tail = len(text) - task.end
    same = [meaning(one)["id"] for one in task_spec.read(text).tasks]
    is_kept = after[: task.start] == text[: task.start] and after[len(after) - tail :] == text[task.end :]
    is_same = [one.id for one in task_spec.read(after).tasks] == same and others(after, task.id) == others(
        text, task.id
    )
    return is_kept and is_same


def unchanged(task: Task, *names: str) -> dict[str, object]:
    return {name: value for name, value in meaning(task).items() if name not in ("body", *names)}


def now(text: str, id: str) -> Task:
    return next(task for task in task_spec.read(text).tasks if task.id == id)


@given(TEXTS)
def test_no_text_raises_and_tasks_are_where_they_say(text: str) -> None:
    spec = task_spec.read(text)
    at = 0
    for task in spec.tasks:
        assert at <= task.start < task.end <= len(text)
        assert task.line == text.count("\n", 0, task.start) + 1
        assert task.id in text[task.start : task.end].partition("\n")[0]
        assert task.body in text[task.start : task.end]
        assert not (task.problem and task.check)
        at = task.end
    assert all(1 <= warning.line <= text.count("\n") + 1 for warning in spec.warnings)


@given(TEXTS)
def test_comments_change_nothing_where_there_are_none(text: str) -> None:
    with_comments, without = Document(text), Document(text, comments=False)
    if not with_comments.comments:
        assert with_comments.counted == without.counted
        assert (with_comments.headings, with_comments.fences) == (without.headings, without.fences)


@given(TEXTS)
def test_a_task_can_be_read_on_its_own(text: str) -> None:
    for task in task_spec.read(text).tasks:
        (alone,) = task_spec.read(text[task.start : task.end]).tasks
        assert meaning(alone) == meaning(task)


@given(TEXTS, st.text(), OUTPUTS)
def test_a_pass_changes_one_task(text: str, date: str, command: str) -> None:
    for task in unique(text):
        after = task_edit.passed(text, task.id, date, command)
        assert is_edit(text, after, task)
        assert (now(after, task.id).status, now(after, task.id).verified) == ("complete", True)
        assert now(after, task.id).last_attempt == ""
        names = ("status", "reason", "verified", "last_attempt")
        assert unchanged(now(after, task.id), *names) == unchanged(task, *names)
        assert task_edit.passed(after, task.id, date, command) == after


@given(TEXTS, OUTPUTS, OUTPUTS, OUTPUTS)
@example("## 1.1.1. A\n**Status:** x <!-- a\nb -->\n", "", "", "")
def test_a_failure_changes_one_task_whatever_the_output(text: str, command: str, reason: str, output: str) -> None:
    for task in unique(text):
        after = task_edit.failed(text, task.id, "now", command, reason, output, 2)
        assert is_edit(text, after, task)
        found = now(after, task.id)
        assert (found.status, found.verified) == ("in progress", False)
        assert found.last_attempt.startswith("- date: now\n- result: FAILED (")
        names = ("status", "reason", "verified", "last_attempt")
        assert unchanged(found, *names) == unchanged(task, *names)
        assert task_edit.failed(after, task.id, "now", command, reason, output, 2) == after


@given(TEXTS, st.text())
def test_a_reason_to_block_is_read_as_it_was_given(text: str, reason: str) -> None:
    for task in unique(text):
        after = task_edit.blocked(text, task.id, reason)
        assert is_edit(text, after, task)
        assert now(after, task.id).status == "blocked"
        assert now(after, task.id).reason == foreign_text.inline(reason).strip()
        assert unchanged(now(after, task.id), "status", "reason") == unchanged(task, "status", "reason")


@given(TEXTS, OUTPUTS, OUTPUTS, OUTPUTS)
def test_a_fix_is_one_more_task_with_the_same_check(text: str, command: str, reason: str, output: str) -> None:
    for task in unique(text):
        after, id = task_edit.with_fix(text, task.id, command=command, output=output, reason=reason, mark="R/1")
        assert after[: task.end] == text[: task.end]
        assert after.endswith(text[task.end :])
        assert others(after, id, task.id) == others(text, task.id)
        fix = now(after, id)
        assert (fix.status, fix.verified, fix.last_attempt) == ("planned", False, "")
        assert fix.context.startswith(f"- original task: {task.id}")
        # A task whose check cannot be read is never worked on, so it needs no fix.
        if "<!--" not in task.body and not task.problem:
            assert (fix.check, fix.is_manual, fix.implements) == (task.check, task.is_manual, task.implements)
            assert not fix.problem
        again = task_edit.with_fix(after, task.id, command="x", output="y", reason="z", mark="R/1")
        assert again == (after, id)
