"""How an event changes a run: what is folded, what a visit leaves behind, who counts."""

from typing import Any, get_args

import msgspec
import pytest

from builders import START, Play, place, start
from raymond.language.refusal import Refusal
from raymond.machine import decide, evolve, schedule
from raymond.machine.agent import Outcome, Rest, Visit, rebased
from raymond.machine.events import (
    AgentStarted,
    Decision,
    Event,
    LimitsChanged,
    RequestTaken,
    RunEnded,
    RunMoved,
    RunResumed,
    RunStopped,
    StepStarted,
    WorkflowChanged,
)
from raymond.machine.limits import Limits, Rights
from raymond.machine.run import Run

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "S.sh": "", "T.py": ""}
WAVE = "<fork>A</fork><fork>S</fork><fork>B</fork><fork>T</fork><fork>A</fork><fork>S</fork><wait>N</wait>"


def first(**given: Any) -> Decision:
    return Decision(seq=1, time=START, events=decide.begin(start(place(FILES), **given)))


# A decision, a fold


def test_the_first_decision_says_what_a_run_is() -> None:
    made = evolve.fold([first(budget=2.5, max_iterations=7, input="do it")])
    assert (made.seq, made.now, made.started_at) == (1, START, START)
    assert (made.limits, made.start.workflow_id) == (
        Limits(budget=2.5, max_iterations=7, max_turns=0, max_time=0.0),
        "test-1",
    )
    main = made.agents["main"]
    assert (main.state, main.status, main.visit.input, main.visit.since, main.entered) == (
        "START.md",
        "ready",
        "do it",
        START,
        1,
    )
    assert (main.visits, main.prompted) == ({"START.md": 1}, {"START.md": 1})


def test_a_run_without_its_first_event_has_no_start() -> None:
    with pytest.raises(AssertionError):
        _ = Run().start


def test_a_run_knows_the_number_and_the_time_of_its_last_decision() -> None:
    play = Play(FILES)
    evolve.apply(play.run, Decision(seq=9, time=START + 1, events=[RunStopped(kind="stop")]))
    assert (play.run.seq, play.run.now) == (9, START + 1)


def test_every_event_changes_a_run_in_exactly_one_way() -> None:
    changes = evolve._CHANGES
    assert set(changes) == set(get_args(Event))
    assert len(set(changes.values())) == len(changes)


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
    evolve.evolve(made, RunStopped(kind="limit", limit="budget", amount=1.0))
    evolve.evolve(made, RunEnded(status="failed"))
    evolve.evolve(made, RequestTaken(request="r1", kind="stop"))
    assert (made.stop, made.final_status, list(made.requests)) == (
        RunStopped(kind="limit", limit="budget", amount=1.0),
        "failed",
        ["r1"],
    )
    evolve.evolve(made, RunResumed(version="1"))
    assert (made.stop, made.final_status) == (None, "")


@pytest.mark.parametrize(
    ("event", "limits", "tools"),
    [
        (LimitsChanged(), Limits(1.0, 5, 7, 60.0), ("Read",)),
        (LimitsChanged(budget=3.0), Limits(3.0, 5, 7, 60.0), ("Read",)),
        (LimitsChanged(max_iterations=0), Limits(1.0, 0, 7, 60.0), ("Read",)),
        (LimitsChanged(budget=0.0, max_iterations=9), Limits(0.0, 9, 7, 60.0), ("Read",)),
        (LimitsChanged(max_turns=0), Limits(1.0, 5, 0, 60.0), ("Read",)),
        (LimitsChanged(max_time=0.0), Limits(1.0, 5, 7, 0.0), ("Read",)),
        (LimitsChanged(max_turns=9, allowed_tools=["Edit", "Bash"]), Limits(1.0, 5, 9, 60.0), ("Read", "Edit", "Bash")),
    ],
)
def test_new_limits_change_what_they_name(event: LimitsChanged, limits: Limits, tools: tuple[str, ...]) -> None:
    given = {"permission_mode": "plan", "skip_permissions": True, "allowed_tools": ["Read"]}
    made = evolve.fold([first(budget=1.0, max_iterations=5, max_turns=7, max_time=60.0, **given)])
    evolve.evolve(made, event)
    assert (made.limits, made.rights) == (limits, Rights("plan", tools, (), True))
    assert (made.start.max_turns, made.start.allowed_tools) == (7, ["Read"]), "the event itself is what it was"


# Visits


