"""Watching a run: `logs`, `attach`, `wait`, `list`, `status`, and questions on a real terminal."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from raymond.machine.events import AskEnded, BackendClosed, StepStarted
from raymond.views import times
from running import GO, Ran, Room, alive, until
from terminals import in_tmux, terminal

DONE = {"START.sh": "echo '<result>done</result>'"}
ASKS = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>$RAYMOND_INPUT</result>"'}
HELD = {
    "START.sh": f"touch started; {GO}; echo '<print>hello</print><goto>END</goto>'",
    "END.sh": "echo '<result>done</result>'",
}
MIXED = {
    "START.sh": "echo '<print>one</print>'; echo '```'; echo '<print>two'; echo 'lines</print><goto>PLAN</goto>'",
    "PLAN.md": "Plan {{input}}it.\nThen say <goto>AGAIN</goto>.\n",
    "AGAIN.sh": "if [ $RAYMOND_VISIT = 1 ]; then echo '<goto>AGAIN</goto>'; else echo '<result>done</result>'; fi",
    "replies.yaml": (
        "PLAN: [[no tag, {text: 'Well. <print>planned</print>\n\n  <goto>AGAIN</goto>', cost: 0.25,"
        " tools: [{name: Read, input: {file_path: x.py}}]}]]"
    ),
}
"""Prints, one of them certain only at the end of the output; tools, a reminder, a cost and a loop."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path, TZ="UTC", TERM="screen")
    yield room
    room.clear()


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def pid_of(room: Room) -> int:
    return int(json.loads(Path(room.project.run("r").driver).read_text())["pid"])


def background(room: Room, files: dict[str, str], started: str = "started") -> int:
    """A run in the background, once its script has made `started`; who drives it."""
    assert room.raymond("run", room.flow(files), "--id", "r", "-d").returncode == 0
    until(lambda: (room.path / started).exists(), "the script")
    return pid_of(room)


def ran(room: Room) -> Ran:
    return Ran(room, "r", 0, "", "")


# --- logs


@pytest.mark.slow
def test_logs_are_the_lines_the_run_told(room: Room) -> None:
    run = room.command(MIXED)
    shown = run.err.splitlines()[:-5]
    assert [line.partition("] ")[2] if line[0] == "[" else line for line in shown] == [
        "run r started here: flow at START.sh, answered by scripted replies (flow/replies.yaml), budget $10.00 (default)",
        "main starts at START.sh",
        "main | one",
        "main | two",
        "main | lines",
        "main START.sh -> PLAN.md (goto)",
        "main is asked again: the output has no transition",
        "main * Read x.py",
        "main | planned",
        "main PLAN.md -> AGAIN.sh (goto) $0.25* total $0.25*",
        "main AGAIN.sh -> AGAIN.sh (goto)",
        "main done",
        "run completed",
    ]
    logs = room.raymond("logs", "r")
    lines = logs.stdout.splitlines()
    assert (logs.returncode, [re.sub(r"#\d+ ", "", line, count=1) for line in lines], logs.stderr) == (0, shown, "")
    steps = [found and int(found[1]) for line in lines for found in [re.match(r"(?:\[.*?\] )?#(\d+) ", line)]]
    assert steps == [None, None, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, None]
    assert room.raymond("logs", "r", "--tail", "3").stdout.splitlines() == lines[-3:]


@pytest.mark.slow
def test_logs_of_a_run_that_was_taken_up_are_those_of_all_its_drivers(room: Room) -> None:
    first = room.command(ASKS).lines[:-5]
    room.raymond("answer", "r", "x", "--no-resume")
    again = room.resume().lines[:-4]
    lines = room.raymond("logs").stdout.splitlines()
    assert "main < x" in lines
    shown = [line.partition("] ")[2] for line in lines if line != "main < x"]
    assert shown == [
        *first[:2],
        f"#1 {first[2]}",
        *first[3:],
        "answer received",
        "main START.sh -> END.sh (answered)",
        "run resumed",
        "#2 main done",
        "run completed",
    ]
    assert again == [line.removeprefix("#2 ") for line in shown[-3:]]


