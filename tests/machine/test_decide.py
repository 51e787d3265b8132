"""What follows from what comes in: steps and sessions, refusals, the table of failures, limits, time."""

from typing import Any

import pytest
from msgspec.structs import replace

from builders import START, Play, block, head, kind_of, place, start
from raymond.faces import words
from raymond.language import reading, tags
from raymond.language.refusal import Refusal
from raymond.machine import decide, evolve, failures, prompts, run, schedule
from raymond.machine.agent import Conversation, Stuck
from raymond.machine.events import (
    AgentFailed,
    AgentHeld,
    AgentMoved,
    AgentPaused,
    AgentStarted,
    AgentWoke,
    BackendClosed,
    BackendOpened,
    RunEnded,
    RunStopped,
    SessionNamed,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
    WorkflowChanged,
)
from raymond.machine.failures import Kind
from raymond.machine.inputs import Begin, Failure, Input, Interruption, Output, Spending, Stop, Tick
from raymond.machine.run import Run
from raymond.views.status import exit_code, run_status

FILES = {
    "START.md": "",
    "A.md": "",
    "B.md": "",
    "N.md": "",
    "S.sh": "",
    "CODEX.md": head("backend: codex"),
    "SAFE.md": head("on_error: A"),
    "TWO.md": head("retries: 2"),
    "NONE.md": head("retries: 0"),
    "AGAIN.sh": block("retries: 1"),
    "RESCUED.sh": block("on_error: A"),
    "ONLY.md": head("allowed_transitions: [{tag: goto, target: A}]"),
    "FORCED.md": head("allowed_transitions: [{tag: goto, target: A}]\nforce_implicit: true"),
    "EITHER.md": head("allowed_transitions: [{tag: goto, target: A.md}, {tag: result}]"),
    "OPEN.md": head("allowed_transitions: [{tag: result}]"),
    "FORKS.md": head("allowed_transitions: [{tag: fork, target: A, next: B, cd: sub, item: '1'}]"),
    "OPUS.md": head("model: opus"),
    "SONNET.md": head("model: sonnet"),
    "ASKS.md": head("on_denied: pause", "Do it."),
    "GOES.md": head("on_denied: count"),
    "SCRIPTED.sh": block("allowed_transitions: [{tag: goto, target: A}]"),
}


def at(state: str, **given: Any) -> Play:
    """A run whose main agent stands in `state` and has a conversation."""
    play = Play(FILES, **given)
    play.say(f"<goto>{state}</goto>")
    return play


def started(play: Play, agent: str = "main") -> StepStarted:
    event = play.begin(agent)
    assert isinstance(event, StepStarted)
    return event


# Beginning


def test_a_run_begins_with_itself_and_its_main_agent() -> None:
    workspace = place(FILES)
    first = start(workspace, input="do it")
    assert decide.begin(first) == [first, AgentStarted(agent="main", state="START.md", input="do it")]


def test_a_step_of_a_script_has_a_number_and_no_session() -> None:
    assert started(at("S")) == StepStarted(agent="main", step=2)


def test_a_turn_is_told_what_to_write_and_what_to_branch_from() -> None:
    play = Play(FILES)
    first = started(play)
    session = decide.session_of(play.run, 1, 1)
    assert first == StepStarted(agent="main", step=1, backend="claude", session=session)
    play.say("<goto>A</goto>")
    again = decide.session_of(play.run, 2, 1)
    assert started(play) == StepStarted(agent="main", step=2, backend="claude", session=again, base=session)


def test_ids_of_sessions_are_derived_and_never_the_same() -> None:
    one, other = Play(FILES), Play(FILES, key="00000000-0000-4000-8000-000000000000")
    ids = [
        decide.session_of(play.run, step, turn) for play in (one, other) for step in (1, 2, 11) for turn in (1, 2, 12)
    ]
    assert len(set(ids)) == len(ids)
    assert decide.session_of(Play(FILES).run, 1, 1) == ids[0]


# Sessions: what the next turn branches from


def test_a_goto_branches_from_the_last_turn_and_a_reset_starts_fresh() -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>")
    first = started(play)
    play.say("<reset>B</reset>")
    assert started(play).base == ""
    assert first.base != ""


def test_a_script_between_two_turns_does_not_end_the_conversation() -> None:
    play = at("S")
    session = play.main.session
    play.say("<goto>A</goto>")
    assert started(play).base == session


def test_a_call_branches_from_the_caller_and_the_caller_goes_on_as_it_was() -> None:
    play = at("A")
    play.say('<call return="N">B</call>')
    caller = play.main.session
    assert started(play).base == caller
    play.say("<goto>A</goto>")
    play.say("<result>x</result>")
    assert started(play).base == caller


def test_a_function_sees_nothing_and_the_caller_goes_on_as_it_was() -> None:
    play = at("A")
    play.say('<function return="N">B</function>')
    caller = decide.session_of(play.run, 2, 1)
    assert started(play).base == ""
    play.say("<result>x</result>")
    assert started(play).base == caller


def test_a_callee_that_begins_with_a_script_still_branches_from_the_caller() -> None:
    play = at("A")
    play.say('<call return="N">S</call>')
    caller = play.main.session
    play.say("<goto>B</goto>")
    assert started(play).base == caller


def test_a_fork_starts_fresh_and_its_parent_goes_on() -> None:
    play = at("A")
    play.say("<fork next='B'>A</fork>")
    session = play.main.session
    assert started(play, "main_a1").base == ""
    assert started(play).base == session


def test_waits_asks_and_sleep_keep_the_conversation() -> None:
    play = at("A")
    play.say("<wait>B</wait>")
    play.say('<ask next="A">why?</ask>')
    play.ask("answer", text="so")
    play.say("<goto after='5m'>B</goto>")
    session = play.main.session
    play.pass_time(300)
    assert session == decide.session_of(play.run, 4, 1)
    assert started(play).base == session


def test_after_a_refused_reply_the_next_turn_branches_from_that_turn() -> None:
    play = at("A")
    before = play.main.session
    first = started(play)
    play.say("no tag at all")
    second = started(play)
    assert (first.base, second.base) == (before, first.session)
    assert (second.step, second.turn, second.attempt) == (first.step, 2, 1)
    play.say("again none")
    assert started(play).base == second.session


@pytest.mark.parametrize("how", ["interrupted", "crash", "silent", "overload"])
def test_after_an_interruption_or_a_crash_the_next_turn_branches_from_the_one_before(how: str) -> None:
    play = at("A")
    before = play.main.session
    first = started(play)
    play.interrupt() if how == "interrupted" else play.fail(kind_of(how))
    play.pass_time(1)
    second = started(play)
    assert (second.base, second.session != first.session) == (before, True)
    assert (second.step, second.turn, second.attempt) == (first.step + 1, 1, 2)
    assert play.main.visit.interrupted


