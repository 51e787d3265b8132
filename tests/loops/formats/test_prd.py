"""Stories of a PRD."""

import pytest

from raymond.language.check import Check
from raymond.loops.formats import prd
from raymond.loops.formats.prd import Story, StoryCheck
from raymond.loops.formats.queue_item import PlanWarning

WHOLE = """# Shop

### US-7: Not a story, it is somewhere else

## User Stories

### US-1: Log in

**As a** customer
**I want** to log in
**So that** I see my orders.

**Acceptance Criteria:**
- [x] a wrong password is refused
- [ ] the session lasts
  for a day
* no bullet is lost

**Verification:** `npm test -- login`
**Implemented by:** 1.4.1, `1.4.2`, [1.5](implementation/9-x/9.9-y.md), 2
**Priority:** 2
**Depends on:** US-2, ACCOUNT-12

### US-2: Sign up

## Notes

text
"""
NO_COMMAND = "it names no command: add a line `- command: ...` or `- type: manual`"
NESTED = """**Verification:**
- type: composite
- checks:
  - type: command
    command: a
    expected: 1
  - type: manual
    criteria:
      - x
      - y
  - tasks

Not part of it.
"""


def one(body: str) -> Story:
    """The only story of a text with this under its heading."""
    found = prd.read(f"## User Stories\n\n### US-1: Title\n\n{body}")
    assert len(found.stories) == 1
    return found.stories[0]


def warnings(text: str) -> list[tuple[int, str]]:
    return [(warning.line, warning.message) for warning in prd.read(text).warnings]


def command(run: str, **more: object) -> StoryCheck:
    return StoryCheck("command", (Check(run=run, **more),))  # type: ignore[arg-type]


def test_a_story_has_all_its_fields_and_says_where_it_is() -> None:
    first, second = prd.read(WHOLE).stories
    assert (first.id, first.title, first.line, first.priority) == ("US-1", "Log in", 7, 2)
    assert (first.role, first.want, first.benefit) == ("customer", "to log in", "I see my orders")
    assert first.criteria == ("a wrong password is refused", "the session lasts for a day", "no bullet is lost")
    assert first.given == command("npm test -- login")
    assert first.implemented_by == ("1.4.1", "1.4.2", "1.5", "2")
    assert first.depends_on == ("US-2", "ACCOUNT-12")
    assert WHOLE[first.start : first.end].startswith("### US-1: Log in\n\n**As a**")
    assert WHOLE[first.end :].startswith("### US-2")
    assert first.body.startswith("**As a** customer")
    assert WHOLE[second.end :].startswith("## Notes")


def test_a_story_outside_of_the_section_does_not_count_and_is_named() -> None:
    assert warnings(WHOLE) == [
        (3, "US-7 is not under `User Stories`, so it does not count"),
        (24, "US-2 names no criteria, no verification and no tasks"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# P\n## US-1: Title\n#### US-2: Other\n",
        "# USER STORIES:\n### **US-1: Title**\n##### US-2 - Other\n",
        "\ufeff## user stories\r\n### US-1: Title\r\n\r\n### US-2: Other\r\n",
        "### User Stories\n### US-1: Title\n### US-2 – Other\n",
        "## User Stories\n### Login\n#### US-1: Title <!-- x -->\n### Orders\n#### US-2. Other\n",
    ],
)
def test_stories_are_found_whatever_their_level_and_section(text: str) -> None:
    assert [(story.id, story.title) for story in prd.read(text).stories] == [("US-1", "Title"), ("US-2", "Other")]


def test_what_is_in_code_and_comments_is_no_story() -> None:
    text = "## User Stories\n<!--\n### US-1: a\n```\n-->\n```\n### US-2: b\n<!--\n```\n### US-3: c\n**Priority:** 1\n"
    assert [story.id for story in prd.read(text).stories] == ["US-3"]
    assert prd.read("").stories == ()
    assert warnings("### US-1: a\n**Priority:** 1\n<!-- open\n### US-2: b\n")[-1] == (
        3,
        "this comment is not closed, so what follows is part of it",
    )
    assert (3, "this block of code is not closed, so what follows is part of it") in warnings("### US-1: a\nx\n```\n")


