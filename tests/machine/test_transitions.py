"""What each transition does to state, session, stack, directory, visits, input and children: one row per rule."""

from typing import Any

import pytest

from builders import START, Play, block, head
from raymond.language import reading
from raymond.language.refusal import Refusal
from raymond.machine import transitions
from raymond.machine.agent import Conversation, Frame, Outcome
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    AskStarted,
    StepFinished,
    StepRefused,
    WaitEnded,
    WaitStarted,
)
from raymond.machine.transitions import Landing

FILES = {
    "START.md": "",
    "A.md": "",
    "B.md": "",
    "N.md": "",
    "LATE.md": "",
    "WORKER.md": "",
    "42.md": "",
    "S.sh": "",
    "ONCE.md": head("max_visits: 1"),
    "TWICE.md": head("max_visits: 2\nthen: N"),
    "ROUND.md": head("max_visits: 1\nthen: TRIP"),
    "TRIP.md": head("max_visits: 1\nthen: ROUND"),
    "SAFE.md": head("on_error: A"),
    "UNSAFE.md": head("on_error: ONCE"),
}
OUTSIDE = Refusal("directory", 'cd="/etc": /etc is outside')
CDS: dict[str, str | Refusal] = {"sub": "/project/sub", "else": "/project/else", "/etc": OUTSIDE}


def played(*texts: str, **given: Any) -> Play:
    """A run whose main agent has said these, one step after the other."""
    play = Play(FILES, **given)
    for text in texts:
        play.say(text, cds=CDS)
    return play


def session(play: Play, step: int = 1) -> str:
    """The conversation the turn of a step wrote."""
    from raymond.machine.decide import session_of

    return session_of(play.run, step, 1)


# One row per tag


@pytest.mark.parametrize(
    ("text", "status", "state", "input", "kept", "cwd", "wake_at"),
    [
        ("<goto>A</goto>", "ready", "A.md", "", True, "", 0.0),
        ("<goto>A.md</goto>", "ready", "A.md", "", True, "", 0.0),
        ("<goto>S</goto>", "ready", "S.sh", "", True, "", 0.0),
        ("<goto input='x'>A</goto>", "ready", "A.md", "x", True, "", 0.0),
        ("<goto input='{{agent_id}}: {{input}}'>A</goto>", "ready", "A.md", "main: begin", True, "", 0.0),
        ("<goto input='{{nothing}}'>A</goto>", "ready", "A.md", "{{nothing}}", True, "", 0.0),
        ("<goto after='5m'>A</goto>", "sleeping", "A.md", "", True, "", START + 300),
        ("<goto after='0s'>A</goto>", "ready", "A.md", "", True, "", 0.0),
        ("<reset>A</reset>", "ready", "A.md", "", False, "", 0.0),
        ("<reset input='x' after='2s'>A</reset>", "sleeping", "A.md", "x", False, "", START + 2),
        ("<reset cd='sub'>A</reset>", "ready", "A.md", "", False, "/project/sub", 0.0),
        ("<reset cd=''>A</reset>", "ready", "A.md", "", False, "", 0.0),
        ("<fork next='A'>B</fork>", "ready", "A.md", "", True, "", 0.0),
        ("<fork next='A' input='x' cd='sub' after='5m'>B</fork>", "ready", "A.md", "", True, "", 0.0),
        ("<fork>B</fork><goto input='x' after='5m'>A</goto>", "sleeping", "A.md", "x", True, "", START + 300),
        ("<wait>A</wait>", "ready", "A.md", "", True, "", 0.0),
        ("<wait input='x'>A</wait>", "ready", "A.md", "x", True, "", 0.0),
        ("<wait timeout='5m' timeout_next='LATE'>A</wait>", "ready", "A.md", "", True, "", 0.0),
    ],
)
def test_what_a_move_does_to_its_agent(
    text: str, status: str, state: str, input: str, kept: bool, cwd: str, wake_at: float
) -> None:
    play = played(text, input="begin")
    main = play.main
    assert (main.status, main.state, main.visit.input, main.cwd, main.visit.wake_at) == (
        status,
        state,
        input,
        cwd,
        wake_at,
    )
    assert main.conversation == (Conversation("claude", session(play)) if kept else None)
    assert (main.stack or [], main.visits) == ([], {"START.md": 1, state: 1})
    assert main.visit.since == play.now


