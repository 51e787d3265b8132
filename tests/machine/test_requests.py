"""What a person asks of a run: what follows, what is refused and why."""

from typing import Any

import pytest

from builders import START, Play, asking, head
from raymond.faces.summary import next_command
from raymond.language.refusal import Refusal
from raymond.machine import requests, schedule
from raymond.machine.agent import Conversation, Outcome, Stuck
from raymond.machine.events import (
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    AgentReturned,
    AgentWoke,
    AskEnded,
    BackendOpened,
    ClockSet,
    JournalCut,
    LimitsChanged,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStopped,
    StepInterrupted,
    StepStarted,
    WaitEnded,
)
from raymond.machine.limits import LimitName
from raymond.machine.requests import Request
from raymond.machine.sender import Sender
from raymond.views.status import exit_code, run_status
from raymond.views.times import instant

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "ONCE.md": head("max_visits: 1")}


def taken(kind: str, id: str = "r") -> RequestTaken:
    return RequestTaken(request=id, kind=kind)


def test_a_question_cannot_be_answered_when_its_time_is_over() -> None:
    play = Play(FILES)
    play.say('<ask next="N" timeout="5m" timeout_next="A">why?</ask>')
    answer, until = Request(id="r", kind="answer", text="so"), play.run.agents["main"].visit.wake_at
    assert requests.problem(play.run, play.workspace, answer, until - 1) is None
    late = requests.problem(play.run, play.workspace, answer, until)
    assert late == Refusal("overdue", f"the question of main could be answered until {instant(until)}")
    [refused] = requests.take(play.run, play.workspace, answer, until)
    assert refused == RequestTaken(request="r", kind="answer", problem=late.reason)


# Every request


@pytest.mark.parametrize("kind", ["answer", "stop", "pause", "retry", "move", "result", "give_up", "limits"])
def test_a_second_delivery_changes_nothing(kind: Any) -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>" if kind == "pause" else '<ask next="A">why?</ask>')
    if kind == "retry":
        play.ask("give_up", agent="main")
    given = {"agent": "main", "text": "x", "state": "B", "budget": 5.0}
    assert play.ask(kind, id="once", **given)[0] == taken(kind, "once")
    before = play.run.seq
    assert play.ask(kind, id="once", **given) == []
    assert play.run.seq == before


def test_a_refused_request_is_taken_too_and_says_why() -> None:
    play = Play(FILES)
    problem = "there is no agent ghost left in test-1"
    assert play.ask("retry", id="r", agent="ghost") == [RequestTaken(request="r", kind="retry", problem=problem)]
    assert play.ask("retry", id="r", agent="ghost") == []


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request(id="r", kind="stop"), None),
        (Request(id="r", kind="move", agent="main", state="A"), None),
        (
            Request(id="r", kind="answer", text="x"),
            Refusal("not_asking", "no agent is waiting for an answer"),
        ),
        (Request(id="r", kind="retry", agent="main"), Refusal("agent_status", "main is ready, not failed or paused")),
    ],
)
def test_whether_a_request_would_be_refused_can_be_asked_before(request_: Request, problem: Refusal | None) -> None:
    play = Play(FILES)
    assert requests.problem(play.run, play.workspace, request_) == problem
    assert play.run.requests == {}


# Answers


def test_the_only_question_is_answered_without_a_name() -> None:
    play = Play(FILES)
    play.say('<ask next="N">why?</ask>')
    assert requests.asking(play.run) == [play.main]
    assert play.ask("answer", id="r", text="so") == [taken("answer"), AskEnded(agent="main", state="N.md", answer="so")]
    assert (play.main.state, play.main.visit.input) == ("N.md", "so")


