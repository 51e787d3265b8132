"""What an evaluator decides, and what follows when it does not."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from builders import Play, block, build, head, place
from raymond.errors import UsageError
from raymond.language.tags import Ask, Goto
from raymond.machine import evolve, needed_states, prompts, schedule
from raymond.machine.events import (
    AgentFailed,
    AgentHeld,
    AgentMoved,
    AgentPaused,
    BackendClosed,
    EvaluatorEnded,
    GateEnded,
    RunStopped,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepStarted,
    TransitionHeld,
)
from raymond.machine.inputs import Begin, Spending
from raymond.machine.run import Run

JUDGE = "evaluator: {prompt: JUDGE, verdicts: {COMMIT: <goto>COMMIT</goto>, REVIEW: keep}}"
SURE = "evaluator: {prompt: JUDGE, verdicts: {YES: <result>over</result>, NO: keep}, default: keep}"
ALLOWED = "allowed_transitions: [{tag: goto, target: REVIEW}, {tag: result}]"
FILES = {
    "START.md": head(JUDGE),
    "SURE.md": head(SURE),
    "PATTERN.md": head("evaluator: {pattern: '(SYNTAX|LOGIC)', verdicts: {syntax: <goto>FIX</goto>, logic: keep}}"),
    "GATED.md": head(f"gate: make test\n{SURE}"),
    "OUT.md": head(
        f"gate: make test\nallowed_transitions: [{{tag: result}}, {{tag: goto, target: FIX, gate: false}}]\n{SURE}"
    ),
    "POOR.md": head(f"budget: 0.50\n{SURE}"),
    "BROKE.md": head(f"budget: 0.50\non_error: FIX\n{JUDGE}"),
    "STRICT.md": head(f"{ALLOWED}\n{SURE}"),
    "S.sh": block(SURE),
    "MANY.md": head(f"max_visits: 1\nthen: FIX\n{SURE}"),
    "LOOP.md": head("evaluator: {prompt: JUDGE, verdicts: {YES: keep, NO: <goto>MANY</goto>}}"),
    "JUDGE.md": "Done? {{transition}}: {{output}}",
    "REVIEW.md": "",
    "COMMIT.md": "",
    "FIX.md": "",
}


def at(state: str = "START.md", **given: Any) -> Play:
    return Play(FILES, entry=state, **given)


def sent(play: Play) -> str:
    return prompts.judge(play.run, play.workspace, play.main)


def test_an_evaluator_overrides_a_transition() -> None:
    play = at()
    done, held = play.say("Fine. <goto>REVIEW</goto>", cost=0.20)
    assert isinstance(done, StepFinished)
    assert held == TransitionHeld(
        agent="main",
        asked=[Goto(target="REVIEW.md")],
        gated=False,
        evaluated=True,
        judge="JUDGE.md",
        output="Fine. <goto>REVIEW</goto>",
    )
    assert (play.main.state, play.main.status, play.main.pool) == ("START.md", "ready", "claude")
    session = play.main.session

    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.step, started.phase, started.backend, started.model) == (2, "evaluate", "claude", "haiku")
    assert (started.base, started.session != session) == ("", True), "a fresh conversation"
    assert sent(play) == "Done? <goto>REVIEW.md</goto>: Fine. <goto>REVIEW</goto>"

    ended, moved = play.judge("**Commit**", cost=0.01)
    assert ended == EvaluatorEnded(
        agent="main",
        step=2,
        cost=0.01,
        verdict="COMMIT",
        requested="goto REVIEW.md",
        actual="goto COMMIT.md",
        decided=True,
    )
    assert isinstance(moved, AgentMoved)
    assert (play.main.state, play.main.session) == ("COMMIT.md", session), "nobody continues what the judge said"
    assert play.main.visit.pending is None


def test_an_evaluator_keeps_a_transition() -> None:
    play = at()
    play.say("<goto input='x'>REVIEW</goto>")
    ended, moved = play.judge("review.")
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.verdict, ended.kept, ended.requested, ended.actual) == (
        "REVIEW",
        True,
        "goto REVIEW.md",
        "goto REVIEW.md",
    )
    assert isinstance(moved, AgentMoved)
    assert (moved.state, moved.input) == ("REVIEW.md", "x")


def test_what_an_evaluator_chooses_may_be_what_the_agent_asked_for() -> None:
    play = at()
    play.say("<goto>COMMIT</goto>")
    ended, _moved = play.judge("COMMIT")
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.kept, ended.actual) == (True, "goto COMMIT.md")


def test_a_judge_is_a_turn_that_is_paid_and_no_iteration() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>", cost=0.20, tokens_out=5)
    play.begin()
    assert play.main.visit.cost == 0.20
    play.judge("REVIEW", cost=0.05, tokens_out=3, model="claude-haiku-9")
    assert (play.run.iterations, play.run.turns, play.run.steps) == (1, 2, 2)
    assert (round(play.run.cost, 2), play.run.tokens_out) == (0.25, 8)
    ended = next(event for event in play.events if isinstance(event, EvaluatorEnded))
    assert ended.model == "claude-haiku-9"


def test_the_limits_of_a_run_hold_for_its_judges() -> None:
    play = at(budget=1.00, max_iterations=2)
    play.say("<goto>REVIEW</goto>", cost=0.20)
    play.judge("REVIEW", cost=0.90)
    *_, stop = play.last
    assert isinstance(stop, RunStopped)
    assert stop.limit == "budget"


@pytest.mark.parametrize(
    "text",
    [
        "<ask next='FIX'>Which?</ask>",
        "<call return='FIX'>REVIEW</call>",
        "<function return='FIX'>REVIEW</function>",
        "<fork next='FIX'>REVIEW</fork>",
        "<fork>REVIEW</fork><wait>FIX</wait>",
        "<reset>FIX</reset>",
        "<result>x</result>",
    ],
)
def test_every_transition_is_evaluated(text: str) -> None:
    kept, lost, free = at("SURE.md"), at("SURE.md"), Play({**FILES, "START.md": ""})
    for play in (kept, lost):
        play.say(text)
        assert play.main.visit.pending, "it is held"
    kept.judge("no")
    free.say(text)
    assert [type(event) for event in kept.last[1:]] == [type(event) for event in free.last[1:]]
    lost.judge("yes")
    assert lost.run.outcomes["main"].result == "over"


def test_what_is_not_clear_is_asked_once_more_and_then_the_default_counts() -> None:
    play = at("SURE.md")
    play.say("<goto>REVIEW</goto>")
    [again] = play.judge("I think so", cost=0.01)
    assert isinstance(again, EvaluatorEnded)
    assert (again.again, again.said, again.decided) == (True, "I think so", False)
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.step, started.attempt, started.base) == (3, 2, "")
    assert sent(play).endswith("\n\nReply with exactly one of these words and nothing else: YES, NO")
    ended, _moved = play.judge("Yes, because", cost=0.01)
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.verdict, ended.kept, ended.said) == ("", True, "Yes, because")
    assert ended.reason == 'the judge said "Yes, because", which is none of: YES, NO'
    assert play.main.state == "REVIEW.md"


def test_without_a_default_the_visit_fails_and_a_retry_asks_only_the_judge() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    play.judge("hm")
    _ended, failed = play.judge("")
    assert failed == AgentFailed(
        agent="main",
        kind="evaluator",
        error="the judge said nothing, which is none of: COMMIT, REVIEW, and the evaluator has no default",
    )
    play.ask("retry", agent="main")
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.phase == "evaluate"
    play.judge("hm")
    assert play.main.status == "ready", "it is asked twice again"
    play.judge("COMMIT")
    assert play.main.state == "COMMIT.md"


def test_a_pattern_runs_beside_scripts_and_is_not_asked_again() -> None:
    play = at("PATTERN.md")
    play.say("SYNTAX <goto>REVIEW</goto>")
    assert play.main.pool == "scripts"
    assert play.begin() == StepStarted(agent="main", step=2, attempt=1, phase="evaluate")
    play.judge("SYNTAX")
    assert (play.main.state, play.run.turns) == ("FIX.md", 1)

    play = at("PATTERN.md")
    play.say("<goto>REVIEW</goto>")
    _ended, failed = play.judge("none")
    assert isinstance(failed, AgentFailed)
    assert failed.error == 'the pattern said "none", which is none of: syntax, logic, and the evaluator has no default'


def test_a_pattern_that_takes_too_long_means_the_default() -> None:
    play = Play(
        {"START.md": head("evaluator: {pattern: x, verdicts: {match: <goto>A</goto>}, default: keep}"), "A.md": ""}
    )
    play.say("<result>x</result>")
    ended, _done = play.judge(problem="the pattern took longer than 1s")
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.verdict, ended.reason, ended.kept) == ("", "the pattern took longer than 1s", True)


def test_the_gate_comes_first() -> None:
    play = at("GATED.md")
    play.say("<goto>REVIEW</goto>")
    assert play.main.pool == "scripts"
    [ended] = play.check()
    assert isinstance(ended, GateEnded)
    assert (play.main.status, play.main.pool) == ("ready", "claude")
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.phase == "evaluate"
    play.judge("NO")
    assert play.main.state == "REVIEW.md"


def test_nobody_is_asked_about_what_is_red() -> None:
    play = at("GATED.md")
    play.say("<goto>REVIEW</goto>")
    play.check("failed", reason="red")
    assert play.main.visit.pending is None
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.phase == ""


def test_what_an_evaluator_chooses_passes_the_gate_that_the_agent_went_around() -> None:
    play = at("OUT.md")
    play.say("<goto>FIX</goto>")
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.phase == "evaluate"
    ended, held = play.judge("YES")
    assert isinstance(ended, EvaluatorEnded)
    assert isinstance(held, TransitionHeld)
    assert (held.gated, held.evaluated) == (True, False)
    play.check("failed", reason="red")
    assert play.main.status == "ready", "the agent is told"
    play.say("<result>mine</result>")
    play.check()
    play.judge("YES")
    assert play.run.outcomes["main"].result == "over", "its gate has passed already"


def test_what_the_policy_forbids_cannot_be_chosen() -> None:
    files = {**FILES, "STRICT.md": head(f"{ALLOWED}\n{JUDGE}")}  # refused by lint; the run refuses it too
    play = Play(files, entry="STRICT.md")
    play.say("<goto>REVIEW</goto>")
    _ended, failed = play.judge("COMMIT")
    assert isinstance(failed, AgentFailed)
    assert failed.kind == "evaluator"
    assert failed.error.startswith(
        "what the evaluator chose is not possible: `<goto>COMMIT</goto>` is not allowed here"
    )


def test_max_visits_count_what_was_chosen() -> None:
    play = at("MANY.md")
    play.say("<goto>LOOP</goto>")
    play.judge("no")
    play.say("<goto>REVIEW</goto>")
    ended, moved = play.judge("no")
    assert isinstance(ended, EvaluatorEnded)
    assert ended.actual == "goto MANY.md"
    assert isinstance(moved, AgentMoved)
    assert (moved.state, moved.instead_of) == ("FIX.md", "MANY.md")


def test_an_interrupted_judge_is_asked_again_and_the_agent_is_not() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    [cut] = play.interrupt(by_death=True, cost=0.02)
    assert isinstance(cut, StepInterrupted)
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.phase, started.step) == ("evaluate", 3)
    play.judge("COMMIT")
    assert (play.main.state, play.main.visit.interrupted, play.run.cost) == ("COMMIT.md", False, 0.02)


def test_a_judge_that_crashes_is_tried_again_without_an_iteration() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    session = play.main.session
    for _ in range(3):
        play.fail("crash")
        assert play.main.status == "sleeping"
        play.pass_time(20)
    play.fail("crash")
    failed, gone = play.last
    assert isinstance(failed, StepFailed)
    assert (failed.phase, failed.again) == ("evaluate", False)
    assert gone == AgentFailed(agent="main", kind="evaluator", error="the evaluator failed (crash): boom")
    assert (play.run.iterations, play.main.session) == (1, session)
    play.ask("retry", agent="main")
    play.judge("COMMIT")
    assert play.main.state == "COMMIT.md"


@pytest.mark.parametrize("kind", ["context", "refusal"])
def test_a_judge_that_cannot_answer_leaves_the_conversation_of_the_agent_alone(kind: Any) -> None:
    play = at("BROKE.md")
    play.say("<goto>REVIEW</goto>")
    session = play.main.session
    play.fail(kind)
    assert (play.main.state, play.main.session) == ("FIX.md", session), "by on_error"
    assert play.main.visit.cause == f"the evaluator failed ({kind}): boom"


def test_a_judge_waits_for_its_backend_as_other_turns_do() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    play.fail("limit", retry_at=play.now + 60)
    assert [type(event) for event in play.last] == [StepFailed, BackendClosed]
    assert (play.run.turns, play.run.iterations) == (1, 1)
    play.pass_time(61)
    play.judge("COMMIT")
    assert play.main.state == "COMMIT.md"


def test_a_judge_waits_for_its_model_alone() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    play.fail("limit", retry_at=play.now + 60, only_model=True)
    closed = play.last[1]
    assert isinstance(closed, BackendClosed)
    assert closed.backend == "claude/haiku"
    held = play.begin()
    assert held == AgentHeld(agent="main", pool="claude/haiku")
    play.pass_time(61)
    play.judge("COMMIT")
    assert play.main.state == "COMMIT.md"


def test_a_judge_that_is_not_logged_in_pauses_the_agent() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    play.fail("auth")
    assert any(isinstance(event, AgentPaused) for event in play.last)
    play.resume()
    play.judge("COMMIT")
    assert play.main.state == "COMMIT.md"


def test_a_visit_without_money_asks_no_judge() -> None:
    play = at("POOR.md")
    play.say("<goto>REVIEW</goto>", cost=0.60)
    ended = play.put(Begin(time=play.now, agent="main"))[0]
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.kept, ended.cost) == (True, 0.0)
    assert ended.reason == "the judge was not asked: the visit cost $0.60, and its budget is $0.50"
    assert play.main.state == "REVIEW.md"


def test_a_judge_that_uses_up_the_money_of_its_visit_fails_it() -> None:
    play = at("BROKE.md")
    play.say("<goto>REVIEW</goto>", cost=0.45)
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert started.cap == 0.05
    play.fail("cap", spent=Spending(cost=0.06))
    assert play.main.state == "FIX.md"
    assert play.main.visit.cause == ("the evaluator failed (cap): boom; the visit cost $0.51, and its budget is $0.50")


def test_a_script_is_judged_by_the_backend_of_the_judge() -> None:
    play = at("S.sh")
    play.say("<goto>REVIEW</goto>")
    assert play.main.pool == "claude"
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.backend, started.model) == ("claude", "haiku")
    play.judge("NO")
    assert play.main.state == "REVIEW.md"


@pytest.mark.parametrize(
    ("policy", "judge", "backend", "small", "model"),
    [
        (JUDGE, "", "claude", "", "haiku"),
        (JUDGE, "", "claude", "mini", "haiku"),
        (JUDGE, "", "codex", "mini", "mini"),
        (JUDGE, "", "scripted", "", ""),
        (JUDGE, "model: sonnet", "codex", "mini", "sonnet"),
        (JUDGE.replace("prompt", "model: opus, prompt"), "model: sonnet", "codex", "mini", "opus"),
    ],
)
def test_the_model_that_judges(policy: str, judge: str, backend: str, small: str, model: str) -> None:
    files = {**FILES, "START.md": head(policy), "JUDGE.md": head(judge, "Done?")}
    play = Play(files, backend=backend, small_model=small, model="big")
    play.say("<goto>REVIEW</goto>")
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.backend, started.model) == (backend, model)


def test_no_agent_can_go_to_a_judge() -> None:
    play = at("FIX.md")
    play.say("<goto>JUDGE</goto>")
    assert play.main.visit.reminder == "`JUDGE` is a judge: no agent can go there\nname another state"


def test_a_snapshot_keeps_what_is_evaluated() -> None:
    from raymond.store import run_snapshot

    play = at()
    play.say("<ask next='FIX'>Which?</ask>")
    play.begin()
    kept = run_snapshot.unpack(run_snapshot.pack(0, b"", play.run))
    assert kept
    assert isinstance(kept.run, Run)
    assert kept.run.agents["main"] == play.main
    assert play.main.visit.pending
    assert play.main.visit.pending.asked == (Ask(question="Which?", next="FIX.md"),)


def test_an_evaluator_that_the_workflow_has_no_more_decides_nothing() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    play.workspace = place({**FILES, "START.md": ""})
    ended, _moved = play.put(Begin(time=play.now, agent="main"))
    assert isinstance(ended, EvaluatorEnded)
    assert (ended.kept, ended.reason) == (True, "the workflow has no evaluator here any more")
    assert play.main.state == "REVIEW.md"


MOVES: dict[str, Callable[[Play], Any]] = {
    "said": lambda play: play.say("<goto>REVIEW</goto>", cost=0.1),
    "silent": lambda play: play.say("no tag"),
    "keep": lambda play: play.judge("no", cost=0.01),
    "other": lambda play: play.judge("YES"),
    "unclear": lambda play: play.judge("hm"),
    "late": lambda play: play.judge(problem="took longer"),
    "green": lambda play: play.check(),
    "red": lambda play: play.check("failed", reason="red"),
    "crash": lambda play: play.fail("crash"),
    "limit": lambda play: play.fail("limit", retry_at=play.now + 9, only_model=True),
    "machine": lambda play: play.fail("machine"),
    "auth": lambda play: play.fail("auth"),
    "cap": lambda play: play.fail("cap", spent=Spending(cost=0.1)),
    "cut": lambda play: play.interrupt(by_death=True),
    "time": lambda play: play.pass_time(30),
    "resume": lambda play: play.resume(),
}
PHASES = {"": "said silent crash cut", "gate": "green red cut machine", "evaluate": "keep other unclear late"}
ALWAYS = "crash limit machine auth cap cut"


def possible(play: Play) -> list[str]:
    """What can come next in a run."""
    main = play.run.agents.get("main")
    if main is None:
        return []
    if main.status in ("failed", "paused"):
        return ["resume"]
    if "main" not in schedule.owed(play.run):
        return ["time"]
    pending = main.visit.pending
    phase = "" if pending is None else "gate" if pending.gate else "evaluate"
    return PHASES[phase].split() + (ALWAYS.split() if phase == "evaluate" else [])


def played(state: str, moves: Sequence[str]) -> Play:
    play = at(state, budget=100.0)
    for move in moves:
        if MOVES[move] not in (MOVES["time"], MOVES["resume"]) and isinstance(play.begin(), AgentHeld):
            play.pass_time(30)
            play.begin()
        MOVES[move](play)
    return play


@pytest.mark.parametrize("state", ["GATED.md", "SURE.md", "BROKE.md", "S.sh"])
@pytest.mark.parametrize("length", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_whatever_happens_the_journal_folds_to_the_run_and_the_agent_is_somewhere(state: str, length: int) -> None:
    ways: list[tuple[str, ...]] = [()]
    for _ in range(length):
        ways = [(*way, move) for way in ways for move in possible(played(state, way))]
    assert len(ways) > 30
    for way in ways:
        play = played(state, way)
        assert evolve.fold(play.decisions) == play.run, way
        waiting = [name for queue in play.run.ready.values() for name in queue]
        running = sum(play.run.running.values())
        main = play.run.agents.get("main")
        assert (running, waiting) == (0, ["main"] if main and main.status == "ready" else []), way
        assert play.run.reserved == 0.0, way
        assert main is None or possible(play), way


def test_todays_files_need_the_states_of_a_transition_that_is_held() -> None:
    play = at()
    play.say("<goto>REVIEW</goto>")
    today = build({**{name: text for name, text in FILES.items() if name != "REVIEW.md"}, "CHECK.md": ""})
    with pytest.raises(UsageError, match=r"today's files have no REVIEW.md, which main needs"):
        needed_states.change_workflow(play.run, today, "0" * 64, {})
    play.commit([needed_states.change_workflow(play.run, today, "0" * 64, {"REVIEW": "CHECK"})])
    play.workspace = place({**FILES, "CHECK.md": ""})
    play.judge("review")
    assert play.main.state == "CHECK.md"


def test_a_judge_that_fails_does_not_use_up_the_iterations_of_a_run() -> None:
    play = at(max_iterations=2)
    play.say("<goto>REVIEW</goto>")
    play.fail("crash")
    play.pass_time(20)
    play.judge("COMMIT")
    assert not any(isinstance(event, RunStopped) for event in play.events)
    play.say("<result>done</result>")
    [stop] = [event for event in play.events if isinstance(event, RunStopped)]
    assert stop.limit == "iterations"
