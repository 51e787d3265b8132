"""The round of a run as values: what comes in, what is ordered, and in which order."""

from typing import Any

import pytest

from builders import START, head, place, start
from raymond.language.reading import read
from raymond.machine.agent import ASKING, PAUSED, READY, RUNNING, SCRIPTS, SLEEPING
from raymond.machine.conductor import Conductor, Orders
from raymond.machine.decide import begin
from raymond.machine.events import (
    AgentHeld,
    AgentPaused,
    AgentWoke,
    AskEnded,
    Decision,
    Event,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStopped,
    SessionNamed,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepStarted,
)
from raymond.machine.evolve import apply
from raymond.machine.failures import Kind
from raymond.machine.inputs import Failure, Interruption, Output, Spending
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.sender import Sender

FILES = {
    "START.sh": "",
    "TURN.md": "",
    "DEAR.md": head("budget: 1"),
    "OPUS.md": head("model: opus"),
    "SONNET.md": head("model: sonnet"),
    "END.sh": "",
}
FORK_TWO = "<fork>DEAR</fork><fork>DEAR</fork><wait>END</wait>"


class Desk:
    """A conductor, a clock, and everything it has ordered."""

    def __init__(self, **given: Any) -> None:
        workspace = place(FILES, "START.sh")
        self.run = Run()
        self.first = Decision(seq=1, time=START, events=begin(start(workspace, **given)))
        apply(self.run, self.first)
        self.now = START
        self.conductor = Conductor(self.run, workspace)
        self.decisions = [self.first]

    def orders(self) -> Orders:
        orders = self.conductor.orders()
        self.decisions += orders.decisions
        return orders

    def proceed(self) -> Orders:
        """One round without anything new."""
        self.conductor.proceed(self.now)
        return self.orders()

    def say(self, text: str, agent: str = "main") -> Orders:
        """The running step of `agent` ends with this output, and a round follows."""
        one = self.run.agents[agent]
        reading = read(text, script=one.pool == SCRIPTS)
        self.conductor.end(Output(time=self.now, agent=agent, reading=reading, session=one.turn_session))
        return self.proceed()

    def fail(self, agent: str = "main", kind: Kind = "crash", **given: Any) -> Orders:
        self.conductor.end(Failure(time=self.now, agent=agent, kind=kind, error="was stopped", **given))
        return self.proceed()

    def ask(self, kind: str, id: str = "q1", **given: Any) -> Orders:
        self.conductor.ask(Request(id=id, kind=kind, **given), self.now)  # type: ignore[arg-type]
        return self.orders()


def running(**given: Any) -> Desk:
    """The first step runs."""
    desk = Desk(**given)
    assert desk.proceed().start == ["main"]
    return desk


def forked(text: str, **given: Any) -> tuple[Desk, Orders]:
    desk = running(**given)
    return desk, desk.say(text)


def events(orders: Orders) -> list[Event]:
    return [event for decision in orders.decisions for event in decision.events]


def kinds(orders: Orders) -> list[type]:
    return [type(event) for event in events(orders)]


# What is owed


def test_a_step_is_ordered_together_with_the_decision_that_has_to_be_written_first() -> None:
    desk = Desk()
    orders = desk.proceed()
    assert (kinds(orders), orders.start) == ([StepStarted], ["main"])
    assert [decision.seq for decision in orders.decisions] == [2]


def test_an_order_is_given_once() -> None:
    desk = running()
    assert desk.proceed() == Orders([], [], [], [])


def test_the_end_of_a_step_and_the_start_of_the_next_are_written_together() -> None:
    desk = running()
    orders = desk.say("<goto>TURN</goto>")
    assert kinds(orders)[0] == StepFinished
    assert kinds(orders)[-1] == StepStarted
    assert orders.start == ["main"]


def test_whether_a_turn_can_be_paid_for_is_asked_for_each_one() -> None:
    """There is money for twenty turns as far as `owed` can tell, but the first reserves all of it."""
    desk, orders = forked(FORK_TWO, budget=1.0)
    assert orders.start == ["main_dear1"]
    assert desk.run.agents["main_dear2"].status == READY
    assert desk.say("<result></result>", "main_dear1").start == ["main_dear2"]


def test_without_a_budget_both_turns_start() -> None:
    _, orders = forked(FORK_TWO)
    assert orders.start == ["main_dear1", "main_dear2"]


def test_an_agent_that_waits_for_its_model_makes_room_for_another_in_the_same_round() -> None:
    opus, sonnet = "<fork>OPUS</fork>", "<fork>SONNET</fork>"
    desk, orders = forked(f"{opus}{opus}{sonnet}<wait>END</wait>", max_turns_at_once=1)
    assert orders.start == ["main_opus1"]
    orders = desk.fail("main_opus1", "limit", only_model=True, retry_at=desk.now + 60)
    assert AgentHeld in kinds(orders)
    assert orders.start == ["main_sonnet3"]


