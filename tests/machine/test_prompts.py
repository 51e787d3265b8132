"""What a turn is sent, and every name that is bound in a visit."""

import json
from typing import Any

import pytest

from builders import Play, build, head, kind_of
from raymond.machine import placed_workflow, prompts
from raymond.machine.inputs import Spending

FILES = {
    "START.md": "Do {{input}} in {{state}}.",
    "A.md": "A",
    "B.md": "B",
    "N.md": "N: {{results}}",
    "SAFE.md": head("on_error: ERROR", "safe"),
    "ERROR.md": "It said: {{error}}",
    "POLICY.md": head("allowed_transitions: [{tag: goto, target: A}, {tag: result}]", "Choose:\n{{transitions}}"),
    "S.sh": "",
    "lib/rules.txt": "Be brief, {{agent_id}}. {{include:rules.txt}}",
    "INCLUDES.md": "{{include:rules.txt}} {{include:none.txt}}",
}


def bound(play: Play, agent: str = "main") -> dict[str, str]:
    return placed_workflow.values_of_visit(play.run, play.workspace, play.agent(agent))


def sent(play: Play, agent: str = "main") -> str:
    return prompts.prompt(play.run, play.workspace, play.agent(agent))


def at(state: str, **given: Any) -> Play:
    play = Play(FILES, **given)
    play.say(f"<goto>{state}</goto>")
    return play


# Variables


def test_every_visit_binds_the_built_in_names() -> None:
    play = Play(FILES, input="do it")
    play.begin()
    assert bound(play) == {
        "input": "do it",
        "result": "do it",
        "run_input": "do it",
        "workflow_id": "test-1",
        "agent_id": "main",
        "state": "START.md",
        "visit": "1",
        "attempt": "1",
        "task_folder": "/tasks/main",
        "workflow_dir": "/snap",
    }


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("<goto>A</goto>", ""),
        ("<goto input='x'>A</goto>", "x"),
        ("<goto input='{{input}}!'>A</goto>", "begin!"),
        ("<wait input='x'>A</wait>", "x"),
        ("<wait input=''>A</wait>", ""),
        ("<wait>A</wait>", "[]"),
    ],
)
def test_input_and_result_are_what_was_handed_to_the_visit(text: str, given: str) -> None:
    play = Play(FILES, input="begin")
    play.say(text)
    values = bound(play)
    assert (values["input"], values["result"], values["run_input"]) == (given, given, "begin")


def test_an_input_lasts_for_the_visit_and_ends_with_its_transition() -> None:
    play = Play(FILES)
    play.say("<goto input='x'>A</goto>")
    play.say("no tag")
    play.fail("crash")
    play.interrupt()
    play.stop()
    play.resume()
    assert bound(play)["input"] == "x"
    play.say("<goto>B</goto>")
    assert bound(play)["input"] == ""


def test_results_are_json_in_the_order_of_forking() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.fail("setup", "main_b2", error='it "broke"')
    play.say("<result>grün</result>", "main_a1")
    values = bound(play)
    assert json.loads(values["results"]) == [
        {"agent": "main_a1", "label": "", "state": "A.md", "status": "done", "result": "grün", "error": ""},
        {"agent": "main_b2", "label": "", "state": "B.md", "status": "failed", "result": "", "error": 'it "broke"'},
    ]
    assert values["input"] == values["result"] == values["results"]
    assert sent(play) == f"N: {values['results']}"
    play.say("<goto>A</goto>")
    assert "results" not in bound(play)


def test_what_was_collected_is_one_text_under_all_its_names() -> None:
    """It may be hundreds of megabytes."""
    play = Play(FILES)
    play.say("<fork>A</fork><wait>B</wait>")
    play.say("<result>one</result>", "main_a1")
    values = bound(play)
    assert values["results"] is values["input"] is values["result"]


def test_a_wait_with_input_keeps_results_apart() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait input='x'>N</wait>")
    play.say("<result>1</result>", "main_a1")
    assert (bound(play)["input"], json.loads(bound(play)["results"])[0]["result"]) == ("x", "1")


def test_the_error_is_bound_after_on_error_and_only_there() -> None:
    play = at("SAFE")
    assert "error" not in bound(play)
    play.fail("setup", error="it broke")
    assert (bound(play)["error"], sent(play)) == ("it broke", "It said: it broke")
    for _ in range(4):
        play.fail("crash", error="worse")
    play.resume()
    assert bound(play)["error"] == "it broke"
    play.say("<goto>A</goto>")
    assert "error" not in bound(play)


def test_visits_and_attempts_are_counted() -> None:
    play = at("A")
    play.say("<goto>A</goto>")
    play.fail("crash")
    play.begin()
    assert (bound(play)["visit"], bound(play)["attempt"]) == ("2", "2")


def test_built_in_names_win_over_variables_and_variables_over_metadata() -> None:
    play = Play(FILES, metadata={"k": "run", "only": "run", "state": "run"})
    play.say("<fork next='A' k='fork'>B</fork>")
    child = bound(play, "main_b1")
    assert (child["k"], child["only"], child["state"]) == ("fork", "run", "B.md")
    assert (bound(play)["k"], bound(play)["state"]) == ("run", "A.md")