def test_a_reminder_that_is_interrupted_is_given_again_from_the_refused_turn() -> None:
    play = at("A")
    play.say("no tag")
    refused = play.main.session
    play.interrupt()
    again = started(play)
    assert (again.base, again.turn, again.step, again.attempt) == (refused, 1, 3, 2)
    assert (play.main.visit.reminders, play.main.visit.reminder != "") == (1, True)


def test_a_state_on_another_backend_starts_fresh_and_so_does_the_way_back() -> None:
    play = at("CODEX")
    there = started(play)
    assert (there.backend, there.base) == ("codex", "")
    play.say("<goto>A</goto>")
    back = started(play)
    assert (back.backend, back.base) == ("claude", "")


def test_a_call_to_another_backend_returns_to_the_callers_conversation() -> None:
    play = at("A")
    play.say('<call return="N">CODEX</call>')
    caller = play.main.session
    play.say("<result>x</result>")
    assert started(play).base == caller


def test_a_session_that_the_backend_names_itself_is_the_one_that_counts() -> None:
    play = Play(FILES)
    play.begin()
    output = reading.read("<goto>A</goto>")
    play.put(Output(time=play.now, agent="main", reading=output, session="its-own"))
    assert started(play).base == "its-own"


# Reading, reminders, policy


def test_what_a_step_costs_is_counted_however_it_ends() -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>", cost=0.25, tokens_in=10, tokens_out=1, offset=7)
    assert play.last[0] == StepFinished(
        agent="main",
        step=1,
        session=decide.session_of(play.run, 1, 1),
        cost=0.25,
        tokens_in=10,
        tokens_out=1,
        offset=7,
    )
    play.say("nothing", cost=0.25, tokens_in=10)
    play.fail("crash", spent=Spending(cost=0.25, estimated=True, tokens_out=1))
    play.interrupt(cost=0.25)
    assert (play.run.cost, play.run.estimated, play.run.tokens_in, play.run.tokens_out) == (1.0, True, 20, 2)
    assert play.run.iterations == 2


def test_a_reply_without_a_tag_is_answered_with_what_would_be_right() -> None:
    play = at("A")
    play.say("I am done.", cost=0.5)
    assert play.last == [
        StepRefused(
            agent="main",
            step=2,
            reason="the output has no transition",
            hint="end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>",
            session=decide.session_of(play.run, 2, 1),
            cost=0.5,
        )
    ]
    assert (play.main.status, play.main.state, play.main.visit.reminders) == ("ready", "A.md", 1)
    assert play.run.iterations == 1


def test_after_three_reminders_the_visit_has_failed() -> None:
    play = at("A")
    for turn in (1, 2, 3):
        play.say("nothing")
        assert (play.kinds(), play.main.visit.reminders, play.main.visit.turn) == (["StepRefused"], turn, turn)
    play.say("nothing")
    error = "the output has no transition (asked 4 times)"
    assert play.last == [
        StepFailed(agent="main", step=2, kind="unreadable", error=error),
        AgentFailed(agent="main", kind="unreadable", error=error),
    ]
    assert play.run.iterations == 2


def test_reminders_are_counted_for_one_visit() -> None:
    play = at("A")
    for _ in range(3):
        play.say("nothing")
    play.say("<goto>A</goto>")
    assert play.main.visit.reminders == 0
    play.say("nothing")
    assert play.kinds() == ["StepRefused"]


def test_a_visit_that_was_never_readable_goes_to_on_error() -> None:
    play = at("SAFE")
    for _ in range(4):
        play.say("nothing")
    assert play.last[1] == AgentMoved(
        agent="main", tag="on_error", state="A.md", error="the output has no transition (asked 4 times)"
    )


@pytest.mark.parametrize(
    ("state", "kinds"), [("S", ["StepFailed", "AgentFailed"]), ("RESCUED", ["StepFailed", "AgentMoved"])]
)
def test_a_script_is_not_reminded(state: str, kinds: list[str]) -> None:
    play = at(state)
    play.say("nothing")
    assert play.kinds() == kinds
    failed = play.last[0]
    assert isinstance(failed, StepFailed)
    assert (failed.kind, failed.error) == ("script", "the output has no transition")


@pytest.mark.parametrize(
    ("state", "text", "reason"),
    [
        (
            "EITHER",
            "<goto>B</goto>",
            "`<goto>B</goto>` is not allowed here; allowed: `<goto>A.md</goto>`, `<result>...</result>`",
        ),
        (
            "EITHER",
            "<reset>A</reset>",
            "`<reset>A</reset>` is not allowed here; allowed: `<goto>A.md</goto>`, `<result>...</result>`",
        ),
        ("ONLY", "<result>x</result>", "`<result>x</result>` is not allowed here; allowed: `<goto>A</goto>`"),
    ],
)
def test_what_the_policy_forbids_is_refused_with_what_it_allows(state: str, text: str, reason: str) -> None:
    play = at(state)
    play.say(text)
    refused = play.last[0]
    assert isinstance(refused, StepRefused)
    assert refused.reason == reason


@pytest.mark.parametrize(
    ("state", "text", "lands"),
    [
        ("EITHER", "<goto>A</goto>", "A.md"),
        ("ONLY", "<goto>A.md</goto>", "A.md"),
        ("ONLY", "no tag", "A.md"),
        ("ONLY", "an open <goto>", "A.md"),
        ("ONLY", "", "A.md"),
        ("SCRIPTED", "no tag", "A.md"),
        ("FORCED", "no tag", "A.md"),
        ("FORCED", "<goto>B</goto>", "A.md"),
        ("FORCED", "<goto>A</goto><goto>B</goto>", "A.md"),
        ("FORCED", "<reset cd='/etc'>B</reset>", "A.md"),
    ],
)
def test_what_the_policy_implies_need_not_be_said(state: str, text: str, lands: str) -> None:
    play = at(state)
    play.say(text, cds={"/etc": Refusal("directory", "outside")})
    assert (play.kinds()[0], play.main.state) == ("StepFinished", lands)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("OPEN", "no tag"),
        ("EITHER", "no tag"),
        ("ONLY", "<goto>A</goto><goto>B</goto>"),
        ("ONLY", "<goto x='1'>A</goto>"),
    ],
)
def test_what_the_policy_leaves_open_must_be_said(state: str, text: str) -> None:
    play = at(state)
    play.say(text)
    assert play.kinds() == ["StepRefused"]


def test_an_implied_transition_has_its_directory_and_its_variables() -> None:
    play = at("FORKS")
    meant = decide.meant(play.workspace.workflow.states["FORKS.md"].policy, reading.read("no tag"))
    assert [one.cd for one in meant if isinstance(one, tags.Fork)] == ["sub"]
    play.say("no tag", cds={"sub": "/project/sub"})
    assert (play.agent("main_a1").cwd, play.agent("main_a1").variables) == ("/project/sub", {"item": "1"})


