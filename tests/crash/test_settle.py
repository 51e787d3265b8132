"""What happens to a step whose driver died: taken from the spool, followed, recalled, or run again; in this order."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crash import runs, torture
from crash.torture import ID, Place, alive, end, until
from pace import mostly_slow
from raymond.machine.events import Decision, RunResumed, StepFailed, StepFinished, StepInterrupted, StepStarted
from raymond.machine.prompts import INTERRUPTED
from raymond.store import journal, transcripts
from raymond.system import processes

SLEEPER = "sleep 1000 > /dev/null 2>&1 & echo $! > sleeper; echo '<goto>THINK.md</goto>'"
"""A script that leaves a process running."""
REPLY = """
THINK.md: {text: "<result>thought</result>", cost: 0.25, tokens: {in: 7, out: 3}, writes: {gate: "through"}}
"""
"""`gate` is a pipe: the program waits there until the test opens the other end."""


class Scene(Place):
    """A run of one script and one prompt, whose program waits at a gate."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.flow = runs.workflow(folder / "flow", START_sh=SLEEPER, THINK_md="Think.", replies=REPLY)
        os.mkfifo(self.room / "gate")

        self.others: list[subprocess.Popen[bytes]] = []

    def begin(self) -> torture.Command:
        return self.start("run", str(self.flow), "--id", ID, "--backend", "scripted-program")

    def other(self, *argv: str, step: int = 0) -> "subprocess.Popen[bytes]":
        """Another process; one that a step started carries its mark."""
        mark = {"RAYMOND_STEP": f"{self.key()}/{step}"} if step else {}
        environment = {**os.environ, **mark}
        self.others.append(subprocess.Popen(argv, env=environment, start_new_session=True, stdout=subprocess.PIPE))
        return self.others[-1]

    def kill_driver(self) -> int:
        """Start the run, kill its driver when the program waits at the gate; the program's pid."""
        command = self.begin()
        try:
            until(lambda: self.programs() and self.spool("pid").exists() and self.spool("out").read_bytes(), "the turn")
        finally:
            command.kill()
        assert [type(event) for event in self.events(StepStarted, StepFinished)] == [
            *(StepStarted, StepFinished),
            StepStarted,
        ]
        return int(self.spool("pid").read_text().split()[0])

    def spool(self, name: str) -> Path:
        return Path(self.project.run(ID).spool, "2.1", name)

    def open_gate(self) -> None:
        """Let the program go on, and take what it writes."""
        fd = os.open(self.room / "gate", os.O_RDONLY | os.O_NONBLOCK)
        try:
            until(lambda: read(fd) == b"through", "the program at the gate")
        finally:
            os.close(fd)

    def decisions(self) -> list[Decision]:
        return journal.decisions(self.project.run(ID))

    def events(self, *types: type) -> list[Any]:
        found = [event for decision in self.decisions() for event in decision.events]
        return [event for event in found if isinstance(event, types)] if types else found

    def sent(self) -> list[str]:
        """What the turns were sent, as the transcript has it."""
        folder = self.project.run(ID).transcripts
        turns = self.events(StepFinished, StepInterrupted, StepFailed)
        sent = [transcripts.read_record(folder, "main", event.offset)[0] for event in turns if event.step > 1]
        return [str(record["sent"]) for record in sent]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    for other in scene.others:
        with other:
            other.kill()


@pytest.fixture(params=mostly_slow(["", "1"]), ids=["here", "portable"])
def anywhere(request: pytest.FixtureRequest, scene: Scene) -> Scene:
    """Also as it is where there are no pidfds and no /proc."""
    if request.param:
        scene.environment["RAYMOND_PORTABLE"] = request.param
    return scene


