"""What people look at: words, reasons, exit codes, the state file, a line per event."""

import json
from typing import Any, get_args, get_type_hints

import pytest

from builders import START, Play, place, start
from raymond.faces import documents, words
from raymond.machine import decide, events
from raymond.machine.agent import Agent, Outcome, Visit
from raymond.machine.events import AgentFailed, AgentPaused, Event, RunStopped
from raymond.machine.failures import KINDS, Kind
from raymond.machine.run import Run
from raymond.views import times
from raymond.views.status import exit_code, failed_agents, main_result, run_status

FILES = {"START.md": "", "A.md": "", "B.md": "", "CODEX.md": "---\nbackend: codex\n---\n", "N.md": "", "S.sh": ""}
NOON = "1970-01-12T13:51:40Z"
"""Five minutes after every run moved by hand begins."""


def play(*texts: str, **given: Any) -> Play:
    made = Play(FILES, **given)
    for text in texts:
        made.say(text)
    return made


def done() -> Play:
    made = play("<result>x</result>")
    made.pass_time()
    return made


def failed() -> Play:
    made = play()
    made.fail("setup")
    return made


def ended_in_failure() -> Play:
    made = failed()
    made.pass_time()
    return made


def closed(kind: Kind = "auth", **given: Any) -> Play:
    made = play()
    made.fail(kind, error="try later", **given)
    return made


def stopped(**how: Any) -> Play:
    made = play()
    made.stop(RunStopped(**how))
    return made


def over_budget() -> Play:
    return play("<goto>A</goto>", max_iterations=1)


def behind_a_closed_door() -> Play:
    """One agent is paused, the others queue for the same backend."""
    made = play("<fork>A</fork><fork>B</fork><wait>N</wait>")
    made.fail("auth", "main_a1", error="log in")
    return made


def a_script_beside_it() -> Play:
    made = play("<fork>A</fork><fork>S</fork><wait>N</wait>")
    made.fail("auth", "main_a1", error="log in")
    return made


def done_while_pausing() -> Play:
    made = play()
    made.begin()
    made.stop()
    made.say("<result>x</result>")
    made.pass_time()
    return made


def paused_by_hand(*agents: str) -> Play:
    made = play("<fork>A</fork><fork>B</fork><wait>N</wait>")
    for agent in agents:
        made.ask("pause", agent=agent)
    return made


def out_of_time() -> Play:
    made = play(max_time=60.0)
    made.pass_time(60)
    return made


ASKS = '<ask next="N">why?</ask>'


@pytest.mark.parametrize(
    ("made", "status", "code", "reason"),
    [
        (play(), "running", 3, None),
        (play("<goto after='5m'>A</goto>"), "running", 3, None),
        (play("<fork>A</fork><wait>N</wait>"), "running", 3, None),
        (play(ASKS), "waiting", 3, "1 agent waits for an answer"),
        (play("<fork>A</fork><goto>N</goto>", ASKS), "running", 3, None),
        (closed("auth"), "paused", 5, "claude is unavailable: try later"),
        (closed("billing"), "paused", 5, "claude is unavailable: try later"),
        (closed("limit", retry_at=START + 300), "running", 3, f"claude is unavailable until {NOON}: try later"),
        (closed("overload", retry_at=START + 300), "running", 3, f"claude is unavailable until {NOON}: try later"),
        (behind_a_closed_door(), "paused", 5, "claude is unavailable: log in"),
        (a_script_beside_it(), "running", 5, "claude is unavailable: log in"),
        (failed(), "running", 1, None),
        (ended_in_failure(), "failed", 1, None),
        (done(), "completed", 0, None),
        (stopped(kind="paused"), "paused", 3, "paused with Ctrl-C"),
        (stopped(kind="signal", signal=15), "paused", 3, "stopped by SIGTERM"),
        (stopped(kind="stop"), "stopped", 3, "stopped on request"),
        (stopped(kind="limit", limit="turns", amount=7.0), "stopped", 4, "max_turns (7) was reached"),
        (over_budget(), "stopped", 4, "max_iterations (1) was reached"),
        (out_of_time(), "stopped", 4, "max_time (1m) was reached"),
        (done_while_pausing(), "completed", 0, None),
        (paused_by_hand("main_a1"), "running", 3, None),
        (paused_by_hand("main_a1", "main_b2"), "paused", 3, "2 agents paused, main_a1: paused by a person"),
    ],
)
def test_how_a_run_is_called_why_it_rests_and_how_its_command_ends(
    made: Play, status: str, code: int, reason: str | None
) -> None:
    assert (run_status(made.run), exit_code(made.run), words.reason(made.run)) == (
        status,
        code,
        reason,
    )


