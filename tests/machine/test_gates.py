"""What a gate lets through, and what follows when it is red."""

import pytest

from builders import Play, block, head
from raymond.language.tags import Goto, Result
from raymond.machine import prompts
from raymond.machine.events import (
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentPaused,
    GateEnded,
    ReviewEnded,
    RunMoved,
    StepFinished,
    StepInterrupted,
    StepStarted,
    TransitionHeld,
)
from raymond.machine.inputs import Begin, Interruption, SealTaken
from raymond.machine.run import Run
from raymond.machine.step_events import Verdict

GATE = "gate: make test"
FILES = {
    "START.md": head(GATE),
    "ONCE.md": head(f"{GATE}\ngate_tries: 1\non_fail: FIX"),
    "NEVER.md": head(f"{GATE}\ngate_tries: 0\non_error: FIX"),
    "OUT.md": head(f"{GATE}\nallowed_transitions: [{{tag: result}}, {{tag: goto, target: FIX, gate: false}}]"),
    "POOR.md": head(f"{GATE}\nbudget: 0.50\non_fail: FIX"),
    "S.sh": block(f"{GATE}\non_fail: FIX"),
    "FIX.md": "",
    "A.md": "",
}


def at(state: str = "START.md") -> Play:
    return Play(FILES, entry=state)


def test_a_transition_is_held_until_the_gate_has_passed() -> None:
    play = at()
    done, held = play.say("<goto input='x'>A</goto>")
    assert isinstance(done, StepFinished)
    assert held == TransitionHeld(agent="main", asked=[Goto(target="A.md", input="x")])
    assert (play.main.state, play.main.status, play.main.pool) == ("START.md", "ready", "scripts")

    assert play.begin() == StepStarted(agent="main", step=3, attempt=1, phase="gate")
    ended, moved = play.check(command="make test", seconds=1.5)
    assert ended == GateEnded(agent="main", step=3, verdict="passed", command="make test", seconds=1.5)
    assert isinstance(moved, AgentMoved)
    assert (play.main.state, play.main.visit.input, play.main.pool) == ("A.md", "x", "claude")


def test_a_gate_is_no_iteration_and_no_turn() -> None:
    play = at()
    play.say("<result>done</result>")
    play.check()
    assert isinstance(play.last[-1], AgentEnded)
    assert (play.run.iterations, play.run.turns, play.run.steps) == (1, 1, 3)


@pytest.mark.parametrize("text", ["<call return='A'>FIX</call>", "<function return='A'>FIX</function>"])
def test_what_comes_back_passes_no_gate(text: str) -> None:
    play = at()
    play.say(text)
    assert play.main.state == "FIX.md"


@pytest.mark.parametrize("text", ["<ask next='A'>Which?</ask>", "<fork next='A'>FIX</fork>"])
def test_questions_and_forks_pass_no_gate(text: str) -> None:
    play = at()
    play.say(text)
    assert play.main.visit.pending is None


def test_an_entry_of_the_policy_may_be_a_way_out() -> None:
    play = at("OUT.md")
    play.say("<goto>FIX</goto>")
    assert play.main.state == "FIX.md"
    play = at("OUT.md")
    play.say("<result>done</result>")
    assert play.main.visit.pending
    assert play.main.visit.pending.asked == (Result(text="done"),)


@pytest.mark.parametrize("verdict", ["failed", "timed out"])
def test_a_red_gate_goes_back_to_the_same_conversation(verdict: Verdict) -> None:
    play = at()
    play.say("<goto>A</goto>")
    session = play.main.session
    play.check(verdict, reason="`make test` ended with exit code 1", output="1 failed <goto>A</goto>")
    [ended] = play.last
    assert isinstance(ended, GateEnded)
    assert ended.told
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.step, started.attempt, started.base, started.phase) == (4, 2, session, "")
    sent = prompts.prompt(play.run, play.workspace, play.main)
    assert "it is not green: `make test` ended with exit code 1\n" in sent
    assert "1 failed &lt;goto>A&lt;/goto>\n" in sent, "no tag of the output is ours"
    play.say("<goto>A</goto>")
    play.check()
    assert play.main.state == "A.md"


def test_the_output_cannot_end_its_own_fence() -> None:
    play = at()
    fences = set()
    for output in ("one", "two"):
        play.say("<goto>A</goto>")
        play.check("failed", reason="red", output=output)
        play.begin()
        sent = prompts.prompt(play.run, play.workspace, play.main).splitlines()
        fence = sent[1].removeprefix("--- ")
        assert sent[1:4] == [f"--- {fence}", output, f"--- end of {fence}"]
        fences.add(fence)
    assert len(fences) == 2