# The table of failures


def test_a_crash_is_tried_again_until_the_retries_are_used_up() -> None:
    play = at("A")
    for attempt, wait in ((1, 1.0), (2, 5.0), (3, 15.0)):
        play.fail("crash", exit_code=1)
        failed = StepFailed(agent="main", step=1 + attempt, kind="crash", error="boom", exit_code=1, again=True)
        assert play.last == [replace(failed, retry_at=play.now + wait)]
        assert (play.main.status, play.main.visit.attempt) == ("sleeping", attempt)
        assert play.pass_time(wait - 0.001) == []
        assert play.pass_time(0.001) == [AgentWoke(agent="main")]
        assert schedule.owed(play.run) == ["main"]
    play.fail("silent")
    assert play.kinds() == ["StepFailed", "AgentFailed"]
    assert (play.main.status, play.main.error, play.run.failed_count) == ("failed", "boom", 1)


@pytest.mark.parametrize(("state", "attempts"), [("A", 4), ("TWO", 3), ("NONE", 1), ("S", 1), ("AGAIN", 2)])
def test_retries_are_three_for_prompts_none_for_scripts_or_what_the_policy_says(state: str, attempts: int) -> None:
    play = at(state)
    for _ in range(attempts - 1):
        play.fail("crash")
        assert play.main.status == "sleeping"
    play.fail("crash")
    assert play.main.status == "failed"


@pytest.mark.parametrize("kind", ["script", "time", "setup", "session"])
def test_what_trying_again_would_not_mend_fails_at_once(kind: Kind) -> None:
    play = at("A")
    play.fail(kind, error="it broke")
    assert play.last == [
        StepFailed(agent="main", step=2, kind=kind, error="it broke"),
        AgentFailed(agent="main", kind=kind, error="it broke"),
    ]


def test_a_conversation_that_is_gone_fails_its_agent_in_the_words_of_the_program() -> None:
    play = at("A")
    play.fail("session", error="it is gone")
    assert play.last == [
        StepFailed(agent="main", step=2, kind="session", error="it is gone"),
        AgentFailed(agent="main", kind="session", error="it is gone"),
    ]
    assert play.main.visit.stuck == Stuck("session", "it is gone")


def test_a_failed_visit_goes_to_on_error() -> None:
    play = at("SAFE")
    for _ in range(3):
        play.fail("crash")
    play.fail("crash", error="it broke")
    assert play.last[1] == AgentMoved(agent="main", tag="on_error", state="A.md", error="it broke")
    assert (play.main.visit.failures, play.main.visit.attempt) == (0, 0)


@pytest.mark.parametrize("kind", ["context", "refusal"])
def test_a_full_context_or_a_refusal_is_tried_fresh_once(kind: Kind) -> None:
    play = at("A")
    play.say("no tag")
    play.fail(kind)
    assert play.last == [
        StepFailed(agent="main", step=2, kind=kind, error="boom", charged=False, fresh=True, again=True)
    ]
    assert (play.main.session, play.main.visit.reminder, play.main.visit.interrupted) == ("", "", False)
    assert started(play).base == ""
    play.fail(kind)
    assert play.kinds() == ["StepFailed", "AgentFailed"]


def test_siblings_go_on_when_an_agent_fails() -> None:
    play = at("A")
    play.say("<fork>A</fork><fork>B</fork><wait>N</wait>")
    play.fail("setup", "main_a1")
    assert play.statuses() == {"main": "waiting", "main_a1": "failed", "main_b2": "ready"}


# Backends that rest


def three(**given: Any) -> Play:
    """Main waits for two turns of claude, one of codex and a script; all four run."""
    play = Play(FILES, **given)
    play.say("<fork>A</fork><fork>B</fork><fork>CODEX</fork><fork>S</fork><wait>N</wait>")
    for name in schedule.owed(play.run):
        play.begin(name)
    return play


def test_a_usage_limit_closes_its_backend_until_the_reset_and_nothing_else() -> None:
    play = three()
    play.fail("limit", "main_a1", error="until noon", retry_at=START + 3600)
    assert play.last == [
        StepFailed(agent="main_a1", step=2, kind="limit", error="until noon", charged=False, again=True),
        BackendClosed(backend="claude", kind="limit", error="until noon", until=START + 3600, since=START),
    ]
    assert (play.agent("main_a1").status, play.agent("main_a1").visit.failures) == ("ready", 0)
    assert (schedule.owed(play.run), schedule.wake_at(play.run)) == ([], START + 3600)
    play.say("<goto>CODEX</goto>", "main_codex3")
    play.say("<goto>S</goto>", "main_s4")
    assert schedule.owed(play.run) == ["main_codex3", "main_s4"]


def test_a_usage_limit_that_names_no_reset_is_looked_at_every_quarter_of_an_hour() -> None:
    play = three()
    play.fail("limit", "main_a1")
    assert play.run.closed["claude"].until == START + 900


def test_at_the_reset_one_turn_tries_first_and_its_answer_opens_the_backend() -> None:
    play = three()
    play.fail("limit", "main_a1", retry_at=START + 3600)
    play.fail("limit", "main_b2", retry_at=START + 7200)
    assert play.kinds() == ["StepFailed"]
    assert play.pass_time(3599) == []
    assert play.pass_time(1) == [BackendOpened(backend="claude", probing=True)]
    assert schedule.owed(play.run) == ["main_a1"]
    assert schedule.wake_at(play.run) is None
    play.begin("main_a1")
    assert schedule.owed(play.run) == []
    play.say("<goto>A</goto>", "main_a1")
    assert play.last[1] == BackendOpened(backend="claude")
    assert (schedule.owed(play.run), play.run.closed) == (["main_b2", "main_a1"], {})


@pytest.mark.parametrize("text", ["no tag at all", "<goto>NOPE</goto>"])
def test_a_refused_reply_shows_too_that_a_backend_answers(text: str) -> None:
    play = three()
    play.fail("overload", "main_a1")
    play.pass_time(1)
    play.fail("crash", "main_b2")
    play.say(text, "main_a1")
    assert play.last[1:] == [BackendOpened(backend="claude")]


def test_an_unreadable_last_reply_opens_a_backend_before_the_agent_fails() -> None:
    play = at("A")
    for _ in range(3):
        play.say("nothing")
    play.fail("overload")
    play.pass_time(1)
    play.say("nothing")
    assert play.kinds() == ["StepFailed", "BackendOpened", "AgentFailed"]


def test_a_crash_neither_opens_nor_closes_a_backend() -> None:
    play = at("A")
    play.fail("overload")
    play.pass_time(1)
    play.fail("crash")
    assert play.kinds() == ["StepFailed"]
    play.pass_time(1)
    assert (list(play.run.probing), schedule.owed(play.run)) == (["claude"], ["main"])