def test_a_run_that_only_waits_for_who_asks_waits() -> None:
    made = play("<fork>A</fork><wait>N</wait>")
    made.say(ASKS, "main_a1")
    assert (run_status(made.run), words.reason(made.run)) == ("waiting", "1 agent waits for an answer")
    made.run.statuses["asking"] = 0
    assert (run_status(made.run), words.reason(made.run)) == ("waiting", None)


def test_the_first_exit_code_that_holds_counts() -> None:
    made = play("<fork>A</fork><fork>B</fork><fork>CODEX</fork><goto>N</goto>", max_iterations=9)
    made.fail("setup", "main_b2")
    assert exit_code(made.run) == 1
    made.stop(RunStopped(kind="limit", limit="turns", amount=9.0))
    assert exit_code(made.run) == 4
    made.resume()
    made.fail("auth", "main_a1")
    made.stop(RunStopped(kind="limit", limit="turns", amount=9.0))
    assert exit_code(made.run) == 5


def test_a_signal_is_the_exit_code_of_a_run_it_ended() -> None:
    assert exit_code(stopped(kind="signal", signal=15).run, 15) == 143
    assert exit_code(behind_a_closed_door().run, 2) == 130
    assert exit_code(done().run, 2) == 0


def test_the_result_of_a_run_is_mains() -> None:
    assert main_result(done().run) == "x"
    assert main_result(play().run) is None
    assert main_result(Run(outcomes={"main": Outcome("main", "A.md", "failed", "", "boom")})) is None


def test_failures_are_those_nobody_collected() -> None:
    made = play("<fork>A</fork><fork>B</fork><wait>N</wait>")
    made.fail("setup", "main_a1")
    assert [agent.id for agent in failed_agents(made.run)] == ["main_a1"]
    made.say("<result>x</result>", "main_b2")
    assert failed_agents(made.run) == []


@pytest.mark.parametrize(
    ("cost", "estimated", "shown"), [(0.0, False, "$0.00"), (1.234, False, "$1.23"), (0.5, True, "~$0.50")]
)
def test_money_is_shown_in_dollars_and_marked_when_estimated(cost: float, estimated: bool, shown: str) -> None:
    assert words.money(Run(cost=cost, estimated=estimated)) == shown


@pytest.mark.parametrize(("now", "shown"), [(START, "0ms"), (START + 228, "3m 48s"), (START - 50, "0ms")])
def test_how_long_a_run_took(now: float, shown: str) -> None:
    assert words.lasted(Run(started_at=START, now=now)) == shown


def test_an_instant_is_utc_and_no_time_is_none() -> None:
    assert (times.instant(START + 300), times.instant(0.0)) == (NOON, None)
    assert (times.moment(NOON), times.moment(None)) == (START + 300, 0.0)


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (0, "paused: nothing is running"),
        (1, "pausing after 1 running step (a0); no new steps will start\n"),
        (5, "pausing after 5 running steps (a0, a1, a2, a3, a4); no new steps will start\n"),
        (7, "pausing after 7 running steps (a0, a1, a2, a3, a4 and 2 more); no new steps will start\n"),
    ],
)
def test_the_first_ctrl_c_says_what_it_waits_for_and_what_a_second_one_loses(running: int, said: str) -> None:
    agents = {f"a{n}": Agent(f"a{n}", Visit("A.md"), "running") for n in range(running)}
    agents["b"] = Agent("b", Visit("A.md"), "ready")
    lost = "press Ctrl-C again to stop now: unfinished steps will rerun, and cost again, when you resume"
    assert words.pausing(Run(agents=agents)) == said + (lost if running else "")


# Why it stopped, why an agent is stuck