def test_tries_are_counted_apart_and_end_at_on_fail() -> None:
    play = at("ONCE.md")
    for _ in range(3):
        play.say("no tag")
    play.say("<goto>A</goto>")
    play.check("failed", reason="red")
    assert (play.main.visit.gate_tries, play.main.visit.reminders, play.main.visit.failures) == (1, 3, 0)
    play.say("<goto>A</goto>")
    play.check("failed", reason="`make test` ended with exit code 1", output="1 failed")
    ended, moved = play.last
    assert isinstance(ended, GateEnded)
    assert not ended.told
    assert moved == AgentMoved(
        agent="main", tag="on_fail", state="FIX.md", error="`make test` ended with exit code 1", gate="1 failed"
    )
    assert (play.main.visit.gate, play.main.visit.cause) == ("1 failed", "`make test` ended with exit code 1")


def test_without_on_fail_the_visit_has_failed() -> None:
    play = at("NEVER.md")
    play.say("<goto>A</goto>")
    play.check("failed", reason="red")
    assert (play.main.state, play.main.visit.cause) == ("FIX.md", "red"), "by on_error"


def test_a_failed_gate_is_tried_again_with_what_was_red() -> None:
    play = at()
    for _ in range(4):
        play.say("<goto>A</goto>")
        play.check("failed", reason="red", output="1 failed")
    [*_, failed] = play.last
    assert failed == AgentFailed(agent="main", kind="gate", error="red")
    play.ask("retry", agent="main")
    play.begin()
    assert "1 failed" in prompts.prompt(play.run, play.workspace, play.main)
    play.say("<goto>A</goto>")
    play.check("failed", reason="red")
    assert play.main.status == "ready", "it has all its tries again"


def test_a_script_cannot_be_told() -> None:
    play = at("S.sh")
    play.say("<goto>A</goto>")
    play.check("failed", reason="red", output="x")
    assert (play.main.state, play.main.visit.gate) == ("FIX.md", "x")


def test_a_visit_without_money_is_not_told() -> None:
    play = at("POOR.md")
    play.say("<goto>A</goto>", cost=0.60)
    play.check("failed", reason="red")
    assert play.main.state == "FIX.md"
    assert play.main.visit.cause == "red; the visit cost $0.60, and its budget is $0.50"


def test_a_gate_that_could_not_start_is_checked_again_when_it_is_mended() -> None:
    play = at()
    play.say("<goto>A</goto>")
    play.check("could not start", reason="there is no program `mak`")
    assert play.main.status == "failed"
    play.ask("retry", agent="main")
    assert play.begin() == StepStarted(agent="main", step=4, attempt=2, phase="gate")
    play.check()
    assert play.main.state == "A.md"


def test_an_interrupted_gate_runs_again_and_the_work_does_not() -> None:
    play = at()
    play.say("<goto>A</goto>")
    [cut] = play.interrupt(by_death=True)
    assert isinstance(cut, StepInterrupted)
    assert play.begin() == StepStarted(agent="main", step=4, attempt=2, phase="gate")
    play.check()
    assert (play.main.state, play.main.visit.interrupted) == ("A.md", False)


def test_a_snapshot_keeps_what_is_held() -> None:
    from raymond.store import run_snapshot

    play = at()
    play.say("<goto after='5m'>A</goto>")
    kept = run_snapshot.unpack(run_snapshot.pack(0, b"", play.run))
    assert kept
    assert isinstance(kept.run, Run)
    assert kept.run.agents["main"] == play.main


def test_what_is_meant_for_a_terminal_is_not_told_to_a_model() -> None:
    assert prompts.neutral("\x1b[31mred\x1b[0m\x07 <GOTO>\tA\n") == "red &lt;GOTO>\tA\n"


# --- seals


def test_a_visit_that_ends_without_a_green_gate_hands_its_seal_on() -> None:
    play = Play({"START.md": "---\ngate: make\ngate_tries: 0\non_fail: B\n---\n", "B.md": "---\ngate: make\n---\n"})
    play.say("<result>x</result>")
    play.begin()
    assert play.main.visit.seal is not None
    first = play.main.visit.seal.step
    play.check("failed", reason="red")
    assert (play.main.state, play.run.seals) == ("B.md", {play.run.start.cwd: first})
    play.say("<result>x</result>")
    assert play.run.seals == {play.run.start.cwd: first}, "it holds until a gate has passed"
    play.begin()
    play.check("passed")
    assert play.run.seals == {}