@pytest.mark.slow
def test_logs_can_be_those_of_one_agent(room: Room) -> None:
    room.drive(
        {
            "START.sh": "echo '<fork>A</fork><fork>B</fork><wait>END</wait>'",
            "A.sh": "echo '<print>of a</print><result>a</result>'",
            "B.sh": "echo '<print>of b</print><result>b</result>'",
            "END.sh": "echo '<result>all</result>'",
        }
    )
    shown = room.raymond("logs", "--agent", "main_a1").stdout.splitlines()
    assert [line.partition("] ")[2] or line for line in shown] == [
        "main_a1 starts at A.sh forked by main",
        "#2 main_a1 | of a",
        "#2 main_a1 done",
    ]
    code, out, error = told(room.raymond("logs", "--agent", "main_c1"))
    first, _, names = error.partition("? its agents: ")
    assert (code, out) == (2, "")
    assert first == "error: there is no agent `main_c1` in r\nhint: did you mean `main_a1`"
    assert sorted(names.strip().split(", ")) == ["main", "main_a1", "main_b2"], "in the order in which they ended"
    assert told(room.raymond("logs", "--agent", "main", "--step", "2")) == (
        *(2, ""),
        "error: step 2 of r is a step of main_a1, not of main\nhint: steps of main: 1, 4\n",
    )