def test_an_overloaded_backend_is_tried_by_one_turn_at_growing_distances() -> None:
    play = at("A")
    waits = []
    for _ in range(7):
        play.fail("overload")
        closed = play.run.closed["claude"]
        waits.append(closed.until - play.now)
        assert play.pass_time(waits[-1]) == [BackendOpened(backend="claude", probing=True)]
    assert waits == [1.0, 5.0, 15.0, 60.0, 300.0, 300.0, 300.0]
    assert (play.main.visit.failures, play.main.status) == (0, "ready")


def test_an_overload_may_say_itself_when_to_come_back() -> None:
    play = at("A")
    play.fail("overload", retry_at=START + 42)
    assert play.run.closed["claude"].until == START + 42


def test_other_turns_that_find_the_backend_overloaded_say_nothing_new() -> None:
    play = three()
    play.fail("overload", "main_a1")
    play.fail("overload", "main_b2")
    assert play.kinds() == ["StepFailed"]
    assert (play.run.closed["claude"].tries, play.statuses()["main_b2"]) == (0, "ready")


def test_patience_ends_and_the_agents_of_the_backend_pause_until_a_person_resumes() -> None:
    play = at("A", patience=20.0)
    for wait in (1, 5, 15):
        play.fail("overload")
        play.pass_time(wait)
    play.fail("overload", error="529")
    assert play.last[2:] == [AgentPaused(agent="main", kind="overload", reason="529", backend="claude")]
    assert play.main.visit.stuck == Stuck("overload", "529", (), "claude")
    assert (play.main.status, run_status(play.run), exit_code(play.run)) == ("paused", "paused", 3)
    assert (run.shut(play.run, "claude"), schedule.wake_at(play.run)) == (True, None)
    play.resume()
    assert schedule.owed(play.run) == ["main"]


def test_an_overload_after_a_usage_limit_is_counted_from_its_own_beginning() -> None:
    play = at("A", patience=20.0)
    play.fail("limit")
    play.pass_time(900)
    play.fail("overload")
    assert play.last[1] == BackendClosed(
        backend="claude", kind="overload", error="boom", until=play.now + 1, since=play.now
    )


@pytest.mark.parametrize("kind", ["auth", "billing"])
def test_who_must_log_in_or_pay_closes_the_backend_until_a_person_resumes(kind: Any) -> None:
    play = three()
    play.fail(kind, "main_a1", error="log in first")
    assert play.last == [
        StepFailed(agent="main_a1", step=2, kind=kind, error="log in first", charged=False),
        BackendClosed(backend="claude", kind=kind, error="log in first", since=START),
        AgentPaused(agent="main_a1", kind=kind, reason="log in first", backend="claude"),
    ]
    assert play.agent("main_a1").visit.stuck == Stuck(kind, "log in first", (), "claude")
    assert (play.agent("main_a1").error, schedule.wake_at(play.run)) == ("log in first", None)
    play.fail("silent", "main_b2")
    assert (schedule.owed(play.run), play.pass_time(10**6)) == ([], [])
    play.resume()
    assert schedule.owed(play.run) == ["main_b2", "main_a1"]


def test_a_login_that_ends_while_the_backend_rests_pauses_its_agent_too() -> None:
    play = three()
    play.fail("limit", "main_a1")
    play.fail("auth", "main_b2")
    assert play.kinds() == ["StepFailed", "BackendClosed", "AgentPaused", "AgentPaused"]
    assert (play.run.closed["claude"].kind, play.statuses()["main_b2"]) == ("auth", "paused")
    assert play.statuses()["main_a1"] == "paused"


@pytest.mark.parametrize("kind", ["limit", "overload"])
def test_a_backend_that_waits_for_a_person_is_not_opened_by_time(kind: Kind) -> None:
    play = three()
    play.fail("auth", "main_a1")
    play.fail(kind, "main_b2")
    assert play.kinds() == ["StepFailed"]
    assert (play.run.closed["claude"].kind, play.pass_time(10**6)) == ("auth", [])


def test_a_usage_limit_longer_than_max_wait_stops_the_run() -> None:
    play = three(max_wait=3600.0)
    play.fail("limit", "main_a1", retry_at=START + 3601)
    stopped = RunStopped(kind="limit", limit="wait", amount=3600.0, backend="claude", wait=3601.0)
    assert play.last[2:] == [stopped]
    assert exit_code(play.run) == 4
    play.say("<goto>A</goto>", "main_b2")
    assert play.run.stop == stopped


def test_a_max_wait_of_nothing_stops_at_any_usage_limit() -> None:
    play = at("A", max_wait=0.0)
    play.fail("limit", retry_at=START + 1)
    assert play.kinds() == ["StepFailed", "BackendClosed", "RunStopped"]
    assert play.run.stop == RunStopped(kind="limit", limit="wait", backend="claude", wait=1.0)


def test_a_run_that_is_stopped_is_not_stopped_again() -> None:
    play = three(max_wait=0.0)
    play.stop()
    play.fail("limit", "main_a1")
    assert play.kinds() == ["StepFailed", "BackendClosed"]


# One model of a backend


def models(**given: Any) -> Play:
    """Main waits for two turns of opus, one of sonnet and one of codex; none runs yet."""
    play = Play(FILES, **given)
    play.say("<fork>OPUS</fork><fork>OPUS</fork><fork>SONNET</fork><fork>CODEX</fork><wait>N</wait>")
    return play


def opus_is_closed(**given: Any) -> Play:
    """Both turns of opus ran into its limit; they wait for it."""
    play = models(**given)
    play.begin("main_opus2")
    play.fail("limit", "main_opus1", error="no opus", retry_at=START + 3600, only_model=True)
    play.fail("limit", "main_opus2", error="no opus", retry_at=START + 3600, only_model=True)
    for name in ("main_opus1", "main_opus2"):
        play.begin(name)
    return play


def queues(play: Play) -> dict[str, list[str]]:
    return {pool: [*queue] for pool, queue in play.run.ready.items() if queue}


def test_a_limit_of_one_model_closes_that_model_alone() -> None:
    play = models()
    play.fail("limit", "main_opus1", error="no opus", retry_at=START + 3600, only_model=True)
    assert play.last == [
        StepFailed(agent="main_opus1", step=2, kind="limit", error="no opus", charged=False, again=True),
        BackendClosed(backend="claude/opus", kind="limit", error="no opus", until=START + 3600, since=START),
    ]
    assert schedule.wake_at(play.run) == START + 3600
    for name in ("main_opus1", "main_opus2"):
        assert play.begin(name) == AgentHeld(agent=name, pool="claude/opus")
    assert queues(play) == {
        "claude/opus": ["main_opus1", "main_opus2"],
        "claude": ["main_sonnet3"],
        "codex": ["main_codex4"],
    }
    assert schedule.owed(play.run) == ["main_sonnet3", "main_codex4"]
    assert (play.agent("main_opus1").status, play.run.turns, play.run.reserved) == ("ready", 1, 0.0)
    assert words.reason(play.run) == "claude/opus is unavailable until 1970-01-12T14:46:40Z: no opus"


