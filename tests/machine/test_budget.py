"""What turns may cost: shares of the budget, what is reserved, who waits, what is told."""

from itertools import product
from typing import Any

import pytest

from builders import Play, head, kind_of
from raymond.language.policy import Policy
from raymond.machine import budget as money
from raymond.machine import evolve, prompts, schedule
from raymond.machine.agent import Conversation
from raymond.machine.events import (
    AgentFailed,
    AgentMoved,
    BackendOpened,
    JournalCut,
    LimitsChanged,
    RunResumed,
    RunStopped,
    StepFailed,
    StepRefused,
    StepStarted,
)
from raymond.machine.failures import Kind
from raymond.machine.inputs import Spending
from raymond.machine.limits import Limits
from raymond.machine.run import Run
from raymond.views.status import exit_code, run_status

FILES = {
    "START.md": "Begin.",
    "A.md": "Work.",
    "N.md": "",
    "OWN.md": head("budget: 0.5", "Be cheap."),
    "SAFE.md": head("budget: 0.5\non_error: A"),
    "FREE.md": head("budget: 0"),
    "CODEX.md": head("backend: codex"),
    "S.sh": "",
}


def waiting(*states: str, **given: Any) -> Play:
    """Main waits for agents in these states."""
    play = Play(FILES, **given)
    play.say("".join(f"<fork>{state}</fork>" for state in states) + "<wait>N</wait>")
    return play


def at(state: str, **given: Any) -> Play:
    play = Play(FILES, **given)
    play.say(f"<goto>{state}</goto>")
    return play


def started(play: Play, agent: str = "main") -> StepStarted:
    event = play.begin(agent)
    assert isinstance(event, StepStarted)
    return event


def begin_all(play: Play) -> list[float]:
    """What each turn that could start now may cost."""
    return [started(play, name).cap for name in schedule.owed(play.run)]


def capped(play: Play, agent: str = "main", cost: float = 0.0) -> None:
    """The turn of `agent` ends because it cost what it may, or `cost`."""
    if play.agent(agent).status != "running":
        play.begin(agent)
    play.fail("cap", agent, error="it reached its cap", spent=Spending(cost=cost or play.agent(agent).cap))


# What a turn may cost


@pytest.mark.parametrize(
    ("states", "given", "caps"),
    [
        (["A"], {"budget": 10.0}, [10.0]),
        (["A", "A"], {"budget": 10.0}, [5.0, 5.0]),
        (["A", "A", "A", "A"], {"budget": 10.0}, [2.5, 2.5, 2.5, 2.5]),
        (["A"] * 8, {"budget": 10.0}, [2.5, 2.5, 2.5, 2.5]),
        (["A"] * 8, {"budget": 10.0, "max_turns_at_once": 2}, [5.0, 5.0]),
        (["A"] * 8, {"budget": 10.0, "max_turns_at_once": 1}, [10.0]),
        (["A", "A", "CODEX"], {"budget": 9.0, "max_turns_at_once": 1}, [4.5, 4.5]),
        (["A", "CODEX"], {"budget": 9.0}, [4.5, 4.5]),
        (["A", "S", "S"], {"budget": 9.0}, [3.0, 0.0, 0.0]),
        (["A", "A", "A"], {"budget": 1.0}, [0.3333, 0.3334, 0.3333]),
        (["A", "A", "A", "A"], {"budget": 0.2}, [0.05, 0.05, 0.05, 0.05]),
        (["A", "A", "A", "A"], {"budget": 0.12}, [0.05, 0.05]),
        (["A", "A", "A", "A"], {"budget": 0.04}, [0.04]),
        (["A", "A"], {}, [0.0, 0.0]),
        (["OWN", "A"], {"budget": 10.0}, [0.5, 9.5]),
        (["OWN", "A"], {}, [0.5, 0.0]),
        (["OWN"], {"budget": 0.3}, [0.3]),
        (["FREE"], {"budget": 3.0}, [3.0]),
        (["FREE"], {}, [0.0]),
    ],
)
def test_a_turn_gets_the_budget_of_its_visit_or_its_share_of_what_is_left(
    states: list[str], given: dict[str, Any], caps: list[float]
) -> None:
    play = waiting(*states, **given)
    assert begin_all(play) == caps
    assert play.run.reserved == pytest.approx(sum(caps))
    assert play.run.reserved <= given.get("budget", 0.0) + 1e-9 or not given.get("budget")


def test_those_that_sleep_or_are_in_scripts_have_a_share_too() -> None:
    """Else the first that is ready would take it all, and they would wait for it."""
    play = Play(FILES, budget=12.0)
    play.say("<fork>S</fork><fork after='5m'>A</fork><fork>A</fork><wait>N</wait>")
    play.begin("main_s1")
    assert started(play, "main_a3").cap == 4.0