def test_several_questions_need_a_name() -> None:
    play = asking(FILES)
    request = Request(id="r", kind="answer", text="so")
    assert requests.problem(play.run, play.workspace, request) == Refusal(
        "several_asking", "several agents are waiting for an answer: main_a1, main_b2"
    )
    play.ask("answer", agent="main_b2", text="so")
    assert (play.agent("main_b2").visit.input, play.agent("main_a1").status) == ("so", "asking")
    play.ask("answer", text="and so")
    assert play.agent("main_a1").visit.input == "and so"


def test_an_answer_to_who_does_not_ask_is_refused() -> None:
    assert asking(FILES).refused("answer", agent="main", text="so") == "main is not waiting for an answer"
    assert Play(FILES).refused("answer", text="so") == "no agent is waiting for an answer"


# Stopping and limits


def test_a_run_is_stopped_once() -> None:
    play = Play(FILES)
    assert play.ask("stop", id="r") == [taken("stop"), RunStopped(kind="stop")]
    assert play.ask("stop", id="s", now=True) == [taken("stop", "s")]
    assert play.run.stop == RunStopped(kind="stop")
    assert (run_status(play.run), exit_code(play.run)) == ("stopped", 3)


def test_a_stop_says_whether_steps_were_to_end_at_once() -> None:
    play = Play(FILES)
    assert play.ask("stop", id="r", now=True) == [taken("stop"), RunStopped(kind="stop", at_once=True)]
    assert (run_status(play.run), exit_code(play.run)) == ("stopped", 3)


def test_a_run_that_has_ended_is_not_stopped() -> None:
    play = Play(FILES)
    play.say("<result>x</result>")
    play.pass_time()
    assert play.refused("stop") == "test-1 has ended"


def test_new_limits_hold_from_now_on() -> None:
    play = Play(FILES, budget=1.0)
    play.say("<goto>A</goto>", cost=2.0)
    assert play.ask("limits", id="r", budget=5.0, max_iterations=9) == [
        taken("limits"),
        LimitsChanged(budget=5.0, max_iterations=9),
    ]
    play.resume()
    assert (play.run.stop, schedule.owed(play.run)) == (None, ["main"])


def test_turns_and_tools_can_be_allowed_later() -> None:
    play = Play(FILES, max_turns=1, allowed_tools=["Read"])
    play.say("<goto>A</goto>")
    assert play.ask("limits", id="r", max_turns=5, allowed_tools=["Edit"]) == [
        taken("limits"),
        LimitsChanged(max_turns=5, allowed_tools=["Edit"]),
    ]
    assert (play.run.limits.max_turns, play.run.rights.allowed) == (5, ("Read", "Edit"))
    play.ask("limits", allowed_tools=["Bash"])
    assert (play.run.limits.max_turns, play.run.rights.allowed) == (5, ("Read", "Edit", "Bash"))
    assert play.resume() == [RunResumed(version="1.0")]


@pytest.mark.parametrize("how", ["failed", "paused"])
def test_resumed_fresh_what_failed_or_paused_begins_without_its_conversation(how: str) -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>", meter=(1, 2))
    play.say("no tag", meter=(3, 4))
    play.fail("setup" if how == "failed" else "auth")
    conversation = Conversation("claude", play.main.session, (3, 4))
    assert (play.main.status, play.main.conversation, play.main.visit.reminder != "") == (how, conversation, True)
    assert play.resume(fresh=True)[-1] == AgentRetried(agent="main", fresh=True)
    assert (play.main.conversation, play.main.visit.reminder) == (None, "")
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.base == ""


def test_resumed_as_ever_a_conversation_goes_on_with_its_reminder() -> None:
    play = Play(FILES)
    play.say("no tag", meter=(3, 4))
    conversation = Conversation("claude", play.main.session, (3, 4))
    play.fail("setup")
    assert play.resume()[-1] == AgentRetried(agent="main")
    assert (play.main.conversation, play.main.visit.reminder != "") == (conversation, True)


def test_a_conversation_that_is_gone_fails_at_once_and_fresh_mends_it() -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>")
    play.fail("session", error="it is not there")
    assert (play.main.status, play.main.visit.stuck) == ("failed", Stuck("session", "it is not there"))
    play.resume(fresh=True)
    assert (play.main.status, play.main.session) == ("ready", "")