STOPS: list[tuple[RunStopped, str]] = [
    (RunStopped(kind="paused"), "paused with Ctrl-C"),
    (RunStopped(kind="signal", signal=1), "stopped by SIGHUP"),
    (RunStopped(kind="signal", signal=2), "stopped by SIGINT"),
    (RunStopped(kind="signal", signal=15), "stopped by SIGTERM"),
    (RunStopped(kind="signal", signal=12), "stopped by signal 12"),
    (RunStopped(kind="stop"), "stopped on request"),
    (RunStopped(kind="stop", at_once=True), "stopped at once on request"),
    (RunStopped(kind="stop", by="step"), "stopped on request of a step"),
    (RunStopped(kind="stop", at_once=True, by="unknown"), "stopped at once on request of an unknown process"),
    (RunStopped(kind="cancelled", at_once=True), "cancelled on request"),
    (RunStopped(kind="limit", limit="budget", amount=10.0), "the budget of $10.00 is spent"),
    (RunStopped(kind="limit", limit="iterations", amount=3.0), "max_iterations (3) was reached"),
    (RunStopped(kind="limit", limit="turns", amount=250.0), "max_turns (250) was reached"),
    (
        RunStopped(kind="limit", limit="unpriced", amount=200.0),
        "stopped after 200 turns of unknown cost (set --max-turns to allow more)",
    ),
    (RunStopped(kind="limit", limit="time", amount=100.0), "max_time (1m 40s) was reached"),
    (
        RunStopped(kind="limit", limit="wait", amount=3600.0, backend="claude", wait=7201.0),
        "claude is unavailable for 2h (usage limit), longer than max_wait (1h)",
    ),
]


@pytest.mark.parametrize(("event", "said"), STOPS)
def test_why_a_run_stopped(event: RunStopped, said: str) -> None:
    made = play()
    made.stop(event)
    assert words.stop(event) == words.reason(made.run) == said
    assert words.line(event) == f"stopping: {said}"


def test_every_way_to_stop_has_its_sentence_above() -> None:
    hints = get_type_hints(RunStopped)
    assert {event.kind for event, _ in STOPS} == set(get_args(hints["kind"]))
    assert {event.limit for event, _ in STOPS} == set(get_args(hints["limit"]))


PAUSES: list[tuple[AgentPaused, str]] = [
    (AgentPaused(agent="main", kind="person"), "paused by a person"),
    (AgentPaused(agent="main", kind="step"), "paused by a step"),
    (AgentPaused(agent="main", kind="unknown"), "paused by an unknown process"),
    (AgentPaused(agent="main", kind="denied", tools=["Edit"]), "denied tools it needs: Edit"),
    (AgentPaused(agent="main", kind="review", reason="green only so"), "waits for a review: green only so"),
    (
        AgentPaused(agent="main", kind="denied", tools=["Bash(git:*)", "Edit"]),
        "denied tools it needs: Bash(git:*), Edit",
    ),
    (AgentPaused(agent="main", kind="auth", reason="log in", backend="claude"), "log in"),
    (AgentPaused(agent="main", kind="billing", reason="pay", backend="claude"), "pay"),
    (
        AgentPaused(agent="main", kind="overload", reason="529", backend="claude"),
        "claude was overloaded for too long: 529",
    ),
]


@pytest.mark.parametrize(("event", "said"), PAUSES)
def test_why_an_agent_is_paused(event: AgentPaused, said: str) -> None:
    made = play()
    made.commit([event])
    assert (words.stuck(made.main), words.line(event)) == (said, f"main paused: {said}")
    assert words.reason(made.run) == f"1 agent paused, main: {said}"
    [shown] = json.loads(documents.state_file(made.run))["agents"]
    assert (shown["status"], shown["error"]) == ("paused", said)
    made.resume()
    assert words.stuck(made.main) == (said if event.kind == "review" else "")


def test_every_way_to_pause_has_its_sentence_above() -> None:
    assert {event.kind for event, _ in PAUSES} == set(get_args(get_type_hints(AgentPaused)["kind"]))


