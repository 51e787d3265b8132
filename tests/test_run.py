"""How an event changes a run: queues and limits, timers, counts, what a visit leaves behind."""

from typing import Any

import msgspec
import pytest

from builders import START, Play, place, start
from raymond import core, run, schedule
from raymond.agent import Closed, Outcome
from raymond.events import (
    AgentFailed,
    AgentMoved,
    AgentStarted,
    BackendClosed,
    Decision,
    LimitsChanged,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStopped,
    StepFailed,
    StepStarted,
    WorkflowChanged,
)
from raymond.run import Run

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "S.sh": "", "T.py": ""}
WAVE = "<fork>A</fork><fork>S</fork><fork>B</fork><fork>T</fork><fork>A</fork><fork>S</fork><wait>N</wait>"


def first(**given: Any) -> Decision:
    return Decision(seq=1, time=START, events=core.begin(start(place(FILES), **given)))


# A decision, a fold


def test_the_first_decision_says_what_a_run_is() -> None:
    made = run.fold([first(budget=2.5, max_iterations=7, input="do it")])
    assert (made.seq, made.now, made.started_at) == (1, START, START)
    assert (made.budget, made.max_iterations, made.start.workflow_id) == (2.5, 7, "test-1")
    main = made.agents["main"]
    assert (main.state, main.status, main.input, main.since, main.entered) == ("START.md", "ready", "do it", START, 1)
    assert (main.visits, main.prompted) == ({"START.md": 1}, {"START.md": 1})


def test_a_run_without_its_first_event_has_no_start() -> None:
    with pytest.raises(AssertionError):
        _ = Run().start


def test_a_decision_says_which_agents_it_touched() -> None:
    play = Play(FILES)
    play.begin()
    touched = run.apply(
        play.run,
        Decision(
            seq=9,
            time=START + 1,
            events=[
                StepFailed(agent="main", step=1, kind="setup", error="boom"),
                BackendClosed(backend="claude", kind="auth", error="log in"),
                AgentFailed(agent="main", kind="setup", error="boom"),
                RunStopped(kind="stop", reason="enough"),
            ],
        ),
    )
    assert touched == ["main", "main"]
    assert (play.run.seq, play.run.now) == (9, START + 1)


def test_folding_a_part_and_then_the_rest_is_folding_all() -> None:
    play = Play(FILES)
    play.say(WAVE)
    play.say("<result>1</result>", "main_a1")
    play.fail("crash", "main_b3")
    for cut in range(len(play.decisions) + 1):
        part = run.fold(play.decisions[:cut])
        whole = run.fold(play.decisions[cut:], part)
        assert msgspec.to_builtins(whole, enc_hook=list) == msgspec.to_builtins(play.run, enc_hook=list)


def test_the_state_of_the_run_changes_by_its_own_events() -> None:
    made = run.fold([first(budget=1.0, max_iterations=5)])
    run.evolve(made, RunStopped(kind="limit", reason="enough"))
    run.evolve(made, RunEnded(status="failed"))
    run.evolve(made, RequestTaken(request="r1", kind="stop"))
    assert (made.stopped, made.ended, list(made.requests)) == (
        RunStopped(kind="limit", reason="enough"),
        "failed",
        ["r1"],
    )
    run.evolve(made, RunResumed(version="1"))
    assert (made.stopped, made.ended) == (None, "")


@pytest.mark.parametrize(
    ("event", "budget", "most"),
    [
        (LimitsChanged(), 1.0, 5),
        (LimitsChanged(budget=3.0), 3.0, 5),
        (LimitsChanged(max_iterations=0), 1.0, 0),
        (LimitsChanged(budget=0.0, max_iterations=9), 0.0, 9),
    ],
)
def test_new_limits_change_what_they_name(event: LimitsChanged, budget: float, most: int) -> None:
    made = run.fold([first(budget=1.0, max_iterations=5)])
    run.evolve(made, event)
    assert (made.budget, made.max_iterations) == (budget, most)


@pytest.mark.parametrize(
    ("given", "iterations", "cost", "reason"),
    [
        ({}, 10**6, 10.0**6, ""),
        ({"max_iterations": 3}, 2, 0.0, ""),
        ({"max_iterations": 3}, 3, 0.0, "max_iterations (3) was reached"),
        ({"budget": 2.0}, 0, 1.99, ""),
        ({"budget": 2.0}, 0, 2.0, "the budget of $2.00 is spent"),
        ({"budget": 2.0, "max_iterations": 3}, 9, 9.0, "max_iterations (3) was reached"),
    ],
)
def test_which_limit_is_reached(given: dict[str, Any], iterations: int, cost: float, reason: str) -> None:
    assert schedule.reached(run.fold([first(**given)]), iterations=iterations, cost=cost) == reason


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
    assert run.pool_of(run.fold([first(backends={"B.md": "codex"})]), state) == pool


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
    assert [event.agent for event in play.pass_time(40)] == ["main_a1", "main_a3"]  # type: ignore[union-attr]
    assert play.run.timers == []