def test_fresh_leaves_alone_who_is_well_and_who_was_given_up() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork next='N'>B</fork>".replace("<fork>A", "<fork next='N'>A"))
    session = play.main.session
    play.ask("give_up", agent="main_a1")
    assert play.resume(fresh=True)[1:] == []
    assert (play.main.session, play.agent("main_a1").status) == (session, "failed")


def test_a_higher_limit_of_time_lets_the_run_go_on() -> None:
    """Also a day later: what counts is how long it was driven."""
    play = Play(FILES, max_time=60.0)
    play.say("<goto>A</goto>")
    play.pass_time(60)
    play.now += 86_400
    assert play.ask("limits", id="r", max_time=100.0) == [taken("limits"), LimitsChanged(max_time=100.0)]
    play.now += 86_400
    assert play.resume() == [RunResumed(version="1.0")]
    assert (schedule.owed(play.run), schedule.over_at(play.run)) == (["main"], play.now + 40)
    play.say("<goto>B</goto>")
    assert play.pass_time(40) == [RunStopped(kind="limit", limit="time", amount=100.0)]


# An agent by name


def test_an_agent_that_is_ready_or_asleep_can_be_paused() -> None:
    play = Play(FILES)
    assert play.ask("pause", id="r", agent="main") == [
        taken("pause"),
        AgentPaused(agent="main", kind="person"),
    ]
    assert (play.main.status, schedule.owed(play.run), run_status(play.run)) == ("paused", [], "paused")
    play.ask("retry", agent="main")
    assert schedule.owed(play.run) == ["main"]
    play.say("<goto after='5m'>A</goto>")
    play.ask("pause", agent="main")
    assert play.main.status == "paused"
    play.ask("retry", agent="main")
    assert (play.main.status, play.main.state) == ("sleeping", "A.md")


def test_an_agent_that_is_paused_in_its_sleep_sleeps_on_afterwards() -> None:
    play = Play(FILES)
    play.say("<goto after='1h'>A</goto>")
    due = schedule.wake_at(play.run)
    play.ask("pause", agent="main")
    assert (schedule.wake_at(play.run), play.pass_time(600)) == (None, [])
    play.resume()
    assert (play.main.status, schedule.wake_at(play.run)) == ("sleeping", due)
    assert play.pass_time(2999) == []
    assert play.pass_time(1) == [AgentWoke(agent="main")]
    play.say("<goto>B</goto>")
    play.fail("script")
    play.resume()
    assert play.main.status == "ready", "a sleep is over when it is over"


def test_a_clock_that_is_set_while_it_is_paused_does_not_make_its_sleep_longer() -> None:
    play = Play(FILES)
    play.say('<goto after="10m">A</goto>')
    play.ask("pause", agent="main")
    play.now -= 3600
    play.commit([ClockSet(seconds=-3600.0)])
    play.ask("retry", agent="main")
    assert play.main.visit.wake_at == play.now + 600


def test_a_clock_that_was_put_right_while_nobody_drove_the_run_lets_nobody_sleep_longer() -> None:
    """It had shown a day too much."""
    play = Play(FILES, max_time=100.0)
    play.now += 40
    play.fail("crash")
    assert play.main.visit.wake_at == play.now + 1
    play.now -= 86400
    events = play.resume()
    assert events[0] == ClockSet(seconds=-86400.0)
    assert play.main.visit.wake_at == play.now + 1
    assert schedule.over_at(play.run) == play.now + 60, "what was driven counts, and no more"
    assert play.pass_time(1.0) == [AgentWoke(agent="main")]


# After the death of a driver


