"""What stands at the end of a run: how and why it ended, and the command to run next."""

import io
from pathlib import Path
from typing import Any, get_args

import pytest

from builders import Play, head
from raymond.control import runs
from raymond.faces import summary
from raymond.faces.foreign_text import in_margin
from raymond.faces.lines import Lines
from raymond.faces.overview import run_lines
from raymond.faces.summary import next_command
from raymond.machine.events import Decision, RunStopped
from raymond.machine.failures import Kind
from raymond.machine.limits import LimitName

FILES = {"START.md": "", "A.md": "", "S.sh": "", "ASKS.md": head("on_denied: pause"), "N.md": ""}
NEXT = {
    "budget": "raymond resume test-1 --budget 2",
    "iterations": "raymond resume test-1 --max-iterations 2",
    "turns": "raymond resume test-1 --max-turns 2",
    "unpriced": "raymond resume test-1 --max-turns 2",
    "time": "raymond resume test-1 --max-time 2s",
    "wait": "raymond resume test-1 --now",
}


@pytest.mark.parametrize("limit", get_args(LimitName))
def test_a_run_that_stopped_at_a_limit_is_resumed_with_more_of_it(limit: Any) -> None:
    play = Play(FILES)
    play.stop(RunStopped(kind="limit", limit=limit, amount=1.0))
    assert next_command(play.run) == NEXT[limit]


@pytest.mark.parametrize(
    "how", [RunStopped(kind="paused"), RunStopped(kind="stop"), RunStopped(kind="signal", signal=15)]
)
def test_a_run_that_a_person_or_a_signal_stopped_is_just_resumed(how: RunStopped) -> None:
    play = Play(FILES)
    play.stop(how)
    assert next_command(play.run) == "raymond resume test-1"


def test_an_agent_that_was_denied_tools_is_resumed_with_those_that_are_not_allowed_yet() -> None:
    play = Play(FILES, entry="ASKS.md", allowed_tools=["Read"])
    play.say("<goto>A</goto>", denied=("Bash(npm test:*)", "Read", "Edit"))
    command = "raymond resume test-1 --allow-tool 'Bash(npm test:*)' --allow-tool Edit"
    assert next_command(play.run) == command
    assert summary.ending(play.run, runs.undriven_status(play.run)).splitlines()[-1] == f"next:   {command}"


def test_an_agent_whose_conversation_is_gone_is_resumed_without_it() -> None:
    play = Play(FILES)
    play.fail("session", error="it is gone")
    play.pass_time()
    assert summary.ending(play.run, runs.undriven_status(play.run)).splitlines()[1:] == [
        "why:    1 agent failed",
        "cost:   $0.00 in 1 step",
        "failed: main in START.md: it is gone",
        "next:   raymond resume test-1 --fresh",
    ]


def test_an_agent_that_failed_in_another_way_keeps_its_conversation() -> None:
    play = Play(FILES)
    play.fail("setup")
    play.pass_time()
    assert next_command(play.run) == "raymond resume test-1"


def test_a_script_that_failed_is_changed_or_tried_again_alone_or_left() -> None:
    play = Play(FILES)
    play.say("<goto>S</goto>")
    play.fail("script")
    play.pass_time()
    assert summary.ending(play.run, "failed").splitlines()[-3:] == [
        "next:   change S.sh, then: raymond resume test-1 --latest",
        "or:     raymond resume test-1 --agent main --retry",
        "or:     raymond resume test-1 --agent main --goto START.md",
    ]


def test_replies_that_miss_one_are_changed_first_and_every_command_stands_alone() -> None:
    play = Play(FILES, backend="scripted")
    play.fail("setup", error="no reply")
    play.pass_time()
    then = "change replies.yaml, then: raymond resume test-1 --latest"
    assert next_command(play.run) == then
    shown = [line.strip() for line in run_lines(play.run, "failed", 0, "/nowhere")]
    assert shown[-3:] == [
        f"next:  {then}",
        "or:    raymond resume test-1 --agent main with --retry, --goto STATE or --result TEXT",
        f"next: {then}",
    ]


def test_the_way_out_of_a_loop_that_is_stuck_leads_back_into_it_with_more_rounds() -> None:
    check = "# /// raymond\n# max_visits: 2\n# then: STUCK\n# ///\n"
    play = Play({"PROMPT.md": "", "CHECK.sh": check, "STUCK.sh": "exit 1"}, entry="PROMPT.md")
    for _ in range(2):
        play.say("<goto>CHECK</goto>")
        play.say("<reset>PROMPT</reset>")
    play.say("<goto>CHECK</goto>")
    assert play.main.state == "STUCK.sh"
    play.fail("script")
    play.pass_time()
    then = "raise max_visits in CHECK.sh, then: raymond resume test-1 --latest --agent main --goto PROMPT.md"
    assert summary.ending(play.run, "failed").splitlines()[-1] == f"next:   {then}"
    shown = [line.strip() for line in run_lines(play.run, "failed", 0, "/nowhere")]
    assert [line for line in shown if line.startswith("next:")] == [f"next:  {then}", f"next: {then}"]