def test_a_script_takes_no_place_of_a_turn() -> None:
    play = waiting("S", "A", "A", "A", budget=12.0, max_turns_at_once=2)
    play.begin("main_s1")
    assert [started(play, name).cap for name in schedule.owed(play.run)] == [6.0, 6.0]


def test_those_that_wait_or_ask_or_failed_have_no_share() -> None:
    play = waiting("A", "A", "A", budget=12.0)
    play.say('<ask next="N">why?</ask>', "main_a1")
    play.fail("setup", "main_a2")
    assert started(play, "main_a3").cap == 12.0


def test_a_place_that_is_taken_is_not_shared_with() -> None:
    play = waiting(*["A"] * 5, budget=12.0, max_turns_at_once=3)
    assert begin_all(play) == [4.0, 4.0, 4.0]
    play.say("<goto>A</goto>", "main_a1", cost=1.0)
    assert schedule.owed(play.run) == ["main_a4"]
    assert started(play, "main_a4").cap == 3.0, "what was given back, for the one place that is free"


def test_a_share_is_of_what_is_neither_spent_nor_reserved() -> None:
    play = waiting("A", "A", budget=10.0)
    play.begin("main_a1")
    assert money.left(play.run) == 5.0
    play.say("<goto>A</goto>", "main_a1", cost=2.0)
    assert (play.run.reserved, money.left(play.run)) == (0.0, 8.0)
    assert begin_all(play) == [4.0, 4.0]


def test_a_visit_gets_what_its_budget_has_left_and_a_new_visit_all_of_it() -> None:
    play = at("OWN", budget=10.0)
    play.say("no tag", cost=0.2)
    assert started(play).cap == 0.3
    play.say("<goto>OWN</goto>", cost=0.2)
    assert (play.main.visit.cost, started(play).cap) == (0.0, 0.5)


def test_a_retried_visit_gets_its_whole_budget_again() -> None:
    play = at("OWN", budget=10.0)
    play.fail("setup", spent=Spending(cost=0.4))
    play.ask("retry", agent="main")
    assert started(play).cap == 0.5


def test_a_turn_may_always_cost_a_cent() -> None:
    """A program that is given nothing cannot say so."""
    play = at("OWN", budget=10.0)
    play.fail("limit", spent=Spending(cost=0.7), retry_at=play.now + 5)
    play.pass_time(5)
    assert started(play).cap == 0.01
    run = Run(begun=play.run.start, limits=Limits(budget=1.0), cost=0.999)
    assert money.cap(run, play.main, Policy()) == 0.01


# What is reserved


@pytest.mark.parametrize("how", ["said", "refused", "crash", "limit", "interrupted", "cap"])
def test_what_was_reserved_is_given_back_however_the_turn_ends(how: str) -> None:
    play = waiting("A", "A", budget=10.0)
    begin_all(play)
    assert play.run.reserved == 10.0
    match how:
        case "said":
            play.say("<goto>A</goto>", "main_a1", cost=1.0)
        case "refused":
            play.say("nothing", "main_a1", cost=1.0)
        case "interrupted":
            play.interrupt("main_a1", cost=1.0)
        case _:
            play.fail(kind_of(how), "main_a1", spent=Spending(cost=1.0))
    assert (play.run.reserved, play.agent("main_a1").cap, play.run.cost) == (5.0, 0.0, 1.0)


def test_a_restart_keeps_what_is_reserved() -> None:
    play = waiting("A", "A", "A", budget=9.0)
    play.begin("main_a1")
    play.begin("main_a2")
    play.run = evolve.fold(play.decisions)
    assert (play.run.reserved, money.left(play.run)) == (6.0, 3.0)
    assert [play.agent(name).cap for name in ("main_a1", "main_a2", "main_a3")] == [3.0, 3.0, 0.0]
    play.interrupt("main_a1", cost=0.5)
    assert play.run.reserved == 3.0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_nothing_is_reserved_when_nothing_runs(order: tuple[int, ...]) -> None:
    """A crumb of a sum of fractions would let the last turn wait for ever."""
    play = waiting("A", "A", "A", "A", budget=1.0, max_turns_at_once=3)
    for cap in (0.1, 0.2, 0.3):
        name = schedule.owed(play.run)[0]
        step = play.run.steps + 1
        play.commit([StepStarted(agent=name, step=step, turn=1, backend="claude", session=f"s{step}", cap=cap)])
    names = [agent.id for agent in play.run.agents.values() if agent.status == "running"]
    for number in order:
        play.say("<result>x</result>", names[number], cost=0.32)
    assert (play.run.reserved, schedule.owed(play.run)) == (0.0, ["main_a4"])


