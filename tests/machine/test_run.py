"""Where the agents of a run stand, and what comes next: queues, timers, backends, limits."""

from typing import Any

import pytest

from builders import START, Play, place, start
from raymond.machine import decide, evolve, run, schedule
from raymond.machine.agent import Agent, Closed, Visit
from raymond.machine.events import AgentMoved, AgentWoke, BackendClosed, ClockSet, Decision, RunEnded, RunStopped

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "S.sh": "", "T.py": ""}
WAVE = "<fork>A</fork><fork>S</fork><fork>B</fork><fork>T</fork><fork>A</fork><fork>S</fork><wait>N</wait>"


def first(**given: Any) -> Decision:
    return Decision(seq=1, time=START, events=decide.begin(start(place(FILES), **given)))


# Which limit is reached


@pytest.mark.parametrize(
    ("given", "before", "added", "limit", "amount"),
    [
        ({}, {}, {"iterations": 10**6, "cost": 10.0**6}, "", 0.0),
        ({"max_iterations": 3}, {}, {"iterations": 2}, "", 0.0),
        ({"max_iterations": 3}, {}, {"iterations": 3}, "iterations", 3.0),
        ({"max_iterations": 3}, {"iterations": 2}, {"iterations": 1}, "iterations", 3.0),
        ({"budget": 2.0}, {}, {"cost": 1.99}, "", 0.0),
        ({"budget": 2.0}, {}, {"cost": 2.0}, "budget", 2.0),
        ({"budget": 2.0, "max_iterations": 3}, {}, {"iterations": 9, "cost": 9.0}, "iterations", 3.0),
        ({"max_turns": 3}, {"turns": 2}, {}, "", 0.0),
        ({"max_turns": 3}, {"turns": 3}, {}, "turns", 3.0),
        ({"max_turns": 3}, {"turns": 3}, {"turns": -1}, "", 0.0),
        ({"max_turns": 3, "budget": 2.0}, {"turns": 3}, {"cost": 2.0}, "budget", 2.0),
        ({}, {"unpriced": 199}, {}, "", 0.0),
        ({}, {"unpriced": 199}, {"unpriced": 1}, "unpriced", 200.0),
        ({}, {"unpriced": 200}, {}, "unpriced", 200.0),
        ({"max_turns": 999}, {"unpriced": 500, "turns": 500}, {"unpriced": 1}, "", 0.0),
        ({}, {"turns": 10**6}, {}, "", 0.0),
    ],
)
def test_which_limit_is_reached(
    given: dict[str, Any], before: dict[str, int], added: dict[str, Any], limit: Any, amount: float
) -> None:
    made = evolve.fold([first(**given)])
    for name, value in before.items():
        setattr(made, name, value)
    stopped = RunStopped(kind="limit", limit=limit, amount=amount) if limit else None
    assert schedule.reached(made, **added) == stopped


# Who is owed


@pytest.mark.parametrize(
    ("turns", "scripts", "owed"),
    [
        (4, 4, ["main_a1", "main_b3", "main_a5", "main_s2", "main_t4", "main_s6"]),
        (2, 1, ["main_a1", "main_b3", "main_s2"]),
        (1, 9, ["main_a1", "main_s2", "main_t4", "main_s6"]),
    ],
)
def test_steps_are_owed_first_come_first_within_the_limits(turns: int, scripts: int, owed: list[str]) -> None:
    play = Play(FILES, max_turns_at_once=turns, max_scripts_at_once=scripts)
    play.say(WAVE)
    assert schedule.owed(play.run) == owed


def test_a_step_that_runs_takes_room_until_it_ends() -> None:
    play = Play(FILES, max_turns_at_once=2, max_scripts_at_once=1)
    play.say(WAVE)
    play.begin("main_b3")
    assert schedule.owed(play.run) == ["main_a1", "main_s2"]
    play.begin("main_a1")
    play.begin("main_s2")
    assert (schedule.owed(play.run), play.run.running) == ([], {"claude": 2, "scripts": 1})
    play.say("<goto>A</goto>", "main_b3")
    assert schedule.owed(play.run) == ["main_a5"]


def test_who_comes_back_queues_at_the_end() -> None:
    play = Play(FILES, max_turns_at_once=1)
    play.say(WAVE)
    play.say("nothing", "main_a1")
    assert list(play.run.ready["claude"]) == ["main_b3", "main_a5", "main_a1"]


