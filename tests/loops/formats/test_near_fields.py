"""Fields whose names are misspelled: whoever wrote them is told, and no check is lost in silence."""

import pytest

from raymond.loops.formats import misspelt, prd, task_spec
from raymond.loops.formats.prd import Story
from raymond.loops.formats.task_spec import Task

LOST = "its check cannot be read: "


def task(text: str) -> tuple[Task, list[tuple[int, str]]]:
    found = task_spec.read(f"## 1.1.1 A\n{text}\n")
    (only,) = found.tasks
    return only, [(one.line, one.message) for one in found.warnings]


def story(text: str) -> tuple[Story, list[tuple[int, str]]]:
    found = prd.read(f"## User Stories\n### US-1: A\n**Acceptance Criteria:**\n- a\n{text}\n")
    (only,) = found.stories
    return only, [(one.line, one.message) for one in found.warnings]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("**Verfication:** `a`", "Verfication"),
        ("**verifcation**: `a`", "Verifcation"),
        ("__Verifications:__ `a`", "Verifications"),
        ("- **Verificaton:** `a`", "Verificaton"),
        ("**Verificatoin:**\n- command: a", "Verificatoin"),
        ("Verfication: `a`", "Verfication"),
    ],
)
def test_a_task_with_a_misspelled_verification_has_a_check_that_cannot_be_read(line: str, name: str) -> None:
    found, warnings = task(line)
    message = f"{LOST}`{name}` is not read: did you mean `Verification`?"
    assert (found.check, found.problem, warnings) == (None, message, [(2, message)])


@pytest.mark.parametrize("line", ["Verification: `a`", "- Verification: `a`", "**Verification**", "*Verification*: a"])
def test_a_task_with_a_verification_that_is_no_field_has_a_check_that_cannot_be_read(line: str) -> None:
    found, warnings = task(line)
    message = f"{LOST}`Verification` is not read: write `**Verification:**`"
    assert (found.check, found.problem, warnings) == (None, message, [(2, message)])


def test_half_of_two_checks_is_not_a_check() -> None:
    for text in ("**Verification:** `a`\n\n**Verfication:** `b`", "**Verfication:** `b`\n\n**Verification:** `a`"):
        found, _ = task(text)
        assert (found.check, found.problem) == (
            None,
            f"{LOST}`Verfication` is not read: did you mean `Verification`?",
        )


@pytest.mark.parametrize(
    "text",
    [
        "> Verification: `a`",
        "```\nVerification: a\n```",
        "The Verification: later",
        "**Verification notes:** a",
        "**Owner:** a",
    ],
)
def test_words_that_only_look_alike_are_left_alone(text: str) -> None:
    assert task(text)[1] == []
    assert task(text)[0].problem == ""
    assert story(text)[1] == []
    assert story(text)[0].problem == ""


def test_a_plain_line_beside_a_verification_is_text() -> None:
    found, warnings = task("**Verification:** `a`\n\nVerification: it also has to be fast.")
    assert (found.problem, warnings) == ("", [])
    assert found.check


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("**Statuss:** ✅ Complete", "`Statuss` is not read: did you mean `Status`?"),
        ("**Implemets:** US-1", "`Implemets` is not read: did you mean `Implements`?"),
        ("**Last-attempt:** a", "`Last-attempt` is not read: did you mean `Last attempt`?"),
    ],
)
def test_another_misspelled_field_of_a_task_is_told(line: str, said: str) -> None:
    found, warnings = task(line)
    assert (found.status, found.problem, warnings) == ("planned", "", [(2, said)])


def test_a_sentence_is_not_a_command() -> None:
    found, _ = task("**Verification:** make sure that it works")
    assert found.check is None
    assert found.problem == f"{LOST}`make sure that it works` is not a command in backticks or `manual`"


@pytest.mark.parametrize(
    "line",
    [
        "**Verfication:** `a`",
        "- **Verfication:** `a`",
        "#### Verfication\n`a`",
        "**Verfication**: manual",
        "Verfication: `a`",
    ],
)
def test_a_story_with_a_misspelled_verification_cannot_be_verified(line: str) -> None:
    found, warnings = story(line)
    message = "`Verfication` is not read: did you mean `Verification`?"
    assert (found.given, found.problem) == (None, message)
    assert warnings == [(5, f"US-1 cannot be verified: {message}")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("**Prioritty:** 2", "`Prioritty` is not read: did you mean `Priority`?"),
        ("**Implemented-by:** 1.1.1", "`Implemented-by` is not read: did you mean `Implemented by`?"),
        ("**Depend on:** US-2", "`Depend on` is not read: did you mean `Depends on`?"),
    ],
)
def test_another_misspelled_field_of_a_story_is_told(line: str, said: str) -> None:
    found, warnings = story(line)
    assert (found.problem, found.criteria, warnings) == ("", ("a",), [(5, said)])


def test_what_a_task_may_change_is_read() -> None:
    found, warnings = task("**Verification:**\n- command: sh a.sh --version\n- may: a.sh, `lib/*.sh`\n- seal: b")
    assert (found.may, found.seal, found.problem, warnings) == (("a.sh", "lib/*.sh"), ("b",), "", [])


def test_each_name_is_compared_once() -> None:
    misspelt.field_meant.cache_clear()
    text = "".join(f"## 1.1.{at} A\n**Owner:** x\n" for at in range(1, 50))
    task_spec.read(text)
    assert misspelt.field_meant.cache_info().misses == 1