# Who waits


@pytest.mark.parametrize(
    ("budget", "cost", "reserved", "turns"),
    [
        (10.0, 0.0, 0.0, 200),
        (1.0, 0.0, 0.0, 20),
        (1.0, 0.7, 0.2, 2),
        (1.0, 0.9, 0.0, 2),
        (1.0, 0.9, 0.05, 1),
        (1.0, 0.9, 0.06, 0),
        (1.0, 0.96, 0.0, 1),
        (1.0, 0.6, 0.4, 0),
        (1.0, 0.8, 0.6, 0),
        (1.0, 1.5, 0.0, 1),
        (0.0, 9.0, 0.0, 1 << 30),
    ],
)
def test_how_many_turns_there_is_money_for(budget: float, cost: float, reserved: float, turns: int) -> None:
    assert money.affordable(Run(limits=Limits(budget=budget), cost=cost, reserved=reserved)) == turns


@pytest.mark.parametrize(
    ("most", "made", "budget", "turns"),
    [(5, 0, 0.0, 5), (5, 4, 9.0, 1), (5, 5, 9.0, 0), (5, 7, 0.0, 0), (50, 0, 1.0, 20)],
)
def test_how_many_turns_max_turns_leaves(most: int, made: int, budget: float, turns: int) -> None:
    assert money.affordable(Run(limits=Limits(budget=budget, max_turns=most), turns=made)) == turns


def test_under_five_cents_a_turn_waits_while_another_may_give_something_back() -> None:
    play = waiting("OWN", "A", "S", budget=0.54)
    assert started(play, "main_own1").cap == 0.5
    assert schedule.owed(play.run) == ["main_s3"], "scripts never wait for money"
    play.say("<result>x</result>", "main_own1", cost=0.5)
    assert schedule.owed(play.run) == ["main_a2", "main_s3"]
    assert started(play, "main_a2").cap == 0.04, "nobody is left to give anything back"


def test_scripts_take_nothing_of_what_turns_may_cost() -> None:
    play = Play(FILES, entry="S.sh", budget=0.1)
    play.say("<fork>S</fork><fork>S</fork><fork>A</fork><fork>A</fork><wait>N</wait>")
    assert schedule.owed(play.run) == ["main_s1", "main_s2", "main_a3", "main_a4"]


def test_what_a_cheap_turn_gives_back_lets_the_others_start() -> None:
    play = waiting("A", "A", "A", "A", budget=0.12)
    assert len(begin_all(play)) == 2
    play.say("<result>x</result>", "main_a1", cost=0.01)
    assert [started(play, name).cap for name in schedule.owed(play.run)] == [0.05]


@pytest.mark.parametrize("order", [("A", "CODEX"), ("CODEX", "A")])
def test_all_backends_share_one_budget(order: tuple[str, str]) -> None:
    play = waiting(*order, budget=0.08)
    assert len(schedule.owed(play.run)) == 1
    play = waiting(*order, budget=0.1)
    assert len(schedule.owed(play.run)) == 2


# A turn that reached its share


def test_a_turn_that_reached_its_share_goes_on_in_the_same_conversation() -> None:
    play = waiting("A", "A", budget=10.0)
    first = started(play, "main_a1")
    capped(play, "main_a1", 5.2)
    agent = play.agent("main_a1")
    assert play.last == [
        StepRefused(
            agent="main_a1",
            step=2,
            session=first.session,
            capped=True,
            cost=5.2,
        )
    ]
    assert (agent.status, agent.visit.reminders, agent.visit.failures, agent.visit.reminded_for) == (
        "ready",
        0,
        0,
        "capped",
    )
    assert prompts.prompt(play.run, play.workspace, agent) == prompts.CAPPED
    again = started(play, "main_a1")
    assert (again.step, again.turn, again.attempt, again.base) == (first.step, 2, 1, first.session)
    assert again.cap == 2.4
    play.say("<result>x</result>", "main_a1", cost=1.0)
    assert play.run.iterations == 2


def test_the_conversation_is_the_one_that_the_program_named() -> None:
    play = at("A", budget=10.0)
    play.begin()
    play.name("its-own")
    capped(play, cost=1.0)
    assert play.main.session == "its-own"
    play.begin()
    play.fail("cap", spent=Spending(cost=1.0, meter=(7, 8, 9)), session="another", denied=("Bash",))
    assert play.main.conversation == Conversation("claude", "another", (7, 8, 9))
    assert play.run.denied == {"Bash": 1}