@pytest.mark.parametrize(
    ("text", "kept", "input", "model", "effort"),
    [
        ('<call return="N">A</call>', True, "", "", ""),
        ('<call return="N.md" input="x">A.md</call>', True, "x", "", ""),
        ('<function return="N">A</function>', False, "", "", ""),
        ('<function return="N" input="x" model="small" effort="low">A</function>', False, "x", "small", "low"),
    ],
)
def test_what_a_subtask_does_to_its_agent(text: str, kept: bool, input: str, model: str, effort: str) -> None:
    play = played(text)
    main = play.main
    assert (main.status, main.state, main.visit.input, main.visits) == ("ready", "A.md", input, {"A.md": 1})
    assert main.conversation == (Conversation("claude", session(play)) if kept else None)
    assert (main.model, main.effort) == (model, effort)
    assert main.stack == [Frame("N.md", Conversation("claude", session(play)), "", {"START.md": 1}, "", "")]


def test_a_result_restores_session_directory_visits_and_model_of_the_caller() -> None:
    play = played('<function return="N" model="small" effort="low">A</function>', "<reset cd='sub'>B</reset>")
    assert (play.main.cwd, play.main.model, play.main.visits) == ("/project/sub", "small", {"A.md": 1, "B.md": 1})
    play.say("<result>found</result>")
    main = play.main
    assert play.last[1:] == [AgentReturned(agent="main", state="N.md", result="found")]
    assert (main.status, main.state, main.visit.input, main.stack) == ("ready", "N.md", "found", [])
    assert (main.conversation, main.cwd) == (Conversation("claude", session(play)), "")
    assert (main.model, main.effort, main.visits) == ("", "", {"START.md": 1, "N.md": 1})


def test_a_function_without_a_model_keeps_the_one_around_it() -> None:
    play = played('<function return="N" model="small">A</function>', '<function return="N">B</function>')
    assert play.main.model == "small"


def test_subtasks_return_in_the_order_they_were_entered() -> None:
    play = played('<call return="A">B</call>', '<function return="LATE">N</function>')
    assert [frame.state for frame in play.main.stack or ()] == ["A.md", "LATE.md"]
    play.say("<result>inner</result>")
    assert (play.main.state, play.main.visit.input) == ("LATE.md", "inner")
    play.say("<result>outer</result>")
    assert (play.main.state, play.main.visit.input) == ("A.md", "outer")
    play.say("<result>all</result>")
    assert play.run.outcomes["main"] == Outcome("main", "A.md", "done", "all")


def test_a_result_with_an_empty_stack_ends_the_agent() -> None:
    play = played("<result> done \n</result>")
    assert play.last[1:] == [AgentEnded(agent="main", result="done")]
    assert play.run.agents == {}
    assert play.run.outcomes == {"main": Outcome("main", "START.md", "done", "done")}


def test_a_goto_inside_a_result_is_text() -> None:
    play = played("<result><goto>A</goto></result>")
    assert play.run.outcomes["main"].result == "<goto>A</goto>"


def test_print_is_no_transition() -> None:
    assert played("<print>hello</print><goto>A</goto><print>again</print>").main.state == "A.md"


def test_an_ask_sleeps_until_a_person_answers() -> None:
    play = played('<ask next="N" timeout="5m" timeout_next="LATE">which one?</ask>')
    asked = AskStarted(
        agent="main", question="which one?", state="N.md", deadline=START + 300, timeout_state="LATE.md", number=1
    )
    assert play.last[1:] == [asked]
    assert (play.main.status, play.main.state, play.main.question) == ("asking", "START.md", "which one?")
    play.ask("answer", text="the first")
    assert play.last[1:] == [AskEnded(agent="main", state="N.md", answer="the first")]
    assert (play.main.status, play.main.state, play.main.visit.input) == ("ready", "N.md", "the first")
    assert (play.main.session, play.main.visit.wake_at, play.main.question) == (session(play), 0.0, "")
    assert play.pass_time(1000) == []


