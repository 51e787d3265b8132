"""Links between stories and tasks."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from raymond.loops.formats import links, prd
from raymond.loops.formats.links import Dangling, Link
from raymond.loops.formats.prd import Story


class Task(Struct, frozen=True):
    """As much of a task as links need."""

    id: str
    title: str = ""
    implements: tuple[str, ...] = ()
    body: str = ""


def stories(*bodies: str) -> tuple[Story, ...]:
    """Stories US-1, US-2 and so on: the title, and what is under it."""
    return prd.read("".join(f"### US-{number}: {body}\n" for number, body in enumerate(bodies, 1))).stories


def test_a_story_names_tasks_groups_and_areas() -> None:
    tasks = [Task("1.4.1"), Task("1.4.1a"), Task("1.4.2"), Task("1.40.1"), Task("2.1.1"), Task("20.1.1")]
    found = links.find(
        stories("a\n**Implemented by:** 1.4.1", "b\n**Implemented by:** 1.4", "c\n**Implemented by:** 2"), tasks
    )
    assert found.of("US-1") == ("1.4.1", "1.4.1a"), "its fix belongs to it"
    assert found.of("US-2") == ("1.4.1", "1.4.1a", "1.4.2")
    assert found.of("US-3") == ("2.1.1",)
    assert found.orphans == ("1.40.1", "20.1.1")
    assert {one.confidence for one in found.links} == {"high"}
    assert found.dangling == ()


def test_a_task_names_its_stories_and_is_linked_once() -> None:
    found = links.find(
        stories("a\n**Implemented by:** 1.1.1", "b"), [Task("1.1.1", implements=("US-1", "US-2")), Task("1.1.2")]
    )
    assert found.links == (
        Link("US-1", "1.1.1", "high", "the story names it"),
        Link("US-2", "1.1.1", "high", "the task names it"),
    )
    assert found.orphans == ("1.1.2",)


def test_what_does_not_exist_is_named_with_who_names_it() -> None:
    found = links.find(
        stories("a\n**Implemented by:** 1.1.1, 9.9\n**Depends on:** US-2, US-8"), [Task("1.1.2", implements=("US-7",))]
    )
    assert found.dangling == (
        *(Dangling("US-1", "1.1.1"), Dangling("US-1", "9.9"), Dangling("US-1", "US-2"), Dangling("US-1", "US-8")),
        Dangling("1.1.2", "US-7"),
    )
    assert found.bare == ("US-1",)


def test_words_in_common_are_worth_less_than_a_name() -> None:
    tasks = [
        Task("1.1.1", "Refuse a wrong password"),
        Task("1.1.2", "Send the receipt by mail", body="after a payment"),
        Task("1.1.3", "Send the invoice"),
        Task("1.1.4", "Hash the password", implements=("US-3",)),
    ]
    found = links.find(
        stories(
            "Log in with a password\n**Acceptance Criteria:**\n- a wrong one is refused",
            "Send a receipt\n**Acceptance Criteria:**\n- payment mail",
            "Store the password hash",
        ),
        tasks,
    )
    assert found.links == (
        Link("US-1", "1.1.1", "medium", "both say wrong, password"),
        Link("US-2", "1.1.2", "medium", "both say send, receipt, mail"),
        Link("US-3", "1.1.4", "high", "the task names it"),
    )
    assert found.orphans == ("1.1.3",), "one word is not enough"
    assert [found.confidence(id) for id in ("US-1", "US-3", "US-9")] == ["medium", "high", "none"]
    assert found.of("US-1", medium=False) == ()


def test_a_story_that_names_its_tasks_gets_no_others() -> None:
    tasks = [Task("1.1.1", "Anything"), Task("1.1.2", "Export orders as a table")]
    found = links.find(stories("Export orders as a table\n**Implemented by:** 1.1.1"), tasks)
    assert found.of("US-1") == ("1.1.1",)
    assert found.orphans == ("1.1.2",)


def test_words_that_most_stories_have_say_nothing() -> None:
    found = links.find(
        stories(*(f"Export orders {word}" for word in ("alpha", "beta", "gamma", "delta"))),
        [Task("1.1.1", "Export orders")],
    )
    assert found.orphans == ("1.1.1",)


IDS = st.sampled_from(["1", "1.1", "1.1.1", "1.1.1a", "2.1.1", "2.1.2"])


@given(
    st.lists(st.lists(IDS, max_size=3), max_size=4),
    st.lists(st.tuples(IDS, st.lists(st.sampled_from(["US-1", "US-2", "US-9"]), max_size=2), st.text()), max_size=6, unique_by=lambda one: one[0]),
)  # fmt: skip
def test_every_task_is_linked_or_an_orphan_and_every_story_has_tasks_or_is_bare(
    named: list[list[str]], given_: list[tuple[str, list[str], str]]
) -> None:
    found_stories = stories(*(f"x\n**Implemented by:** {', '.join(ids)}" for ids in named))
    tasks = [Task(id, text, tuple(implements), text) for id, implements, text in given_]
    found = links.find(found_stories, tasks)
    linked = {one.task for one in found.links}
    assert linked | set(found.orphans) == {one.id for one in tasks}
    assert not linked & set(found.orphans)
    assert {one.story for one in found.links} | set(found.bare) == {one.id for one in found_stories}
    assert len({(one.story, one.task) for one in found.links}) == len(found.links)
