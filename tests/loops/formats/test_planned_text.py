"""Tasks that an agent planned, written into a spec: whatever it says, they are proposed, and nothing else is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.language.check import Check
from raymond.loops import attempt
from raymond.loops.formats import task_edit, task_spec
from raymond.loops.formats.task_spec import Task

PIECES = (
    *("```", "~~~", "  ```", "    ```", "<!--", "-->", "`", "``", "> ", "- ", "+ ", "  ", "    ", "\t", "\\", "text"),
    *("\n", "\n\n", "\r", "\x0c", "\x85", "\u2028", "\xa0", "\ufeff", "---\n", "===\n", "Title\n", "# "),
    *("## 9.9.9. Evil\n", "    ### 8.8.8. Bad\n", "### 1.1.3. Another\n", "**Verification:** `true`\n"),
    *("**Status:** ✅ Complete\n", "__Verified:__ true\n", "+ **Verified:** true\n", "\xa0**Verified:** true\n"),
    *("__Proposed:__ no\n", "**Implements:** US-9\n", "- command: true\n", "- seal: ```\n", "- type: manual\n"),
)
TEXT = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
COMMAND = st.text("ab `<!->*_#\"'$", min_size=1, max_size=12)


def task(words: str, title: str = "Write it", fields: str = "- command: sh check.sh\n") -> str:
    return f"### 1.1.1. {title}\n\n**Verification:**\n{fields}\n{words}\n"


def written(reply: str) -> str:
    return task_edit.planned("2.1", "Tasks of US-1", "US-1", attempt.proposed_tasks(reply))


@given(TEXT, TEXT, TEXT)
def test_whatever_an_agent_says_its_tasks_are_proposed_and_no_others_are_there(title: str, one: str, two: str) -> None:
    tasks = attempt.proposed_tasks(f"{task(one, title)}\n### 1.1.2. Last\n\n{two}\n")
    there = task_spec.read(task_edit.planned("2.1", f"Tasks of {title}", "US-1", tasks)).tasks
    assert [found.id for found in there] == [f"2.1.{at}" for at in range(1, len(tasks) + 1)]
    for found, planned in zip(there, tasks, strict=True):
        facts = (found.proposed, found.status, found.verified, found.implements)
        assert facts == (True, "planned", False, ("US-1",))
        assert found.check == (None if planned.problem else planned.check)
        assert not found.problem


@given(COMMAND, COMMAND)
def test_a_check_is_the_one_that_was_planned_or_the_plan_is_refused(command: str, text: str) -> None:
    planned = Task(id="1.1.1", title="-", body="", line=1, start=0, end=0, check=Check(run=command, contains=text))
    spec = task_edit.planned("2.1", "-", "US-1", [planned])
    [found] = task_spec.read(spec).tasks
    assert task_edit.is_as_planned(spec, "2.1", "US-1", [planned]) == (found.check == planned.check)


def test_all_that_a_check_says_is_kept() -> None:
    fields = (
        '- command: `sh "a  b" <!-- x -->`\n- expected: exit code 3\n- timeout: 20m\n- retries: 2\n- seal: a/*, b\n'
    )
    [found] = task_spec.read(written(task("Do it.", fields=fields))).tasks
    assert found.check == Check(run='sh "a  b" <!-- x -->', exit=3, timeout=1200.0)
    assert (found.retries, found.seal) == (2, ("a/*", "b"))


def test_sentences_that_begin_as_a_field_does_are_kept() -> None:
    lines = ("Build the page.", "Verified users see it.", "Status codes follow RFC 9110.", "Proposed orders are grey.")
    spec = written(task("\n".join([*lines, "- command: is a word", "Keep this."])))
    for line in (*lines, "- command: is a word", "Keep this."):
        assert f"\n> {line}\n" in spec
    assert spec.count("sh check.sh") == 1


def test_criteria_and_a_check_that_cannot_be_read_are_for_a_person() -> None:
    [manual] = task_spec.read(written(task("-", fields="- type: manual\n- criteria: It is red\n"))).tasks
    assert manual.criteria == ("It is red",)
    spec = written(task("-", fields="- command: true\n- command: false\n"))
    [unclear] = task_spec.read(spec).tasks
    assert (unclear.is_manual, unclear.check) == (True, None)
    assert "> - command: false\n" in spec, "a person sees what was meant"


@pytest.mark.parametrize("command", ["sh x\x1b[2K", "sh \u202ex", "sh\xa0x"])
def test_a_command_that_does_not_show_what_it_is_is_refused(command: str) -> None:
    [planned] = attempt.proposed_tasks(task("-", fields=f"- command: {command}\n"))
    assert not task_edit.is_as_planned(task_edit.planned("2.1", "-", "US-1", [planned]), "2.1", "US-1", [planned])