def test_an_agent_that_gave_up_while_it_asked_asks_nothing_more() -> None:
    play = Play(FILES)
    play.say("<ask next='A' timeout='5m'>why?</ask>")
    play.ask("give_up", agent="main")
    assert (play.main.question, play.main.wake_at, play.run.timers) == ("", 0.0, [])


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


# Visits


def test_what_belonged_to_a_visit_ends_with_it() -> None:
    play = Play(FILES)
    play.say("nothing")
    play.fail("context")
    play.fail("crash")
    main = play.main
    assert (main.attempt, main.failures, main.tries, main.reminders, main.freshened) == (2, 1, 3, 1, True)
    play.say("<goto input='x'>A</goto>")
    assert (main.attempt, main.turn, main.failures, main.tries, main.reminders) == (0, 0, 0, 0, 0)
    assert (main.freshened, main.interrupted, main.reminder, main.error, main.cause) == (False, False, "", "", "")
    assert (main.input, main.entered) == ("x", 2)
    play.say("<goto>A</goto>")
    assert (main.input, main.visits, main.prompted) == ("", {"START.md": 1, "A.md": 2}, {"START.md": 1, "A.md": 2})


def test_prompts_are_counted_for_life_and_visits_for_the_frame() -> None:
    play = Play(FILES)
    play.say("<call return='A'>A</call>")
    play.say("<goto>S</goto>")
    play.say("<result>x</result>")
    assert (play.main.prompted, play.main.visits) == ({"START.md": 1, "A.md": 2}, {"START.md": 1, "A.md": 1})
    assert play.main.entered == 4


def test_a_reminder_says_what_was_wrong_and_what_would_be_right() -> None:
    play = Play(FILES)
    play.say("<goto>A")
    assert play.main.reminder == "the output has no transition; its <goto> is never closed\n<goto>NEXT.md</goto>"
    play.say("<reset cd='x'>A</reset>", cds={"x": "!no"})
    assert play.main.reminder == "no"


def test_a_reminded_agent_is_not_told_that_it_was_interrupted() -> None:
    play = Play(FILES)
    play.interrupt()
    assert play.main.interrupted
    play.say("nothing")
    assert not play.main.interrupted


def test_a_retried_agent_has_new_attempts_in_the_same_visit() -> None:
    play = Play(FILES, input="x")
    for _ in range(4):
        play.fail("crash")
    assert (play.main.status, play.main.failures) == ("failed", 4)
    play.ask("retry", agent="main")
    main = play.main
    assert (main.status, main.failures, main.reminders, main.error, main.input) == ("ready", 0, 0, "", "x")
    assert play.begin() == StepStarted(
        agent="main", step=5, attempt=5, backend="claude", session=core.session_of(play.run, 5, 1)
    )


# Counts of children


def test_a_failed_child_is_not_waited_for_and_a_retried_one_is() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.fail("setup", "main_a1")
    assert (play.main.alive, play.run.failed) == (1, 1)
    play.ask("retry", agent="main_a1")
    assert (play.main.alive, play.run.failed) == (2, 0)
    play.say("<result>2</result>", "main_b2")
    assert play.main.status == "waiting"
    play.say("<result>1</result>", "main_a1")
    assert (play.main.status, play.main.alive, play.main.children) == ("ready", 0, None)


def test_children_of_a_parent_that_is_gone_count_for_nobody() -> None:
    play = Play(FILES)
    play.say("<fork next='N'>A</fork>")
    play.say("<result>x</result>")
    play.fail("setup", "main_a1")
    play.resume()
    play.say("<result>y</result>", "main_a1")
    assert play.run.outcomes == {
        "main": Outcome("main", "N.md", "done", "x"),
        "main_a1": Outcome("main_a1", "A.md", "done", "y"),
    }


def test_a_child_that_was_collected_counts_no_more() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait timeout='5m'>N</wait>")
    play.fail("setup", "main_a1")
    play.pass_time(300)
    assert (list(play.run.agents), list(play.main.children or ()), play.main.alive) == (
        ["main", "main_b2"],
        ["main_b2"],
        1,
    )
    assert play.run.statuses["failed"] == 0


def test_an_agent_is_born_with_what_its_event_says() -> None:
    made = run.fold([first()])
    run.evolve(made, AgentStarted(agent="main_s1", state="S.sh", parent="main", wake_at=START + 5))
    child = made.agents["main_s1"]
    assert (child.status, child.wake_at, child.variables, child.prompted) == ("sleeping", START + 5, None, None)
    assert (made.agents["main"].alive, made.agents["main"].forks, made.fork_counters) == (1, 1, {"main": 1})