def test_going_on_is_not_counted_as_a_reminder() -> None:
    play = at("A", budget=100.0)
    for _ in range(9):
        capped(play, cost=1.0)
    for _ in range(3):
        play.say("nothing")
        assert play.main.status == "ready"
    play.say("nothing")
    assert play.main.status == "failed"


def test_after_going_on_a_refused_reply_is_answered_as_ever() -> None:
    play = at("A", budget=10.0)
    capped(play, cost=1.0)
    play.say("nothing")
    assert play.main.visit.reminded_for == "rejected"
    assert prompts.prompt(play.run, play.workspace, play.main).startswith("I could not act on your reply")


def test_a_turn_that_reached_its_share_shows_too_that_a_backend_answers() -> None:
    play = at("A", budget=10.0)
    play.fail("overload")
    play.pass_time(1)
    capped(play, cost=1.0)
    assert play.last[1:] == [BackendOpened(backend="claude")]
    assert play.run.closed == {}


def test_a_new_visit_was_not_stopped() -> None:
    play = at("A", budget=10.0)
    capped(play, cost=1.0)
    play.say("<goto>A</goto>")
    assert play.main.visit.reminded_for == "rejected"
    assert prompts.prompt(play.run, play.workspace, play.main) == "Work."


def test_a_cap_that_cost_nothing_is_a_failure() -> None:
    """Else it would go round for ever."""
    play = at("A", budget=10.0)
    play.fail("cap", error="it says so")
    assert play.last == [
        StepFailed(agent="main", step=2, kind="cap", error="it says so"),
        AgentFailed(agent="main", kind="cap", error="it says so"),
    ]


def test_a_budget_that_is_spent_stops_the_run_and_more_lets_it_go_on_where_it_was() -> None:
    play = at("A", budget=10.0)
    first = started(play)
    capped(play)
    assert play.last[1:] == [RunStopped(kind="limit", limit="budget", amount=10.0)]
    assert (run_status(play.run), exit_code(play.run), schedule.owed(play.run)) == ("stopped", 4, [])
    assert play.resume()[-1] == RunStopped(kind="limit", limit="budget", amount=10.0)
    play.commit([LimitsChanged(budget=20.0)])
    assert play.resume() == [RunResumed(version="1.0")]
    assert prompts.prompt(play.run, play.workspace, play.main) == prompts.CAPPED
    again = started(play)
    assert (again.base, again.cap) == (first.session, 10.0)


# A visit that used up its own budget


def test_a_visit_whose_budget_is_used_up_fails_and_names_both_amounts() -> None:
    play = at("OWN", budget=10.0)
    capped(play, cost=0.2)
    assert (play.main.status, play.main.visit.cost) == ("ready", 0.2)
    capped(play, cost=0.35)
    error = "it reached its cap; the visit cost $0.55, and its budget is $0.50"
    assert play.last == [
        StepFailed(agent="main", step=2, kind="cap", error=error, cost=0.35),
        AgentFailed(agent="main", kind="cap", error=error),
    ]


def test_a_visit_whose_budget_is_used_up_goes_to_on_error() -> None:
    play = at("SAFE", budget=10.0)
    capped(play, cost=0.5)
    error = "it reached its cap; the visit cost $0.50, and its budget is $0.50"
    assert play.last[1] == AgentMoved(agent="main", tag="on_error", state="A.md", error=error)


def test_a_visit_without_money_is_not_reminded() -> None:
    play = at("OWN")
    play.say("no tag", cost=0.6)
    error = "the output has no transition; the visit cost $0.60, and its budget is $0.50"
    assert play.last == [
        StepFailed(agent="main", step=2, kind="cap", error=error, cost=0.6),
        AgentFailed(agent="main", kind="cap", error=error),
    ]


@pytest.mark.parametrize(("kind", "error"), [("crash", "boom"), ("silent", "boom"), ("context", "boom")])
def test_a_visit_without_money_is_not_tried_again(kind: Kind, error: str) -> None:
    play = at("OWN")
    play.fail(kind, spent=Spending(cost=0.6))
    assert (play.main.status, play.main.error) == (
        "failed",
        f"{error}; the visit cost $0.60, and its budget is $0.50",
    )
    assert play.main.visit.failures == 1


def test_a_visit_without_money_that_finds_its_backend_closed_waits_as_ever() -> None:
    play = at("OWN")
    play.fail("overload", spent=Spending(cost=0.6))
    assert play.kinds() == ["StepFailed", "BackendClosed"]
    assert (play.main.status, play.main.visit.failures) == ("ready", 0)
    assert isinstance(play.last[0], StepFailed)
    assert play.last[0].error == "boom"