@pytest.mark.parametrize(
    ("state", "kind", "keys"),
    [("S.sh", "silent", "timeout"), ("S.sh", "time", "max_time"), ("START.md", "silent", "timeout or tool_timeout")],
)
def test_a_step_that_had_too_little_time_gets_more_in_its_file(state: str, kind: Kind, keys: str) -> None:
    play = Play(FILES)
    if state == "S.sh":
        play.say("<goto>S</goto>")
    while play.main.status != "failed":
        play.fail(kind)
    play.pass_time()
    then = f"set a longer {keys} in {state}, then: raymond resume test-1 --latest"
    lines = summary.ending(play.run, "failed").splitlines()
    assert lines[lines.index(f"next:   {then}") + 1] == "or:     raymond resume test-1 --agent main --retry"
    assert f"next:  {then}" in [line.strip() for line in run_lines(play.run, "failed", 0, "/nowhere")]


def test_what_failed_after_a_limit_was_reached_is_changed_and_the_limit_is_raised() -> None:
    play = Play(FILES, max_time=1.0)
    play.say("<goto>S</goto>")
    play.begin("main")
    play.pass_time(1.0)
    assert play.run.stop
    assert play.run.stop.limit == "time"
    play.now += 29.0
    play.fail("script")
    play.pass_time()
    then = "change S.sh, then: raymond resume test-1 --latest --max-time 1m"
    assert summary.ending(play.run, "failed").splitlines()[-1] == f"next:   {then}"
    shown = [line.strip() for line in run_lines(play.run, "failed", 0, "/nowhere")]
    assert [line for line in shown if line.startswith("next:")] == [f"next:  {then}", f"next: {then}"]


def test_what_would_fail_again_for_money_is_not_just_tried_again() -> None:
    play = Play(FILES)
    for _ in range(4):
        play.say("no tag")
    play.pass_time()
    assert next_command(play.run) == "change START.md, then: raymond resume test-1 --latest"


@pytest.mark.parametrize(
    ("budget", "spent", "more"), [(10.0, 10.2, "20"), (0.5, 0.5, "1"), (0.25, 0.26, "0.5"), (1.0, 7.333, "15")]
)
def test_a_higher_budget_is_twice_the_last_and_more_than_is_spent(budget: float, spent: float, more: str) -> None:
    play = Play(FILES)
    play.say("<goto>A</goto>", cost=spent)
    play.stop(RunStopped(kind="limit", limit="budget", amount=budget))
    assert next_command(play.run) == f"raymond resume test-1 --budget {more}"


LONG = "\n".join(f"{number}: " + "word " * 30 for number in range(300))


def test_a_question_is_shown_whole_at_the_end_in_the_status_and_in_lines(tmp_path: Path) -> None:
    play = Play(FILES)
    decisions = play.say(f'<ask next="N">{LONG}</ask>')
    told = io.StringIO()
    lines = Lines(told)
    lines.on_decisions(play.run, [Decision(seq=play.run.seq, time=play.run.now, events=decisions)])
    lines.refresh()
    for width in (0, 20):
        ending = summary.ending(play.run, "waiting", width)
        status = "\n".join(run_lines(play.run, "waiting", 0, str(tmp_path), width=width))
        for shown in (ending, status) if width else (ending, status, told.getvalue()):
            asked = [line.partition("| ")[2] for line in shown.splitlines() if line.lstrip().startswith("| ")]
            whole = "".join(asked) if width else "\n".join(asked)
            assert whole.rstrip() == (LONG.replace("\n", "") if width else LONG).rstrip()


def test_a_wrapped_line_stays_in_its_margin_whatever_it_consists_of() -> None:
    text = "\u65e5\u672c" * 10 + "\x1b[2Kx\ty\ufe00\u202e"
    for width in (1, 7, 80):
        lines = in_margin(text, "| ", width)
        assert all(line.startswith("| ") for line in lines)
        whole = "".join(line.removeprefix("| ") for line in lines)
        assert whole == "\u65e5\u672c" * 10 + r"\x1b[2Kx" + "   " + r"y\ufe00\u202e"
    assert max(len(line) for line in in_margin("\u65e5" * 10, "| ", 8)) == 2 + 3, "a wide character takes two cells"


def test_a_question_is_told_beside_an_agent_that_failed() -> None:
    play = Play(FILES)
    play.say('<fork next="N">A</fork>')
    play.say('<ask next="A">Which one?</ask>', agent="main")
    play.fail("setup", agent="main_a1", error="no program")
    told = summary.ending(play.run, runs.undriven_status(play.run)).splitlines()
    assert [line.partition(":")[0] for line in told if line.startswith(("failed", "asks"))] == ["failed", "asks"]