def fan(status: str) -> Play:
    """Two agents, the second of which runs, and main, which is `failed` or `paused`."""
    play = Play(FILES)
    play.say("<fork next='B'>A</fork>")
    if status == "failed":
        play.fail("setup")
    else:
        play.ask("pause", agent="main", sender=Sender(way="socket"))
    play.begin("main_a1")
    return play


@pytest.mark.parametrize("status", ["failed", "paused"])
def test_after_the_death_of_a_driver_only_what_ran_goes_on(status: str) -> None:
    play = fan(status)
    assert requests.driver_died(play.run)
    assert play.resume() == [RunResumed(version="1.0")]
    assert (play.main.status, play.agent("main_a1").status) == (status, "running")
    play.interrupt("main_a1", by_death=True)
    assert requests.driver_died(play.run), "it died again before it began the step anew"
    assert play.resume() == [RunResumed(version="1.0")]
    play.ask("retry", agent="main")
    assert play.main.status == "ready", "an agent that is named is tried again"


@pytest.mark.parametrize("way", ["socket", "face"])
@pytest.mark.parametrize("status", ["failed", "paused"])
def test_a_request_that_the_driver_took_last_does_not_hide_its_death(status: str, way: Any) -> None:
    play = fan(status)
    play.say("<goto after='60s'>B</goto>", "main_a1")
    play.now += 5
    play.ask("limits", budget=20.0, sender=Sender(way=way))
    assert requests.driver_died(play.run)
    play.now += 5
    assert play.resume() == [RunResumed(version="1.0")]


def test_what_is_asked_of_one_agent_is_no_reason_to_try_the_others_again() -> None:
    play = fan("failed")
    play.stop()
    play.interrupt("main_a1")
    assert play.resume(retries=False, fresh=True) == [RunResumed(version="1.0")]


@pytest.mark.parametrize("status", ["failed", "paused"])
def test_after_a_stop_or_when_asked_for_all_are_tried_again(status: str) -> None:
    play = fan(status)
    assert AgentRetried(agent="main", fresh=True) in play.resume(fresh=True)
    play = fan(status)
    play.stop()
    play.interrupt("main_a1")
    assert AgentRetried(agent="main") in play.resume()


def test_a_driver_that_left_by_itself_did_not_die() -> None:
    play = Play(FILES)
    play.say("<fork next='B'>A</fork>")
    play.fail("setup")
    play.say("<ask next='N'>well?</ask>", "main_a1")
    assert not requests.driver_died(play.run)
    play.now += 60
    play.ask("answer", text="yes")
    assert not requests.driver_died(play.run), "the answer came while nobody drove"
    assert AgentRetried(agent="main") in play.resume()


def test_a_driver_died_when_the_end_of_its_journal_is_lost_and_something_is_to_be_done() -> None:
    """The line that was lost may have begun the step."""
    play = Play(FILES)
    play.say("<fork next='B'>A</fork>")
    play.fail("setup")
    play.now += 60
    play.commit([JournalCut(steps=9)])
    assert play.resume() == [RunResumed(version="1.0")]
    play.say("<ask next='N'>well?</ask>", "main_a1")
    play.now += 60
    play.ask("answer", text="yes")
    assert AgentRetried(agent="main") in play.resume(), "that was before the last driver"


def test_tools_that_were_allowed_meanwhile_are_tried_after_a_death_too() -> None:
    play = Play({**FILES, "START.md": head("on_denied: pause")})
    play.say("<result></result>", denied=("Edit",))
    play.run.statuses["running"] = 1  # another agent ran
    assert AgentRetried(agent="main") not in play.resume()
    play.ask("limits", allowed_tools=["Edit"])
    play.run.statuses["running"] = 1
    assert AgentRetried(agent="main") in play.resume()