def test_a_turn_of_a_closed_model_that_began_before_says_nothing_new() -> None:
    play = models()
    play.begin("main_opus2")
    play.fail("limit", "main_opus1", retry_at=START + 3600, only_model=True)
    play.fail("limit", "main_opus2", retry_at=START + 3600, only_model=True)
    assert play.kinds() == ["StepFailed"]


def test_at_its_time_one_turn_tries_the_model_and_its_answer_opens_it() -> None:
    play = opus_is_closed()
    assert play.pass_time(3599) == []
    assert play.pass_time(1) == [BackendOpened(backend="claude/opus", probing=True)]
    assert sorted(schedule.owed(play.run)) == ["main_codex4", "main_opus1", "main_sonnet3"]
    tries = started(play, "main_opus1")
    assert (tries.backend, tries.model, play.agent("main_opus1").visit.held) == ("claude", "opus", "")
    assert "main_opus2" not in schedule.owed(play.run)
    play.say("<goto>OPUS</goto>", "main_opus1")
    assert play.last[1] == BackendOpened(backend="claude/opus")
    assert (play.run.closed, play.run.probing) == ({}, {})
    assert queues(play)["claude"] == ["main_sonnet3", "main_opus2", "main_opus1"]
    assert play.agent("main_opus1").conversation == Conversation("claude", tries.session)
    assert play.agent("main_opus2").visit.held == ""
    assert started(play, "main_opus2").backend == "claude"


def test_the_conversation_of_a_turn_that_tried_a_model_goes_on() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    tried = started(play, "main_opus1")
    play.say("<goto>OPUS</goto>", "main_opus1")
    assert started(play, "main_opus1").base == tried.session


def test_a_second_limit_closes_the_model_again() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    play.fail("limit", "main_opus1", error="not yet", retry_at=START + 7200, only_model=True)
    assert play.last[1] == BackendClosed(
        backend="claude/opus", kind="limit", error="not yet", until=START + 7200, since=START, tries=1
    )
    assert play.run.probing == {}
    assert play.begin("main_opus1") == AgentHeld(agent="main_opus1", pool="claude/opus")
    assert queues(play)["claude/opus"] == ["main_opus2", "main_opus1"]


def test_a_crash_of_the_turn_that_tries_leaves_the_next_try_to_the_next() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    play.fail("crash", "main_opus1")
    assert play.begin("main_opus1") == AgentHeld(agent="main_opus1", pool="claude/opus")
    assert [name for name in schedule.owed(play.run) if "opus" in name] == ["main_opus2"]


def test_resume_can_try_a_model_at_once() -> None:
    play = opus_is_closed()
    assert play.resume()[1:] == []
    assert play.resume(at_once=True)[1:] == [BackendOpened(backend="claude/opus", probing=True)]
    assert "main_opus1" in schedule.owed(play.run)


def test_a_turn_without_a_model_of_its_own_waits_for_the_backends_choice() -> None:
    play = three()
    play.fail("limit", "main_a1", only_model=True)
    assert play.last[1] == BackendClosed(
        backend="claude/default", kind="limit", error="boom", until=START + 900, since=START
    )
    assert play.begin("main_a1") == AgentHeld(agent="main_a1", pool="claude/default")


@pytest.mark.parametrize(("text", "held"), [("opus", True), ("sonnet", False)])
def test_a_function_asks_for_its_own_model(text: str, held: bool) -> None:
    play = opus_is_closed()
    play.say(f'<function return="N" model="{text}">A</function>', "main_sonnet3")
    assert isinstance(play.begin("main_sonnet3"), AgentHeld) is held


def test_the_model_of_a_state_wins_over_the_one_of_a_function_and_that_over_the_runs() -> None:
    play = Play(FILES, model="haiku")
    assert started(play).model == "haiku"
    play.say('<function return="N" model="small">OPUS</function>')
    assert started(play).model == "opus"
    play.say("<goto>A</goto>")
    assert started(play).model == "small"


def test_an_answer_of_a_model_that_is_tried_shows_that_its_backend_answers_too() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    play.begin("main_opus1")
    play.fail("overload", "main_sonnet3")
    play.say("<goto>OPUS</goto>", "main_opus1")
    assert play.last[1:3] == [BackendOpened(backend="claude"), BackendOpened(backend="claude/opus")]
    assert play.run.closed == {}


def test_who_leaves_the_state_waits_for_its_model_no_more() -> None:
    play = opus_is_closed()
    play.ask("move", agent="main_opus1", state="SONNET")
    assert play.agent("main_opus1").visit.held == ""
    assert started(play, "main_opus1").model == "sonnet"


def test_who_was_paused_while_its_model_opened_is_tried_as_ever() -> None:
    """Else it would stand in a queue that nobody looks at."""
    play = opus_is_closed()
    play.ask("pause", agent="main_opus2")
    play.pass_time(3600)
    play.say("<goto>OPUS</goto>", "main_opus1")
    play.ask("retry", agent="main_opus2")
    assert "main_opus2" in schedule.owed(play.run)


@pytest.mark.parametrize(
    ("files", "pool"), [({"renamed": {"OPUS.md": "S.sh"}}, "scripts"), ({"backends": {"OPUS.md": "codex"}}, "codex")]
)
def test_who_is_held_when_files_change_waits_for_whoever_runs_its_state_now(files: Any, pool: str) -> None:
    play = opus_is_closed()
    play.commit([WorkflowChanged(source="1" * 64, **files)])
    assert (play.agent("main_opus1").pool, play.agent("main_opus1").visit.held) == (pool, "")


def test_a_closed_model_gives_its_backend_no_more_places() -> None:
    play = opus_is_closed(max_turns_at_once=2)
    play.say("<fork next='SONNET'>SONNET</fork>", "main_sonnet3")
    assert schedule.owed(play.run) == ["main_sonnet3_sonnet1", "main_sonnet3", "main_codex4"]
    play.begin("main_sonnet3")
    play.begin("main_sonnet3_sonnet1")
    play.pass_time(3600)
    assert schedule.owed(play.run) == ["main_codex4"]
    play.say("<result>x</result>", "main_sonnet3")
    assert schedule.owed(play.run) == ["main_codex4", "main_opus1"]
    play.begin("main_opus1")
    play.say("<goto>SONNET</goto>", "main_sonnet3_sonnet1")
    assert schedule.owed(play.run) == ["main_sonnet3_sonnet1", "main_codex4"]
    play.begin("main_sonnet3_sonnet1")
    play.fail("crash", "main_opus1")
    play.begin("main_opus1")
    assert sorted(schedule.owed(play.run)) == ["main_codex4", "main_opus2"], "one place is free"


