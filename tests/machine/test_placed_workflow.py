"""Policies whose gate is a variable; lines that stand for transitions; what the next state is told."""

import json

import pytest

from builders import Play, head
from raymond.language.tags import Goto
from raymond.machine import placed_workflow
from raymond.machine.events import AgentEnded, AgentFailed, AgentMoved, StepFinished, StepStarted, TransitionHeld
from raymond.machine.inputs import Begin
from raymond.machine.placed_workflow import values_of_visit

WORK = head(
    'gate: "{{check}}"\n'
    'gate_timeout: "{{limit}}"\n'
    'seal: "{{sealed}}"\n'
    "gate_tries: 0\n"
    "on_fail: BAD.sh\n"
    "force_implicit: true\n"
    "allowed_transitions:\n"
    '  - {tag: goto, target: DONE.sh, input: "{{output}}"}\n'
    "  - {tag: goto, target: BAD.sh, says: GIVE_UP, gate: false}\n"
)
FILES = {"START.sh": "", "WORK.md": WORK, "DONE.sh": "", "BAD.sh": ""}


def at_work(**variables: str) -> Play:
    """An agent in the state whose gate is a variable, which --var has set."""
    return Play(FILES, entry="WORK.md", metadata=variables)


def test_the_gate_of_an_agent_is_the_value_of_its_variable() -> None:
    play = at_work(check="make test", limit="90s", sealed="a.txt\nb/*")
    found = placed_workflow.rules_of(play.run, play.workspace, play.main)
    assert [one.run for one in found.gate] == ["make test"]
    assert (found.gate_timeout, found.seal) == (90.0, ("a.txt", "b/*"))
    assert play.put(Begin(time=play.now, agent="main")) == [StepStarted(agent="main", step=1, phase="seal")]


def test_a_late_gate_can_have_several_checks_and_say_what_is_expected() -> None:
    several = '[{"run": "make", "timeout": "5s"}, {"run": "./app --version", "expected": "output contains \\"2.0\\""}]'
    play = at_work(check=several)
    first, second = placed_workflow.rules_of(play.run, play.workspace, play.main).gate
    assert (first.run, first.timeout, second.run, second.contains) == ("make", 5.0, "./app --version", "2.0")


def test_a_late_gate_that_only_looks_like_a_list_is_a_command() -> None:
    play = at_work(check="[ -f Makefile ]")
    assert [one.run for one in placed_workflow.rules_of(play.run, play.workspace, play.main).gate] == [
        "[ -f Makefile ]"
    ]


def test_what_a_fork_gives_counts_for_more_than_what_the_run_has() -> None:
    play = Play(FILES, entry="START.sh", metadata={"check": "make"})
    play.say('<fork check="make test">WORK</fork><fork>WORK</fork><wait>DONE</wait>')
    forked, other = play.agent("main_work1"), play.agent("main_work2")
    assert [placed_workflow.rules_of(play.run, play.workspace, one).gate[0].run for one in (forked, other)] == [
        "make test",
        "make",
    ]


def test_an_empty_value_is_no_gate() -> None:
    play = at_work(check="")
    done, moved = play.say("all done")
    assert isinstance(done, StepFinished)
    assert isinstance(moved, AgentMoved)
    assert (moved.state, moved.input) == ("DONE.sh", "all done")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {},
            'the gate of WORK.md is "{{check}}", and neither its fork nor --var has given `check`',
        ),
        ({"check": "echo 'x"}, "`echo 'x` is no command: a quote is not closed (a late value of WORK.md)"),
        ({"check": "true", "limit": "90"}, "`gate_timeout` must be"),
        ({"check": '[{"run": "make", "expected": "fine"}]'}, "`expected` must be an exit code or say what the output"),
        ({"check": '[{"run": "git reset --hard"}]'}, "the check `git reset --hard` discards changes"),
        ({"check": "git reset --hard"}, "the check `git reset --hard` discards changes: `git reset --hard`"),
    ],
)
def test_a_value_that_cannot_be_used_fails_the_visit_before_any_turn(given: dict[str, str], why: str) -> None:
    play = at_work(**given)
    [failed, *_] = play.put(Begin(time=play.now, agent="main"))
    assert isinstance(failed, AgentFailed)
    assert failed.error.startswith(why)


def test_a_value_that_looks_like_a_variable_is_a_command() -> None:
    play = at_work(check="{{limit}}", limit="10s")
    assert play.put(Begin(time=play.now, agent="main")) == [StepStarted(agent="main", step=1, phase="seal")], (
        "it is not taken for no gate"
    )


def test_the_input_of_a_visit_is_no_late_value() -> None:
    play = at_work(check="make")
    play.main.visit.input = "true"
    [found] = placed_workflow.rules_of(play.run, play.workspace, play.main).gate
    assert found.run == "make"


@pytest.mark.parametrize("text", ["I cannot.\nGIVE_UP", "**GIVE_UP**\nsorry", "x\n`GIVE_UP`\n<goto>DONE</goto>"])
def test_a_line_stands_for_a_transition(text: str) -> None:
    play = at_work(check="make test")
    play.say(text)
    assert (play.main.state, play.main.visit.pending) == ("BAD.sh", None)


@pytest.mark.parametrize("text", ["never GIVE_UP", "<goto>BAD.sh</goto>", "give_up", ""])
def test_other_words_do_not(text: str) -> None:
    play = at_work(check="make test")
    _, held = play.say(text)
    assert isinstance(held, TransitionHeld)
    assert held.asked == [Goto(target="DONE.sh", input="{{output}}")]


def test_the_output_is_passed_on_once_the_gate_has_passed() -> None:
    play = at_work(check="make test")
    play.say("I did it {{check}}")
    _, moved = play.check(command="make test", seconds=2.5, wrote=("a.lock",), tree="t1", commit="c1")
    assert isinstance(moved, AgentMoved)
    assert (moved.state, moved.input) == ("DONE.sh", "I did it {{check}}")
    told = values_of_visit(play.run, play.workspace, play.main)["gate_result"]
    assert json.loads(told) == {
        "verdict": "passed",
        "step": 3,
        "command": "make test",
        "seconds": 2.5,
        "wrote": ["a.lock"],
        "tree": "t1",
        "commit": "c1",
    }


def test_a_red_gate_is_told_too_and_only_to_the_next_state() -> None:
    play = at_work(check="make test")
    play.say("I did it")
    play.check("failed", command="make test", exit_code=2, reason="exit code 2")
    assert play.main.state == "BAD.sh"
    told = json.loads(values_of_visit(play.run, play.workspace, play.main)["gate_result"])
    assert (told["verdict"], told["exit_code"], told["reason"]) == ("failed", 2, "exit code 2")
    play.say("<goto>DONE.sh</goto>")
    assert "gate_result" not in values_of_visit(play.run, play.workspace, play.main)


def test_without_force_implicit_a_tag_counts_for_more_than_a_line() -> None:
    files = {"START.md": head("allowed_transitions: [{tag: result}, {tag: goto, target: B, says: STUCK}]"), "B.md": ""}
    play = Play(files, entry="START.md")
    play.say("STUCK\n<result>done</result>")
    assert isinstance(play.last[-1], AgentEnded)
    play = Play(files, entry="START.md")
    play.say("STUCK")
    assert play.main.state == "B.md"