def test_an_agent_moved_by_a_person_leaves_the_middle_of_its_queue() -> None:
    play = Play(FILES)
    play.say(WAVE)
    play.ask("move", agent="main_b3", state="T")
    assert (list(play.run.ready["claude"]), list(play.run.ready["scripts"])) == (
        ["main_a1", "main_a5"],
        ["main_s2", "main_t4", "main_s6", "main_b3"],
    )


def test_nothing_is_owed_by_a_run_that_stopped_or_ended() -> None:
    play = Play(FILES)
    play.stop()
    assert schedule.owed(play.run) == []
    play.resume()
    assert schedule.owed(play.run) == ["main"]
    play.commit([RunEnded(status="failed")])
    assert schedule.owed(play.run) == []


@pytest.mark.parametrize(
    ("state", "pool"), [("A.md", "claude"), ("B.md", "codex"), ("S.sh", "scripts"), ("T.py", "scripts")]
)
def test_a_state_belongs_to_the_scripts_or_to_a_backend(state: str, pool: str) -> None:
    assert run.pool_of(evolve.fold([first(backends={"B.md": "codex"})]), state) == pool


# Timers


def sleeping(*seconds: float) -> Play:
    """Main waits for agents that sleep so long."""
    play = Play(FILES)
    play.say("".join(f"<fork after='{one}s'>A</fork>" for one in seconds) + "<wait>N</wait>")
    return play


def test_the_next_moment_is_the_earliest_of_agents_and_backends() -> None:
    play = sleeping(50, 20)
    assert schedule.wake_at(play.run) == START + 20
    play.commit([BackendClosed(backend="claude", kind="limit", error="x", until=START + 10)])
    assert schedule.wake_at(play.run) == START + 10
    play.commit([BackendClosed(backend="claude", kind="limit", error="x", until=START + 30)])
    assert schedule.wake_at(play.run) == START + 20
    play.commit([BackendClosed(backend="claude", kind="auth", error="x")])
    assert schedule.wake_at(play.run) == START + 20


def test_a_timer_is_due_at_its_moment_or_after_its_time_whichever_comes_first() -> None:
    play = Play(FILES)
    play.say("<goto after='1h'>A</goto>")
    due = play.now + 3600
    for by, at in ((-600.0, due - 600), (600.0, due), (600.0, due), (-900.0, due - 300)):
        play.commit([ClockSet(seconds=by)])
        assert schedule.wake_at(play.run) == at, "it knows by how much the clock was set altogether"


def test_an_overload_is_not_waited_for_any_longer_when_the_clock_is_set() -> None:
    play = Play(FILES)
    play.fail("overload")
    before = play.run.closed["claude"]
    play.commit([ClockSet(seconds=-3600.0)])
    after = play.run.closed["claude"]
    assert (after.until, after.since) == (before.until - 3600, before.since - 3600)
    play.commit([ClockSet(seconds=7200.0)])
    assert (play.run.closed["claude"].until, play.run.closed["claude"].since) == (after.until, after.since + 7200)


def test_only_a_backend_may_be_waited_for() -> None:
    play = Play(FILES)
    play.commit([BackendClosed(backend="claude", kind="limit", error="x", until=START + 10)])
    assert schedule.wake_at(play.run) == START + 10
    play.commit([BackendClosed(backend="claude", kind="auth", error="x")])
    assert schedule.wake_at(play.run) is None


@pytest.mark.parametrize("kind", ["result", "move", "give_up"])
def test_a_timer_of_an_agent_that_does_not_sleep_any_more_is_dropped(kind: str) -> None:
    play = sleeping(10, 20)
    play.ask(kind, agent="main_a1", text="x", state="B")
    assert schedule.wake_at(play.run) == START + 20
    play.pass_time(15)
    assert play.agent("main_a2").status == "sleeping"


def test_an_outdated_timer_in_the_middle_wakes_nobody() -> None:
    play = sleeping(10, 20, 30)
    play.ask("result", agent="main_a2", text="x")
    assert play.pass_time(40) == [AgentWoke(agent="main_a1"), AgentWoke(agent="main_a3")]
    assert play.run.timers == []