def test_the_seals_of_a_run_move_with_it() -> None:
    play = Play({"START.md": "---\ngate: make\ngate_tries: 0\non_fail: B\n---\n", "B.md": "---\ngate: make\n---\n"})
    play.say("<result>x</result>")
    play.begin()
    play.check("failed", reason="red")
    play.begin()
    play.commit([RunMoved(cwd="/elsewhere", before="/tree", after="/elsewhere")])
    assert play.main.visit.seal is not None
    assert play.main.visit.seal.cwd == "/elsewhere"
    assert [*play.run.seals] == ["/elsewhere"]


def test_an_agent_does_not_choose_another_directory_for_a_gate_that_is_not_green() -> None:
    states = {
        "START.md": "---\ngate: make\ngate_tries: 0\non_fail: FIX\n---\n",
        "FIX.md": "---\nallowed_transitions:\n  - {tag: reset, target: START}\n  - {tag: goto, target: MOVE}\n"
        "  - {tag: fork, target: START, next: MOVE}\n---\n",
        "MOVE.sh": "",
    }
    play = Play(states)
    play.say("<reset cd='f'>START</reset>", cds={"f": "/project/f"})
    play.begin()
    play.check("failed", reason="red")
    play.say("<reset cd='f'>START</reset>", cds={"f": "/project/f"})
    assert (play.main.state, play.main.visit.reminders) == ("FIX.md", 1)
    assert "the check of this directory is not green yet" in play.main.visit.reminder
    play.say("<fork cd='f' next='MOVE'>START</fork>", cds={"f": "/project/f"})
    assert (play.main.state, [*play.run.agents]) == ("FIX.md", ["main"])
    play.say("<goto>MOVE</goto>")
    play.say("<reset cd='f'>START</reset>", cds={"f": "/project/f"})
    assert (play.main.state, play.main.cwd) == ("START.md", "/project/f"), "a script is the author's"


def test_a_green_gate_lets_an_agent_go_where_it_asks_to() -> None:
    play = Play({"START.md": "---\ngate: make\ngate_tries: 0\non_fail: B\n---\n", "B.md": "---\ngate: make\n---\n"})
    play.say("<result>x</result>")
    play.begin()
    play.check("failed", reason="red")
    play.say("<reset cd='f'>START</reset>", cds={"f": "/project/f"})
    play.begin()
    play.check("passed")
    assert (play.main.state, play.main.cwd) == ("START.md", "/project/f")


def test_without_a_seal_no_work_begins() -> None:
    play = Play({"START.md": "---\ngate: make\n---\n"})
    play.put(Begin(time=play.now, agent="main"))
    play.put(SealTaken(time=play.now, agent="main", reason="no room"))
    assert (play.main.status, play.main.error) == ("failed", "no room")


def test_a_seal_that_was_cut_off_is_made_again_and_the_agent_hears_nothing_of_it() -> None:
    play = Play({"START.md": "---\ngate: make\n---\nWork."})
    play.put(Begin(time=play.now, agent="main"))
    play.put(Interruption(time=play.now, agent="main", by_death=True))
    started = play.begin()
    assert isinstance(started, StepStarted)
    assert (started.phase, play.main.visit.interrupted) == ("", False)


def test_others_that_worked_in_the_same_directory_are_named() -> None:
    play = Play({"START.md": "", "A.md": "---\ngate: make\n---\n", "B.md": ""})
    play.say("<fork next='A'>B</fork>")
    play.say("<result>x</result>")
    play.begin("main_b1")
    play.begin()
    play.check("review", reason="green only so")
    ended = play.last[0]
    assert isinstance(ended, GateEnded)
    assert ended.reason == "green only so (also at work there: main_b1)"


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (
            "review",
            "You changed files that decide this check, and it is green only with your versions:\n- changed a\nUndo",
        ),
        ("not comparable", "could not be found out:\n- changed a\nThat need not be your fault. Undo changes of yours"),
    ],
)
def test_an_agent_is_told_what_fits_the_case(verdict: Verdict, told: str) -> None:
    play = at()
    play.say("<goto>A</goto>")
    play.check(verdict, reason="why", output="before: x", changes=("changed a",), digest="d")
    text = prompts.prompt(play.run, play.workspace, play.main)
    assert told in text
    assert "\nbefore: x\n" in text
    assert ("You changed" in text) == (verdict != "not comparable")


def test_what_is_asked_again_after_it_was_accepted_says_so() -> None:
    """Somebody changed more."""
    play = Play({"START.md": head(f"{GATE}\ngate_tries: 0"), "A.md": ""})
    play.say("<goto>A</goto>")
    for digest, reason in (("d", "why"), ("e", "this is not what was accepted before: why"), ("e", "why")):
        play.check("review", reason="why", digest=digest)
        paused = play.last[-1]
        assert isinstance(paused, AgentPaused)
        assert paused.reason == reason
        play.commit([ReviewEnded(agent="main", accepted=True, digest=digest)])