@pytest.mark.parametrize("kind", [*KINDS, "visits", "given up"])
def test_an_agent_that_failed_says_so_in_the_words_of_what_failed(kind: Any) -> None:
    made = play()
    made.commit([AgentFailed(agent="main", kind=kind, error="boom")])
    assert words.stuck(made.main) == "boom"
    assert documents.outcome(made.run)["failed"] == {"main": "boom"}


def test_an_agent_that_is_well_is_not_stuck() -> None:
    assert words.stuck(play().main) == ""


def test_how_long_a_backend_is_still_closed_is_told_with_the_time() -> None:
    made = closed("limit", retry_at=START + 300)
    assert words.reason(made.run, START + 60) == f"claude is unavailable until {NOON}, in 4m: try later"
    assert words.reason(made.run, START + 300) == f"claude is unavailable until {NOON}: try later"


def test_refused_tools_are_listed_the_most_often_refused_first() -> None:
    made = play()
    for tool in ("Edit", "Bash(git:*)", "Edit", "A", "B", "C", "D"):
        made.say("<goto>START</goto>", denied=(tool,))
    assert documents.outcome(made.run)["denied"] == {"Edit": 2, "Bash(git:*)": 1, "A": 1, "B": 1, "C": 1, "D": 1}
    assert words.denied(made.run) == [
        "Edit 2 times (--allow-tool Edit would allow it)",
        "A 1 time (--allow-tool A would allow it)",
        "B 1 time (--allow-tool B would allow it)",
        "Bash(git:*) 1 time (--allow-tool 'Bash(git:*)' would allow it)",
        "C 1 time (--allow-tool C would allow it)",
    ]
    assert words.denied(play().run) == []


def test_what_decisions_cost_is_what_their_steps_cost() -> None:
    made = play("<goto>A</goto>")
    before = len(made.decisions)
    made.say("nothing", cost=0.25)
    made.interrupt(cost=0.5)
    assert (words.cost_of(made.decisions), words.cost_of(made.decisions[: before + 2])) == (0.75, 0.25)


# The state file


def test_the_state_file_has_the_schema_of_the_page() -> None:
    made = Play(FILES, input="begin", metadata={"k": "v"}, budget=10.0)
    made.say('<call return="N">A</call>', cost=0.25)
    made.say("<fork next='B' item='7'>CODEX</fork>", cost=0.06)
    made.fail("silent")
    session = made.main.session
    document = json.loads(documents.state_file(made.run))
    assert document == {
        "workflow_id": "test-1",
        "scope_dir": "/scope",
        "source": f"sources/{'0' * 64}.zip",
        "status": "running",
        "pid": None,
        "reason": None,
        "exit_code": None,
        "is_over": False,
        "workflow": "test",
        "stop_kind": None,
        "started_at": "1970-01-12T13:46:40Z",
        "updated_at": "1970-01-12T13:46:40Z",
        "due_at": None,
        "journal_seq": made.run.seq,
        "iteration_count": 3,
        "max_iterations": None,
        "total_cost_usd": 0.31,
        "scripted_cost_usd": 0.0,
        "cost_is_estimated": False,
        "budget_usd": 10.0,
        "workspace": "here",
        "work": None,
        "agents": [
            {
                "id": "main",
                "label": None,
                "current_state": "B.md",
                "status": "ready",
                "session_id": session,
                "cwd": "/tree",
                "stack": [{"session": decide.session_of(made.run, 1, 1), "state": "N.md", "cwd": "/tree"}],
                "variables": {},
                "pending_result": None,
                "retry_count": 1,
                "error": None,
                "wake_at": None,
                "question": None,
                "question_number": None,
                "approve": None,
                "choices": [],
                "files": [],
                "review": None,
                "gate": None,
                "since": "1970-01-12T13:46:40Z",
            },
            {
                "id": "main_codex1",
                "label": "7",
                "current_state": "CODEX.md",
                "status": "ready",
                "session_id": None,
                "cwd": "/tree",
                "stack": [],
                "variables": {"item": "7"},
                "pending_result": None,
                "retry_count": 0,
                "error": None,
                "wake_at": None,
                "question": None,
                "question_number": None,
                "approve": None,
                "choices": [],
                "files": [],
                "review": None,
                "gate": None,
                "since": "1970-01-12T13:46:40Z",
            },
        ],
        "agents_started": 2,
        "agents_failed": 0,
        "collected_failures": {},
        "fork_counters": {"main": 1},
        "results": {},
        "labels": {},
        "metadata": {"k": "v"},
    }