def test_what_belonged_to_a_visit_ends_with_it() -> None:
    play = Play(FILES)
    play.say("nothing")
    play.fail("context")
    play.fail("crash")
    main = play.main
    assert (main.visit.attempt, main.visit.failures, main.visit.tries, main.visit.reminders, main.visit.freshened) == (
        2,
        1,
        3,
        1,
        True,
    )
    play.say("<goto input='x'>A</goto>")
    assert (main.visit, main.entered) == (Visit("A.md", "x", play.now), 2)
    play.say("<goto>A</goto>")
    assert (main.visit.input, main.visits, main.prompted) == (
        "",
        {"START.md": 1, "A.md": 2},
        {"START.md": 1, "A.md": 2},
    )


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
    assert play.main.visit.reminder == "the output has no transition; its <goto> is never closed\n<goto>NEXT.md</goto>"
    play.say("<reset cd='x'>A</reset>", cds={"x": Refusal("directory", "no")})
    assert play.main.visit.reminder == "no"


def test_a_reminded_agent_is_not_told_that_it_was_interrupted() -> None:
    play = Play(FILES)
    play.interrupt()
    assert play.main.visit.interrupted
    play.say("nothing")
    assert not play.main.visit.interrupted


def test_a_retried_agent_has_new_attempts_in_the_same_visit() -> None:
    play = Play(FILES, input="x")
    for _ in range(4):
        play.fail("crash")
    assert (play.main.status, play.main.visit.failures) == ("failed", 4)
    play.ask("retry", agent="main")
    main = play.main
    assert (main.status, main.visit.failures, main.visit.reminders, main.error, main.visit.input) == (
        "ready",
        0,
        0,
        "",
        "x",
    )
    assert play.begin() == StepStarted(
        agent="main", step=5, attempt=5, backend="claude", session=decide.session_of(play.run, 5, 1)
    )


# Counts of children


def test_a_failed_child_is_not_waited_for_and_a_retried_one_is() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.fail("setup", "main_a1")
    assert (play.main.alive, play.run.failed_count) == (1, 1)
    play.ask("retry", agent="main_a1")
    assert (play.main.alive, play.run.failed_count) == (2, 0)
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
    assert (child.status, child.visit.wake_at, child.variables, child.prompted) == ("sleeping", START + 5, None, None)
    assert (made.agents["main"].alive, made.agents["main"].forks, made.started) == (1, 1, 2)


# How long it was driven


def test_the_limit_of_time_is_kept_and_changed_alone() -> None:
    made = evolve.fold([first(max_time=60.0, budget=2.0)])
    assert made.limits == Limits(2.0, 0, 0, 60.0)
    evolve.evolve(made, LimitsChanged(max_time=90.0))
    assert made.limits == Limits(2.0, 0, 0, 90.0)
    evolve.evolve(made, LimitsChanged(budget=3.0))
    assert made.limits == Limits(3.0, 0, 0, 90.0)


def test_a_run_was_driven_from_the_start_of_each_driver_to_its_last_word() -> None:
    play = Play(FILES)
    play.now += 10
    play.say("<goto>A</goto>")
    play.now += 5000
    play.resume()
    assert (play.run.driven, play.run.resumed_at) == (10.0, START + 5010)
    play.now += 7
    play.say("<goto>B</goto>")
    play.now += 5000
    play.resume()
    assert play.run.driven == 17.0


@pytest.mark.parametrize("how", ["limits", "answer", "changed", "moved"])
def test_what_a_person_asks_of_a_run_nobody_drives_does_not_count_as_driving(how: str) -> None:
    play = Play(FILES)
    play.now += 10
    play.say('<ask next="A">why?</ask>')
    play.now += 5000
    if how == "changed":
        play.commit([WorkflowChanged(source="1" * 64)])
    elif how == "moved":
        play.commit([RunMoved(cwd="/new", before="/tree", after="/new")])
    else:
        play.ask(how, text="so", budget=5.0)
    assert (play.run.now, play.run.driven_until) == (START + 5010, START + 10)
    play.now += 5000
    play.resume()
    assert play.run.driven == 10.0


def test_what_a_driver_did_after_its_last_word_counts_as_driven() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 10
    play.say("<goto>A</goto>")
    play.now += 5000
    assert play.resume(driven=40.0) == [RunResumed(version="1.0", driven=40.0)]
    assert play.run.driven == 50.0
    play.now += 5000
    stop = RunStopped(kind="limit", limit="time", amount=60.0)
    assert play.resume(driven=10.0) == [RunResumed(version="1.0", driven=10.0), stop]


def test_a_clock_that_was_put_right_before_the_last_request_prolongs_no_sleep() -> None:
    play = Play(FILES)
    play.say("<goto after='50s'>A</goto>")
    play.now -= 86400
    play.ask("limits", budget=20.0)
    play.resume()
    assert schedule.wake_at(play.run) == play.now + 50


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
    assert play.main.visit.rest == Rest("N2.md")
    assert schedule.owed(play.run) == ["main_a1", "main_b2"]