# What came in


def test_a_failure_that_nobody_caused_is_a_failure() -> None:
    assert kinds(running().fail(kind="script"))[0] == StepFailed


def test_a_failure_of_a_step_that_we_stopped_is_an_interruption_and_its_cost_counts() -> None:
    desk = running()
    desk.conductor.stop(RunStopped(kind="signal", signal=15), desk.now)
    orders = desk.fail(spent=Spending(cost=0.5))
    assert kinds(orders) == [RunStopped, StepInterrupted]
    assert desk.run.cost == 0.5


def test_a_session_is_journaled_when_it_is_new() -> None:
    desk, _ = forked("<goto>TURN</goto>")
    assert desk.conductor.name("main", "mine", desk.now)
    assert not desk.conductor.name("main", "mine", desk.now)
    assert events(desk.orders()) == [SessionNamed(agent="main", step=2, session="mine")]


# Pausing an agent


def test_a_request_to_pause_waits_until_the_step_has_ended() -> None:
    desk = running()
    assert desk.ask("pause", agent="main") == Orders([], [], ["main"], [])
    orders = desk.fail()
    assert kinds(orders) == [StepInterrupted, RequestTaken, AgentPaused]
    assert (orders.taken, orders.start) == (["q1"], [])
    assert desk.run.agents["main"].status == PAUSED


def test_what_a_step_said_before_it_was_stopped_counts() -> None:
    desk = running()
    desk.ask("pause", agent="main")
    desk.say("<goto>TURN</goto>")
    main = desk.run.agents["main"]
    assert (main.state, main.status) == ("TURN.md", PAUSED)


def test_a_step_is_stopped_once_however_often_that_is_asked() -> None:
    desk = running()
    assert desk.ask("pause", agent="main").pause == ["main"]
    assert desk.ask("pause", agent="main") == Orders([], [], [], [])
    assert desk.ask("pause", "q2", agent="main") == Orders([], [], [], [])
    orders = desk.fail()
    assert orders.taken == ["q1", "q2"]
    answers = [event for event in events(orders) if isinstance(event, RequestTaken)]
    assert [event.problem for event in answers] == ["", "main is already paused"]


def test_a_request_to_pause_that_was_taken_before_stops_nothing() -> None:
    desk = running()
    desk.ask("pause", agent="main")
    desk.fail()
    desk.ask("retry", "q2", agent="main")
    assert desk.proceed().start == ["main"]
    assert desk.ask("pause", agent="main") == Orders([], ["q1"], [], [])


def test_one_request_pauses_one_agent_and_the_failure_of_another_counts() -> None:
    """Otherwise a step could have its failures taken for the work of a person, and run again as often as it likes."""
    desk, orders = forked("<fork>TURN</fork><fork>TURN</fork><wait>END</wait>")
    one, two = orders.start
    assert desk.ask("pause", agent=one).pause == [one]
    assert desk.ask("pause", agent=two) == Orders([], [], [], [])
    assert kinds(desk.fail(one)) == [StepInterrupted, RequestTaken, AgentPaused]
    assert kinds(desk.fail(two))[0] == StepFailed


def test_nothing_of_a_request_that_waits_is_kept_but_what_it_needs() -> None:
    desk = running()
    desk.ask("pause", agent="main", text="x" * 1_000_000)
    assert desk.conductor.waiting == {"main": [Request(id="q1", kind="pause", agent="main")]}


def test_a_request_to_pause_that_was_taken_while_it_waited_excuses_no_failure() -> None:
    desk = running()
    desk.ask("pause", agent="main")
    desk.conductor.take(Request(id="q1", kind="resume"), desk.now)
    desk.orders()
    assert kinds(desk.fail(kind="script"))[0] == StepFailed


def test_an_agent_without_a_running_step_is_paused_at_once() -> None:
    desk = running()
    desk.say('<goto after="1h">TURN</goto>')
    orders = desk.ask("pause", agent="main")
    assert (kinds(orders), orders.taken, orders.pause) == ([RequestTaken, AgentPaused], ["q1"], [])


# Requests and answers


def test_a_request_is_let_go_of_with_the_decision_that_answers_it() -> None:
    desk = running()
    orders = desk.ask("limits", max_turns=5)
    assert (orders.taken, desk.run.limits.max_turns) == (["q1"], 5)
    assert desk.ask("limits", max_turns=6) == Orders([], ["q1"], [], [])