def test_a_variable_of_a_fork_lasts_for_its_life_and_is_not_handed_on() -> None:
    play = Play(FILES)
    play.say("<fork next='A' item='7'>B</fork>")
    play.say("<fork next='A'>B</fork>", "main_b1")
    assert bound(play, "main_b1")["item"] == "7"
    assert "item" not in bound(play, "main_b1_b1")


def test_the_allowed_transitions_are_written_out() -> None:
    play = at("POLICY")
    assert bound(play)["transitions"] == "<goto>A</goto>\n<result>...</result>"
    assert sent(play) == "Choose:\n<goto>A</goto>\n<result>...</result>"
    assert "transitions" not in bound(at("A"))


def test_an_agent_in_a_state_that_is_gone_still_has_values() -> None:
    play = at("POLICY")
    del play.workspace.workflow.states["POLICY.md"]
    assert "transitions" not in bound(play)


# Prompts


def test_a_prompt_is_rendered_with_the_names_of_its_visit() -> None:
    assert sent(Play(FILES, input="{{state}}")) == "Do {{state}} in START.md."


def test_a_text_without_names_is_sent_as_it_is() -> None:
    assert sent(at("A")) == "A"


def test_a_text_of_lib_is_included_once() -> None:
    assert sent(at("INCLUDES")) == "Be brief, main. {{include:rules.txt}} {{include:none.txt}}"


def test_a_reminder_replaces_the_prompt_in_the_same_conversation() -> None:
    play = at("POLICY")
    play.say("<goto>B</goto>")
    assert sent(play) == (
        "I could not act on your reply: `<goto>B</goto>` is not allowed here; allowed: `<goto>A</goto>`, "
        "`<result>...</result>`\n"
        "Do not repeat the work. Reply again and end with exactly one of:\n"
        "<goto>A</goto>\n<result>...</result>"
    )


def test_a_reminder_needs_a_conversation() -> None:
    play = at("A")
    play.say("no tag")
    play.fail("context")
    assert sent(play) == "A"


def test_who_remembers_nothing_is_given_the_whole_prompt_and_then_the_reminder() -> None:
    play = Play(FILES, input="it")
    play.say("no tag", session="")
    assert (play.main.session, play.main.visit.reminders) == ("", 1)
    reminder = prompts.remind(
        play.workspace.workflow, play.workspace.workflow.states["START.md"], play.main.visit.reminder
    )
    assert reminder.startswith("I could not act on your reply: the output has no transition")
    assert sent(play) == f"Do it in START.md.\n\n{reminder}"
    play.interrupt()
    assert sent(play) == f"{prompts.INTERRUPTED}\n\nDo it in START.md.\n\n{reminder}"


def test_who_was_stopped_at_a_limit_of_cost_is_told_to_go_on() -> None:
    play = at("A")
    play.fail("cap", spent=Spending(cost=1.0))
    assert (
        sent(play)
        == "(Your last turn reached its cost limit. More budget is available now: continue where you left off.)"
    )
    play.interrupt()
    assert sent(play) == f"{prompts.INTERRUPTED}\n\n{prompts.CAPPED}"


def test_who_was_stopped_and_has_lost_its_conversation_begins_again() -> None:
    play = at("A")
    play.fail("cap", spent=Spending(cost=1.0))
    play.fail("context")
    assert sent(play) == "A"


@pytest.mark.parametrize("how", ["interrupted", "crash"])
def test_who_was_interrupted_is_told_so_in_one_line(how: str) -> None:
    play = at("A")
    play.interrupt() if how == "interrupted" else play.fail(kind_of(how))
    line = "(Your last attempt was interrupted. Its changes may already be in the working tree.)"
    assert sent(play) == f"{line}\n\nA"


def test_a_reminder_that_was_interrupted_is_given_again() -> None:
    play = at("A")
    play.say("no tag")
    reminder = sent(play)
    play.interrupt()
    assert sent(play) == f"{prompts.INTERRUPTED}\n\n{reminder}"


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        (
            "Do it, then <goto>A</goto> or `<result>text</result>`. Again: <goto>A</goto> <print>x</print>",
            "<goto>A</goto>\n<result>text</result>",
        ),
        ("Do it.", "<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: A.md, START.md"),
        ("<print>x</print>", "<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: A.md, START.md"),
    ],
)
def test_without_a_policy_the_choices_are_those_of_the_text_or_every_form(body: str, offered: str) -> None:
    workflow = build({"START.md": body, "A.md": ""})
    assert prompts.choices(workflow, workflow.states["START.md"]) == offered


def test_twelve_names_of_states_are_enough() -> None:
    workflow = build({"START.md": "", **{f"{n:02}.md": "" for n in range(12)}})
    choices = prompts.choices(workflow, workflow.states["START.md"])
    assert choices.endswith("00.md, 01.md, 02.md, 03.md, 04.md, 05.md, 06.md, 07.md, 08.md, 09.md, 10.md, 11.md, ...")