def test_one_place_is_given_to_one_turn_also_when_a_model_may_be_tried() -> None:
    play = opus_is_closed(max_turns_at_once=2)
    play.pass_time(3600)
    play.say("<fork next='SONNET'>SONNET</fork>", "main_sonnet3")
    assert schedule.owed(play.run) == ["main_sonnet3_sonnet1", "main_sonnet3", "main_codex4"]


def test_a_closed_model_adds_nobody_to_share_the_budget_with() -> None:
    play = opus_is_closed(budget=12.0, max_turns_at_once=2)
    play.say("<fork>A</fork><fork>A</fork><fork>A</fork><goto>SONNET</goto>", "main_sonnet3")
    # Two places of claude, two of codex; seven agents are ready.
    assert started(play, "main_sonnet3_a1").cap == 3.0


@pytest.mark.parametrize("kind", ["limit", "auth"])
def test_a_model_is_not_tried_while_its_backend_is_closed(kind: Kind) -> None:
    play = opus_is_closed()
    play.fail(kind, "main_sonnet3", retry_at=START + 9000 if kind == "limit" else 0.0)
    play.pass_time(3600)
    assert schedule.owed(play.run) == ["main_codex4"]


def test_a_limit_of_the_backend_that_a_model_is_tried_with_closes_the_backend() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    play.fail("limit", "main_opus1", error="until noon", retry_at=START + 9000)
    closed = play.last[1]
    assert isinstance(closed, BackendClosed)
    assert closed.backend == "claude"


def test_who_must_log_in_while_a_model_is_tried_closes_the_backend() -> None:
    play = opus_is_closed()
    play.pass_time(3600)
    play.fail("auth", "main_opus1", error="log in")
    closed = play.last[1]
    assert isinstance(closed, BackendClosed)
    assert closed.backend == "claude"
    assert play.statuses() == {
        "main": "waiting",
        "main_opus1": "paused",
        "main_opus2": "paused",
        "main_sonnet3": "paused",
        "main_codex4": "ready",
    }
    play.resume()
    assert play.agent("main_sonnet3").status == "ready"


# Tools that were refused


def test_refused_tools_are_counted_however_the_turn_ends() -> None:
    play = at("GOES")
    play.say("<goto>A</goto>", denied=("Bash(git:*)", "Edit"))
    finished = play.last[0]
    assert isinstance(finished, StepFinished)
    assert finished.denied == ["Bash(git:*)", "Edit"]
    play.say("nothing", denied=("Edit",))
    play.fail("crash", denied=("WebFetch",))
    assert play.run.denied == {"Bash(git:*)": 1, "Edit": 2, "WebFetch": 1}


def test_with_on_denied_pause_a_person_is_asked_and_the_turn_goes_on_with_what_they_allow() -> None:
    play = at("ASKS", allowed_tools=["Read"])
    begun = started(play)
    play.say("<goto>A</goto>", denied=("Bash(git:*)", "Edit", "Edit"), cost=0.25)
    assert play.last == [
        StepRefused(
            agent="main",
            step=2,
            session=begun.session,
            blocked=True,
            cost=0.25,
            denied=["Bash(git:*)", "Edit", "Edit"],
        ),
        AgentPaused(agent="main", kind="denied", tools=["Bash(git:*)", "Edit"]),
    ]
    assert play.main.visit.stuck == Stuck("denied", tools=("Bash(git:*)", "Edit"))
    assert play.main.visit.reminded_for == "blocked"
    assert (play.main.status, play.main.state, play.run.iterations, play.run.denied["Edit"]) == (
        "paused",
        "ASKS.md",
        1,
        2,
    )
    assert (run_status(play.run), schedule.owed(play.run)) == ("paused", [])
    play.ask("limits", allowed_tools=["Bash(git:*)", "Edit"])
    play.resume()
    assert play.run.rights.allowed == ("Read", "Bash(git:*)", "Edit")
    assert play.run.start.allowed_tools == ["Read"], "the event itself is what it was"
    sent = prompts.prompt(play.run, play.workspace, play.main)
    assert sent == prompts.BLOCKED
    again = started(play)
    assert (again.base, again.attempt) == (begun.session, 2)
    play.say("<goto>A</goto>")
    assert play.main.state == "A.md"


def test_a_reply_with_refused_tools_shows_too_that_a_backend_answers() -> None:
    play = at("ASKS")
    play.fail("overload")
    play.pass_time(1)
    play.say("<goto>A</goto>", denied=("Edit",))
    assert play.kinds() == ["StepRefused", "BackendOpened", "AgentPaused"]


def test_without_on_denied_refused_tools_change_nothing() -> None:
    play = at("A")
    play.say("<goto>B</goto>", denied=("Edit",))
    assert (play.main.status, play.main.state) == ("ready", "B.md")


# Conversations that the backend names, and its counters


def test_a_conversation_that_the_backend_named_is_known_before_the_turn_ends() -> None:
    play = at("A")
    play.begin()
    assert play.name("its-own") == [SessionNamed(agent="main", step=2, session="its-own")]
    assert (play.main.turn_session, play.main.status) == ("its-own", "running")
    assert evolve.fold(play.decisions).agents["main"].turn_session == "its-own"
    play.say("<goto>B</goto>")
    assert started(play).base == "its-own"


def meter(play: Play) -> tuple[int, ...]:
    """What the counter of the main agent's conversation stands at."""
    return play.main.conversation.meter if play.main.conversation else ()


def test_the_counter_of_a_conversation_is_kept_with_it() -> None:
    play = at("A")
    play.say("nothing", meter=(10, 2, 3))
    assert meter(play) == (10, 2, 3)
    play.say("<goto>S</goto>", meter=(20, 4, 6))
    play.say("<goto>B</goto>", session="")
    assert meter(play) == (20, 4, 6), "a script has no conversation"
    play.fail("crash", spent=Spending(meter=(99,)))
    play.interrupt(meter=(99,))
    assert meter(play) == (20, 4, 6), "the next turn branches from the one before"