def test_a_typed_answer_becomes_a_decision() -> None:
    desk = running()
    desk.say('<ask next="END">Which?</ask>')
    desk.conductor.answer("t1", "main", "blue", desk.now)
    orders = desk.proceed()
    assert [event.answer for event in events(orders) if isinstance(event, AskEnded)] == ["blue"]
    assert orders.start == ["main"]


def test_what_was_asked_of_the_driver_before_does_not_stop_the_one_that_resumes() -> None:
    desk = running()
    desk.conductor.take(Request(id="q1", kind="stop", now=True), desk.now)
    desk.conductor.take(Request(id="q2", kind="pause", agent="main"), desk.now)
    desk.conductor.resume("1", desk.now)
    orders = desk.orders()
    assert (kinds(orders)[-1], orders.pause, orders.taken) == (RunResumed, [], ["q1", "q2"])
    assert (desk.conductor.stopping, desk.run.stop) == (False, None)


# The end


def test_nothing_is_begun_after_a_stop() -> None:
    desk = Desk()
    desk.conductor.stop(RunStopped(kind="signal", signal=15), desk.now)
    orders = desk.proceed()
    assert (kinds(orders), orders.start) == ([RunStopped], [])
    assert desk.conductor.is_done()


def test_a_request_to_stop_waits_for_running_steps_unless_it_is_for_now() -> None:
    desk = running()
    desk.ask("stop")
    assert (desk.conductor.stopping, desk.conductor.is_done()) == (False, False)
    desk = running()
    desk.ask("stop", now=True)
    assert (desk.conductor.stopping, desk.conductor.is_done()) == (True, True)


@pytest.mark.parametrize("what", [{"kind": "stop", "now": True}, {"kind": "pause", "agent": "main"}])
def test_nobody_is_stopped_by_whoever_may_not_ask_for_it(what: dict[str, Any]) -> None:
    """A step of another run asks."""
    desk = running()
    orders = desk.ask(**what, sender=Sender(way="socket", steps=["another"]))
    [taken] = events(orders)
    assert isinstance(taken, RequestTaken)
    assert taken.problem == f"`{what['kind']}` was asked for by a step of another run"
    assert (orders.pause, desk.conductor.stopping, desk.run.stop) == ([], False, None)
    assert desk.say("<goto>END</goto>").start == ["main"]


def test_the_first_ctrl_c_waits_for_what_runs_and_begins_nothing_new() -> None:
    desk = running()
    desk.conductor.pause(desk.now)
    assert events(desk.proceed()) == [RunStopped(kind="paused")]
    assert not desk.conductor.is_done()
    orders = desk.say("<goto>TURN</goto>")
    assert (orders.start, desk.run.agents["main"].state) == ([], "TURN.md")
    assert desk.conductor.is_done()


def test_a_run_without_agents_ends_in_the_round_that_took_its_last_output() -> None:
    desk = running()
    assert kinds(desk.say("<result></result>"))[-1] == RunEnded
    assert desk.conductor.is_done()


def test_a_question_keeps_the_driver_only_where_somebody_can_answer() -> None:
    desk = running()
    desk.say('<ask next="END">Which?</ask>')
    assert desk.run.statuses[ASKING] == 1
    assert desk.conductor.is_done()
    assert not desk.conductor.is_done(can_answer=True)


# Time


def test_the_driver_may_sleep_until_the_next_agent_wakes() -> None:
    desk = running()
    assert desk.conductor.wakes_at() is None
    desk.say('<goto after="1h">TURN</goto>')
    assert (desk.conductor.wakes_at(), desk.conductor.is_done()) == (START + 3600, False)
    desk.now = START + 3599
    assert desk.proceed() == Orders([], [], [], [])
    assert desk.run.agents["main"].status == SLEEPING
    desk.now = START + 3600
    orders = desk.proceed()
    assert (kinds(orders), orders.start) == ([AgentWoke, StepStarted], ["main"])


def test_the_end_of_max_time_ends_a_sleep_too() -> None:
    desk = running(max_time=60.0)
    assert desk.conductor.wakes_at() == START + 60
    desk.now = START + 60
    assert kinds(desk.proceed()) == [RunStopped]
    assert desk.conductor.wakes_at() is None
    assert desk.run.agents["main"].status == RUNNING


def test_what_was_ordered_folds_to_the_run_it_came_from() -> None:
    desk, _ = forked(FORK_TWO, budget=1.0)
    desk.ask("pause", agent="main_dear1")
    desk.conductor.end(Interruption(time=desk.now, agent="main_dear1"))
    desk.proceed()
    folded = Run()
    for decision in desk.decisions:
        apply(folded, decision)
    assert folded == desk.run
    assert [decision.seq for decision in desk.decisions] == list(range(1, desk.run.seq + 1))