@pytest.mark.parametrize(("late", "state"), [(' timeout_next="LATE"', "LATE.md"), ("", "N.md")])
def test_an_ask_that_nobody_answers_in_time_goes_on_without_an_answer(late: str, state: str) -> None:
    play = played(f'<ask next="N" timeout="5m"{late}>why?</ask>')
    assert play.pass_time(299) == []
    assert play.pass_time(1) == [AskEnded(agent="main", state=state, timed_out=True)]
    assert (play.main.status, play.main.state, play.main.visit.input) == ("ready", state, "")


def test_an_ask_without_a_timeout_waits_for_ever() -> None:
    play = played('<ask next="N">why?</ask>')
    assert play.pass_time(10**9) == []
    assert play.main.status == "asking"


def test_a_moment_to_sleep_for_survives_and_ends() -> None:
    play = played("<goto after='5m'>A</goto>")
    assert play.pass_time(299.9) == []
    play.pass_time(0.1)
    assert (play.main.status, play.main.state, play.main.visit.wake_at) == ("ready", "A.md", 0.0)


# Backends that cannot branch


IN_PLACE = {**FILES, "HERE.md": head("backend: codex"), "MEANT.md": head("backend: codex\nin_place: true")}


@pytest.mark.parametrize(
    ("state", "text", "refused"),
    [
        ("HERE", '<call return="N">A</call>', True),
        ("MEANT", '<call return="N">A</call>', False),
        ("A", '<call return="N">HERE</call>', False),
        ("S", '<call return="N">HERE</call>', False),
        ("HERE", '<function return="N">A</function>', False),
        ("HERE", "<goto>A</goto>", False),
        ("HERE", "<reset>A</reset>", False),
        ("HERE", "<fork next='N'>A</fork>", False),
        ("HERE", "<result>x</result>", False),
    ],
)
def test_a_call_would_write_into_a_conversation_that_cannot_branch(state: str, text: str, refused: bool) -> None:
    play = Play(IN_PLACE, in_place=["codex"])
    play.say(f"<goto>{state}</goto>")
    play.say(text)
    assert isinstance(play.last[0], StepRefused) is refused
    if refused:
        hint = "`<call>` cannot be used here: the conversation cannot branch\nuse <function> instead"
        assert (play.main.visit.reminder, play.main.stack) == (hint, None)


def test_where_every_backend_branches_a_call_is_a_call() -> None:
    play = Play(IN_PLACE)
    play.say("<goto>HERE</goto>")
    play.say('<call return="N">A</call>')
    assert len(play.main.stack or ()) == 1


def test_a_call_that_names_no_state_is_refused_for_that_first() -> None:
    play = Play(IN_PLACE, in_place=["codex"])
    play.say("<goto>HERE</goto>")
    play.say('<call return="N">NOPE</call>')
    assert play.main.visit.reminder.startswith("there is no state `NOPE`")


@pytest.mark.parametrize("text", ["<goto>{}</goto>", "<goto>/{}</goto>", '<fork next="{}">A</fork>'])
def test_a_long_target_is_shown_in_part(text: str) -> None:
    play = Play(FILES)
    play.say(text.format("x" * 5_000_000))
    assert "xxxxx...`" in play.main.visit.reminder
    assert len(play.main.visit.reminder) < 1000


# Forks


def test_a_fork_makes_an_agent_that_knows_nothing_of_the_conversation() -> None:
    play = played("<reset cd='sub'>A</reset>", "<fork next='N' input='of {{state}}' item='7' kind='b'>WORKER</fork>")
    started, moved = play.last[1:]
    assert started == AgentStarted(
        agent="main_worker1",
        state="WORKER.md",
        parent="main",
        cwd="/project/sub",
        input="of A.md",
        variables={"item": "7", "kind": "b"},
        label="7",
    )
    assert moved == AgentMoved(agent="main", tag="fork", state="N.md")
    child = play.agent("main_worker1")
    assert (child.status, child.session, child.stack, child.visits) == ("ready", "", None, {"WORKER.md": 1})
    assert (child.cwd, child.variables, child.model) == ("/project/sub", {"item": "7", "kind": "b"}, "")


