"""Going on with today's files: what they must have, and what states are called now."""

from collections.abc import Mapping

import pytest

from builders import Play, build, head
from raymond.errors import UsageError
from raymond.machine import needed_states
from raymond.machine.agent import Agent, Frame, Rest, Visit, rename
from raymond.machine.events import WorkflowChanged

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "S.sh": ""}
DIGEST = "1" * 64


def without(*names: str, **more: str) -> dict[str, str]:
    """The files without some, with others that end in .md."""
    return {name: text for name, text in FILES.items() if name not in names} | {
        f"{name}.md": text for name, text in more.items()
    }


def change(play: Play, files: Mapping[str, str], entry: str = "START.md", **renamed: str) -> WorkflowChanged:
    names = {name.replace("_md", ".md"): new for name, new in renamed.items()}
    return needed_states.change_workflow(play.run, build(files, entry), DIGEST, names)


def refused(play: Play, files: Mapping[str, str], entry: str = "START.md", **renamed: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        change(play, files, entry, **renamed)
    return str(caught.value), caught.value.hint


# Which states are needed


def test_a_state_is_needed_by_who_is_in_it_returns_to_it_or_goes_on_there() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>S</fork><wait timeout='1h' timeout_next='B'>N</wait>")
    play.say('<call return="B">N</call>', "main_a1")
    assert needed_states.needed(play.run) == {
        "START.md": ["main"],
        "N.md": ["main", "main_a1"],
        "B.md": ["main", "main_a1"],
        "S.sh": ["main_s2"],
    }


def test_who_has_ended_needs_nothing() -> None:
    play = Play(FILES)
    play.say("<result>x</result>")
    assert needed_states.needed(play.run) == {}
    assert change(play, {"OTHER.md": ""}, "OTHER.md") == WorkflowChanged(source=DIGEST)


# What is taken up


def test_files_that_have_every_state_needed_are_taken() -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>")
    assert change(play, without("B.md", NEW="")) == WorkflowChanged(source=DIGEST)


def test_states_whose_policy_names_another_backend_are_noted() -> None:
    play = Play(FILES)
    files = without("A.md", "B.md", A=head("backend: codex"), B=head("backend: claude"))
    assert change(play, files) == WorkflowChanged(source=DIGEST, backends={"A.md": "codex"})


def test_a_state_that_is_gone_is_named_with_who_needs_it() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><goto>B</goto>")
    assert refused(play, without("A.md", "B.md")) == (
        "today's files have no B.md, which main needs; A.md, which main_a1 needs",
        "--map B.md=NEW for each, or `resume` without --latest",
    )


@pytest.mark.parametrize(("old", "new"), [("A_md", "A2.md"), ("A", "A2"), ("A", "A2.md")])
def test_a_state_that_has_another_name_is_mapped_with_or_without_its_ending(old: str, new: str) -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>")
    changed = change(play, without("A.md", A2=""), **{old: new})
    assert changed == WorkflowChanged(source=DIGEST, renamed={"A.md": "A2.md"})
    play.commit([changed])
    assert (play.main.state, play.main.visits) == ("A2.md", {"START.md": 1, "A2.md": 1})


def test_a_map_to_a_state_that_is_not_there_is_refused() -> None:
    play = Play(FILES)
    assert refused(play, FILES, START="AA") == ("--map START=AA: there is no state `AA`", "did you mean `A.md`?")


def test_a_map_of_a_state_nobody_needs_is_refused() -> None:
    play = Play(FILES)
    assert refused(play, FILES, B="A") == ("--map B: no agent needs a state of that name", "needed: START.md")


# An agent that remembers names


def test_a_name_is_changed_wherever_an_agent_remembers_it() -> None:
    agent = Agent(
        "main",
        Visit("A.md", rest=Rest("B.md", timeout_state="A.md")),
        counts={"A.md": 2, "C.md": 1},
        prompted={"A.md": 3},
        stack=[Frame("A.md", visits={"A.md": 1}), Frame("C.md")],
    )
    rename(agent, {"A.md": "X.md", "B.md": "Y.md"})
    assert agent.visit == Visit("X.md", rest=Rest("Y.md", timeout_state="X.md"))
    assert (agent.visits, agent.prompted) == ({"X.md": 2, "C.md": 1}, {"X.md": 3})
    assert agent.stack == [Frame("X.md", visits={"X.md": 1}), Frame("C.md")]


def test_an_agent_that_remembers_nothing_keeps_nothing() -> None:
    agent = Agent("main", Visit("A.md"))
    rename(agent, {"A.md": "X.md"})
    assert agent == Agent("main", Visit("X.md"))


def test_the_visits_of_two_states_that_became_one_are_added() -> None:
    """Else `max_visits` would let an agent come in too often."""
    agent = Agent("main", Visit("A.md"), counts={"A.md": 2, "B.md": 3})
    rename(agent, {"A.md": "B.md"})
    assert agent.visits == {"B.md": 5}