def timeless(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


@pytest.mark.slow
def test_logs_of_a_step_show_what_a_script_said(room: Room) -> None:
    room.command(MIXED)
    assert timeless(room.raymond("logs", "r", "--step", "1").stdout) == (
        "step 1: main in START.sh, finished\n"
        "stdout:\n"
        "  <print>one</print>\n"
        "  ```\n"
        "  <print>two\n"
        "  lines</print><goto>PLAN</goto>\n"
        "attempt: 1\n"
        "time: TIME\n"
        "exit: 0\n"
    )


@pytest.mark.slow
def test_logs_of_a_step_show_every_turn_with_its_prompt_its_answer_and_its_cost(room: Room) -> None:
    run = room.command(MIXED)
    first, second = run.sessions("main", "PLAN.md")
    _, refused, finished = timeless(room.raymond("logs", "r", "--step", "2").stdout).split("step 2: main in PLAN.md, ")
    assert refused == (
        "rejected\n"
        "sent:\n"
        "  Plan it.\n"
        "  Then say <goto>AGAIN</goto>.\n"
        "said: no tag\n"
        f"turn: 1\nattempt: 1\ntime: TIME\nsession: {first}\nbase:\ncost: 0.0\n"
    )
    assert finished.startswith(
        "finished $0.25*\nsent:\n  I could not act on your reply: the output has no transition\n"
    )
    assert finished.endswith(
        "tools: Read x.py\n"
        "said:\n"
        "  Well. <print>planned</print>\n"
        "  <goto>AGAIN</goto>\n"
        f"turn: 2\nattempt: 1\ntime: TIME\nsession: {second}\nbase: {first}\ncost: 0.25\n"
    )


@pytest.mark.slow
def test_logs_of_a_step_can_be_read_by_programs(room: Room) -> None:
    room.command(MIXED)
    lines = [json.loads(line) for line in room.raymond("logs", "r", "--step", "2", "--json").stdout.splitlines()]
    assert [list(line) for line in lines] == [["ended", "transcript"]] * 2
    assert [line["ended"]["type"] for line in lines] == ["StepRefused", "StepFinished"]
    assert lines[0]["transcript"][0]["sent"] == "Plan it.\nThen say <goto>AGAIN</goto>.\n"


CUT = "step 1: main in START.sh, started TIME, interrupted: no process drives the run\n"


@pytest.mark.slow
def test_logs_have_what_a_step_had_said_when_its_driver_was_killed(room: Room) -> None:
    said = f"[ $RAYMOND_ATTEMPT = 2 ] || {{ echo half; touch started; {GO}; }}; echo '<result>x</result>'"
    pid = background(room, {"START.sh": said})

    def logs(*args: str) -> str:
        return timeless(room.raymond("logs", "r", *args).stdout)

    until(lambda: "half" in logs("--text"), "the output")
    assert logs("--text") == "step 1: main in START.sh, running since TIME\nstdout:\n  half\n\n"
    running = told(room.raymond("logs", "r", "--step", "1"))
    assert running == (2, "", "error: step 1 of r has not ended\nhint: raymond attach r shows what main is doing\n")
    with room.start("logs", "r", "--text", "-f") as following:
        until(lambda: "half" in following.out, "the output")
        os.kill(pid, signal.SIGKILL)
        assert timeless(following.wait().out).endswith(f"\n\n{CUT}\n")
    assert logs("--text") == f"{CUT}stdout:\n  half\n\n"
    assert logs("--text", "--step", "1") == logs("--text")
    one, begun = "step 1: main in START.sh, interrupted", "stdout: half\nattempt: 1\ntime: TIME\n"
    assert logs("--step", "1") == f"{one}: no process drives the run\n{begun}"
    assert json.loads(logs("--step", "1", "--json"))["ended"] is None
    assert room.resume().code == 0
    assert logs("--step", "1") == f"{one}\n{begun}"
    first, second, _ = re.sub(r"after \d+s", "after 0s", logs("--text")).split("\n\n")
    assert first == "step 1: main in START.sh, TIME, interrupted after 0s\nstdout:\n  half"
    assert second.startswith("step 2: main in START.sh, TIME, finished")


def test_logs_of_a_step_that_is_not_there_say_which_one_is_the_last(room: Room) -> None:
    room.drive(DONE)
    assert told(room.raymond("logs", "r", "--step", "9")) == (
        2,
        "",
        "error: there is no step 9 in r\nhint: the last one is step 1\n",
    )


@pytest.mark.slow
def test_logs_as_json_are_the_events_with_time_and_number(room: Room) -> None:
    run = room.command(MIXED)
    lines = [json.loads(line) for line in room.raymond("logs", "r", "--json").stdout.splitlines()]
    assert [line["type"] for line in lines] == [type(event).__name__ for event in run.events]
    assert all(list(line)[:3] == ["time", "seq", "type"] for line in lines)
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    of_main = room.raymond("logs", "r", "--json", "--agent", "main").stdout.splitlines()
    assert {json.loads(line)["agent"] for line in of_main} == {"main"}


@contextlib.contextmanager
def following(room: Room, *flags: str) -> Iterator[IO[str]]:
    """What `logs -f` says, to be read as it comes."""
    command = [sys.executable, "-m", "raymond", "logs", "r", "-f", *flags]
    with subprocess.Popen(command, cwd=room.path, env=room.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--json",), ("--agent", "main")])
def test_logs_that_follow_tell_what_comes_until_the_run_ends(room: Room, flags: tuple[str, ...]) -> None:
    background(room, HELD)
    with following(room, *flags) as stream:
        first = stream.readline()
        assert first
        room.go()
        everything = first + stream.read()
    assert everything == room.raymond("logs", "r", *flags).stdout
    assert ("#1 main | hello\n" in everything) == (flags != ("--json",))


@pytest.mark.slow
def test_logs_that_follow_a_journal_that_is_being_written_miss_nothing(room: Room) -> None:
    loop = f'if [ $RAYMOND_VISIT = 1 ]; then touch started; {GO}; fi; if [ $RAYMOND_VISIT = 150 ]; then echo "<result>x</result>"; '
    loop += "else echo '<goto>START</goto>'; fi"
    background(room, {"START.sh": loop})
    with following(room) as one, following(room) as two:
        begun = one.readline(), two.readline()
        room.go()
        shown = [first + stream.read() for first, stream in zip(begun, (one, two), strict=True)]
    assert shown == [room.raymond("logs", "r").stdout] * 2
    assert len(room.steps()) == 150


def test_logs_that_follow_a_run_that_ended_end_at_once(room: Room) -> None:
    room.drive(ASKS)
    followed = room.raymond("logs", "r", "-f")
    assert told(followed) == (0, room.raymond("logs", "r").stdout, "")


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_logs_that_follow_end_when_nobody_reads_them(room: Room, flags: tuple[str, ...]) -> None:
    loop = (
        "if [ -e go ]; then echo '<result>x</result>'; else touch started; echo '<goto after=\"50ms\">START</goto>'; fi"
    )
    pid = background(room, {"START.sh": loop})
    command = [sys.executable, "-m", "raymond", "logs", "r", "-f", *flags]
    with subprocess.Popen(command, cwd=room.path, env=room.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        try:
            assert process.wait(60) == 141
        finally:
            process.kill()
    assert alive(pid)
    room.go()


# --- attach


@pytest.mark.slow
def test_attach_shows_lines_until_the_run_ends_and_ends_with_its_exit_code(room: Room) -> None:
    background(room, {**HELD, "END.sh": "exit 1"})
    with room.start("attach", "r") as live:
        live.sees("watching r; Ctrl-C leaves it running\n")
        room.go()
        watched = live.wait()
    assert (watched.code, watched.out) == (1, "")
    assert watched.lines[:4] == [
        "watching r; Ctrl-C leaves it running",
        "main | hello",
        "main START.sh -> END.sh (goto)",
        "main step 2 failed (script): ended with exit code 1",
    ]
    assert watched.lines[-7].startswith("failed: r after ")
    assert watched.lines[-3] == "next:   change END.sh, then: raymond resume r --latest"


@pytest.mark.slow
def test_ctrl_c_leaves_a_watched_run_running(room: Room) -> None:
    pid = background(room, HELD)
    with room.start("attach", "r") as live:
        live.sees("watching r")
        live.signal(signal.SIGINT)
        left = live.process.wait(60)
        assert (left, live.err.splitlines()[-1]) == (
            0,
            "detached; r is still running: raymond attach r returns, raymond stop r stops it",
        )
        assert alive(pid)
        room.go()
        assert told(room.raymond("wait", "r"))[:2] == (0, "done\n")


@pytest.mark.slow
def test_attach_to_a_run_nobody_drives_tells_how_it_stands(room: Room) -> None:
    room.drive(ASKS)
    done = room.raymond("attach")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[1:] == [
        "why:    1 agent waits for an answer",
        "cost:   $0.00 in 1 step",
        "asks:   main: Which?",
        "next:   raymond answer r",
    ]


# --- wait


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code", "out"), [("<result>ok</result>", 0, "ok\n"), ("<goto>NOWHERE</goto>", 1, "")])
def test_wait_ends_with_the_run_its_exit_code_and_its_result(room: Room, end: str, code: int, out: str) -> None:
    background(room, {"START.sh": f"touch started; {GO}; echo '{end}'"})
    with room.start("wait", "r") as live, room.start("wait", "r", "--json") as other:
        room.go()
        waited, as_json = live.wait(), other.wait()
    assert (waited.code, waited.out, len(waited.lines)) == (code, out, 4 + 2 * code)
    assert (as_json.code, as_json.out.count("\n")) == (code, 1)
    document = json.loads(as_json.out)
    assert (document["workflow_id"], document["result"]) == ("r", out.strip() or None)


@pytest.mark.slow
def test_wait_for_a_run_that_has_ended_or_asks_ends_at_once(room: Room) -> None:
    room.drive(DONE, id="done")
    room.drive(ASKS, id="asks")
    assert told(room.raymond("wait", "done"))[:2] == (0, "done\n")
    asks = room.raymond("wait", "asks")
    assert (asks.returncode, asks.stdout) == (3, "")
    assert asks.stderr.splitlines()[-1] == "next:   raymond answer asks"
    document = json.loads(room.raymond("wait", "asks", "--json").stdout)
    assert (document["status"], document["asks"]) == ("waiting", {"main": "Which?"})


# --- list and status


@pytest.mark.slow
def test_list_shows_the_runs_of_this_project_and_with_all_those_of_every_project(room: Room) -> None:
    room.raymond("run", room.flow(ASKS), "--id", "mine")
    other = room.path.parent / "other"
    other.mkdir()
    room.raymond("run", room.flow(DONE, "done"), "--id", "elsewhere", cwd=other)
    assert re.fullmatch(
        "  ID    STATUS   AGE  WORKFLOW  AT         COST  WHY\nneeds you\n  mine  waiting +\\d+s  flow      START.sh  \\$0\\.00  1 agent waits for an answer\n",
        room.raymond("list").stdout,
    )
    shown = room.raymond("list", "--all")
    head, *rows = shown.stdout.splitlines()
    assert (shown.returncode, head.split()) == (0, ["ID", "STATUS", "AGE", "WORKFLOW", "AT", "COST", "WHY", "PROJECT"])
    assert [[one for one in row.split() if not re.fullmatch(r"\d+s", one)] for row in rows] == [
        ["needs", "you"],
        [*"mine waiting flow START.sh $0.00 1 agent waits for an answer".split(), str(room.path)],
        ["done"],
        ["elsewhere", "completed", "done", "$0.00", str(other)],
    ]
    found = json.loads(room.raymond("list", "--all", "--json").stdout)
    assert {(one["workflow_id"], one["project"]) for one in found} == {
        ("mine", str(room.path)),
        ("elsewhere", str(other)),
    }
    assert [one["workflow_id"] for one in json.loads(room.raymond("list", "--json").stdout)] == ["mine"]


@pytest.mark.slow
def test_list_says_which_runs_nobody_drives_any_more(room: Room) -> None:
    pid = background(room, HELD)
    [live] = json.loads(room.raymond("list", "--json").stdout)
    assert (live["status"], live["driven"], live["error"]) == ("running", True, None)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the end of the driver")
    [left] = json.loads(room.raymond("list", "--json").stdout)
    assert (left["status"], left["driven"]) == ("interrupted", False)


@pytest.mark.slow
def test_a_stale_state_file_is_not_believed(room: Room) -> None:
    room.drive(ASKS)
    path = Path(room.project.run("r").state)
    stale = json.loads(path.read_text())
    for text in (json.dumps({**stale, "status": "failed", "journal_bytes": 1}), "[]", "{}", "not json", ""):
        path.write_text(text)
        [row] = json.loads(room.raymond("list", "--json").stdout)
        assert (row["status"], row["agents"]) == ("waiting", 1)


LIMITED = {
    "START.md": "",
    "replies.yaml": "START: [[{fail: limit, error: used up, retry_after: 730s, denied: [WebFetch, Read, WebFetch]}]]",
}


@pytest.mark.slow
def test_status_counts_down_to_the_end_of_a_limit_and_shows_the_tools_that_were_refused(room: Room) -> None:
    assert room.raymond("run", room.flow(LIMITED), "--id", "r", "-d").returncode == 0
    until(lambda: any(isinstance(event, BackendClosed) for event in room.events()), "the limit")
    closed = next(event for event in room.events() if isinstance(event, BackendClosed))
    shown = room.raymond("status", "r").stdout.splitlines()
    assert re.fullmatch(
        rf"r: running in process \d+ \(scripted is unavailable until {times.instant(closed.until)}, in 12m( \d+s)?: used up\)",
        shown[0],
    )
    assert [line for line in shown if line.startswith("denied: ")] == [
        "denied: WebFetch 2 times (--allow-tool WebFetch would allow it)",
        "denied: Read 1 time (--allow-tool Read would allow it)",
    ]
    # What programs read does not change by the second.
    [reason] = {json.loads(room.raymond("status", "r", "--json").stdout)["reason"] for _ in range(2)}
    assert reason == f"scripted is unavailable until {times.instant(closed.until)}: used up"


@pytest.mark.slow
def test_status_folds_many_agents_and_all_shows_them(room: Room) -> None:
    forks = "".join("<fork>ASK</fork>" for _ in range(60))
    room.drive({**ASKS, "ASK.sh": ASKS["START.sh"], "START.sh": f"echo '{forks}<wait>END</wait>'"})
    shown = room.raymond("status").stdout.splitlines()
    agents = [line for line in shown if re.match(r"  main", line)]
    assert len(agents) == 50
    assert all("  asking  " in line for line in agents)
    assert shown[-2:] == [
        "  ... and 11 more agents: raymond status r --agents",
        "next: raymond answer r",
    ]
    everybody = room.raymond("status", "--agents").stdout.splitlines()
    assert len([line for line in everybody if re.match(r"  main", line)]) == 61
    assert not any("more agents" in line for line in everybody)


# --- on a terminal


THREE = {
    "START.sh": "echo '<fork>HELD</fork><fork>ASK</fork><fork>ASK</fork><wait>END</wait>'",
    "HELD.sh": f"touch started; {GO}; echo '<print>going on</print><result>held</result>'",
    "ASK.sh": "echo \"<ask next='TOLD'>Which, $RAYMOND_AGENT_ID?</ask>\"",
    "TOLD.sh": 'echo "<print>told $RAYMOND_INPUT</print><result>$RAYMOND_INPUT</result>"',
    "END.sh": "echo '<result>all</result>'",
}
"""main waits for main_held1, which runs until `go`, and for main_ask2 and main_ask3, which ask."""


def answers(room: Room) -> dict[str, str]:
    return {one.agent: one.answer for one in ran(room).all(AskEnded)}


@in_tmux
def test_two_agents_ask_on_the_terminal_one_after_the_other_while_a_third_goes_on(room: Room) -> None:
    with terminal(room, "run", room.flow(THREE), "--id", "r") as pane:
        pane.sees(">")
        first = next(line for line in pane.lines if " asks: " in line).split()[0]
        second = {"main_ask2": "main_ask3", "main_ask3": "main_ask2"}[first]
        assert not any(line.startswith(f"{second} asks: ") for line in pane.lines)
        pane.type("red", "Enter")
        pane.sees(f"{second} asks: Which, {second}\\?")
        until(lambda: answers(room) == {first: "red"}, "the first answer")
        assert ran(room).run.agents["main_held1"].status == "running"
        pane.sees(">")
        pane.type("blue", "Enter")
        until(lambda: answers(room) == {first: "red", second: "blue"}, "the second answer")
        pane.sees(r"main_held1 +HELD\.sh +running .*")
        room.go()
        lines = pane.sees("code 0")
    assert {f"{first} < red", f"{second} < blue", "main_held1 | going on"} <= set(lines)
    assert lines[-3:] == ["next:   raymond logs r", "result: all", "code 0"]
    assert [line for line in lines if " · " in line] == []
    assert len([one for one in ran(room).all(StepStarted) if one.agent == "main_held1"]) == 1


@pytest.mark.slow
@in_tmux
def test_a_run_elsewhere_is_watched_and_answered_on_the_terminal(room: Room) -> None:
    def given(answer: str) -> bool:
        return answer in answers(room).values()

    pid = background(room, THREE)
    until(lambda: ran(room).run.statuses.get("asking") == 2, "the questions")
    with terminal(room, "attach", "r") as pane:
        pane.sees("watching r; Ctrl-C leaves it running")
        for answer in ("red", "blue"):
            pane.sees(">")
            pane.type(answer, "Enter")
            until(partial(given, answer), "the answer")
        pane.sees(r"main_held1 +HELD\.sh +running .*")
        pane.sees(r"r · running · .*")
        assert alive(pid)
        room.go()
        lines = pane.sees("code 0")
    assert {f"{agent} | told {answer}" for agent, answer in answers(room).items()} <= set(lines)
    assert sorted(answers(room).values()) == ["blue", "red"]
    assert lines[-3:] == ["next:   raymond logs r", "result: all", "code 0"]
    assert [line for line in lines if " · " in line] == []


@in_tmux
@pytest.mark.slow
def test_ctrl_c_on_the_terminal_leaves_a_watched_run_running(room: Room) -> None:
    pid = background(room, HELD)
    with terminal(room, "attach", "r") as pane:
        pane.sees(r"main +START\.sh +running .*")
        pane.type("C-c")
        lines = pane.sees("code 0")
        assert lines[-2] == "detached; r is still running: raymond attach r returns, raymond stop r stops it"
        assert [line for line in lines if " · " in line] == []
        assert pane.cursor()
        assert alive(pid)
        room.go()
        assert room.raymond("wait", "r").stdout == "done\n"


@pytest.mark.slow
@pytest.mark.parametrize("text", [(), ("--text",)])
def test_a_run_that_is_removed_under_a_watcher_is_said_to_be(room: Room, text: tuple[str, ...]) -> None:
    background(room, HELD)
    with room.start("logs", "r", "-f", *text) as live:
        until(lambda: live.out, "what is there")
        live.signal(signal.SIGSTOP)
        assert room.raymond("clean", "--force", "r").returncode == 0
        live.signal(signal.SIGCONT)
        ended = live.wait()
    assert (ended.code, ended.err) == (2, "error: run r was removed meanwhile\n")