def test_a_visit_that_its_drivers_die_of_fails_in_the_end() -> None:
    play = Play(FILES)
    for _ in range(4):
        [cut] = play.interrupt(by_death=True, cost=0.25)
        assert cut == StepInterrupted(agent="main", step=play.main.step, cost=0.25, by_death=True)
        play.resume()
    *_, failed = play.interrupt(by_death=True)
    error = "the process that drives the run died 5 times in a row during this visit"
    assert failed == AgentFailed(agent="main", kind="crash", error=error)
    assert play.pass_time() == [RunEnded(status="failed")]
    play.resume()
    assert play.interrupt(by_death=True)[1:] == [], "whoever resumes a run that failed gives it new tries"


def test_only_deaths_in_a_row_count() -> None:
    play = Play(FILES)
    for _ in range(3):
        for _ in range(4):
            play.interrupt(by_death=True)
        play.interrupt()
    for _ in range(4):
        play.interrupt(by_death=True)
    play.say("no tag")
    assert play.interrupt(by_death=True)[1:] == []


def test_a_pause_and_a_stop_say_that_a_step_asked_for_them() -> None:
    play = Play(FILES)
    step = Sender(way="socket", steps=[play.run.start.key])
    assert play.ask("pause", agent="main", sender=step)[1:] == [AgentPaused(agent="main", kind="step")]
    assert play.ask("stop", sender=step)[1:] == [RunStopped(kind="stop", by="step")]


def test_only_a_person_opens_more_directories() -> None:
    play = Play(FILES, inside=["outer"], roots=["/a"])
    for sender in (Sender(way="socket", steps=["outer"]), Sender(way="inbox")):
        said = play.refused("limits", roots=["/b"], sender=sender)
        assert said == "`resume --root` was asked for by a step of a run"
    play.ask("limits", roots=["/b", "/a"], sender=Sender(way="socket"))
    assert play.run.start.roots == ["/a", "/b"]


@pytest.mark.parametrize(
    ("sender", "who"),
    [
        (Sender(way="socket", steps=["outer"]), "a step"),
        (Sender(way="command", pid=7, terminal="/dev/pts/1"), "a person"),
        (Sender(way="command", pid=7), "a command"),
        (Sender(way="inbox"), "an unknown process"),
    ],
)
def test_an_agent_that_is_given_up_says_by_whom(sender: Sender, who: str) -> None:
    play = Play(FILES, inside=["outer"])
    [_, failed, *_] = play.ask("give_up", agent="main", sender=sender)
    assert isinstance(failed, AgentFailed)
    assert failed.error == f"given up by {who}"


def test_the_others_go_on_while_one_is_paused() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.ask("pause", agent="main_a1")
    assert (schedule.owed(play.run), run_status(play.run)) == (["main_b2"], "running")


def test_pausing_an_agent_that_runs_is_left_to_its_driver() -> None:
    """It ends the step first, and takes the request then."""
    play = Play(FILES)
    play.begin()
    assert play.ask("pause", id="r", agent="main") == [taken("pause")]
    assert play.main.status == "running"
    play.interrupt()
    assert play.ask("pause", id="s", agent="main")[1:] == [AgentPaused(agent="main", kind="person")]


def test_who_starts_nothing_by_itself_is_not_paused() -> None:
    """Tried again, it would repeat the step that asked or forked."""
    assert asking(FILES).refused("pause", agent="main_a1") == "main_a1 is asking: there is nothing to pause"
    assert asking(FILES).refused("pause", agent="main") == "main is waiting: there is nothing to pause"


def test_who_rests_already_is_not_paused() -> None:
    play = Play(FILES)
    play.ask("pause", agent="main")
    assert play.refused("pause", agent="main") == "main is already paused"
    play = Play(FILES)
    play.fail("setup")
    assert play.refused("pause", agent="main") == "main has already failed"
    assert play.refused("pause", agent="ghost") == "there is no agent ghost left in test-1"


@pytest.mark.parametrize("kind", ["retry", "move", "result", "give_up"])
def test_an_agent_that_runs_is_left_alone(kind: Any) -> None:
    play = Play(FILES)
    play.begin()
    request = Request(id="r", kind=kind, agent="main", state="A")
    assert requests.problem(play.run, play.workspace, request) == Refusal("agent_running", "main is running")