def test_a_comment_hides_a_field_and_moves_no_line() -> None:
    story = one("<!--\n**Verification:** `false`\n-->\n**Verification:** `true`\n")
    assert story.given == command("true")
    assert not story.problem
    assert "`false`" in story.body


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("### US-1: a\n**Priority:** 1\n", 1, "US-1 names no criteria, no verification and no tasks"),
        ("### US-1: a\n- x\n### US-1: b\n", 3, "there are two stories US-1, and only the first one counts"),
        ("## User Stories\n### US-1 a\n", 2, "`US-1 a` is not read as a story: write `### US-1: Title`"),
        ("### US-1:\n**Verification:** manual\n", 1, "US-1 has no title"),
        ("### US-1: a\n**Priority:** high\n", 2, "`high` is not a priority such as 1"),
        ("### US-1: a\n**Depends on:** US-1\n", 2, "US-1 depends on itself"),
        ("### US-1: a\n**Priority:** 1\n**Priority:** 2\n", 3, "this is given twice, and only the first one counts"),
        ("### US-1: a\n**Verification:** tests\n", 2, "US-1 cannot be verified: `tests` is not a command in backticks, `manual` or `tasks`"),
        ("### US-1: a\n**Verification:**\n- command: a\n- timeout: soon\n", 4, "`soon` is not a duration such as 120s, so the default counts"),
        ("### US-1: a\n**Verification:** `a`\n- retries: 2\n", 3, "`retries` is for tasks"),
    ],
)  # fmt: skip
def test_what_may_not_be_meant_is_named_with_its_line(text: str, line: int, message: str) -> None:
    assert PlanWarning(message, line) in prd.read(text).warnings


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("**Verification:** `a b`", command("a b")),
        ("**Verification**: `a`", command("a")),
        ("__verification:__ ``a `b` ``", command("a `b`")),
        ("Verification: `a`.", command("a")),
        ("- **Verification:** `a`", command("a")),
        ("#### Verification\n\n`a`\n", command("a")),
        ("**Verification:**\n```sh\nnpm test\n```\n", command("npm test")),
        ("**Verification:**\n- command: a `b`\n- expected: 3\n- timeout: 2m\n", command("a `b`", exit=3, timeout=120.0)),
        ("**Verification:**\n- type: command\n- command: `a`\n- expected: `output contains \"x\"`", command("a", contains="x")),
        ("**Verification:**\n- expected: output matches /^x$/\n- command: a\n", command("a", matches="^x$")),
        ("**Verification:** manual", StoryCheck("manual", criteria=("c",))),
        ("**Verification:** Manual.\n- looks good\n- feels good", StoryCheck("manual", criteria=("looks good", "feels good"))),
        ("**Verification:**\n- type: manual\n- criteria: looks good\n  and well", StoryCheck("manual", criteria=("looks good and well",))),
        ("**Verification:**\n- manual: looks good", StoryCheck("manual", criteria=("looks good",))),
        ("**Verification:** tasks", StoryCheck("tasks")),
        ("**Verification:**\n- type: tasks\n", StoryCheck("tasks")),
        ("**Verification:** `a`, `b` and `c`", StoryCheck("composite", parts=(command("a"), command("b"), command("c")))),
        ("**Verification:**\n- `a`\n- `b`\n", StoryCheck("composite", parts=(command("a"), command("b")))),
        (
            NESTED,
            StoryCheck("composite", parts=(command("a", exit=1), StoryCheck("manual", criteria=("x", "y")), StoryCheck("tasks"))),
        ),
        ("**Verification:**\n- command: a\n- command: b\n- criteria: x\n", StoryCheck("composite", parts=(command("a"), command("b"), StoryCheck("manual", criteria=("x",))))),
    ],
)  # fmt: skip
def test_a_verification_is_read_as_people_write_it(body: str, expected: StoryCheck) -> None:
    story = one(f"**Acceptance Criteria:**\n- [ ] c\n\n{body}")
    assert (story.given, story.problem) == (expected, "")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("**Verification:**", NO_COMMAND),
        ("**Verification:** npm test", "`npm test` is not a command in backticks, `manual` or `tasks`"),
        ("Verification: run `npm test`", '"run `npm test`" is not a command in backticks, `manual` or `tasks`'),
        ("**Verification:** `a`, manual", '"`a`, manual" is not a command in backticks, `manual` or `tasks`: several are a list, such as `- command: npm test`, then `- manual`'),
        ("**Verification:** `a` or `b`", '"`a` or `b`" has more than commands in it: list them as `- command:` lines'),
        ("**Verification:**\n- expected: 0\n", NO_COMMAND),
        ("**Verification:**\n- command:\n", NO_COMMAND),
        ("**Verification:**\n- type: magic\n", "`type: magic` is not one of command, manual, tasks, composite"),
        ("**Verification:**\n- type: manual\n- expected: 0\n", "it is manual, and has a command"),
        ("**Verification:** `a`\n- expected: 0\n- expected: 1\n", "`expected` is given twice"),
        ("**Verification:**\n- command: a\n- and this\n", "`and this` is not a command in backticks, `manual` or `tasks`"),
        ("**Verification:**\n```\na\nb\n```\n", "a block of code holds one command: list several as `- command:` lines"),
        ("**Verification:** `a`\n\n**Verification:** `b`\n", "it has two verifications"),
    ],
)  # fmt: skip
def test_a_malformed_verification_is_a_problem_and_never_none(body: str, problem: str) -> None:
    story = one(f"**Implemented by:** 1.1.1\n{body}")
    assert (story.given, story.problem) == (None, problem)
    assert story.check(has_tasks=True) == StoryCheck("manual", criteria=(f"it cannot be verified: {problem}",))


