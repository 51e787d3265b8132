"""Evaluators in runs: real processes that search, real programs that judge, real kills."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from raymond.machine.events import AgentFailed, EvaluatorEnded, StepFinished, StepInterrupted, StepStarted
from running import GO, Ran, Room, until

DONE = "<result>done</result>"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def evaluated(evaluator: str, said: str, **judge: str) -> dict[str, str]:
    """A workflow with one prompt whose reply is evaluated, and an end in FIX."""
    policy = f"evaluator:\n{indent(evaluator, '  ')}"
    replies = f"START: {json.dumps(said)}\n" + "".join(f"{name}: {text}\n" for name, text in judge.items())
    prompts = {f"{name}.md": "Is it right? {{transition}} {{output}}\n" for name in judge}
    end = {"FIX.sh": "echo '<result>fixed</result>'"}
    return {"START.md": f"---\n{policy}\n---\nDo it.\n", "replies.yaml": replies, **end, **prompts}


def verdicts(ran: Ran) -> list[tuple[str, str]]:
    return [(event.verdict, event.actual) for event in ran.all(EvaluatorEnded)]


@pytest.mark.parametrize(
    ("pattern", "said", "verdict"),
    [
        ("(SYNTAX|RUNTIME|LOGIC)", "a Syntax error, no: RUNTIME", "RUNTIME"),
        ("^DONE$", "first\nDONE\nlast", "match"),
        ("DONE", "nothing", "none"),
        ("(DONE)|x", "an x", "none"),
        ("<(result)>", "", "result"),
    ],
)
def test_the_verdict_of_a_pattern(room: Room, pattern: str, said: str, verdict: str) -> None:
    evaluator = f"pattern: {pattern!r}\nverdicts: {{{verdict}: <goto>FIX</goto>}}\ndefault: keep"
    ran = room.command(evaluated(evaluator, f"{said} {DONE}"))
    assert (ran.code, ran.out) == (0, "fixed\n"), ran.err
    assert verdicts(ran) == [(verdict, "goto FIX.sh")]
    assert f"main evaluator says {verdict}: goto FIX.sh instead of result\n" in ran.err
    assert ran.run.turns == 1


@pytest.mark.slow
def test_a_pattern_that_takes_for_ever_holds_up_nobody(room: Room) -> None:
    evaluator = "pattern: '^(a+)+$'\nverdicts: {match: <goto>FIX</goto>}\ndefault: keep"
    ran = room.command(evaluated(evaluator, f"{'a' * 60}! {DONE}"))
    assert (ran.code, ran.out) == (0, "done\n")
    told = "evaluator gave no verdict (the pattern took longer than 1s), the default counts: keeps result"
    assert told in ran.err
    room.nothing_runs()


def test_a_pattern_that_cannot_be_searched_means_the_default_or_a_failure(room: Room) -> None:
    evaluator = "pattern: '(x)'\nverdicts: {x: keep}"
    ran = room.command(evaluated(evaluator, f"y {DONE}"))
    assert ran.code == 1
    [failed] = ran.all(AgentFailed)
    assert (failed.kind, failed.error) == (
        "evaluator",
        'the pattern said "none", which is none of: x, and the evaluator has no default',
    )


@pytest.mark.parametrize("backend", ["scripted", "scripted-program"])
def test_a_judge_is_asked_apart_and_overrides_the_agent(room: Room, backend: str) -> None:
    evaluator = "prompt: JUDGE\nverdicts: {COMMIT: <goto>FIX</goto>, REVIEW: keep}"
    judge = '[["Let me see.", {text: "**Commit.**\\n<goto>START</goto><print>no</print>", cost: 0.01}]]'
    ran = room.command(evaluated(evaluator, f"Fine. {DONE}", JUDGE=judge), "--backend", backend)
    assert (ran.code, ran.out) == (0, "fixed\n"), ran.err
    assert verdicts(ran) == [("", ""), ("COMMIT", "goto FIX.sh")]
    assert "main | no" not in ran.err, "tags of a judge mean nothing"
    asked = [one for one in ran.transcript() if one.get("judge")]
    assert [one["sent"] for one in asked] == [
        f"Is it right? {DONE} Fine. {DONE}\n",
        f"Is it right? {DONE} Fine. {DONE}\n\nReply with exactly one of these words and nothing else: COMMIT, REVIEW",
    ]
    assert [one["base"] for one in asked] == ["", ""]
    assert len({one["session"] for one in ran.transcript() if one.get("session")}) == 3
    assert (ran.run.turns, ran.run.iterations) == (3, 2)


@pytest.mark.slow
def test_a_verdict_may_change_the_directory_and_ask_a_person(room: Room) -> None:
    (room.path / "sub").mkdir()
    (room.path / "sub" / "plan.md").write_text("the plan")
    evaluator = "pattern: DONE\nverdicts: {match: <reset cd='sub'>ASK</reset>}\ndefault: keep"
    files = evaluated(evaluator, f"DONE {DONE}")
    asks = "evaluator: {pattern: x, verdicts: {none: <ask next='FIX' files='plan.md'>Really?</ask>}}"
    files |= {"ASK.sh": "\n".join(["# /// raymond", f"# {asks}", "# ///", "pwd", f"echo '{DONE}'"])}
    ran = room.command(files)
    assert ran.code == 3, ran.err
    assert ran.run.agents["main"].cwd == str(room.path / "sub")
    assert "main asks: Really?" in ran.err
    assert "plan.md" in room.raymond("status", "r").stdout


@pytest.mark.slow
def test_the_log_of_transitions_has_what_was_requested_and_what_followed(room: Room) -> None:
    evaluator = "prompt: JUDGE\nverdicts: {COMMIT: <goto>FIX</goto>, REVIEW: keep}"
    ran = room.command(evaluated(evaluator, "<goto>START</goto>", JUDGE="[[hm, review], COMMIT]"), "--debug")
    assert ran.code == 0, ran.err
    [path] = room.path.glob(".raymond/debug/*/transitions.log")
    entries = path.read_text("utf-8").split("\n\n")
    assert 'START.md evaluator is asked again: the judge said "hm", which is none of: COMMIT, REVIEW\n' in entries[1]
    assert "requested: goto START\n  actual: goto START.md (kept, REVIEW)\n" in entries[2]
    assert "requested: goto START\n  actual: goto FIX.sh (by the evaluator, COMMIT)\n" in entries[3]


@pytest.mark.slow
def test_the_log_of_transitions_has_where_a_red_gate_led(room: Room) -> None:
    files = {"START.md": "---\ngate: 'echo \"<goto>X</goto>\"; exit 1'\ngate_tries: 1\non_fail: FIX\n---\nDo it.\n"}
    files |= {"replies.yaml": f"START: {DONE!r}\n", "FIX.sh": "echo '<result>fixed</result>'"}
    assert room.command(files, "--debug").code == 0
    [path] = room.path.glob(".raymond/debug/*/transitions.log")
    told, _, moved = path.read_text("utf-8").split("\n\n")[1:4]
    assert "START.md gate is red (" in told
    assert "; the agent is told\n" in told
    assert "\n  requested: result\n  actual: on_fail FIX.sh\n" in moved


@pytest.mark.slow
def test_what_judges_is_set_from_the_command_line_too(room: Room) -> None:
    files = evaluated("pattern: x\nverdicts: {match: keep}\ndefault: keep", f"Fine. {DONE}")
    given = 'START.evaluator={"pattern": "Fine", "verdicts": {"match": "<goto>FIX</goto>"}}'
    ran = room.command(files, "--set", given)
    assert (ran.code, ran.out) == (0, "fixed\n"), ran.err


@pytest.mark.slow
def test_a_visit_that_has_spent_its_budget_asks_no_judge_and_can_end_the_run(room: Room) -> None:
    evaluator = "prompt: JUDGE\nverdicts: {COMMIT: <goto>FIX</goto>}\ndefault: keep"
    files = evaluated(evaluator, "", JUDGE="COMMIT")
    files["START.md"] = files["START.md"].replace("---\n", "---\nbudget: 0.10\n", 1)
    files["replies.yaml"] = f"START: {{text: {DONE!r}, cost: 0.20}}\n"
    ran = room.command(files)
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    assert "(the judge was not asked: the visit cost $0.20, and its budget is $0.10), the default counts" in ran.err


AGENT = """
    prompt=$(cat)
    case $prompt in
    *right*) echo "$1" >> judged; while [ ! -e go ]; do sleep 0.02; done; echo 'Commit' ;;
    *) echo once >> worked; echo '<result>done</result>' ;;
    esac