@pytest.mark.parametrize(
    ("text", "counted", "within"),
    [
        ("<goto>A</goto>", (1, 2), None),
        ("<reset>A</reset>", (), None),
        ('<call return="N">A</call>', (1, 2), (1, 2)),
        ('<function return="N">A</function>', (), (1, 2)),
        ("<fork next='A'>B</fork>", (1, 2), None),
        ("<wait>A</wait>", (1, 2), None),
    ],
)
def test_what_a_transition_does_to_the_counter(text: str, counted: tuple[int, ...], within: tuple[int, ...]) -> None:
    play = Play(FILES)
    play.say(text, meter=(1, 2))
    assert meter(play) == counted
    assert [frame.conversation.meter for frame in play.main.stack or () if frame.conversation] == (
        [within] if within else []
    )
    if "main_b1" in play.run.agents:
        assert play.agent("main_b1").conversation is None
    if within:
        play.say("<result>x</result>", meter=(50, 60))
        assert meter(play) == (1, 2)


def test_a_fresh_try_has_an_empty_counter() -> None:
    play = at("A")
    play.say("nothing", meter=(1, 2))
    play.fail("context")
    assert play.main.conversation is None


# Turns


def test_nothing_starts_beyond_max_turns() -> None:
    play = at("A", max_turns=3)
    play.say("<fork>A</fork><fork>A</fork><fork>S</fork><wait>N</wait>")
    assert schedule.owed(play.run) == ["main_a1", "main_s3"]
    play.begin("main_a1")
    assert (play.run.turns, schedule.owed(play.run)) == (3, ["main_s3"])
    play.say("<goto>A</goto>", "main_a1")
    assert play.last[-1] == RunStopped(kind="limit", limit="turns", amount=3.0)
    assert (run_status(play.run), exit_code(play.run), schedule.owed(play.run)) == ("stopped", 4, [])
    assert play.resume()[1:] == [RunStopped(kind="limit", limit="turns", amount=3.0)]
    play.ask("limits", max_turns=4)
    assert (play.resume()[1:], schedule.owed(play.run)) == ([], ["main_a2", "main_s3"])


@pytest.mark.parametrize("how", ["refused", "failed", "interrupted"])
def test_every_turn_counts_however_it_ends(how: str) -> None:
    play = at("A", max_turns=2)
    play.say("nothing") if how == "refused" else play.fail("crash") if how == "failed" else play.interrupt()
    assert play.last[-1] == RunStopped(kind="limit", limit="turns", amount=2.0)


def test_steps_of_scripts_are_no_turns() -> None:
    play = at("S", max_turns=2)
    for _ in range(5):
        play.say("<goto>S</goto>")
    assert (play.run.turns, play.run.stop) == (1, None)


def test_200_turns_whose_cost_nobody_can_tell_stop_the_run() -> None:
    play = Play(FILES)
    for _ in range(199):
        play.say("<goto>A</goto>", unknown=True, cost=0.0)
    play.say("<goto>A</goto>", cost=0.1)
    assert (play.run.unpriced, play.run.stop) == (199, None)
    play.fail("silent", spent=Spending(unknown=True))
    stopped = RunStopped(kind="limit", limit="unpriced", amount=200.0)
    assert play.last[-1] == stopped
    assert play.resume()[-1] == stopped
    play.ask("limits", max_turns=300)
    play.resume()
    assert (play.run.stop, schedule.owed(play.run)) == (None, ["main"])


def test_with_max_turns_any_number_of_them_may_be_unpriced() -> None:
    play = Play(FILES, max_turns=250)
    for _ in range(249):
        play.say("<goto>A</goto>", unknown=True)
    assert play.run.stop is None
    play.say("<goto>A</goto>", unknown=True)
    assert play.run.stop == RunStopped(kind="limit", limit="turns", amount=250.0)


# Limits of the run


def test_a_run_stops_when_its_iterations_are_used_up_and_running_steps_end() -> None:
    play = at("A", max_iterations=2)
    play.say("<fork next='B'>A</fork>")
    assert play.last[-1] == RunStopped(kind="limit", limit="iterations", amount=2.0)
    assert (schedule.owed(play.run), play.run.iterations) == ([], 2)
    assert (run_status(play.run), exit_code(play.run)) == ("stopped", 4)


def test_a_failed_step_is_an_iteration_and_a_refused_or_interrupted_one_is_not() -> None:
    play = at("A", max_iterations=3)
    play.say("nothing")
    play.interrupt()
    assert play.run.iterations == 1
    play.fail("crash")
    assert (play.run.iterations, play.run.stop) == (2, None)
    play.fail("crash")
    assert play.kinds() == ["StepFailed", "RunStopped"]


@pytest.mark.parametrize("how", ["said", "refused", "failed", "interrupted"])
def test_a_run_stops_when_its_budget_is_spent_however_the_step_ended(how: str) -> None:
    play = at("A", budget=1.0)
    match how:
        case "said":
            play.say("<goto>A</goto>", cost=1.0)
        case "refused":
            play.say("nothing", cost=1.0)
        case "failed":
            play.fail("crash", spent=Spending(cost=1.0))
        case _:
            play.interrupt(cost=1.0)
    assert play.last[-1] == RunStopped(kind="limit", limit="budget", amount=1.0)


def test_a_budget_that_is_not_quite_spent_lets_the_run_go_on() -> None:
    play = at("A", budget=1.0)
    play.say("<goto>A</goto>", cost=0.99)
    assert (play.run.stop, schedule.owed(play.run)) == (None, ["main"])


def test_one_decision_stops_a_run_once() -> None:
    play = at("A", max_wait=0.0, max_iterations=2)
    play.fail("limit")
    assert play.kinds() == ["StepFailed", "BackendClosed", "RunStopped"]
    assert play.run.stop == RunStopped(kind="limit", limit="wait", backend="claude", wait=900.0)


def test_a_run_that_reaches_a_limit_with_its_last_step_is_done() -> None:
    play = Play(FILES, max_iterations=1, budget=1.0)
    play.say("<result>x</result>", cost=5.0)
    play.pass_time()
    assert (run_status(play.run), exit_code(play.run)) == ("completed", 0)


# Time


def test_time_says_nothing_when_nothing_is_due() -> None:
    play = at("A")
    assert decide.decide(play.run, play.workspace, Tick(time=START + 10**6)) == []
    assert not schedule.due(play.run, START + 10**6)


def test_a_moment_brings_one_thing_at_a_time() -> None:
    play = Play(FILES)
    play.say("<fork after='5s'>A</fork><fork after='3s'>B</fork><goto after='4s'>N</goto>")
    assert schedule.wake_at(play.run) == START + 3
    tick = Tick(time=START + 5)
    assert decide.decide(play.run, play.workspace, tick) == [AgentWoke(agent="main_b2")]
    assert play.pass_time(5) == [AgentWoke(agent=name) for name in ("main_b2", "main", "main_a1")]
    assert schedule.owed(play.run) == ["main_b2", "main", "main_a1"]


def test_a_clock_that_goes_back_wakes_nobody_early_and_nobody_twice() -> None:
    play = Play(FILES)
    play.say("<goto after='5s'>N</goto>")
    assert play.pass_time(-100) == []
    assert play.pass_time(105) == [AgentWoke(agent="main")]
    assert play.pass_time(-50) == []
    assert play.pass_time(50) == []