# How long it was driven


def test_the_limit_of_time_is_kept_and_changed_alone() -> None:
    made = run.fold([first(max_time=60.0, budget=2.0)])
    assert (made.max_time, made.budget) == (60.0, 2.0)
    run.evolve(made, LimitsChanged(max_time=90.0))
    assert (made.max_time, made.budget, made.max_iterations) == (90.0, 2.0, 0)
    run.evolve(made, LimitsChanged(budget=3.0))
    assert made.max_time == 90.0


def test_a_run_was_driven_from_the_start_of_each_driver_to_its_last_word() -> None:
    play = Play(FILES)
    play.now += 10
    play.say("<goto>A</goto>")
    play.now += 5000
    play.resume()
    assert (play.run.driven, play.run.taken_up_at) == (10.0, START + 5010)
    play.now += 7
    play.say("<goto>B</goto>")
    play.now += 5000
    play.resume()
    assert play.run.driven == 17.0


@pytest.mark.parametrize("how", ["limits", "answer", "changed"])
def test_what_a_person_asks_of_a_run_nobody_drives_does_not_count_as_driving(how: str) -> None:
    play = Play(FILES)
    play.now += 10
    play.say('<ask next="A">why?</ask>')
    play.now += 5000
    if how == "changed":
        play.commit([WorkflowChanged(source="1" * 64)])
    else:
        play.ask(how, text="so", budget=5.0)
    assert (play.run.now, play.run.driven_until) == (START + 5010, START + 10)
    play.now += 5000
    play.resume()
    assert play.run.driven == 10.0


def test_a_clock_that_went_back_takes_nothing_from_the_time_driven() -> None:
    play = Play(FILES)
    play.now -= 100
    play.say("<goto>A</goto>")
    play.resume()
    assert play.run.driven == 0.0


# When it is over


def test_without_a_limit_of_time_it_is_never_over() -> None:
    play = Play(FILES)
    play.now += 10**9
    assert (schedule.over_at(play.run), schedule.due(play.run, play.now), schedule.reached(play.run)) == (
        0.0,
        False,
        "",
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
    assert schedule.reached(play.run) == ""


def test_a_run_that_is_over_is_reached_and_not_due_again_once_it_stopped() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 60
    play.say("<goto>A</goto>")
    assert schedule.reached(play.run) == "max_time (1m) is over"
    assert schedule.due(play.run, play.now)
    play.pass_time()
    assert play.run.stopped == RunStopped(kind="limit", reason="max_time (1m) is over")
    assert not schedule.due(play.run, play.now + 1000)


def test_a_time_that_was_lowered_below_what_is_used_up_is_over_at_once() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 30
    play.say("<goto>A</goto>")
    play.resume()
    play.ask("limits", max_time=10.0)
    assert schedule.over_at(play.run) == play.now
    assert schedule.due(play.run, play.now)


# Other files


def test_changed_files_are_the_source_from_then_on() -> None:
    play = Play({**FILES, "A.md": "---\nbackend: codex\n---\n"})
    before = play.run.start
    play.commit([WorkflowChanged(source="1" * 64, backends={"B.md": "codex"})])
    assert (play.run.start.source, play.run.start.backends) == ("1" * 64, {"B.md": "codex"})
    assert play.run.start.key == before.key
    assert before.source == "0" * 64, "the event itself is what it was"


def test_a_renamed_state_is_renamed_in_every_agent() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.commit([WorkflowChanged(source="1" * 64, renamed={"A.md": "A2.md", "N.md": "N2.md"})])
    assert [agent.state for agent in play.run.agents.values()] == ["START.md", "A2.md", "B.md"]
    assert play.main.next_state == "N2.md"
    assert schedule.owed(play.run) == ["main_a1", "main_b2"]


def test_an_agent_that_is_ready_waits_for_whoever_runs_its_state_now() -> None:
    """Else it would stay in the queue of a backend that may be closed, or count against the wrong limit."""
    play = Play(FILES)
    play.commit([WorkflowChanged(source="1" * 64, renamed={"START.md": "S.sh"})])
    assert {pool: [*queue] for pool, queue in play.run.ready.items()} == {"claude": [], "scripts": ["main"]}
    play.commit([WorkflowChanged(source="2" * 64, renamed={"S.sh": "A.md"}, backends={"A.md": "codex"})])
    assert (play.main.pool, [*play.run.ready["codex"]], play.run.statuses["ready"]) == ("codex", ["main"], 1)


def test_an_agent_that_is_paused_in_its_sleep_is_not_woken() -> None:
    play = Play(FILES)
    play.say("<goto after='5m'>A</goto>")
    play.ask("pause", agent="main")
    assert (play.main.status, play.main.wake_at, schedule.wake_at(play.run)) == ("paused", 0.0, None)
    assert play.pass_time(1000) == []