def test_an_agent_that_is_ready_waits_for_whoever_runs_its_state_now() -> None:
    """Else it would stay in the queue of a backend that may be closed, or count against the wrong limit."""
    play = Play(FILES)
    play.commit([WorkflowChanged(source="1" * 64, renamed={"START.md": "S.sh"})])
    assert {pool: [*queue] for pool, queue in play.run.ready.items()} == {"claude": [], "scripts": ["main"]}
    play.commit([WorkflowChanged(source="2" * 64, renamed={"S.sh": "A.md"}, backends={"A.md": "codex"})])
    assert (play.main.pool, [*play.run.ready["codex"]], play.run.statuses["ready"]) == ("codex", ["main"], 1)


# Another place


def test_a_moved_run_is_in_the_new_directory_with_what_was_below_the_old_one() -> None:
    play = Play(FILES, scope_dir="/tree/flows", roots=["/tree/lib", "/other"], commit="1" * 40)
    before = play.run.start
    play.commit([RunMoved(cwd="/new/place", before="/tree", after="/new/place", commit="2" * 40)])
    start = play.run.start
    assert (start.cwd, start.scope_dir, start.roots) == (
        *("/new/place", "/new/place/flows"),
        ["/new/place/lib", "/other"],
    )
    assert start.commit == "2" * 40
    assert (before.cwd, before.commit, before.roots) == ("/tree", "1" * 40, ["/tree/lib", "/other"]), "it was there"


def test_every_agent_of_a_moved_run_goes_along_and_so_does_where_it_returns_to() -> None:
    play = Play(FILES)
    play.say('<fork>A</fork><fork cd="x">B</fork><goto>A</goto>', cds={"x": "/else"})
    play.say('<reset cd="sub">N</reset>', cds={"sub": "/tree/sub"})
    play.say('<call return="B">A</call>')
    play.commit([RunMoved(cwd="/new", before="/tree", after="/new")])
    assert {agent.id: agent.cwd for agent in play.run.agents.values()} == {
        "main": "/new/sub",
        "main_a1": "",
        "main_b2": "/else",
    }
    assert [frame.cwd for frame in play.main.stack or ()] == ["/new/sub"]
    play.say("<result>back</result>")
    assert (play.main.state, play.main.cwd) == ("B.md", "/new/sub")


def test_a_conversation_that_was_lost_on_the_way_is_forgotten_and_the_others_are_kept() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><goto>N</goto>")
    play.say("<goto>B</goto>", "main_a1")
    kept = play.agent("main_a1").session
    play.say('<call return="B">A</call>')
    caller = play.main.session
    play.say("<goto>N</goto>")
    assert len({"", kept, caller, play.main.session}) == 4
    play.commit([RunMoved(cwd="/new", before="/tree", after="/new", lost=[caller])])
    assert [frame.conversation for frame in play.main.stack or ()] == [None]
    assert play.main.session != ""
    play.commit([RunMoved(cwd="/new", before="/new", after="/new", lost=[play.main.session])])
    assert (play.main.conversation, play.agent("main_a1").session) == (None, kept)
    play.begin()
    assert play.main.turn_base == "", "the next turn is fresh"


def test_a_move_changes_nothing_but_places_and_conversations() -> None:
    play = Play(FILES)
    play.say(WAVE)
    owed, statuses, key = schedule.owed(play.run), play.statuses(), play.run.start.key
    play.commit([RunMoved(cwd="/new", before="/tree", after="/new")])
    assert (schedule.owed(play.run), play.statuses()) == (owed, statuses)
    assert (play.run.stop, play.run.final_status, play.run.start.key) == (None, "", key)


@pytest.mark.parametrize(
    ("path", "old", "new", "found"),
    [
        ("/tree", "/tree", "/new", "/new"),
        ("/tree/a/b", "/tree", "/new", "/new/a/b"),
        ("/tree2", "/tree", "/new", "/tree2"),
        ("/a/tree", "/tree", "/new", "/a/tree"),
        ("", "/tree", "/new", ""),
        ("", "/", "/new", ""),
        ("/a", "/", "/new", "/new/a"),
        ("/tree/a", "/tree", "/", "/a"),
        ("/tree/a", "/tree", "/tree/a", "/tree/a/a"),
    ],
)
def test_a_path_follows_the_directory_it_is_in_and_no_other(path: str, old: str, new: str, found: str) -> None:
    assert rebased(path, old, new) == found


def test_an_agent_that_is_paused_in_its_sleep_is_not_woken() -> None:
    play = Play(FILES)
    play.say("<goto after='5m'>A</goto>")
    play.ask("pause", agent="main")
    assert (play.main.status, play.main.visit.wake_at, schedule.wake_at(play.run)) == ("paused", 0.0, None)
    assert play.pass_time(1000) == []