def test_a_failed_agent_is_tried_again() -> None:
    play = Play(FILES)
    play.fail("setup")
    assert play.ask("retry", id="r", agent="main") == [taken("retry"), AgentRetried(agent="main")]
    assert (play.main.status, schedule.owed(play.run)) == ("ready", ["main"])


def test_a_paused_agent_is_tried_again() -> None:
    play = Play(FILES)
    play.fail("auth")
    play.ask("retry", agent="main")
    assert play.main.status == "ready"


def test_an_agent_that_is_well_is_not_retried() -> None:
    assert asking(FILES).refused("retry", agent="main") == "main is waiting, not failed or paused"


@pytest.mark.parametrize("how", ["ready", "failed", "paused", "sleeping", "asking", "waiting"])
def test_any_agent_that_does_not_run_can_be_moved(how: str) -> None:
    play = Play(FILES)
    match how:
        case "failed":
            play.fail("setup")
        case "paused":
            play.fail("auth")
        case "sleeping":
            play.say("<goto after='5m'>A</goto>")
        case "asking":
            play.say('<ask next="N" timeout="5m">why?</ask>')
        case "waiting":
            play.say("<fork>A</fork><wait timeout='5m'>N</wait>")
        case _:
            pass
    assert play.main.status == how
    session = play.main.session
    assert play.ask("move", id="r", agent="main", state="B", text="x") == [
        taken("move"),
        AgentMoved(agent="main", tag="moved", state="B.md", input="x"),
    ]
    assert (play.main.status, play.main.state, play.main.visit.input, play.main.error) == ("ready", "B.md", "x", "")
    assert (play.main.session, play.main.visit.wake_at, play.run.failed_count) == (session, 0.0, 0)


def test_a_person_who_moves_an_agent_means_it() -> None:
    play = Play(FILES)
    play.ask("move", agent="main", state="ONCE")
    play.ask("move", agent="main", state="ONCE")
    assert play.main.visits == {"START.md": 1, "ONCE.md": 2}


def test_a_move_to_nowhere_is_refused() -> None:
    assert Play(FILES).refused("move", agent="main", state="../x") == "`../x` is not the name of a state"
    assert Play(FILES).refused("move", agent="main") == "there is no state ``"


def test_a_result_given_by_hand_ends_the_agent_and_the_wait_for_it() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait>N</wait>")
    assert play.ask("result", id="r", agent="main_a1", text="by hand") == [
        taken("result"),
        AgentEnded(agent="main_a1", result="by hand"),
        WaitEnded(agent="main", state="N.md"),
    ]
    assert play.main.visit.results == [Outcome("main_a1", "A.md", "done", "by hand")]


def test_a_result_given_by_hand_returns_to_the_caller() -> None:
    play = Play(FILES)
    play.say('<call return="N">A</call>')
    assert play.ask("result", id="r", agent="main", text="x")[1:] == [
        AgentReturned(agent="main", state="N.md", result="x")
    ]


def test_a_failed_agent_may_be_given_a_result() -> None:
    play = Play(FILES)
    play.fail("setup")
    play.ask("result", agent="main", text="x")
    assert (play.run.failed_count, play.run.outcomes["main"].result) == (0, "x")
    play.pass_time()
    assert play.run.final_status == "completed"


def test_a_failed_run_whose_last_failed_agent_is_given_a_result_still_has_to_end_well() -> None:
    play = Play(FILES)
    play.fail("setup")
    play.pass_time()
    assert (play.run.final_status, play.run.is_over) == ("failed", False)
    play.ask("result", agent="main", text="x")
    assert (play.run.final_status, play.run.is_over) == ("failed", False)
    assert next_command(play.run) == "raymond resume test-1"
    play.resume()
    play.pass_time()
    assert (play.run.final_status, play.run.is_over) == ("completed", True)