def test_a_fork_may_begin_elsewhere_and_later() -> None:
    play = played("<fork next='N' cd='else' after='5m'>WORKER</fork>")
    child = play.agent("main_worker1")
    assert (child.cwd, child.status, child.visit.wake_at) == ("/project/else", "sleeping", START + 300)
    play.pass_time(300)
    assert child.status == "ready"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("WORKER", "main_worker1"),
        ("WORKER.md", "main_worker1"),
        ("A", "main_a1"),
        ("42", "main_agent1"),
        ("ROUND", "main_round1"),
        ("S.sh", "main_s1"),
    ],
)
def test_a_fork_is_named_for_its_parent_and_target(target: str, name: str) -> None:
    assert list(played(f"<fork next='N'>{target}</fork>").run.agents) == ["main", name]


def test_a_long_target_gives_six_letters_and_no_other_signs() -> None:
    play = Play({"START.md": "", "1_Über-Prüfung_2_x.md": ""})
    play.say("<fork next='START'>1_Über-Prüfung_2_x</fork>")
    assert list(play.run.agents) == ["main", "main_berprf1"]


def test_numbers_of_forks_count_all_forks_of_a_parent_and_are_never_reused() -> None:
    play = played("<fork>A</fork><fork>B</fork><goto>N</goto>")
    play.say("<result>1</result>", "main_a1")
    play.say("<fork next='N'>A</fork>")
    play.say("<fork next='N'>A</fork>", "main_a3")
    assert list(play.run.agents) == ["main", "main_b2", "main_a3", "main_a3_a1"]
    assert {agent.id: agent.forks for agent in play.run.agents.values() if agent.forks} == {"main": 3, "main_a3": 1}


def test_forks_are_created_in_the_order_written_before_their_parent_goes_on() -> None:
    play = played("<fork next='N'>B</fork>", "<fork>WORKER</fork><goto>N</goto><fork>A</fork>")
    assert play.kinds() == ["StepFinished", "AgentStarted", "AgentStarted", "AgentMoved"]
    assert list(play.run.ready["claude"]) == ["main_b1", "main_worker2", "main_a3", "main"]
    assert list(play.main.children or ()) == ["main_b1", "main_worker2", "main_a3"]


def test_a_fork_of_a_function_does_not_take_its_model() -> None:
    play = played('<function return="N" model="small">A</function>', "<fork next='N'>B</fork>")
    assert play.agent("main_b1").model == ""


@pytest.mark.parametrize(
    "text",
    [
        "<fork next='ONCE'>B</fork>",
        "<fork>B</fork><goto>ONCE</goto>",
        "<fork>B</fork><wait>ONCE</wait>",
        "<fork>B</fork><wait timeout='5m' timeout_next='ONCE'>N</wait>",
    ],
)
def test_nobody_is_forked_by_a_visit_that_fails_so_that_trying_again_forks_once(text: str) -> None:
    play = played("<goto>ONCE</goto>", text)
    assert play.kinds() == ["StepFinished", "AgentFailed"]
    assert play.statuses() == {"main": "failed"}


# Waits


def test_a_wait_with_no_children_goes_on_at_once_with_no_results() -> None:
    play = played("<wait>N</wait>")
    assert play.last[1:] == [WaitStarted(agent="main", state="N.md"), WaitEnded(agent="main", state="N.md")]
    assert (play.main.state, play.main.visit.results, play.main.visit.results_are_input) == ("N.md", [], True)


