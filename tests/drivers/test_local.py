"""The driver, as a real command: signals, rest without processes, turns taken fairly, requests from outside."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.drivers import door
from raymond.machine.events import (
    AgentMoved,
    AgentPaused,
    AgentStarted,
    AgentWoke,
    AskStarted,
    RequestTaken,
    RunStopped,
    StepFinished,
    StepInterrupted,
    StepStarted,
    WaitEnded,
)
from raymond.machine.requests import Request
from raymond.store import inbox
from running import GO, PATIENCE, Live, Room, alive, until


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


# A script that says it runs, and goes on when the test lets it.
HELD = f"""
echo "$RAYMOND_STATE $RAYMOND_ATTEMPT" >> ran
{GO}
echo "<goto>END</goto>"
"""
END = 'echo "$RAYMOND_STATE $RAYMOND_ATTEMPT" >> ran; echo "<result>end</result>"'


def ran_steps(room: Room) -> list[str]:
    """What the scripts have noted."""
    file = room.path / "ran"
    return file.read_text().splitlines() if file.exists() else []


def held(room: Room, live: Live, steps: int = 1) -> None:
    """Wait until so many scripts run."""
    until(lambda: len(ran_steps(room)) >= steps or live.process.poll() is not None, "the scripts")


# Signals


def test_one_ctrl_c_waits_for_the_running_step_and_starts_nothing_new(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGINT)
        live.sees(
            "pausing after 1 running step (main); no new steps will start\n"
            "press Ctrl-C again to stop now: unfinished steps will rerun, and cost again, when you resume\n"
        )
        assert live.process.poll() is None
        room.go()
        ran = live.wait()
    assert (ran.code, ran.all(RunStopped)) == (130, [RunStopped(kind="paused")])
    assert ran_steps(room) == ["START.sh 1"]
    assert ran.out == ""
    assert ran.lines[-5].startswith("paused: r after ")
    assert ran.lines[-4:] == [
        "why:    paused with Ctrl-C",
        "cost:   $0.00 in 1 step",
        "result: none yet",
        "next:   raymond resume r",
    ]
    room.nothing_runs()


@pytest.mark.slow
def test_after_one_ctrl_c_a_resume_goes_on_with_the_next_step(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        room.go()
        live.wait()
    ran = room.resume()
    assert (ran.code, ran.out) == (0, "end\n")
    assert ran_steps(room) == ["START.sh 1", "END.sh 1"]
    assert ran.all(StepInterrupted) == []


@pytest.mark.slow
def test_a_second_ctrl_c_stops_at_once_and_the_step_runs_again_on_resume(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        live.signal(signal.SIGINT)
        ran = live.wait()
        assert ran.code == 130
        assert [event.step for event in ran.all(StepInterrupted)] == [1]
        room.nothing_runs()
    room.go()
    again = room.resume()
    assert (again.code, again.out) == (0, "end\n")
    assert ran_steps(room) == ["START.sh 1", "START.sh 2", "END.sh 1"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_sigterm_and_sighup_stop_at_once(room: Room, number: signal.Signals, code: int) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(number)
        ran = live.wait()
        room.nothing_runs()
    assert (ran.code, ran.all(RunStopped)) == (code, [RunStopped(kind="signal", signal=number)])
    assert ran.lines[-4] == f"why:    stopped by {signal.Signals(number).name}"
    assert ran.lines[-5].startswith("paused: r after ")
    room.go()
    assert room.resume().code == 0
    assert ran_steps(room) == ["START.sh 1", "START.sh 2", "END.sh 1"]


@pytest.mark.slow
def test_without_pidfds_and_proc_a_signal_stops_at_once_too(tmp_path: Path) -> None:
    room = Room(tmp_path, RAYMOND_PORTABLE="1")
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGTERM)
        assert live.wait().code == 143
        room.nothing_runs()
        room.go()
        assert room.resume().code == 0
    assert ran_steps(room) == ["START.sh 1", "START.sh 2", "END.sh 1"]


@pytest.mark.slow
def test_without_pidfds_and_proc_what_a_killed_driver_left_is_ended_before_it_runs_again(tmp_path: Path) -> None:
    """Once its pid is written down, which is all such a machine has to go by."""
    room = Room(tmp_path, RAYMOND_PORTABLE="1")
    noted = Path(room.project.run("r").pids)
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        left = int(until(lambda: noted.read_text() if noted.exists() else "", "the note").split()[0])
        live.process.kill()
        live.process.wait()
        assert alive(left)
        with room.start("resume", "r") as again:
            until(lambda: len(ran_steps(room)) == 2, "the second attempt")
            assert not alive(left)
            room.go()
            assert again.wait().code == 0
    assert ran_steps(room) == ["START.sh 1", "START.sh 2", "END.sh 1"]


@pytest.mark.slow
def test_a_ctrl_c_of_the_terminal_reaches_raymond_but_not_its_scripts(room: Room) -> None:
    """A terminal signals the whole foreground group."""
    script = f"trap 'echo hit > hit' INT; echo $$ > pid; {HELD}"
    with room.start("run", room.flow({"START.sh": script, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        assert os.getpgid(int((room.path / "pid").read_text())) != os.getpgid(live.pid)
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        room.go()
        live.wait()
    assert not (room.path / "hit").exists()


@pytest.mark.slow
def test_under_nohup_a_hangup_changes_nothing(room: Room) -> None:
    flow = room.flow({"START.sh": HELD, "END.sh": END})
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with room.start("run", flow, "--id", "r") as live:
            held(room, live)
            live.signal(signal.SIGHUP)
            room.go()
            assert live.wait().code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_that_ends_with_the_step_ctrl_c_waited_for_is_done(room: Room) -> None:
    """There is nothing left to resume: the result is printed and the code is that of the run."""
    script = f"echo 1 >> ran; {GO}; echo '<result>all there is</result>'"
    with room.start("run", room.flow({"START.sh": script}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        room.go()
        ran = live.wait()
    assert (ran.code, ran.out) == (0, "all there is\n")
    assert ran.run.final_status == "completed"


@pytest.mark.slow
def test_ctrl_c_while_everybody_sleeps_ends_at_once(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": "echo '<goto after=\"1h\">START</goto>'"}), "--id", "r") as live:
        live.sees("main START.sh -> START.sh (goto), sleeps until 2")
        live.signal(signal.SIGINT)
        ran = live.wait()
    assert ran.code == 130
    assert "paused: nothing is running" in ran.lines


@pytest.mark.slow
def test_a_run_that_pauses_names_five_of_the_agents_it_waits_for(room: Room) -> None:
    files = {
        "START.sh": 'for n in 1 2 3 4 5 6 7; do echo "<fork>WORK</fork>"; done; echo "<wait>END</wait>"',
        "WORK.sh": HELD,
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r", "--max-parallel", "7") as live:
        held(room, live, 7)
        live.signal(signal.SIGINT)
        live.sees(
            "pausing after 7 running steps "
            "(main_work1, main_work2, main_work3, main_work4, main_work5 and 2 more); no new steps will start\n"
        )
        room.go()
        assert live.wait().code == 130


@pytest.mark.slow
def test_a_script_that_ignores_sigterm_is_killed_by_the_second_ctrl_c(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": f"trap '' TERM; {HELD}", "END.sh": END}), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        live.signal(signal.SIGINT)
        assert live.wait().code == 130
        room.nothing_runs()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["scripted", "scripted-program"])
def test_one_ctrl_c_waits_for_a_turn_and_keeps_what_it_said(room: Room, backend: str) -> None:
    files = {
        "START.md": "",
        "END.md": "",
        "replies.yaml": "START: {text: <goto>END</goto>, delay: 1s, cost: 0.1, tools: [{name: Read}]}\nEND: <result>end</result>",
    }
    with room.start("run", room.flow(files), "--id", "r", "--backend", backend) as live:
        live.sees("main * Read")
        live.signal(signal.SIGINT)
        live.sees("pausing after 1 running step (main); no new steps will start\n")
        ran = live.wait()
    assert ran.code == 130
    assert (ran.run.cost, ran.run.agents["main"].state) == (0.1, "END.md")
    assert room.resume().out == "end\n"


# Rest costs nothing


def test_agents_that_sleep_wait_and_ask_cost_no_process(room: Room) -> None:
    files = {
        "START.sh": """echo '<fork>SLEEP</fork><fork>ASK</fork><wait timeout="1h">END</wait>'""",
        "SLEEP.sh": """echo '<goto after="1h">END</goto>'""",
        "ASK.sh": """echo '<ask next="END" timeout="1h">May I?</ask>'""",
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("main_ask2 asks: May I?")
        live.sees("main_sleep1 SLEEP.sh -> END.sh (goto), sleeps until 2")
        until(lambda: list(room.processes()) == [live.pid], "the driver alone")
        children = Path(f"/proc/{live.pid}/task/{live.pid}/children").read_text()
        assert children == ""
        live.signal(signal.SIGINT)
        assert live.wait().code == 130
    statuses = {agent.id: agent.status for agent in live.wait().run.agents.values()}
    assert statuses == {"main": "waiting", "main_sleep1": "sleeping", "main_ask2": "asking"}


def test_after_starts_the_target_when_its_time_has_come(room: Room) -> None:
    ran = room.drive({"START.sh": "echo '<goto after=\"200ms\">END</goto>'", "END.sh": END})
    assert (ran.code, ran.result) == (0, "end")
    [moved] = ran.all(AgentMoved)
    [woke] = ran.all(AgentWoke)
    assert moved.wake_at > 0
    assert woke.agent == "main"
    assert "main wakes" in ran.lines


def test_a_fork_can_start_later_than_its_parent_goes_on(room: Room) -> None:
    ran = room.drive({"START.sh": 'echo \'<fork after="300ms" next="END">WORK</fork>\'', "WORK.sh": END, "END.sh": END})
    assert [line for line in ran.lines if line.endswith(" done")] == ["main done", "main_work1 done"]
    assert ran.all(AgentStarted)[1].wake_at > 0


@pytest.mark.slow
def test_a_sleep_survives_the_end_of_its_driver(room: Room) -> None:
    with room.start(
        "run", room.flow({"START.sh": "echo '<goto after=\"1s\">END</goto>'", "END.sh": END}), "--id", "r"
    ) as live:
        live.sees("sleeps until")
        live.process.kill()
        live.process.wait()
    slept = room.events()[-1]
    assert isinstance(slept, AgentMoved)
    ran = room.resume()
    assert (ran.code, ran.out) == (0, "end\n")
    assert ran.all(AgentMoved)[0].wake_at == slept.wake_at


@pytest.mark.slow
def test_an_ask_whose_time_went_by_while_nobody_drove_times_out_on_resume(room: Room) -> None:
    files = {
        "START.sh": 'echo \'<ask next="END" timeout="300ms" timeout_next="LATE">May I?</ask>\'',
        "LATE.sh": "echo '<result>late</result>'",
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("main asks: May I?")
        live.process.kill()
        live.process.wait()
    [asked] = [event for event in room.events() if isinstance(event, AskStarted)]
    until(lambda: time.time() > asked.deadline, "the deadline")
    ran = room.resume()
    assert (ran.code, ran.out) == (0, "late\n")
    assert len(ran.all(StepStarted)) == 2, "it was not asked again"


@pytest.mark.slow
def test_a_run_leaves_no_file_open(room: Room) -> None:
    files = {
        "START.sh": 'for n in 1 2 3 4 5 6 7 8; do echo "<fork>WORK</fork><fork>ASK</fork>"; done; echo "<wait>END</wait>"',
        "WORK.sh": "echo '<result></result>'; sleep 0.3 &",
        "ASK.md": "",
        "END.sh": END,
        "replies.yaml": "ASK: [[no tag, <result></result>]]",
    }
    before = os.listdir(f"/proc/{os.getpid()}/fd")
    assert room.drive(files, backend="scripted-program").code == 0
    assert len(os.listdir(f"/proc/{os.getpid()}/fd")) == len(before)


# First come, first served


def test_agents_take_turns_in_the_order_they_came(room: Room) -> None:
    """Six agents of four steps each on two places: whoever is ready first starts first, and never a third."""
    files = {
        "START.sh": 'for n in 1 2 3 4 5 6; do echo "<fork>WORK</fork>"; done; echo "<wait>END</wait>"',
        "WORK.sh": 'if [ $RAYMOND_VISIT = 4 ]; then echo "<result></result>"; else echo "<goto>WORK</goto>"; fi',
        "END.sh": END,
    }
    ran = room.drive(files, max_parallel=2)
    assert ran.code == 0
    ready: list[str] = []
    running = 0
    for event in ran.events:
        if isinstance(event, AgentStarted | AgentMoved | WaitEnded):
            ready.append(event.agent)
        elif isinstance(event, StepStarted):
            running += 1
            assert event.agent == ready.pop(0)
            assert running <= 2
        elif isinstance(event, StepFinished):
            running -= 1
    assert len(ran.all(StepStarted)) == 1 + 6 * 4 + 1


@pytest.mark.slow
def test_scripts_and_turns_have_places_of_their_own(room: Room) -> None:
    """One turn at a time, and one script at a time, but both at once."""
    files = {
        "START.sh": "echo '<fork>PROMPT</fork><fork>SCRIPT</fork><wait>END</wait>'",
        "PROMPT.md": "",
        "SCRIPT.sh": HELD.replace("<goto>END</goto>", "<result></result>"),
        "END.sh": END,
        "replies.yaml": "PROMPT: {text: <result></result>, tools: [{name: Read}]}",
    }
    with room.start("run", room.flow(files), "--id", "r", "--max-parallel", "1") as live:
        held(room, live)
        live.sees("main_prompt1 done")
        room.go()
        assert live.wait().code == 0


# Requests to a live run


def request(room: Room, request: Request) -> None:
    """Ask the process that drives the run."""
    socket = room.project.run("r").socket

    def is_asked() -> bool:
        try:
            door.ask(socket, request, 60)
        except (FileNotFoundError, ConnectionRefusedError):  # it is there a moment before it is listened to
            return False
        return True

    until(is_asked, "the socket of the driver")


@pytest.mark.slow
def test_stop_lets_the_running_step_end_and_the_run_can_be_resumed(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        done = room.raymond("stop", "r")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"r received the request (process {live.pid})\n"
        live.sees("stopping: stopped on request")
        room.go()
        ran = live.wait()
    assert (ran.code, ran.all(RunStopped)) == (3, [RunStopped(kind="stop")])
    assert ran.lines[-5].startswith("stopped: r after ")
    assert ran_steps(room) == ["START.sh 1"]
    assert room.resume().out == "end\n"


@pytest.mark.slow
def test_stop_now_ends_the_running_step(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        assert room.raymond("stop", "r", "--now").returncode == 0
        ran = live.wait()
        room.nothing_runs()
    assert (ran.code, ran.all(RunStopped)) == (3, [RunStopped(kind="stop", at_once=True)])
    assert ran.lines[-4] == "why:    stopped at once on request"
    assert len(ran.all(StepInterrupted)) == 1
    room.go()
    assert room.resume().out == "end\n"


@pytest.mark.slow
def test_an_answer_reaches_a_live_run(room: Room) -> None:
    files = {
        "START.sh": """echo '<fork next="ASK">WORK</fork>'""",
        "WORK.sh": HELD,
        "ASK.sh": """echo '<ask next="TOLD">Which?</ask>'""",
        "TOLD.sh": 'echo "<result>$RAYMOND_INPUT</result>"; touch go',
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("main asks: Which?")
        done = room.raymond("answer", "r", "the blue one", "--no-resume")
        assert (done.returncode, done.stderr) == (0, f"r received the request (process {live.pid})\n")
        ran = live.wait()
    assert (ran.code, ran.out) == (0, "the blue one\n")
    assert "main ASK.sh -> TOLD.sh (answered)" in ran.lines


@pytest.mark.slow
def test_a_request_that_makes_no_sense_any_more_is_refused_and_told(room: Room) -> None:
    with room.start("run", room.flow({"START.sh": HELD, "END.sh": END}), "--id", "r") as live:
        held(room, live)
        request(room, Request(id="late", kind="answer", text="yes"))
        live.sees("answer refused: no agent is waiting for an answer")
        room.go()
        assert live.wait().code == 0


@pytest.mark.slow
def test_requests_left_when_nobody_drove_come_before_the_resume(room: Room) -> None:
    """A stop that reached its driver too late must not stop the next one. An answer that nobody signed does not count."""
    room.command(
        {"START.sh": "echo '<ask next=\"TOLD\">Which?</ask>'", "TOLD.sh": 'echo "<result>$RAYMOND_INPUT</result>"'}
    )
    folder = room.project.run("r").inbox
    inbox.leave(folder, Request(id="late-1", kind="stop", now=True))
    inbox.leave(folder, Request(id="late-2", kind="answer", text="that one"))
    ran = room.resume()
    assert (ran.code, ran.out) == (3, "")
    aside = f"{folder}/late-2.json.refused"
    assert f"a request that asks for `answer` and does not tell who it comes from was put aside: {aside}\n" in ran.err
    assert [event.request for event in ran.all(RequestTaken)] == ["late-1"]


@pytest.mark.slow
def test_a_pause_that_was_left_for_a_dead_driver_holds_for_the_step_that_it_ran(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork>A</fork><fork>B</fork><wait>END</wait>'",
        "A.sh": "echo '<result>a</result>'",
        "B.sh": HELD,
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r") as live:
        held(room, live)
        live.signal(signal.SIGSTOP)
        inbox.leave(room.project.run("r").inbox, Request(id="left", kind="pause", agent="main_b2"))
        live.signal(signal.SIGKILL)
        live.process.wait(PATIENCE)
    room.go()
    ran = room.resume()
    assert (ran.code, [event.agent for event in ran.all(AgentPaused)]) == (3, ["main_b2"])
    assert ran_steps(room).count("END.sh 1") == 0, "it waits for main_b2"


# Limits


@pytest.mark.slow
def test_a_limit_of_time_stops_the_run_in_its_sleep_and_a_higher_one_goes_on(room: Room) -> None:
    ran = room.command({"START.sh": "echo '<goto after=\"1h\">END</goto>'", "END.sh": END}, "--max-time", "200ms")
    assert ran.code == 4
    assert ran.lines[-4] == "why:    max_time (200ms) was reached"
    assert re.fullmatch(r"next:   raymond resume r --max-time \d+s", ran.lines[-1]), "more than the machine took"
    assert room.resume().code == 4
    ran = room.resume("--max-time", "300ms")
    assert (ran.code, ran.lines[-4]) == (4, "why:    max_time (300ms) was reached")
    assert ran.all(RunStopped) == [
        RunStopped(kind="limit", limit="time", amount=0.2),
        RunStopped(kind="limit", limit="time", amount=0.2),
        RunStopped(kind="limit", limit="time", amount=0.3),
    ]
    room.raymond("resume", "r", "--agent", "main", "--goto", "END", "--max-time", "1h")
    assert ran.result == "end"


@pytest.mark.slow
def test_a_limit_reached_by_one_lets_the_others_end_their_steps(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork>SLOW</fork><goto>FAST</goto>'",
        "SLOW.sh": HELD,
        "FAST.sh": "while [ ! -e ran ]; do sleep 0.02; done; echo '<goto>END</goto>'",
        "END.sh": END,
    }
    with room.start("run", room.flow(files), "--id", "r", "--max-iterations", "2") as live:
        live.sees("stopping: max_iterations (2) was reached")
        assert live.process.poll() is None
        room.go()
        ran = live.wait()
    assert ran.code == 4
    assert {agent.id: agent.state for agent in ran.run.agents.values()} == {"main": "END.sh", "main_slow1": "END.sh"}
    assert ran_steps(room) == ["SLOW.sh 1"]


# Failures


@pytest.mark.slow
def test_a_run_goes_on_when_nobody_reads_what_it_says(room: Room) -> None:
    """Its stderr is a pipe whose reader is gone."""
    flow = room.flow({"START.sh": "echo '<print>x</print><goto>END</goto>'", "END.sh": END})
    reader, writer = os.pipe()
    os.close(reader)
    done = room.raymond("run", flow, "--id", "r", stderr=writer)
    os.close(writer)
    assert (done.returncode, done.stdout) == (0, "end\n")