"""


def mine(room: Room, more: str = "") -> dict[str, str]:
    """A workflow that a program of the person answers; it judges once there is a file `go`."""
    (room.path / "agent.sh").write_text(AGENT)
    program = room.path / "agent.sh"
    room.settings(f'{more}[backends.mine]\ncommand = ["bash", "{program}", "{{model}}"]\ncost = 0.02\n')
    files = evaluated("prompt: JUDGE\nverdicts: {COMMIT: <goto>FIX</goto>, REVIEW: keep}", DONE, JUDGE="x")
    return {name: text for name, text in files.items() if name != "replies.yaml"} | {
        "workflow.yaml": "backend: mine\nlint: {ignore: {dead-end: the program knows}}\n"
    }


@pytest.mark.slow
def test_a_judge_without_a_model_is_refused_before_the_run(room: Room) -> None:
    ran = room.command(mine(room))
    assert ran.code == 6
    assert "nobody says which model of mine judges START.md" in ran.err
    assert "hint: name one: evaluator: {model: ...}, or small_model in workflow.yaml or in your settings" in ran.err
    room.go()
    room.environment["RAYMOND_SMALL_MODEL"] = "mini"
    assert room.raymond("run", room.flow({}), "--id", "r").stdout == "fixed\n"
    assert (room.path / "judged").read_text() == "mini\n"


@pytest.mark.slow
def test_a_judge_outlives_its_driver_and_the_agent_is_not_asked_again(room: Room) -> None:
    flow = room.flow(mine(room, 'small_model = "mini"\n'))
    with room.start("run", flow, "--id", "r") as live:
        until(lambda: (room.path / "judged").exists(), "the judge")
        live.process.kill()
        live.process.wait()
        room.go()
        again = room.resume()
    assert (again.code, again.out) == (0, "fixed\n"), again.err
    assert (room.path / "judged").read_text() == "mini\n"
    assert (room.path / "worked").read_text() == "once\n"
    assert verdicts(again) == [("COMMIT", "goto FIX.sh")]
    assert again.run.cost == pytest.approx(0.04)


@pytest.mark.slow
def test_a_judge_that_was_stopped_is_asked_again_and_the_agent_is_not(room: Room) -> None:
    flow = room.flow(mine(room, 'small_model = "mini"\n'))
    with room.start("run", flow, "--id", "r") as live:
        until(lambda: (room.path / "judged").exists(), "the judge")
        live.signal(signal.SIGINT)
        live.sees("pausing after 1 running step")
        live.signal(signal.SIGINT)
        assert live.wait().code == 130
    room.go()
    again = room.resume()
    assert (again.code, again.out) == (0, "fixed\n"), again.err
    assert (room.path / "judged").read_text() == "mini\nmini\n"
    assert (room.path / "worked").read_text() == "once\n"
    assert (len(again.all(StepInterrupted)), len(again.all(StepFinished))) == (1, 2)


@pytest.mark.slow
def test_a_driver_that_dies_between_gate_and_judge_loses_neither(room: Room) -> None:
    files = mine(room, 'small_model = "mini"\n')
    files["START.md"] = files["START.md"].replace("---\n", f"---\ngate: 'echo x >> checks; {GO}'\n", 1)
    with room.start("run", room.flow(files), "--id", "r") as live:
        until(lambda: (room.path / "checks").exists(), "the check")
        live.process.kill()
        live.process.wait()
        room.go()
        again = room.resume()
    assert (again.code, again.out) == (0, "fixed\n"), again.err
    assert (room.path / "worked").read_text() == "once\n"
    phases = [event.phase for event in again.all(StepStarted)]
    assert phases == ["seal", "", "gate", "gate", "evaluate", ""]


@pytest.mark.slow
def test_a_journal_that_ends_anywhere_goes_on_without_asking_the_agent_again(room: Room) -> None:
    evaluator = "prompt: JUDGE\nverdicts: {COMMIT: <goto>FIX</goto>, REVIEW: keep}"
    files = evaluated(evaluator, "<goto>START</goto>", JUDGE="[[hm, review], COMMIT]")
    files["START.md"] = files["START.md"].replace("---\n", "---\ngate: 'true'\n", 1)
    ran = room.drive(files)
    assert ran.out == "fixed", ran.err
    path = Path(room.project.run("r").journal)
    whole = path.read_bytes()
    turns = len(ran.all(StepFinished))
    lines = whole.splitlines(keepends=True)
    for last in range(2, len(lines)):
        path.write_bytes(b"".join(lines[:last]))
        again = room.again()
        assert again.out == "fixed", (last, again.err)
        assert verdicts(again) == verdicts(ran), last
        assert len(again.all(StepFinished)) == turns, last
        assert again.run.cost == ran.run.cost


@pytest.mark.slow
def test_a_run_whose_judge_outlived_its_driver_can_be_cancelled(room: Room) -> None:
    flow = room.flow(mine(room, 'small_model = "mini"\n'))
    with room.start("run", flow, "--id", "r") as live:
        until(lambda: (room.path / "judged").exists(), "the judge")
        assert "its evaluator" in room.raymond("status", "r").stdout
        live.process.kill()
        live.process.wait()
        done = room.raymond("cancel", "r")
        assert done.returncode == 0, done.stderr
        cut = [event for event in room.events() if isinstance(event, StepInterrupted)]
        assert len(cut) == 1
        room.nothing_runs()