def test_the_state_file_of_a_run_without_agents_has_an_empty_list() -> None:
    made = play()
    made.say("<result>x</result>")
    assert json.loads(documents.state_file(made.run))["agents"] == []


def test_an_outcome_says_how_a_run_ended_who_failed_and_who_asks() -> None:
    made = play("<fork>A</fork><fork f='b.py'>B</fork><fork>N</fork><goto>N</goto>", max_iterations=9)
    made.say("<result>x</result>", "main_a1", cost=0.25, estimated=True)
    made.fail("setup", "main_b2")
    made.say(ASKS, "main_n3")
    assert documents.outcome(made.run) == {
        "workflow_id": "test-1",
        "status": "running",
        "reason": None,
        "exit_code": 1,
        "result": None,
        "results": {"main_a1": "x"},
        "collected_failures": {},
        "failed": {"main_b2": "boom"},
        "asks": {"main_n3": "why?"},
        "questions": {"main_n3": 1},
        "labels": {"main_b2": "b.py"},
        "cost_usd": 0.25,
        "scripted_cost_usd": 0.0,
        "cost_is_estimated": True,
        "denied": {},
        "iterations": 4,
        "agents": 4,
        "agents_failed": 1,
        "workspace": "here",
        "work": None,
        "started_at": times.instant(START),
        "ended_at": None,
    }
    made.stop()
    assert documents.outcome(made.run)["ended_at"] == times.instant(START)


def test_the_state_file_shows_who_sleeps_asks_failed_and_what_is_handed_on() -> None:
    made = play("<fork input='x' after='5m'>A</fork><fork>B</fork><goto>N</goto>", max_iterations=50)
    made.fail("setup", "main_b2", error="it broke")
    made.say("<ask next='A'>why?</ask>")
    document = json.loads(documents.state_file(made.run))
    main, first, second = document["agents"]
    assert (main["status"], main["question"], main["question_number"]) == ("asking", "why?", 1)
    assert (first["wake_at"], first["pending_result"]) == (NOON, "x")
    assert (second["status"], second["error"]) == ("failed", "it broke")
    assert document["max_iterations"] == 50


def test_results_of_all_agents_stand_by_name_the_last_thousand_of_them() -> None:
    outcomes = {f"a{n}": Outcome(f"a{n}", "A.md", "done", str(n)) for n in range(1100)}
    outcomes["a1099"] = Outcome("a1099", "A.md", "failed", "", "boom")
    made = Run(begun=start(place(FILES)), outcomes=outcomes)
    results = json.loads(documents.state_file(made))["results"]
    assert (len(results), next(iter(results)), "a1099" in results) == (999, "a100", False)


# A line per event