def test_a_wait_collects_every_child_once_and_in_the_order_of_forking() -> None:
    play = played("<fork>A</fork><fork>B</fork><fork>WORKER</fork><wait>N</wait>")
    assert (play.main.status, play.main.state) == ("waiting", "START.md")
    play.say("<result>3</result>", "main_worker3")
    play.say("<result>1</result>", "main_a1")
    assert play.main.status == "waiting"
    play.say("<result>2</result>", "main_b2")
    assert play.last[1:] == [AgentEnded(agent="main_b2", result="2"), WaitEnded(agent="main", state="N.md")]
    assert play.main.visit.results == [
        Outcome("main_a1", "A.md", "done", "1"),
        Outcome("main_b2", "B.md", "done", "2"),
        Outcome("main_worker3", "WORKER.md", "done", "3"),
    ]
    assert (play.main.status, play.main.session) == ("ready", session(play))
    play.say("<wait>N</wait>")
    assert play.main.visit.results == []


def test_a_wait_covers_earlier_forks_in_whatever_frame_the_agent_stands() -> None:
    play = played("<fork next='A'>WORKER</fork>", '<call return="LATE">B</call>', "<fork>A</fork><wait>N</wait>")
    play.say("<result>2</result>", "main_a2")
    assert play.main.status == "waiting"
    play.say("<result>1</result>", "main_worker1")
    assert [one.agent for one in play.main.visit.results or ()] == ["main_worker1", "main_a2"]
    play.say("<result>x</result>")
    assert play.main.state == "LATE.md"


def test_a_wait_for_agents_that_have_all_ended_goes_on_at_once() -> None:
    play = played("<fork>A</fork><fork>B</fork><goto>START</goto>")
    play.say("<result>1</result>", "main_a1")
    play.fail("script", "main_b2", error="broke")
    play.say("<wait>N</wait>")
    assert play.main.visit.results == [
        Outcome("main_a1", "A.md", "done", "1"),
        Outcome("main_b2", "B.md", "failed", "", "broke"),
    ]


def test_a_failed_child_is_collected_with_its_error_and_counts_no_more() -> None:
    play = played("<fork>A</fork><wait input='go'>N</wait>")
    play.fail("script", "main_a1", error="broke")
    assert play.kinds() == ["StepFailed", "AgentFailed", "WaitEnded"]
    assert play.main.visit.results == [Outcome("main_a1", "A.md", "failed", "", "broke")]
    assert (play.main.visit.input, play.main.visit.results_are_input) == ("go", False)
    assert (list(play.run.agents), play.run.failed_count, play.main.alive) == (["main"], 0, 0)
    assert play.run.outcomes["main_a1"].status == "failed"
    assert [type(event).__name__ for event in play.resume()] == ["RunResumed"]


@pytest.mark.parametrize(("late", "state"), [(" timeout_next='LATE'", "LATE.md"), ("", "N.md")])
def test_a_wait_that_takes_too_long_goes_on_with_those_that_have_ended(late: str, state: str) -> None:
    play = played(f"<fork>A</fork><fork>B</fork><fork>WORKER</fork><wait timeout='5m'{late}>N</wait>")
    play.say("<result>2</result>", "main_b2")
    play.fail("script", "main_worker3", error="broke")
    assert play.pass_time(300) == [WaitEnded(agent="main", state=state, timed_out=True)]
    assert [(one.agent, one.status) for one in play.main.visit.results or ()] == [
        ("main_b2", "done"),
        ("main_worker3", "failed"),
    ]
    assert (list(play.main.children or ()), play.main.alive) == (["main_a1"], 1)
    play.say("<wait>B</wait>")
    play.say("<result>1</result>", "main_a1")
    assert [one.agent for one in play.main.visit.results or ()] == ["main_a1"]