def test_an_expectation_that_cannot_be_read_is_a_problem() -> None:
    assert one("**Verification:** `a`\n- expected: maybe\n").problem.startswith("`expected` must be an exit code")


def test_a_story_without_verification_is_verified_by_its_tasks_or_by_a_person() -> None:
    bare = one("**Acceptance Criteria:**\n- c\n")
    assert bare.given is None
    assert bare.check() == StoryCheck("manual", criteria=("c",))
    assert bare.check(has_tasks=True) == StoryCheck("tasks")
    assert one("**Implemented by:** 1.1\n").check() == StoryCheck("tasks")
    assert one("**Verification:** `a`\n").check(has_tasks=True) == command("a")


@pytest.mark.parametrize(
    ("body", "wish"),
    [
        ("As a user, I want x, so that y.", ("user", "x", "y")),
        ("*As an* admin\n*I want* to\n  wait", ("admin", "to wait", "")),
        ("> As a user I want x", ("user", "x", "")),
        ("Nothing of it.", ("", "", "")),
    ],
)
def test_who_wants_what_is_read_from_one_line_or_three(body: str, wish: tuple[str, str, str]) -> None:
    story = one(body)
    assert (story.role, story.want, story.benefit) == wish


@pytest.mark.parametrize(
    ("body", "criteria"),
    [
        ("**Acceptance Criteria:**\n\n- a\n\n- b\n\nProse.\n\n- not this\n", ("a", "b")),
        ("**Acceptance Criteria:** a\n- b\n\n- not this\n", ("a", "b")),
        ("**Acceptance Criteria:**\n1) a\n   b\n\n   c\n", ("a b c",)),
        ("**Acceptance Criteria:**\na\nb\n", ("a b",)),
        ("**Acceptance Criteria:**\n- a\n```\n- b\n```\n", ("a",)),
    ],
)
def test_criteria_end_with_their_list(body: str, criteria: tuple[str, ...]) -> None:
    assert one(body).criteria == criteria


@pytest.mark.parametrize(
    ("body", "tasks"),
    [
        ("**Implemented by:** 1.1.1,\n1.1.2\nSince 2.0.\n", ("1.1.1", "1.1.2")),
        ("- **Implemented by:** 1.1.1\n- **Owner:** Bob\n- __Days__: 3\n", ("1.1.1",)),
        ("**Implemented by:** 1.1.1\nTo do.\n", ("1.1.1",)),
        ("**Implemented by:** 1.1.1 and\n1.1.2\nSince 2.0.\n", ("1.1.1", "1.1.2")),
        ("**Implemented by:** 1.1.1\nand 1.1.2\n`1.1.3`\n\n1.1.4 came later.\n", ("1.1.1", "1.1.2", "1.1.3")),
        ("**Implemented by:**\n- 1.1.1\n- `1.1.2b`\n\nSince 2.0.\n", ("1.1.1", "1.1.2b")),
        ("**Implemented by:** 1.1\n\n- 2.0 is out\n", ("1.1",)),
        ("**Implemented by:** none\n", ()),
        ("**Implemented by:** 1.4.1.\n", ("1.4.1",)),
    ],
)
def test_tasks_are_those_of_the_field_only(body: str, tasks: tuple[str, ...]) -> None:
    assert (one(body).implemented_by, one(body).problem) == (tasks, "")


@pytest.mark.parametrize(
    ("field", "rest", "way_out"),
    [
        ("Implemented by:** 1.1.1-1.1.3", "-", "name each task, or their group, as in `1.4.1, 1.4.2`"),
        ("Implemented by:** 1.1.1 to 1.1.3", "to", "name each task, or their group, as in `1.4.1, 1.4.2`"),
        ("Implemented by:**\n- 1.1.1\n- the rest", "the rest", "name each task, or their group, as in `1.4.1, 1.4.2`"),
        ("Implemented by:** 1.1.1\nto 1.1.3", "to", "name each task, or their group, as in `1.4.1, 1.4.2`"),
        ("Implemented by:** somebody", "somebody", "name each task, or their group, as in `1.4.1, 1.4.2`"),
        ("Depends on:** US-2 to US-4", "to", "name each story, as in `US-1, US-2`"),
        ("Depends on:** us-2", "us-2", "name each story, as in `US-1, US-2`"),
    ],
)
def test_a_story_that_names_more_than_ids_has_a_problem(field: str, rest: str, way_out: str) -> None:
    text = f"### US-1: a\n**Verification:** `true`\n**{field}\n"
    (story,) = prd.read(text).stories
    assert story.problem == f"`{rest}` in `{field.partition(':')[0]}` is not read: {way_out}"
    assert story.given is None
    assert story.check().kind == "manual"
    assert PlanWarning(f"US-1 cannot be verified: {story.problem}", 3) in prd.read(text).warnings


def test_the_commands_of_a_check_are_those_of_its_parts_too() -> None:
    check = one("**Verification:**\n- `a`\n- manual: x\n- `b`\n").given
    assert check
    assert [one.run for one in check.commands()] == ["a", "b"]