def test_the_run_ends_when_no_agent_is_left_to_move() -> None:
    play = at("A")
    play.say("<fork next='B'>A</fork>")
    play.say("<result>x</result>")
    assert play.pass_time() == []
    play.fail("setup", "main_a1")
    assert play.pass_time() == [RunEnded(status="failed")]
    assert play.pass_time() == []
    assert (run_status(play.run), exit_code(play.run)) == ("failed", 1)


@pytest.mark.parametrize(
    ("how", "status"), [("", "failed"), ('failures="ok"', "completed"), ('failed_next="B"', "completed")]
)
def test_a_failure_that_was_collected_fails_the_run_unless_it_is_handled(how: str, status: str) -> None:
    play = at("A")
    play.say(f"<fork>A</fork><wait {how}>N</wait>")
    play.fail("setup", "main_a1")
    assert play.main.state == ("B.md" if "next" in how else "N.md")
    play.say("<result>x</result>")
    assert [getattr(event, "status", "") for event in play.pass_time()] == [status]
    assert play.run.is_over, "nobody is left to try again"


@pytest.mark.parametrize("how", ["asking", "paused", "sleeping", "waiting"])
def test_a_run_does_not_end_while_an_agent_rests(how: str) -> None:
    play = at("A")
    match how:
        case "asking":
            play.say('<ask next="A">why?</ask>')
        case "paused":
            play.fail("auth")
        case "sleeping":
            play.say("<goto after='5m'>A</goto>")
        case _:
            play.say("<fork>A</fork><wait>N</wait>")
    assert (play.pass_time(), play.main.status) == ([], how)


# Stopping


def test_a_stop_starts_nothing_new_and_is_said_once() -> None:
    play = at("A")
    play.say("<fork next='B'>A</fork>")
    play.begin()
    assert play.stop() == [RunStopped(kind="paused")]
    assert (schedule.owed(play.run), play.stop(RunStopped(kind="signal", signal=15))) == ([], [])
    assert play.run.stop == RunStopped(kind="paused")
    play.say("<result>x</result>")
    assert play.run.outcomes["main"].result == "x"


@pytest.mark.parametrize(
    "how", [RunStopped(kind="paused"), RunStopped(kind="signal", signal=15), RunStopped(kind="stop", at_once=True)]
)
def test_a_stop_stands_in_the_journal_as_it_came(how: RunStopped) -> None:
    play = at("A")
    assert play.stop(how) == [how]
    assert play.run.stop == how


def test_a_run_that_has_ended_cannot_stop() -> None:
    play = Play(FILES)
    play.say("<result>x</result>")
    play.pass_time()
    assert play.stop() == []


def test_sleepers_of_a_stopped_run_wake_and_wait() -> None:
    play = at("A")
    play.say("<goto after='5s'>N</goto>")
    play.stop()
    assert play.pass_time(5) == [AgentWoke(agent="main")]
    assert (play.main.status, schedule.owed(play.run)) == ("ready", [])


def test_an_interruption_says_what_it_cost() -> None:
    play = at("A")
    play.interrupt(cost=0.5, estimated=True)
    assert play.last == [StepInterrupted(agent="main", step=2, cost=0.5, estimated=True)]
    assert (play.main.status, play.main.visit.failures, play.main.visit.tries) == ("ready", 0, 0)


def test_the_same_inputs_give_the_same_events() -> None:
    def told(play: Play) -> list[Any]:
        inputs: list[Input] = [
            Begin(time=5.0, agent="main"),
            Output(time=6.0, agent="main", reading=reading.read("<fork next='A'>B</fork>"), session="s"),
            Begin(time=7.0, agent="main"),
            Failure(time=8.0, agent="main", kind="crash", error="boom"),
            Tick(time=9.0),
            Begin(time=9.0, agent="main"),
            Interruption(time=9.5, agent="main"),
            Stop(time=10.0, how=RunStopped(kind="stop", at_once=True)),
            Tick(time=11.0),
        ]
        return [play.put(one) for one in inputs]

    assert told(Play(FILES)) == told(Play(FILES))


def test_a_run_of_nothing_is_owed_nothing() -> None:
    assert (schedule.owed(Run()), schedule.wake_at(Run())) == ([], None)


# Time


def test_a_run_stops_when_its_time_is_over_and_its_running_step_may_end() -> None:
    play = Play(FILES, max_time=60.0)
    play.begin()
    assert play.pass_time(59) == []
    assert play.pass_time(1) == [RunStopped(kind="limit", limit="time", amount=60.0)]
    assert (run_status(play.run), exit_code(play.run)) == ("stopped", 4)
    play.now += 10
    assert play.say("<goto>A</goto>")[1:] == [AgentMoved(agent="main", tag="goto", state="A.md")]
    assert schedule.owed(play.run) == []
    assert play.pass_time(1000) == []


def test_a_run_that_has_ended_is_not_stopped_by_time() -> None:
    play = Play(FILES, max_time=60.0)
    play.say("<result>x</result>")
    play.pass_time()
    assert play.run.final_status == "completed"
    assert play.pass_time(1000) == []


def test_a_run_whose_time_is_over_stops_with_its_step_too() -> None:
    """With another limit beside it, the end of a step asks for all of them."""
    play = Play(FILES, max_time=60.0, budget=5.0)
    play.now += 61
    play.begin()
    assert play.say("<goto>A</goto>")[-1] == RunStopped(kind="limit", limit="time", amount=60.0)


def test_the_time_while_nobody_drove_does_not_count() -> None:
    play = Play(FILES, max_time=60.0)
    play.now += 30
    play.say("<goto>A</goto>")
    play.stop()
    play.now += 100_000
    assert RunStopped(kind="limit", limit="time", amount=60.0) not in play.resume()
    assert play.pass_time(29) == []
    assert play.pass_time(1) == [RunStopped(kind="limit", limit="time", amount=60.0)]


def test_an_agent_asleep_beyond_the_time_of_its_run_is_left_asleep() -> None:
    play = Play(FILES, max_time=60.0)
    play.say("<goto after='10m'>A</goto>")
    assert play.pass_time(60) == [RunStopped(kind="limit", limit="time", amount=60.0)]
    assert play.main.status == "sleeping"


def test_a_limit_whose_reset_is_over_when_it_is_heard_of_is_tried_again_soon() -> None:
    play = Play(FILES, backend="claude")
    play.fail("limit", retry_at=START - 5)
    assert play.run.closed["claude"].until == START + failures.OVERLOAD_WAITS[0]
    play = Play(FILES, backend="claude")
    play.fail("limit")
    assert play.run.closed["claude"].until == START + failures.LIMIT_UNKNOWN