def test_a_reply_that_can_be_used_is_used_whatever_the_visit_cost() -> None:
    play = at("OWN")
    play.say("<goto>A</goto>", cost=5.0)
    assert (play.main.status, play.main.state) == ("ready", "A.md")


@pytest.mark.parametrize(
    ("budget", "before", "cost", "said"),
    [
        (None, 9.0, 9.0, ""),
        (0.0, 9.0, 9.0, ""),
        (1.0, 0.5, 0.49, ""),
        (1.0, 0.5, 0.5, "the visit cost $1.00, and its budget is $1.00"),
        (1.0, 1.5, 0.0, "the visit cost $1.50, and its budget is $1.00"),
    ],
)
def test_when_a_visit_has_used_up_its_budget(budget: float | None, before: float, cost: float, said: str) -> None:
    agent = at("A").main
    agent.visit.cost = before
    assert money.spent(Policy(budget=budget), agent, cost) == said


# Eight that want it all


def drain(play: Play, over: float, turns: int = 10_000) -> None:
    """Every turn costs its whole cap and one call more, until the run stops or so many turns have ended."""
    while not play.run.stop and turns:
        for name in schedule.owed(play.run):
            if name in schedule.owed(play.run):
                started(play, name)
        running = [agent for agent in play.run.agents.values() if agent.status == "running"]
        assert running, f"nobody can go on with ${money.left(play.run):.4f} left"
        first = min(running, key=lambda agent: (agent.step, agent.id))
        capped(play, first.id, first.cap + over)
        turns -= 1
    for agent in list(play.run.agents.values()):
        if agent.status == "running" and turns:
            capped(play, agent.id, agent.cap + over)


@pytest.mark.parametrize("parallel", [1, 4, 8])
@pytest.mark.parametrize("budget", [10.0, 1.0, 0.37, 0.02])
def test_eight_that_want_it_all_spend_the_budget_and_one_call_each_at_most(budget: float, parallel: int) -> None:
    for over, cut in product([0.0, 0.03, 0.4], [0, 1, 5, 20]):
        play = waiting(*["A"] * 8, budget=budget, max_turns_at_once=parallel)
        drain(play, over, cut)
        play.run = evolve.fold(play.decisions)
        drain(play, over)
        assert play.run.stop == RunStopped(kind="limit", limit="budget", amount=budget), (over, cut)
        assert play.run.reserved == pytest.approx(0.0, abs=1e-9), (over, cut)
        assert budget <= play.run.cost + 1e-9, (over, cut)
        # A turn may cost a cent at least, and what it may cost is written with four digits.
        assert play.run.cost <= budget + over * parallel + 0.011, (over, cut)


@pytest.mark.parametrize(("budget", "begun"), [(10.0, 4), (1.2, 3), (0.6, 2), (0.07, 1)])
def test_visits_with_budgets_take_nothing_that_is_reserved(budget: float, begun: int) -> None:
    """Who starts what is owed looks each time whether there is still money for it."""
    play = waiting("A", "OWN", "OWN", "A", budget=budget)
    for name in schedule.owed(play.run):
        if money.affordable(play.run):
            started(play, name)
    assert play.run.statuses["running"] == begun
    assert play.run.reserved <= budget + 1e-9


# What people are told


@pytest.mark.parametrize(
    ("budget", "before", "cost", "said"),
    [
        (10.0, 7.0, 7.99, ""),
        (10.0, 7.0, 8.0, "80% of the budget is spent: $8.00 of $10.00"),
        (0.1, 0.0, 0.08, "80% of the budget is spent: $0.08 of $0.10"),
        (10.0, 0.0, 12.0, ""),
        (10.0, 8.0, 9.0, ""),
        (10.0, 7.5, 7.5, ""),
        (0.0, 0.0, 9.0, ""),
    ],
)
def test_people_are_told_once_that_most_of_the_budget_is_spent(
    budget: float, before: float, cost: float, said: str
) -> None:
    assert money.warned(Run(limits=Limits(budget=budget)), before, cost) == said


def test_a_turn_that_was_counted_when_its_end_was_lost_does_not_use_up_the_budget_a_second_time() -> None:
    play = Play(FILES, budget=5.0)
    step = started(play).step
    play.commit([JournalCut(steps=step, cost=4.0, paid={step: 4.0})])
    play.say("<goto>A</goto>", cost=4.0)
    assert (play.run.cost, play.run.stop, play.run.paid) == (4.0, None, {})
    play.say("<goto>A</goto>", cost=1.0)
    assert play.run.cost == 5.0
    assert play.run.stop