def test_an_agent_that_gave_up_while_it_asked_asks_nothing_more() -> None:
    play = Play(FILES)
    play.say("<ask next='A' timeout='5m'>why?</ask>")
    play.ask("give_up", agent="main")
    assert (play.main.question, play.main.visit.wake_at, play.run.timers) == ("", 0.0, [])


@pytest.mark.parametrize(("wake", "now", "due"), [(10.0, 9.0, False), (10.0, 10.0, True), (0.0, 10.0**9, False)])
def test_time_is_asked_for_only_when_something_is_due(wake: float, now: float, due: bool) -> None:
    play = Play(FILES)
    play.commit([AgentMoved(agent="main", tag="goto", state="A.md", wake_at=START + wake if wake else 0.0)])
    assert schedule.due(play.run, START + now) is due


def test_something_is_due_when_no_agent_is_left_to_move() -> None:
    play = Play(FILES)
    play.fail("setup")
    assert schedule.due(play.run, START)


# Backends


def test_a_backend_is_shut_when_only_a_person_can_open_it() -> None:
    play = Play(FILES)
    assert not run.shut(play.run, "claude")
    play.fail("overload")
    assert (run.shut(play.run, "claude"), play.run.closed["claude"].until) == (False, START + 1)
    play.pass_time(1)
    assert (run.shut(play.run, "claude"), play.run.closed["claude"].until) == (False, 0.0)
    play.fail("auth")
    assert run.shut(play.run, "claude")
    assert (play.run.closed["claude"], play.run.probing) == (Closed("auth", "boom", 0.0, 0, START + 1), {})


def test_a_probe_keeps_what_was_tried_before() -> None:
    play = Play(FILES)
    play.fail("overload")
    play.pass_time(1)
    play.fail("overload")
    play.pass_time(5)
    assert play.run.closed["claude"] == Closed("overload", "boom", 0.0, 1, START)


# When it is over


def test_without_a_limit_of_time_it_is_never_over() -> None:
    play = Play(FILES)
    play.now += 10**9
    assert (schedule.over_at(play.run), schedule.due(play.run, play.now), schedule.reached(play.run)) == (
        0.0,
        False,
        None,
    )


def test_it_is_over_when_all_drivers_together_had_the_time() -> None:
    play = Play(FILES, max_time=60.0)
    assert schedule.over_at(play.run) == START + 60
    play.now += 20
    play.say("<goto>A</goto>")
    play.now += 5000
    play.resume()
    assert schedule.over_at(play.run) == play.now + 40
    assert not schedule.due(play.run, play.now + 39)
    assert schedule.due(play.run, play.now + 40)
    assert schedule.reached(play.run) is None


def test_a_run_that_is_over_is_reached_and_not_due_again_once_it_stopped() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 60
    play.say("<goto>A</goto>")
    assert schedule.reached(play.run) == RunStopped(kind="limit", limit="time", amount=60.0)
    assert schedule.due(play.run, play.now)
    play.pass_time()
    assert play.run.stop == RunStopped(kind="limit", limit="time", amount=60.0)
    assert not schedule.due(play.run, play.now + 1000)


def test_a_time_that_was_lowered_below_what_is_used_up_is_over_at_once() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 30
    play.say("<goto>A</goto>")
    play.resume()
    play.ask("limits", max_time=10.0)
    assert schedule.over_at(play.run) == play.now
    assert play.run.stop == RunStopped(kind="limit", limit="time", amount=10.0)


def test_turns_that_are_lowered_to_what_is_used_up_stop_the_run() -> None:
    play = Play(FILES, max_turns=5)
    play.say("<goto>A</goto>")
    play.ask("limits", max_turns=1)
    assert play.run.stop == RunStopped(kind="limit", limit="turns", amount=1.0)


def test_timers_that_are_outdated_are_forgotten() -> None:
    """One agent sleeps for long; behind it another one asks and is answered, again and again."""
    play = run.Run()
    evolve.apply(play, first())
    asker = play.agents["main"]
    sleeper = play.agents["sleeper"] = Agent("sleeper", Visit("A.md", "", START))
    run.set_timer(play, sleeper, START + 1.0)
    for number in range(5000):
        run.set_timer(play, asker, START + 100.0 + number)
    assert len(play.timers) < 100
    assert schedule.wake_at(play) == START + 1.0
    sleeper.visit.wake_at = 0.0
    run.drop_timers(play)
    assert schedule.wake_at(play) == START + 5099.0