LINES: list[tuple[Event, str | None]] = [
    (start(place(FILES)), "run test-1 started here: test at START.md, no budget (default)"),
    (
        start(place(FILES), budget=10.0, budget_from="default"),
        "run test-1 started here: test at START.md, budget $10.00 (default)",
    ),
    (start(place(FILES), budget_from="--budget"), "run test-1 started here: test at START.md, no budget (--budget)"),
    (events.RunResumed(version="1"), "run resumed"),
    (events.JournalCut(steps=7), "the end of the journal was lost; steps are counted from 8"),
    (events.ClockSet(seconds=-3600.0), "the clock was set back by 1h"),
    (events.ClockSet(seconds=90.0), "the clock was set forward by 1m 30s, or this machine slept"),
    (events.RunMoved(cwd="/new/place", before="/tree", after="/new/place"), "run continues in /new/place"),
    (
        events.BackendClosed(backend="scripts", kind="machine", error="no room", until=START + 300, most=3),
        f"scripts: at most 3 at once until {NOON}: no room",
    ),
    (events.BackendClosed(backend="claude", kind="machine", error="no room"), "claude: none starts: no room"),
    (events.BackendOpened(backend="scripts", probing=True), "one more script is tried"),
    (events.BackendOpened(backend="scripts"), "all scripts start again"),
    (
        events.ProgramAdded(program=events.Program(name="claude", version="2.1.3", payer="me")),
        "claude 2.1.3 (paid by me) answers from now on, too",
    ),
    (events.TreeMade(head="a" * 40, commit="a" * 40), "the workspace begins with aaaaaaaaaaaa"),
    (
        events.TreeMade(head="a" * 40, commit="b" * 40),
        "the workspace begins with aaaaaaaaaaaa and what was not committed",
    ),
    (events.WorkSaved(commit="c" * 40), "the work is saved as cccccccccccc"),
    (events.LeftoversEnded(count=1), "1 process that steps had left running was ended"),
    (events.LeftoversEnded(count=2), "2 processes that steps had left running were ended"),
    (events.RunStopped(kind="stop"), "stopping: stopped on request"),
    (events.RunEnded(status="completed"), "run completed"),
    (events.RequestTaken(request="r", kind="stop"), "stop requested"),
    (events.RequestTaken(request="r", kind="retry", problem="no"), "retry refused: no"),
    (events.LimitsChanged(budget=1.0), None),
    (events.AgentStarted(agent="main", state="A.md"), "main starts at A.md"),
    (events.AgentStarted(agent="main_a1", state="A.md", parent="main"), "main_a1 starts at A.md forked by main"),
    (
        events.AgentStarted(agent="main_a1", state="A.md", parent="main", wake_at=START + 300),
        f"main_a1 starts at A.md forked by main, sleeps until {NOON}",
    ),
    (events.StepStarted(agent="main", step=1), None),
    (events.StepFinished(agent="main", step=1), None),
    (events.StepRefused(agent="main", step=1, reason="no tag"), "main is asked again: no tag"),
    (
        events.StepRefused(agent="main", step=1, capped=True),
        "main reached its share of the budget",
    ),
    (
        events.StepRefused(agent="main", step=1, blocked=True, denied=["Bash(git:*)", "Edit"]),
        "main was denied tools it needs: Bash(git:*), Edit",
    ),
    (events.SessionNamed(agent="main", step=1, session="its-own"), None),
    (events.AgentHeld(agent="main", pool="claude/opus"), "main waits for claude/opus"),
    (events.StepFailed(agent="main", step=1, kind="crash", error="boom"), "main step 1 failed (crash): boom"),
    (events.StepInterrupted(agent="main", step=1), "main step 1 interrupted"),
    (events.TransitionHeld(agent="main", asked=[]), None),
    (events.SealEnded(agent="main", step=1, seal="5ea1", sealed=3), None),
    (events.SealEnded(agent="main", step=1, reason="no room"), "main cannot begin: no room"),
    (events.ReviewEnded(agent="main", accepted=True, digest="d"), "main: its change was accepted"),
    (events.ReviewEnded(agent="main", reason="no"), "main: its change was rejected: no"),
    (
        events.GateEnded(agent="main", step=1, verdict="passed", changes=["changed a", "added b"], twin="overlay"),
        "main gate passed (0s); also as sealed: changed a, added b",
    ),
    (
        events.GateEnded(agent="main", step=1, verdict="passed", changes=["changed a"]),
        "main gate passed (0s); accepted: changed a",
    ),
    (
        events.GateEnded(agent="main", step=1, verdict="review", reason="green only so", told=True),
        "main gate does not count (review, 0s): green only so; the agent is asked why",
    ),
    (events.GateEnded(agent="main", step=1, verdict="passed", seconds=2), "main gate passed (2s)"),
    (
        events.GateEnded(agent="main", step=1, verdict="passed", wrote=["a.lock"]),
        "main gate passed (0s); changed while it ran: a.lock",
    ),
    (
        events.GateEnded(agent="main", step=1, verdict="passed", flaky=True),
        "main gate passed (0s, flaky: it was red the first time)",
    ),
    (
        events.GateEnded(agent="main", step=1, verdict="failed", reason="`make` ended with exit code 2", told=True),
        "main gate is red (0s): `make` ended with exit code 2; the agent is told",
    ),
    (
        events.GateEnded(agent="main", step=1, verdict="could not start", reason="there is no program `mak`"),
        "main gate could not start: there is no program `mak`",
    ),
    (
        events.EvaluatorEnded(
            agent="main", step=2, verdict="COMMIT", requested="goto REVIEW", actual="goto COMMIT", decided=True
        ),
        "main evaluator says COMMIT: goto COMMIT instead of goto REVIEW",
    ),
    (
        events.EvaluatorEnded(
            agent="main", step=2, verdict="YES", requested="goto A", actual="goto A", kept=True, decided=True
        ),
        "main evaluator says YES: keeps goto A",
    ),
    (
        events.EvaluatorEnded(
            agent="main",
            step=2,
            reason="the pattern took longer than 1s",
            requested="goto A",
            actual="goto A",
            kept=True,
            decided=True,
        ),
        "main evaluator gave no verdict (the pattern took longer than 1s), the default counts: keeps goto A",
    ),
    (
        events.EvaluatorEnded(agent="main", step=2, reason='the judge said "hm"', again=True),
        'main evaluator is asked again: the judge said "hm"',
    ),
    (
        events.EvaluatorEnded(agent="main", step=2, reason="`<goto>A</goto>` is not allowed here"),
        "main evaluator decided nothing: `<goto>A</goto>` is not allowed here",
    ),
    (
        events.StepFailed(agent="main", step=2, kind="crash", error="boom", phase="evaluate"),
        "main evaluator failed (crash): boom",
    ),
    (events.AgentMoved(agent="main", tag="goto", state="A.md"), "main -> A.md (goto)"),
    (
        events.AgentMoved(agent="main", tag="goto", state="A.md", instead_of="B.md", wake_at=START + 300),
        f"main -> A.md (goto) instead of B.md, whose visits are used up, sleeps until {NOON}",
    ),
    (events.AgentCalled(agent="main", tag="call", state="A.md", then="B.md"), "main -> A.md (call, then B.md)"),
    (events.AgentReturned(agent="main", state="A.md", result="x"), "main -> A.md (result)"),
    (events.AgentWoke(agent="main"), "main wakes"),
    (events.WaitStarted(agent="main", state="A.md"), "main waits for its forks, then A.md"),
    (events.WaitEnded(agent="main", state="A.md"), "main -> A.md (wait)"),
    (events.WaitEnded(agent="main", state="A.md", timed_out=True), "main -> A.md (wait, timed out)"),
    (events.AskStarted(agent="main", question="why?", state="A.md", number=1), "main asks: why?"),
    (events.AskEnded(agent="main", state="A.md", answer="so"), "main -> A.md (answered)"),
    (events.AskEnded(agent="main", state="A.md", timed_out=True), "main -> A.md (nobody answered)"),
    (events.AgentEnded(agent="main", result="x"), "main done"),
    (events.AgentFailed(agent="main", kind="crash", error="boom"), "main failed (crash): boom"),
    (events.AgentPaused(agent="main", kind="auth", reason="log in"), "main paused: log in"),
    (events.AgentRetried(agent="main"), "main tries again"),
    (events.WorkflowChanged(source="0123456789abcdef" * 4), "run continues with today's files (0123456789abcdef)"),
    (events.BackendClosed(backend="claude", kind="auth", error="log in"), "claude is unavailable (auth): log in"),
    (
        events.BackendClosed(backend="claude", kind="limit", error="later", until=START + 300),
        f"claude is unavailable until {NOON} (limit): later",
    ),
    (events.BackendOpened(backend="claude"), "claude answers again"),
    (events.BackendOpened(backend="claude", probing=True), "claude is tried again"),
]


def test_a_run_that_has_ended_does_not_wait_for_room() -> None:
    play = closed("machine")
    assert words.reason(play.run) == "claude: none starts until 1970-01-12T13:46:41Z: try later"
    play.run.final_status = "completed"
    assert words.reason(play.run) is None


@pytest.mark.parametrize(("event", "shown"), LINES)
def test_an_event_in_one_line(event: Event, shown: str | None) -> None:
    assert words.line(event) == shown


def test_every_event_has_its_line_above() -> None:
    assert {type(event) for event, _ in LINES} == set(get_args(events.Event))