def test_a_wait_goes_on_while_a_child_asks_or_is_paused() -> None:
    play = played("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.say('<ask next="A">why?</ask>', "main_a1")
    play.fail("auth", "main_b2")
    assert play.statuses() == {"main": "waiting", "main_a1": "asking", "main_b2": "paused"}


def test_a_parent_may_end_before_its_children() -> None:
    play = played("<fork next='N'>A</fork>", "<result>early</result>")
    assert play.pass_time() == []
    play.say("<fork>B</fork><wait>N</wait>", "main_a1")
    play.say("<result>b</result>", "main_a1_b1")
    play.say("<result>a</result>", "main_a1")
    assert {one.agent: one.result for one in play.run.outcomes.values()} == {
        "main": "early",
        "main_a1_b1": "b",
        "main_a1": "a",
    }
    play.pass_time()
    assert play.run.final_status == "completed"


def test_a_child_that_cannot_wait_fails_and_ends_the_wait_of_its_parent() -> None:
    play = played("<goto>ONCE</goto>", "<fork>A</fork><wait>N</wait>")
    play.say("<goto>ONCE</goto>", "main_a1")
    play.say("<fork>B</fork><wait>ONCE</wait>", "main_a1")
    assert play.kinds() == ["StepFinished", "AgentFailed", "WaitEnded"]
    assert play.statuses() == {"main": "ready"}


def test_a_child_nobody_counts_on_any_more_ends_no_wait() -> None:
    play = played("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.fail("script", "main_a1")
    play.ask("result", agent="main_a1", text="by hand")
    assert play.statuses() == {"main": "waiting", "main_b2": "ready"}
    play.say("<result>2</result>", "main_b2")
    assert [(one.agent, one.result) for one in play.main.visit.results or ()] == [
        ("main_a1", "by hand"),
        ("main_b2", "2"),
    ]


# Visits


def test_the_visit_after_the_last_allowed_one_goes_to_then() -> None:
    play = played("<goto>TWICE</goto>", "<goto>TWICE</goto>", "<goto input='x'>TWICE</goto>")
    assert play.last[1:] == [AgentMoved(agent="main", tag="goto", state="N.md", input="x", instead_of="TWICE.md")]
    assert play.main.visits == {"START.md": 1, "TWICE.md": 2, "N.md": 1}


def test_without_then_the_agent_fails() -> None:
    play = played("<goto>ONCE</goto>", "<goto>ONCE</goto>")
    error = "ONCE.md was visited 1 times, which is its max_visits"
    assert play.last[1:] == [AgentFailed(agent="main", kind="visits", error=error)]
    assert isinstance(play.last[0], StepFinished)
    assert (play.main.status, play.main.error) == ("failed", error)


@pytest.mark.parametrize(
    "text",
    [
        "<goto>ONCE</goto>",
        "<reset>ONCE</reset>",
        "<wait>ONCE</wait>",
        "<fork next='ONCE'>B</fork>",
    ],
)
def test_every_way_into_a_state_counts_visits_and_a_failure_goes_to_on_error(text: str) -> None:
    play = played("<goto>ONCE</goto>", "<goto>SAFE</goto>", text)
    error = "ONCE.md was visited 1 times, which is its max_visits"
    assert play.last[-1] == AgentMoved(agent="main", tag="on_error", state="A.md", error=error)
    assert (play.main.visit.cause, play.main.visit.input) == (error, "")


@pytest.mark.parametrize(
    "text", ['<ask next="ONCE">why?</ask>', '<ask next="N" timeout="5m" timeout_next="ONCE">?</ask>']
)
def test_a_question_whose_answer_could_lead_nowhere_is_not_asked(text: str) -> None:
    play = played("<goto>ONCE</goto>", "<goto>SAFE</goto>", text)
    assert play.main.state == "A.md"
    play.say(text)
    assert play.main.status == "failed"


def test_a_wait_that_could_lead_nowhere_fails_the_visit_at_once() -> None:
    play = played("<goto>ONCE</goto>", "<goto>SAFE</goto>", "<fork>B</fork><wait timeout='5m'>ONCE</wait>")
    assert (play.kinds(), play.main.state) == (["StepFinished", "AgentMoved"], "A.md")
    play.say("<wait timeout='5m'>ONCE</wait>")
    assert play.kinds() == ["StepFinished", "AgentFailed"]
    assert (play.main.status, play.main.visit.wake_at) == ("failed", 0.0)


def test_visits_are_counted_within_a_frame() -> None:
    play = played("<goto>ONCE</goto>", '<call return="A">ONCE</call>')
    assert (play.main.state, play.main.visits) == ("ONCE.md", {"ONCE.md": 1})
    play.say("<result>x</result>")
    assert play.main.visits == {"START.md": 1, "ONCE.md": 1, "A.md": 1}


def test_visits_are_counted_on_return() -> None:
    play = played("<goto>TWICE</goto>", "<goto>TWICE</goto>", '<call return="TWICE">A</call>', "<result>x</result>")
    assert play.last[1:] == [AgentReturned(agent="main", state="N.md", result="x", instead_of="TWICE.md")]
    play = played("<goto>ONCE</goto>", '<call return="ONCE">A</call>', "<result>x</result>")
    assert isinstance(play.last[1], AgentFailed)
    assert len(play.main.stack or ()) == 1


def test_every_agent_counts_its_own_visits() -> None:
    play = played("<goto>ONCE</goto>", "<fork next='A'>ONCE</fork>")
    assert play.agent("main_once1").visits == {"ONCE.md": 1}


def test_then_may_lead_on_and_a_circle_of_it_fails() -> None:
    play = played("<goto>ROUND</goto>", "<goto>ROUND</goto>")
    moved = play.last[-1]
    assert isinstance(moved, AgentMoved)
    assert (play.main.state, moved.instead_of) == ("TRIP.md", "ROUND.md")
    play.say("<goto>TRIP</goto>")
    error = "the max_visits of TRIP.md, ROUND.md are used up and their `then` form a circle"
    assert play.last[1:] == [AgentFailed(agent="main", kind="visits", error=error)]


@pytest.mark.parametrize(
    ("visits", "target", "landing"),
    [
        ({}, "A", Landing("A.md")),
        ({"A.md": 9}, "A", Landing("A.md")),
        ({"TWICE.md": 1}, "TWICE", Landing("TWICE.md")),
        ({"TWICE.md": 2}, "TWICE", Landing("N.md", "TWICE.md")),
        ({"ROUND.md": 1}, "ROUND", Landing("TRIP.md", "ROUND.md")),
        ({}, "WORKR", Refusal("unknown_state", "there is no state `WORKR`", "did you mean `WORKER.md`?")),
    ],
)
def test_where_an_agent_lands(visits: dict[str, int], target: str, landing: Landing | Refusal) -> None:
    assert transitions.land(Play(FILES).workspace, visits, target) == landing


# on_error


def test_a_failed_visit_goes_to_on_error_with_its_error_in_the_same_conversation() -> None:
    play = played("<goto>SAFE</goto>")
    before = play.main.session
    play.fail("script", error="it broke")
    assert play.last[1:] == [AgentMoved(agent="main", tag="on_error", state="A.md", error="it broke")]
    assert (play.main.visit.cause, play.main.error, play.main.session) == ("it broke", "", before)
    play.say("<goto>B</goto>")
    assert play.main.visit.cause == ""


def test_the_error_lasts_for_the_visit_it_led_to() -> None:
    play = played("<goto>SAFE</goto>")
    play.fail("script", error="it broke")
    play.fail("auth", error="log in")
    assert (play.main.visit.cause, play.main.error) == ("it broke", "log in")
    play.resume()
    assert (play.main.visit.cause, play.main.error) == ("it broke", "")


def test_an_on_error_that_is_used_up_fails_the_agent_with_both_reasons() -> None:
    play = played("<goto>ONCE</goto>", "<goto>UNSAFE</goto>")
    play.fail("script", error="it broke")
    error = "it broke; then on_error: ONCE.md was visited 1 times, which is its max_visits"
    assert play.last[1:] == [AgentFailed(agent="main", kind="script", error=error)]


def test_an_on_error_obeys_max_visits_and_then() -> None:
    play = Play({**FILES, "S.sh": block("on_error: TWICE")})
    for text in ["<goto>TWICE</goto>", "<goto>TWICE</goto>", "<goto>S</goto>"]:
        play.say(text)
    play.fail("script")
    assert play.last[-1] == AgentMoved(agent="main", tag="on_error", state="N.md", error="boom", instead_of="TWICE.md")


def test_a_state_that_is_gone_has_no_on_error() -> None:
    play = played("<goto>ONCE</goto>", '<call return="ONCE">A</call>')
    del play.workspace.workflow.states["A.md"]
    play.ask("result", agent="main", text="x")
    assert play.kinds() == ["RequestTaken", "AgentFailed"]


# What is refused


def refusal(text: str, **given: Any) -> tuple[str, str]:
    play = played("<fork next='B'>A</fork>", **given)
    play.say(text, cds=CDS)
    refused = play.last[0]
    assert isinstance(refused, StepRefused), refused
    assert list(play.run.agents) == ["main", "main_a1"]
    assert (play.main.status, play.main.state) == ("ready", "B.md")
    return refused.reason, refused.hint


@pytest.mark.parametrize(
    "text",
    [
        "<goto>WORKR</goto>",
        "<reset>WORKR</reset>",
        '<call return="N">WORKR</call>',
        '<call return="WORKR">A</call>',
        '<function return="WORKR">A</function>',
        "<fork next='WORKR'>A</fork>",
        "<fork next='N'>WORKR</fork>",
        "<fork>A</fork><goto>WORKR</goto>",
        "<wait>WORKR</wait>",
        "<wait timeout='5m' timeout_next='WORKR'>A</wait>",
        '<ask next="WORKR">why?</ask>',
        '<ask next="N" timeout="5m" timeout_next="WORKR">why?</ask>',
    ],
)
def test_every_name_in_a_transition_must_be_a_state(text: str) -> None:
    assert refusal(text) == ("there is no state `WORKR`", "did you mean `WORKER.md`?")


@pytest.mark.parametrize("name", ["../A", "lib/A", ".hidden", "C:A", "a\\b", "a\0"])
def test_a_name_that_is_a_path_is_refused_wherever_it_comes_from(name: str) -> None:
    assert refusal(f"<goto>{name}</goto>") == (f"`{name}` is not the name of a state", "name a state of this workflow")


@pytest.mark.parametrize("text", ["<reset cd='/etc'>A</reset>", "<fork next='N' cd='/etc'>A</fork>"])
def test_a_directory_outside_is_refused_with_the_words_of_who_looked(text: str) -> None:
    assert refusal(text) == (OUTSIDE.reason, "")


def test_a_directory_nobody_looked_for_is_refused() -> None:
    assert refusal("<reset cd='other'>A</reset>") == ('cd="other": this directory was not checked', "")


def test_more_agents_than_allowed_are_refused_and_none_is_made() -> None:
    assert refusal("<fork>A</fork><fork>A</fork><wait>N</wait>", max_agents=2) == (
        "2 more agents would exceed max_agents (2)",
        "",
    )


def test_as_many_agents_as_allowed_are_made_and_main_is_not_counted() -> None:
    play = played("<fork>A</fork><fork>A</fork><wait>N</wait>", max_agents=2)
    assert len(play.run.agents) == 3
    play = played("<fork next='A'>A</fork>", "<result>x</result>", max_agents=2)
    play.say("<fork next='A'>A</fork>", "main_a1")
    assert list(play.run.agents) == ["main_a1", "main_a1_a1"]


def test_following_forks_gives_the_same_events_each_time() -> None:
    play = Play(FILES)
    asked = reading.read("<fork next='N' x='1'>A</fork>").transitions
    once, again = (
        transitions.follow(play.run, play.workspace, play.main, asked, time=5.0, directories={}) for _ in range(2)
    )
    assert (
        once
        == again
        == [
            AgentStarted(agent="main_a1", state="A.md", parent="main", variables={"x": "1"}, label="1"),
            AgentMoved(agent="main", tag="fork", state="N.md"),
        ]
    )


def test_a_call_says_what_it_is() -> None:
    play = played('<function return="N" model="small">A</function>')
    assert play.last[1:] == [AgentCalled(agent="main", tag="function", state="A.md", then="N.md", model="small")]