def read(fd: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(fd, 100)
    return b""


def finished_once(scene: Scene) -> None:
    """One turn was started, and its reply counts with what it cost."""
    assert [event.step for event in scene.events(StepStarted)] == [1, 2]
    assert not scene.events(StepInterrupted, StepFailed)
    (done,) = [event for event in scene.events(StepFinished) if event.step == 2]
    assert (done.cost, done.estimated, done.tokens_in, done.tokens_out) == (0.25, False, 7, 3)
    assert done.session == scene.events(StepStarted)[1].session
    assert scene.sent() == ["Think."], "the transcript is whole, whoever wrote it"
    assert not scene.marked()


@pytest.mark.slow
def test_a_result_in_the_spool_is_taken_and_paid_once(anywhere: Scene) -> None:
    pid = anywhere.kill_driver()
    anywhere.open_gate()
    until(lambda: not alive(pid), "the end of the program")
    shutil.rmtree(anywhere.project.run(ID).sessions)

    done = anywhere.resume().wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    finished_once(anywhere)
    assert not os.path.exists(anywhere.project.run(ID).sessions), "no program was started"


def hours_ago(scene: Scene, hours: float, *, clock: float = 0.0) -> None:
    """As if the program had been started, and silent since, that long ago, and the clock set since by `clock` hours."""
    pid, since = scene.spool("pid").read_text().splitlines()
    began, at = map(float, since.split())
    past = 3600 * hours
    scene.spool("pid").write_text(f"{pid}\n{began - past} {at - past - 3600 * clock}\n")
    written = scene.spool("out").stat().st_mtime - past - 3600 * clock
    os.utime(scene.spool("out"), (written, written))


@pytest.mark.slow
@pytest.mark.parametrize("line", ["9e99 0", "0 0", "nan nan", ""])
def test_a_turn_cannot_make_its_time_begin_anew(scene: Scene, line: str) -> None:
    """It writes into its own spool what the next driver reads there."""
    (scene.flow / "THINK.md").write_text("---\nmax_time: 3s\nretries: 0\n---\nThink.")
    scene.kill_driver()
    pid, _ = scene.spool("pid").read_text().splitlines()
    scene.spool("pid").write_text(f"{pid}\n{line}\n")
    until(lambda: processes.age(int(pid.split()[0]), -1.0) > 3.0, "the end of its time")

    done = scene.resume().wait()

    resumed, failed = (decision for decision in scene.decisions() if _has(decision, RunResumed, StepFailed))
    assert (done.code, scene.events(StepFailed)[0].kind) == (1, "time")
    assert failed.time - resumed.time < 3.0, "its time had passed before"


def _has(decision: Decision, *types: type) -> bool:
    return any(isinstance(event, types) for event in decision.events)


OVER = {"max_time": "time", "timeout": "silent"}


@pytest.mark.slow
@pytest.mark.parametrize("key", mostly_slow(list(OVER)))
def test_the_time_of_a_turn_goes_on_when_its_driver_dies(scene: Scene, key: str) -> None:
    """It hangs if the time begins anew: nobody opens the gate. Where there is /proc, a past is not made up so easily."""
    scene.environment["RAYMOND_PORTABLE"] = "1"
    (scene.flow / "THINK.md").write_text(f"---\n{key}: 5m\nretries: 0\n---\nThink.")
    scene.kill_driver()
    hours_ago(scene, 0.1)

    done = scene.resume().wait()

    assert done.code == 1, done.err
    (failed,) = scene.events(StepFailed)
    assert failed.kind == OVER[key]


@pytest.mark.parametrize(("hours", "clock"), [(0.5, 0.0), (0.5, 5.0), (0.5, -5.0)])
@pytest.mark.slow
def test_setting_the_clock_is_no_silence(scene: Scene, hours: float, clock: float) -> None:
    scene.environment["RAYMOND_PORTABLE"] = "1"
    (scene.flow / "THINK.md").write_text("---\ntimeout: 1h\nmax_time: 1h\n---\nThink.")
    scene.kill_driver()
    hours_ago(scene, hours, clock=clock)

    command = scene.resume()
    until(lambda: scene.events(RunResumed), "the next driver")
    scene.open_gate()

    assert command.wait().code == 0
    finished_once(scene)


@pytest.mark.slow
def test_a_last_line_without_its_end_is_taken_from_the_spool(scene: Scene) -> None:
    pid = scene.kill_driver()
    scene.open_gate()
    until(lambda: not alive(pid), "the end of the program")
    shutil.rmtree(scene.project.run(ID).sessions)
    scene.spool("out").write_bytes(scene.spool("out").read_bytes().removesuffix(b"\n"))

    assert scene.resume().wait().code == 0
    finished_once(scene)


@pytest.mark.slow
def test_a_program_that_lives_is_followed(anywhere: Scene) -> None:
    pid = anywhere.kill_driver()

    resumed = anywhere.resume()
    until(lambda: anywhere.events(RunResumed), "the second driver")
    anywhere.open_gate()
    done = resumed.wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    assert not alive(pid)
    finished_once(anywhere)


@pytest.mark.slow
def test_a_program_that_lives_is_followed_by_a_third_driver(scene: Scene) -> None:
    pid = scene.kill_driver()
    second = scene.resume()
    until(lambda: scene.events(RunResumed), "the second driver")
    second.kill()
    assert alive(pid)

    third = scene.resume()
    until(lambda: len(scene.events(RunResumed)) == 2, "the third driver")
    scene.open_gate()

    assert third.wait().code == 0
    finished_once(scene)


@pytest.mark.slow
def test_a_program_whose_pid_was_not_noted_is_found_by_its_mark(scene: Scene) -> None:
    pid = scene.kill_driver()
    scene.spool("pid").unlink()

    resumed = scene.resume()
    until(lambda: scene.events(RunResumed), "the second driver")
    assert alive(pid)
    scene.open_gate()

    assert resumed.wait().code == 0
    finished_once(scene)


@pytest.mark.slow
def test_without_a_spool_the_reply_is_recalled_from_the_session(scene: Scene) -> None:
    pid = scene.kill_driver()
    scene.open_gate()
    until(lambda: not alive(pid), "the end of the program")
    shutil.rmtree(scene.spool("").parent)

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    finished_once(scene)


@pytest.mark.slow
def test_when_all_is_lost_the_step_runs_again_and_both_costs_count(scene: Scene) -> None:
    end(scene.kill_driver())
    sleeper = int((scene.room / "sleeper").read_text())
    orphan = scene.other("sleep", "1000", step=2)
    bystander = scene.other("sleep", "1000")

    resumed = scene.resume()
    orphan.wait(torture.PATIENCE)
    until(lambda: len(scene.events(StepStarted)) == 3, "the second attempt")
    assert alive(sleeper), "what a finished step left running stays for later ones"
    scene.open_gate()
    done = resumed.wait()

    assert not alive(sleeper)
    assert bystander.poll() is None
    assert (done.code, done.out) == (0, "thought\n"), done.err
    first, second = scene.events(StepStarted)[1:]
    (cut,) = scene.events(StepInterrupted)
    assert (first.step, first.attempt, second.step, second.attempt) == (2, 1, 3, 2)
    assert first.session != second.session, "a retry never meets its own leftover"
    assert (cut.step, cut.cost, cut.estimated, cut.by_death) == (2, 0.5, True, True)
    run = journal.read(scene.project.run(ID)).run
    assert (run.cost, run.estimated) == (0.75, True)
    assert "cost:   $0.75* in 2 steps\n" in done.err
    assert scene.sent() == ["Think.", f"{INTERRUPTED}\n\nThink."]
    assert not scene.marked()


@pytest.mark.slow
def test_the_leftovers_are_gone_before_the_step_runs_again(scene: Scene) -> None:
    """One that does not end when it is asked to is ended all the same."""
    end(scene.kill_driver())
    orphan = scene.other("bash", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done", step=2)
    assert orphan.stdout
    orphan.stdout.readline()
    resumed = scene.resume()
    until(lambda: len(scene.events(StepStarted)) == 3, "the second attempt")
    assert not alive(orphan.pid)
    assert orphan.wait() == -signal.SIGKILL
    scene.open_gate()
    assert resumed.wait().code == 0


@pytest.mark.slow
def test_a_pid_that_another_process_has_now_is_left_alone(scene: Scene) -> None:
    end(scene.kill_driver())
    bystander = scene.other("sleep", "1000")
    scene.spool("pid").write_text(f"{bystander.pid} 12345")
    resumed = scene.resume()
    scene.open_gate()
    assert resumed.wait().code == 0
    assert bystander.poll() is None
    assert len(scene.events(StepInterrupted)) == 1


@pytest.mark.slow
def test_when_the_program_is_dead_the_step_runs_again(anywhere: Scene) -> None:
    end(anywhere.kill_driver())
    resumed = anywhere.resume()
    anywhere.open_gate()
    assert resumed.wait().code == 0
    assert [event.step for event in anywhere.events(StepStarted)] == [1, 2, 3]
    assert journal.read(anywhere.project.run(ID)).run.cost == 0.75


@pytest.mark.slow
def test_resume_restart_ends_a_live_turn(scene: Scene) -> None:
    pid = scene.kill_driver()

    resumed = scene.resume("--restart")
    until(lambda: not alive(pid), "the end of the first program")
    scene.open_gate()
    done = resumed.wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    assert [event.step for event in scene.events(StepStarted)] == [1, 2, 3]
    assert [(event.step, event.cost) for event in scene.events(StepInterrupted)] == [(2, 0.5)]
    assert journal.read(scene.project.run(ID)).run.cost == 0.75


@pytest.mark.slow
def test_resume_restart_takes_a_result_that_is_there(scene: Scene) -> None:
    pid = scene.kill_driver()
    scene.open_gate()
    until(lambda: not alive(pid), "the end of the program")

    assert scene.resume("--restart").wait().code == 0
    finished_once(scene)


@pytest.mark.slow
def test_a_program_killed_under_its_driver_is_an_attempt_that_failed(scene: Scene) -> None:
    command = scene.begin()
    until(lambda: scene.programs() and scene.spool("pid").exists() and scene.spool("out").read_bytes(), "the turn")
    end(int(scene.spool("pid").read_text().split()[0]))
    scene.open_gate()
    done = command.wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    (failed,) = scene.events(StepFailed)
    assert (failed.kind, failed.error, failed.cost, failed.again) == (
        *("crash", "the program ended with signal 9 without a result"),
        *(0.5, True),
    )
    assert journal.read(scene.project.run(ID)).run.cost == 0.75


@pytest.mark.slow
def test_a_script_whose_end_was_not_journaled_is_ended_and_runs_again_under_the_same_key(tmp_path: Path) -> None:
    place = Place(tmp_path)
    os.mkfifo(place.room / "gate")
    script = 'echo "$RAYMOND_ATTEMPT $RAYMOND_STEP_KEY $$" >> runs; [ $RAYMOND_ATTEMPT = 2 ] || cat gate; echo "<result>$RAYMOND_ATTEMPT</result>"'
    flow = runs.workflow(tmp_path / "flow", START_sh=script)
    command = place.start("run", str(flow), "--id", ID)
    until(lambda: (place.room / "runs").exists() and (place.room / "runs").read_text(), "the script")
    command.kill()
    pid = int((place.room / "runs").read_text().split()[2])
    assert alive(pid), "a script outlives its driver, for a while"

    done = place.resume().wait()

    assert (done.code, done.out) == (0, "2\n"), done.err
    assert not alive(pid)
    (first, second) = [line.split() for line in (place.room / "runs").read_text().splitlines()]
    assert (first[0], second[0]) == ("1", "2")
    assert first[1] == second[1]
    assert not place.marked()


@pytest.mark.slow
def test_a_second_resume_of_a_followed_turn_is_refused(scene: Scene) -> None:
    scene.kill_driver()
    second = scene.resume()
    until(lambda: scene.events(RunResumed), "the second driver")
    done = scene.resume().wait()
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: process {second.process.pid} drives r\n")
    scene.open_gate()
    assert second.wait().code == 0
    finished_once(scene)


SILENT = """#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv:
    print("2.1.325 (Claude Code)"); sys.exit()
sys.stdin.read()
def say(**event):
    print(json.dumps(event), flush=True)
def uses(*content, type="assistant"):
    say(type=type, message={"content": content})
for number in range(600):
    uses({"type": "text", "text": "x" * 200})
uses({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}})
open("gate").read()
uses({"type": "tool_result", "tool_use_id": "t"}, type="user")
say(type="result", subtype="success", is_error=False, result="<result>made</result>", total_cost_usd=0.25)
"""


@pytest.mark.slow
def test_a_tool_that_is_silent_is_known_before_its_turn_is_judged(scene: Scene) -> None:
    """What it said before is more than is read at once."""
    program = scene.room.parent / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(SILENT)
    program.chmod(0o755)
    scene.environment["PATH"] = f"{program.parent}:{scene.environment['PATH']}"
    (scene.flow / "THINK.md").write_text("---\ntimeout: 1s\ntool_timeout: 1h\nretries: 0\n---\nThink.")
    command = scene.start("run", str(scene.flow), "--id", ID, "--backend", "claude")
    out = scene.spool("out")
    until(lambda: out.exists() and b"tool_use" in out.read_bytes(), "the tool")
    command.kill()
    pid = int(scene.spool("pid").read_text().split()[0])
    until(lambda: processes.age(pid, -1.0) > 3.0, "its silence")

    resumed = scene.resume()
    until(lambda: scene.events(RunResumed), "the next driver")
    (scene.room / "gate").write_text("")

    done = resumed.wait()
    assert (done.code, done.out) == (0, "made\n"), done.err
    assert not scene.events(StepFailed, StepInterrupted)


@pytest.mark.slow
def test_a_recorded_reply_counts_although_its_prompt_would_be_another_now(scene: Scene) -> None:
    """The spool has what was sent; the workflow was changed meanwhile."""
    pid = scene.kill_driver()
    scene.open_gate()
    until(lambda: not alive(pid), "the end of the program")
    scene.spool("out").write_bytes(b"")
    (scene.flow / "THINK.md").write_text("Think of something else.")

    done = scene.start("resume", ID, "--latest").wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    assert [event.step for event in scene.events(StepStarted)] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["mkfifo {}", "mkdir {}", "ln -s /dev/zero {}"])
def test_what_lies_in_the_place_of_the_output_is_no_output(scene: Scene, what: str) -> None:
    scene.kill_driver()
    scene.spool("out").unlink()
    subprocess.run(what.format(scene.spool("out")), shell=True, check=True)
    resumed = scene.resume()
    until(lambda: scene.events(RunResumed), "the next driver")
    assert scene.start("stop", ID, "--now").wait().code == 0
    assert resumed.wait().code == 3
    assert not scene.marked()