def test_a_failure_that_a_wait_did_not_expect_fails_the_run_whatever_result_is_given_later() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait>N</wait>")
    play.fail("setup", "main_a1")
    play.fail("setup")
    play.pass_time()
    play.ask("result", agent="main", text="x")
    assert (play.run.final_status, play.run.is_over) == ("failed", True)


@pytest.mark.parametrize(("text", "error"), [("too slow", "too slow"), ("", "given up by a person")])
def test_an_agent_that_is_given_up_has_failed_and_its_parent_goes_on(text: str, error: str) -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait>N</wait>")
    play.say("<goto after='5m'>B</goto>", "main_a1")
    assert play.ask("give_up", id="r", agent="main_a1", text=text) == [
        taken("give_up"),
        AgentFailed(agent="main_a1", kind="given up", error=error),
        WaitEnded(agent="main", state="N.md"),
    ]
    assert play.main.visit.results == [Outcome("main_a1", "B.md", "failed", "", error)]
    assert play.pass_time(1000) == []


def test_who_has_failed_is_not_given_up() -> None:
    play = Play(FILES)
    play.fail("setup")
    assert play.refused("give_up", agent="main") == "main has already failed"


# Resuming


def test_a_resumed_run_goes_on_where_it_was() -> None:
    play = Play(FILES)
    play.stop()
    assert play.resume() == [RunResumed(version="1.0")]
    assert (play.run.stop, schedule.owed(play.run)) == (None, ["main"])


def test_what_failed_or_paused_tries_again_and_a_backend_closed_for_a_person_is_open() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><goto>N</goto>")
    play.fail("setup", "main_a1")
    play.fail("auth", "main_b2")
    assert play.resume() == [
        RunResumed(version="1.0"),
        BackendOpened(backend="claude"),
        AgentRetried(agent="main"),
        AgentRetried(agent="main_a1"),
        AgentRetried(agent="main_b2"),
    ]
    assert schedule.owed(play.run) == ["main", "main_a1", "main_b2"]


def test_an_agent_that_was_given_up_is_not_tried_again_by_a_resume() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.ask("give_up", agent="main_a1")
    assert AgentRetried(agent="main_a1") not in play.resume()
    play.ask("retry", agent="main_a1")
    assert play.statuses()["main_a1"] == "ready"


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_backend_that_time_opens_is_not_opened_by_a_resume(seconds: float) -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait>N</wait>")
    play.fail("overload", "main_a1")
    play.pass_time(seconds)
    assert play.resume() == [RunResumed(version="1.0")]
    assert (list(play.run.closed), list(play.run.probing)) == (["claude"], ["claude"] if seconds else [])


def test_a_run_that_ended_in_failure_is_alive_again() -> None:
    play = Play(FILES)
    play.fail("setup")
    play.pass_time()
    assert play.run.final_status == "failed"
    play.resume()
    assert (play.run.final_status, schedule.owed(play.run)) == ("", ["main"])


@pytest.mark.parametrize(
    ("given", "limit", "amount"),
    [
        ({"budget": 1.0}, "budget", 1.0),
        ({"max_iterations": 1}, "iterations", 1.0),
        ({"max_turns": 1}, "turns", 1.0),
        ({"max_time": 0.5}, "time", 0.5),
    ],
)
def test_a_limit_that_is_still_reached_stops_the_run_again_before_anything_is_paid(
    given: dict[str, Any], limit: LimitName, amount: float
) -> None:
    play = Play(FILES, **given)
    play.now += 1
    play.say("<goto>A</goto>", cost=1.0)
    play.now = START + 60
    assert play.resume() == [RunResumed(version="1.0"), RunStopped(kind="limit", limit=limit, amount=amount)]
    assert (schedule.owed(play.run), exit_code(play.run)) == ([], 4)


