"""How an event changes a run: what is folded, what a visit leaves behind, who counts."""

from typing import Any

import msgspec
import pytest

from builders import START, Play, place, start
from raymond.language.refusal import Refusal
from raymond.machine import decide, evolve, schedule
from raymond.machine.agent import Outcome
from raymond.machine.events import (
    AgentFailed,
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
from raymond.machine.run import Run

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "S.sh": "", "T.py": ""}
WAVE = "<fork>A</fork><fork>S</fork><fork>B</fork><fork>T</fork><fork>A</fork><fork>S</fork><wait>N</wait>"


def first(**given: Any) -> Decision:
    return Decision(seq=1, time=START, events=decide.begin(start(place(FILES), **given)))


# A decision, a fold


def test_the_first_decision_says_what_a_run_is() -> None:
    made = evolve.fold([first(budget=2.5, max_iterations=7, input="do it")])
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
    touched = evolve.apply(
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
        part = evolve.fold(play.decisions[:cut])
        whole = evolve.fold(play.decisions[cut:], part)
        assert msgspec.to_builtins(whole, enc_hook=list) == msgspec.to_builtins(play.run, enc_hook=list)


def test_the_state_of_the_run_changes_by_its_own_events() -> None:
    made = evolve.fold([first(budget=1.0, max_iterations=5)])
    evolve.evolve(made, RunStopped(kind="limit", reason="enough"))
    evolve.evolve(made, RunEnded(status="failed"))
    evolve.evolve(made, RequestTaken(request="r1", kind="stop"))
    assert (made.stopped, made.ended, list(made.requests)) == (
        RunStopped(kind="limit", reason="enough"),
        "failed",
        ["r1"],
    )
    evolve.evolve(made, RunResumed(version="1"))
    assert (made.stopped, made.ended) == (None, "")


@pytest.mark.parametrize(
    ("event", "budget", "most", "turns", "tools"),
    [
        (LimitsChanged(), 1.0, 5, 7, ["Read"]),
        (LimitsChanged(budget=3.0), 3.0, 5, 7, ["Read"]),
        (LimitsChanged(max_iterations=0), 1.0, 0, 7, ["Read"]),
        (LimitsChanged(budget=0.0, max_iterations=9), 0.0, 9, 7, ["Read"]),
        (LimitsChanged(max_turns=0), 1.0, 5, 0, ["Read"]),
        (LimitsChanged(max_turns=9, allowed_tools=["Edit", "Bash"]), 1.0, 5, 9, ["Read", "Edit", "Bash"]),
    ],
)
def test_new_limits_change_what_they_name(
    event: LimitsChanged, budget: float, most: int, turns: int, tools: list[str]
) -> None:
    made = evolve.fold([first(budget=1.0, max_iterations=5, max_turns=7, allowed_tools=["Read"])])
    evolve.evolve(made, event)
    assert (made.budget, made.max_iterations, made.max_turns, made.allowed_tools) == (budget, most, turns, tools)
    assert (made.start.max_turns, made.start.allowed_tools) == (7, ["Read"]), "the event itself is what it was"


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
    play.say("<reset cd='x'>A</reset>", cds={"x": Refusal("directory", "no")})
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
        agent="main", step=5, attempt=5, backend="claude", session=decide.session_of(play.run, 5, 1)
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
    made = evolve.fold([first()])
    evolve.evolve(made, AgentStarted(agent="main_s1", state="S.sh", parent="main", wake_at=START + 5))
    child = made.agents["main_s1"]
    assert (child.status, child.wake_at, child.variables, child.prompted) == ("sleeping", START + 5, None, None)
    assert (made.agents["main"].alive, made.agents["main"].forks, made.fork_counters) == (1, 1, {"main": 1})


# How long it was driven


def test_the_limit_of_time_is_kept_and_changed_alone() -> None:
    made = evolve.fold([first(max_time=60.0, budget=2.0)])
    assert (made.max_time, made.budget) == (60.0, 2.0)
    evolve.evolve(made, LimitsChanged(max_time=90.0))
    assert (made.max_time, made.budget, made.max_iterations) == (90.0, 2.0, 0)
    evolve.evolve(made, LimitsChanged(budget=3.0))
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