def test_a_step_whose_driver_died_is_ended_before_a_person_decides() -> None:
    play = Play(FILES, budget=10.0)
    spent = {"cost": 0.25, "estimated": True, "unknown": True}
    assert requests.cut(play.run, "main", spent) == requests.cut(play.run, "nobody", spent) == []
    play.begin()
    assert play.run.reserved == 10.0
    [cut] = requests.cut(play.run, "main", spent)
    assert isinstance(cut, StepInterrupted)
    assert (cut.step, cut.cost, cut.estimated, cut.unknown) == (1, 0.25, True, True)
    play.commit([cut])
    assert (play.main.status, play.run.unpriced, play.run.cost, play.run.reserved) == ("ready", 1, 0.25, 0.0)


def test_a_backend_that_rests_is_tried_at_once_by_one_turn_when_a_person_says_so() -> None:
    play = Play(FILES, backend="claude")
    play.fail("limit", retry_at=START + 3600)
    play.stop()
    assert requests.resume(play.run, "1.0", now=play.now) == [RunResumed(version="1.0")]
    events = requests.resume(play.run, "1.0", now=play.now, at_once=True)
    assert events == [RunResumed(version="1.0"), BackendOpened(backend="claude", probing=True)]
    play.commit(events)
    assert schedule.owed(play.run) == ["main"]


def test_a_limit_that_lasts_longer_than_is_waited_for_stops_a_run_that_is_resumed() -> None:
    play = Play(FILES, max_wait=0.0)
    play.fail("limit", retry_at=START + 3600)
    [*_, stopped] = requests.resume(play.run, "1.0", now=play.now)
    assert stopped == RunStopped(kind="limit", limit="wait", amount=0.0, backend="claude", wait=3600.0)
    assert not any(
        isinstance(event, RunStopped) for event in requests.resume(play.run, "1.0", now=play.now, at_once=True)
    )
    assert not any(isinstance(event, RunStopped) for event in requests.resume(play.run, "1.0", now=START + 3600))


@pytest.mark.parametrize(
    "what",
    [
        {"kind": "pause", "agent": "x" * 1_000_000},
        {"kind": "answer", "agent": "x" * 1_000_000},
        {"kind": "move", "agent": "main", "state": "x" * 1_000_000},
    ],
)
def test_what_is_asked_does_not_fill_the_journal_with_the_reason_why_it_is_refused(what: dict[str, str]) -> None:
    assert 0 < len(Play(FILES).refused(**what)) <= 1001


# Where nobody is to be asked


def test_a_question_fails_its_agent_where_nobody_is_to_be_asked() -> None:
    play = Play(FILES, on_ask="fail")
    play.say('<ask next="N">Which?</ask>')
    play.pass_time()
    [failed] = [event for event in play.events if isinstance(event, AgentFailed)]
    assert (failed.kind, failed.error) == ("asked", "question 1 was not answered: the run has --on-ask fail")
    assert play.run.final_status == "failed"
    assert next_command(play.run) == "raymond resume test-1 --on-ask wait"


def test_open_questions_fail_and_end_the_wait_for_them_when_a_person_says_so_later() -> None:
    play = asking(FILES)
    play.pass_time()
    assert play.run.statuses.get("asking"), "until then they wait"
    play.ask("limits", on_ask="fail")
    play.pass_time()
    assert play.statuses() == {"main": "ready"}
    play.ask("limits", on_ask="wait")
    assert play.run.start.on_ask == "wait"


def test_what_needs_a_person_is_not_got_around_by_a_failure() -> None:
    play = Play({**FILES, "START.md": head("on_error: N")}, on_ask="fail")
    play.say('<ask next="N" approve="person">Release?</ask>')
    play.pass_time()
    [failed] = [event for event in play.events if isinstance(event, AgentFailed)]
    assert failed.kind == "approval"
    for kind in ("move", "result"):
        assert "approval of a person" in play.refused(kind, agent="main", state="N")
    assert AgentRetried(agent="main") in play.ask("retry", agent="main"), "which asks again"
