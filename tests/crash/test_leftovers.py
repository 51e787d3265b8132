"""What steps leave running stays while the run is driven and after its driver was killed, and is ended with it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import hopping as hopper
from crash import runs
from crash.torture import ID, Place, alive, end, pids, told, until
from raymond.machine.events import Fact, LeftoversEnded, RunEnded, RunStopped, StepInterrupted
from raymond.machine.requests import Request
from raymond.store import inbox, journal, lock
from raymond.store.leftovers import Leftovers
from raymond.store.lock import ForeignHolder
from raymond.system import cgroup, process_tree, processes
from raymond.system.processes import start_time

Kind = TypeVar("Kind", bound=Fact)
SERVER = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > server; echo '<goto>USE.sh</goto>'"
"""A script that leaves a server running."""
USE = "echo x >> uses; if [ ! -e open ]; then cat gate; fi; grep -q sleep /proc/$(cat server)/cmdline && echo '<result>it lives</result>'"
"""A script that waits at a gate, then looks for the server, which is no zombie."""


class Scene(Place):
    """A run whose first step leaves something running, and whose second one waits at a gate."""

    def reach(self, server: str = SERVER, use: str = USE, *options: str) -> None:
        """Start the run; it is at the gate."""
        os.mkfifo(self.room / "gate")
        flow = runs.workflow(self.room.parent / "flow", START_sh=server, USE_sh=use)
        self.command = self.start("run", str(flow), "--id", ID, *options)
        until(lambda: (self.room / "uses").exists() or self.command.ended, "the second step")

    def pid(self, name: str = "server") -> int:
        return int((self.room / name).read_text())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    (made.room / "stop").touch()
    for name in ("server", "bare"):
        if (made.room / name).exists() and b"sleep" in told(made.pid(name), "cmdline"):
            end(made.pid(name))


@pytest.mark.slow
def test_what_a_finished_step_left_running_is_there_after_a_crash(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "it lives\n"), done.err
    assert not alive(scene.pid())
    assert not scene.marked()


@pytest.mark.slow
def test_a_step_that_a_repair_has_lost_is_ended_before_it_runs_again(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    lost = [pid for pid in scene.marked() if pid != scene.pid()]
    path = Path(scene.project.run(ID).journal)
    path.write_text(
        path.read_text().replace('"StepStarted","agent":"main","step":2', '"StepStarted","agent":"main","step":3')
    )
    assert scene.start("doctor", "--repair", ID).wait().code == 0

    resumed = scene.resume()
    until(lambda: len((scene.room / "uses").read_text()) == 4, "the second time")
    assert lost
    assert not any(map(alive, lost))
    (scene.room / "gate").write_text("")
    done = resumed.wait()

    assert (done.code, done.out) == (0, "it lives\n"), done.err


@pytest.mark.slow
def test_stop_now_ends_the_steps_of_a_dead_driver(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    assert len(scene.marked()) >= 2

    done = scene.start("stop", ID, "--now").wait()

    assert done.code == 0, done.err
    assert "r is stopped; to continue: raymond resume r\nended: 3 processes\n" in done.err
    assert not scene.marked()
    assert [event.count for event in events(scene, LeftoversEnded)] == [3]
    assert "still running" not in scene.start("status", ID).wait().out
    (cut,) = events(scene, StepInterrupted)
    assert (cut.agent, cut.step) == ("main", 2)
    run = journal.read(scene.project.run(ID)).run
    assert (run.stop and run.stop.kind, runs.running(run)) == ("stop", [])


@pytest.mark.slow
def test_stop_says_what_still_runs_of_a_dead_driver(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()

    done = scene.start("stop", ID).wait()

    assert done.code == 0
    assert "still there, although the run is not running:\n" in done.err
    assert f"  {scene.pid()}  main  sleep 1000\n" in done.err
    assert f"  {scene.pid()}  main  sleep 1000\n" in scene.start("status", ID).wait().out
    assert done.err.endswith("to end them: raymond stop r --now\n")
    assert alive(scene.pid())
    assert not events(scene, StepInterrupted), "the next driver says what became of it"


@pytest.mark.slow
@pytest.mark.parametrize("server", ["", "env -i"], ids=["marked", "bare"])
def test_a_driver_that_leaves_says_what_it_ended(scene: Scene, server: str) -> None:
    """It leaves for a question that nobody is there to answer."""
    ask = "echo x >> uses; echo '<ask next=\"USE.sh\">well?</ask>'"
    scene.reach(SERVER.replace("sleep", f"{server} sleep"), ask)

    done = scene.command.wait()

    assert not alive(scene.pid())
    assert [event.count for event in events(scene, LeftoversEnded)] == [1]
    assert "1 process that steps had left running was ended\n" in done.err
    assert "  1 process that steps had left running was ended\n" in scene.start("status", ID).wait().out


BARE = "setsid env -i sleep 1000 > /dev/null 2>&1 & echo $! > server; echo '<goto>USE.sh</goto>'"
"""A script that leaves a process running that has no environment, so no mark."""


def bare(scene: Scene, pid: int) -> int:
    """The driver has noted the process, and is killed."""
    until(lambda: f"{pid} 0 " in noted(scene), "the note")
    scene.command.kill()
    return pid


def noted(scene: Scene) -> str:
    path = Path(scene.project.run(ID).noted)
    return path.read_text() if path.exists() else ""


@pytest.mark.slow
def test_stop_now_ends_what_carries_no_mark(scene: Scene) -> None:
    scene.reach(BARE)
    pid = bare(scene, scene.pid())
    assert pid not in scene.marked()

    assert scene.start("stop", ID, "--now").wait().code == 0

    assert not alive(pid)
    assert not noted(scene)


@pytest.mark.slow
def test_with_allow_start_only_what_carries_a_mark_is_ended(scene: Scene) -> None:
    """A run that a step has started must outlive this one, and cannot be told from other processes."""
    scene.reach(SERVER, "env -i setsid sleep 999 & echo $! > bare; echo x >> uses; cat gate", "--allow-start")
    scene.command.kill()

    assert scene.start("stop", ID, "--now").wait().code == 0

    assert not scene.marked()
    assert alive(scene.pid("bare"))


@pytest.mark.slow
def test_what_carries_no_mark_stays_for_later_steps_and_ends_with_the_next_driver(scene: Scene) -> None:
    scene.reach(BARE)
    pid = bare(scene, scene.pid())
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "it lives\n"), done.err
    assert not alive(pid)
    assert not noted(scene)


@pytest.mark.slow
def test_a_step_that_was_cut_off_takes_along_what_it_has_started_without_a_mark(scene: Scene) -> None:
    """The process that has the mark is gone: only the note of the driver tells whose step it was."""
    use = "echo x >> uses; [ -e open ] && echo '<result>done</result>' && exit; env -i setsid sleep 999 & echo $! > bare; exec env -i cat gate"
    scene.reach(SERVER, use)
    until(lambda: len([line for line in noted(scene).splitlines() if line.split()[1] == "2"]) == 1, "the note")
    scene.command.kill()
    pid = scene.pid("bare")
    assert alive(pid)
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "done\n"), done.err
    assert not alive(pid)


@pytest.mark.slow
def test_what_only_the_step_that_was_cut_off_can_have_started_does_not_run_beside_it(scene: Scene) -> None:
    """A server without a mark, in a session of its own, whose parent has ended: it would keep its port."""
    use = "echo x >> uses; [ -e open ] && echo '<result>done</result>' && exit; "
    use += "sleep 0.02; setsid -f env -i sh -c 'echo $$ > bare; exec sleep 999' > /dev/null 2>&1; cat gate"
    scene.reach(SERVER, use)
    until(
        lambda: (
            (scene.room / "bare").exists()
            and (scene.room / "bare").read_text()
            and f"{scene.pid('bare')} 2 " in noted(scene)
        ),
        "the note",
    )
    scene.command.kill()
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "done\n"), done.err
    assert not alive(scene.pid("bare"))
    assert alive(scene.pid()) is False, "the driver has left"
    assert [event.count for event in events(scene, LeftoversEnded)] == [1], "the server of the first step, at the end"


@pytest.mark.slow
def test_a_later_process_with_the_number_of_one_that_was_noted_is_left_alone(scene: Scene) -> None:
    scene.reach(BARE)
    pid = bare(scene, scene.pid())
    path = Path(scene.project.run(ID).noted)
    began = start_time(pid)
    path.write_text(noted(scene).replace(f" {began} ", f" {int(began) - 1} ") + f"{pid} 0")
    assert scene.start("stop", ID, "--now").wait().code == 0
    assert alive(pid)
    end(pid)


HIDING = "(setsid env -i sh -c 'echo $$ > bare; exec sleep 1000' > /dev/null 2>&1 &)"
"""It has no mark, left the session of its step, and its parent has ended."""
needs_cgroup = pytest.mark.skipif(not cgroup.delegated(), reason="no cgroup is delegated to this process")


def enclosed(scene: Scene) -> str:
    """The driver is in a cgroup of its own, with what it has started; the folder of that."""
    needle, pid = f"/raymond-{ID}-".encode(), scene.command.process.pid
    until(lambda: all(needle in told(one, "cgroup") for one in (pid, *scene.marked())), "the cgroup")
    (line,) = Path(scene.project.run(ID).cgroups).read_text().splitlines()
    return line.split()[2]


def hidden(scene: Scene) -> tuple[int, str]:
    """The running step starts such a process, which the driver has no time to note; the process, and its cgroup."""
    scene.reach(SERVER, f"echo x >> uses; if [ ! -e open ]; then cat gate; {HIDING}; cat gate; fi; {LOOK}")
    path = enclosed(scene)
    os.kill(scene.command.process.pid, signal.SIGSTOP)
    (scene.room / "gate").write_text("")
    until(lambda: (scene.room / "bare").exists() and (scene.room / "bare").read_text().endswith("\n"), "the process")
    until(lambda: process_tree.line(scene.pid("bare"))[1].pid == scene.command.process.pid, "its new parent")
    scene.command.kill()
    return scene.pid("bare"), path


LOOK = """state() { grep -q sleep /proc/$(cat $1)/cmdline && echo lives || echo gone; }
echo "<result>server $(state server), bare $(state bare)</result>\""""


@needs_cgroup
@pytest.mark.slow
def test_stop_now_ends_what_only_its_cgroup_tells_of(scene: Scene) -> None:
    pid, path = hidden(scene)
    named = scene.start("stop", ID).wait().err
    assert f"  {pid}  " in named

    assert scene.start("stop", ID, "--now").wait().code == 0

    assert not alive(pid)
    assert not os.path.exists(path)
    assert not os.path.exists(scene.project.run(ID).cgroups)


@needs_cgroup
@pytest.mark.slow
def test_what_a_cut_off_step_has_just_started_ends_before_it_runs_again_and_what_was_there_stays(scene: Scene) -> None:
    pid, path = hidden(scene)
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "server lives, bare gone\n"), done.err
    assert not alive(pid)
    assert not os.path.exists(path)
    assert not os.path.exists(scene.project.run(ID).cgroups)


@needs_cgroup
@pytest.mark.slow
def test_what_began_before_the_step_that_was_cut_off_stays_until_the_driver_leaves(scene: Scene) -> None:
    """The step that has started it was finished, but the driver had no time to note it."""
    server = f"echo x >> starts; cat gate; {HIDING.replace('bare', 'server')}; until [ -s server ]; do :; done; echo '<goto>USE.sh</goto>'"
    os.mkfifo(scene.room / "gate")
    flow = runs.workflow(scene.room.parent / "flow", START_sh=server, USE_sh=USE)
    scene.command = scene.start("run", str(flow), "--id", ID)
    enclosed(scene)
    (scene.room / "gate").write_text("")
    until(lambda: (scene.room / "uses").exists(), "the second step")
    scene.command.kill()
    Path(scene.project.run(ID).noted).unlink(missing_ok=True)
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "it lives\n"), done.err
    assert not alive(scene.pid())


@needs_cgroup
@pytest.mark.slow
def test_what_comes_from_a_step_that_goes_on_is_known(scene: Scene) -> None:
    """A program may write over its environment, and lose its mark."""
    pid, _ = hidden(scene)
    left = Leftovers(scene.project.run(ID), journal.read(scene.project.run(ID)).run.start)

    left.end_unknown(0.0, [pid])
    assert alive(pid)
    left.end_unknown(0.0, [])
    assert not alive(pid)
    assert alive(scene.pid()), "it has a mark"


@needs_cgroup
@pytest.mark.slow
def test_a_driver_that_leaves_removes_its_cgroup(scene: Scene) -> None:
    scene.reach()
    path = enclosed(scene)
    assert {scene.command.process.pid, scene.pid()} <= set(cgroup.members(path)), "what it had started, too"
    (scene.room / "gate").write_text("")

    assert scene.command.wait().code == 0

    assert not os.path.exists(path)
    assert not os.path.exists(scene.project.run(ID).cgroups)


NO_OTHER_REASON = (
    "from raymond.drivers import local; local._ENCLOSED_AFTER = 1e9; from raymond.__main__ import main; main()"
)
"""What starts a command whose run gets no cgroup only because it takes its time."""


@needs_cgroup
@pytest.mark.slow
def test_a_run_gets_its_cgroup_when_a_step_lets_go_of_a_process(scene: Scene) -> None:
    os.mkfifo(scene.room / "gate")
    flow = runs.workflow(scene.room.parent / "flow", START_sh=SERVER, USE_sh=USE)
    scene.command = scene.start("run", str(flow), "--id", ID, code=NO_OTHER_REASON)
    until(lambda: (scene.room / "uses").exists(), "the second step")
    path = enclosed(scene)
    assert scene.pid() in cgroup.members(path)
    (scene.room / "gate").write_text("")
    assert scene.command.wait().code == 0


def hopping(scene: Scene, gap: float = 0.0005, script: str = hopper.HOPPER) -> str:
    """Lines that start a process without a mark which keeps starting itself anew, and wait until it does."""
    argv = shlex.join(["env", "-i", *hopper.command(scene.room / "stop", gap, script)])
    return f"({argv} > /dev/null 2>&1 &); until [ -e stop.hops ]; do sleep 0.02; done"


@needs_cgroup
@pytest.mark.slow
def test_what_keeps_starting_itself_anew_does_not_outlive_a_driver_that_leaves_for_a_question(scene: Scene) -> None:
    """It would come from no step any more, and could answer."""
    ask = f"echo x >> uses; cat gate; {hopping(scene)}; echo '<ask next=\"USE.sh\">well?</ask>'"
    scene.reach(SERVER, ask)
    path = enclosed(scene)
    (scene.room / "gate").write_text("")

    assert scene.command.wait().code == 3

    assert not os.path.exists(path), "one that is not empty cannot be removed"


@pytest.mark.slow
@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_a_line_that_grows_at_its_end_does_not_outlive_such_a_driver_either(scene: Scene) -> None:
    line = hopping(scene, 0.002, hopper.LINE)
    scene.reach(SERVER, f"{line}; echo x >> uses; echo '<ask next=\"USE.sh\">well?</ask>'")

    done = scene.command.wait()

    assert done.code == 3, done.err
    assert "could not be ended" not in done.err
    assert not [pid for pid in pids() if str(scene.room / "stop").encode() in told(pid, "cmdline")]


@needs_cgroup
@pytest.mark.slow
def test_stop_now_ends_what_keeps_starting_itself_anew(scene: Scene) -> None:
    scene.reach(SERVER, f"echo x >> uses; cat gate; {hopping(scene)}; cat gate")
    path = enclosed(scene)
    (scene.room / "gate").write_text("")
    until(lambda: hopper.has_hopped(scene.room / "stop"), "the process")
    scene.command.kill()

    done = scene.start("stop", ID, "--now").wait()

    assert "cannot be ended" not in done.err
    assert not os.path.exists(path)


@needs_cgroup
@pytest.mark.slow
def test_what_a_notification_starts_is_no_step(scene: Scene) -> None:
    start, ask = "cat gate; echo '<fork next=\"USE.sh\">ASK.sh</fork>'", "echo '<ask next=\"USE.sh\">well?</ask>'"
    os.mkfifo(scene.room / "gate")
    flow = runs.workflow(scene.room.parent / "flow", START_sh=start, USE_sh="cat gate", ASK_sh=ask)
    scene.command = scene.start(
        "run", str(flow), "--id", ID, "--notify", f"cd {scene.room}; {HIDING.replace('env -i ', '')}"
    )
    enclosed(scene)
    (scene.room / "gate").write_text("")
    until(lambda: (scene.room / "bare").exists() and (scene.room / "bare").read_text().endswith("\n"), "the person's")
    scene.command.kill()

    assert scene.start("stop", ID, "--now").wait().code == 0

    assert alive(scene.pid("bare"))


@needs_cgroup
@pytest.mark.slow
def test_with_allow_start_a_run_has_no_cgroup(scene: Scene) -> None:
    scene.reach(SERVER, USE, "--allow-start")
    until(lambda: Path(scene.project.run(ID).socket).exists(), "the moment in which it would be made")
    (scene.room / "gate").write_text("")
    assert b"/raymond-" not in told(scene.command.process.pid, "cgroup")
    assert scene.command.wait().code == 0
    assert not os.path.exists(scene.project.run(ID).cgroups)


REPLY = """
START.md: {text: "<result>thought</result>", cost: 0.25, tokens: {in: 7, out: 3}, writes: {gate: "through"}}
"""


def at_the_gate(scene: Scene) -> int:
    """A paid turn waits at the gate, and its driver is dead; the pid of its program."""
    os.mkfifo(scene.room / "gate")
    flow = runs.workflow(scene.room.parent / "flow", START_md="Think.", replies=REPLY)
    command = scene.start("run", str(flow), "--id", ID, "--backend", "scripted-program")
    spool = Path(scene.project.run(ID).spool, "1.1")
    until(lambda: scene.programs() and (spool / "pid").exists() and (spool / "out").read_bytes(), "the turn")
    command.kill()
    return int((spool / "pid").read_text().split()[0])


@pytest.mark.slow
def test_stop_now_counts_what_a_turn_has_cost(scene: Scene) -> None:
    pid = at_the_gate(scene)
    assert scene.start("stop", ID, "--now").wait().code == 0
    assert not alive(pid)
    (cut,) = events(scene, StepInterrupted)
    assert (cut.step, cut.cost, cut.estimated) == (1, 0.5, True)
    assert journal.read(scene.project.run(ID)).run.cost == 0.5


@pytest.mark.slow
def test_stop_now_leaves_a_result_for_the_next_driver(scene: Scene) -> None:
    pid = at_the_gate(scene)
    (scene.room / "gate").read_bytes()
    until(lambda: not alive(pid), "the end of the program")
    assert scene.start("stop", ID, "--now").wait().code == 0
    assert not events(scene, StepInterrupted)

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "thought\n"), done.err
    assert journal.read(scene.project.run(ID)).run.cost == 0.25


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["scripted", "scripted-program"])
def test_stop_now_leaves_a_reply_that_is_only_in_its_session(scene: Scene, backend: str) -> None:
    """The driver was killed after the reply and before it could write it down."""
    flow = runs.workflow(scene.room.parent / "flow", START_md="Think.", replies="START: <result>thought</result>")
    assert scene.start("run", str(flow), "--id", ID, "--backend", backend).wait().code == 0
    path = Path(scene.project.run(ID).journal)
    lines = path.read_bytes().splitlines(keepends=True)
    begun = next(at for at, line in enumerate(lines) if b"StepStarted" in line)
    path.write_bytes(b"".join(lines[: begun + 1]))
    for name in ("snapshot", "state.json"):
        (path.parent / name).unlink(missing_ok=True)

    assert scene.start("stop", ID, "--now").wait().code == 0

    assert not events(scene, StepInterrupted)
    assert scene.resume().wait().out == "thought\n"
    assert len(list(Path(scene.project.run(ID).sessions).glob("*.json"))) == 1


STUBBORN = """setsid bash -c 'trap "" TERM; echo $$ > server; exec sleep 600' > /dev/null 2>&1 &
until [ -s server ]; do sleep 0.01; done; echo '<result>done</result>'"""


def ended(scene: Scene) -> int:
    """A run that has ended, and whose driver was killed before it could end what was left running; that process."""
    flow = runs.workflow(scene.room.parent / "flow", START_sh=STUBBORN)
    command = scene.start("run", str(flow), "--id", ID)
    until(lambda: scene.lines() and events(scene, RunEnded), "the end")
    command.kill()
    os.makedirs(f"{scene.project.run(ID).spool}/1.1")
    assert alive(scene.pid())
    return scene.pid()


@pytest.mark.slow
def test_resume_of_a_run_that_has_ended_ends_what_is_left(scene: Scene) -> None:
    pid = ended(scene)
    lines = scene.lines()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "done\n")
    assert "r has ended: nothing to resume, but " in done.err
    told = scene.room / ".raymond" / "workflows" / "r.json"
    assert json.loads(told.read_text())["status"] == "completed", "what the killed driver had no time to write"
    assert not alive(pid)
    assert not os.path.exists(scene.project.run(ID).spool)
    assert scene.lines() == lines


@pytest.mark.slow
def test_clean_ends_what_is_left(scene: Scene) -> None:
    pid = ended(scene)
    done = scene.start("clean", ID).wait()
    assert done.code == 0, done.err
    assert not alive(pid)
    assert not scene.project.run(ID).exists


def events(scene: Scene, kind: type[Kind]) -> list[Kind]:
    found = (event for decision in journal.decisions(scene.project.run(ID)) for event in decision.events)
    return [event for event in found if isinstance(event, kind)]


@pytest.mark.slow
def test_stop_now_ends_what_is_left_of_a_run_that_has_ended(scene: Scene) -> None:
    pid = ended(scene)
    lines = scene.lines()
    named = scene.start("stop", ID).wait()
    assert named.code == 0
    assert named.err.startswith("r had ended already\nstill there, although the run is not running:\n")
    assert f"  {pid}  main  " in named.err
    done = scene.start("stop", ID, "--now").wait()
    assert (done.code, done.err) == (0, "r had ended already\nended: 1 process\n")
    assert not alive(pid)
    again = scene.start("stop", ID, "--now").wait()
    assert (again.code, again.err) == (2, "error: r has ended\nhint: `raymond logs r` shows what happened\n")
    assert scene.lines() == lines


@pytest.mark.slow
def test_cancel_ends_the_steps_of_a_dead_driver_and_the_run_for_good(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()

    done = scene.start("cancel", ID).wait()

    assert done.code == 0, done.err
    assert "r is cancelled; to remove it: raymond clean r\nended: 3 processes\n" in done.err
    assert not scene.marked()
    assert [one.step for one in events(scene, StepInterrupted)] == [2]
    lines = scene.lines()
    again = scene.resume().wait()
    assert again.code == 1
    assert again.err.startswith("r was cancelled: nothing to resume\ncancelled: r after ")
    assert scene.lines() == lines


@pytest.mark.slow
def test_cancel_counts_the_cost_of_a_result_that_nobody_will_take(scene: Scene) -> None:
    pid = at_the_gate(scene)
    (scene.room / "gate").read_bytes()
    until(lambda: not alive(pid), "the end of the program")
    assert scene.start("cancel", ID).wait().code == 0
    assert journal.read(scene.project.run(ID)).run.cost == 0.25


@pytest.mark.slow
def test_cancel_reaches_a_live_driver_which_ends_its_steps_and_leaves(scene: Scene) -> None:
    scene.reach()
    done = scene.start("cancel", ID).wait()
    assert done.code == 0, done.err
    left = scene.command.wait()
    assert left.code == 1
    assert "cancelled: r after " in left.err
    assert "why:    cancelled on request\n" in left.err
    assert not scene.marked()
    assert [one.kind for one in events(scene, RunStopped)] == ["cancelled"]


@pytest.mark.slow
def test_cancel_works_although_everything_else_is_gone(scene: Scene) -> None:
    """The workflow, its snapshot, the settings, and the long texts of the journal."""
    pid = at_the_gate(scene)
    folder = scene.project.run(ID)
    shutil.rmtree(scene.room.parent / "flow")
    for path in (Path(folder.path) / "source.zip", *Path(scene.project.home.path).glob("sources/*")):
        path.unlink(missing_ok=True)
    (scene.room / ".raymond" / "config.toml").write_text("this is not TOML")

    done = scene.start("cancel", ID).wait()

    assert done.code == 0, done.err
    assert not alive(pid)
    run = journal.read(folder).run
    assert (run.final_status, run.cost, runs.running(run)) == ("cancelled", 0.5, [])


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["--latest --agent main --retry", "--cd .", "--budget 5", "-d"])
def test_nothing_is_written_to_a_cancelled_run(scene: Scene, flags: str) -> None:
    scene.reach()
    scene.command.kill()
    assert scene.start("cancel", ID).wait().code == 0
    lines = scene.lines()
    done = scene.start("resume", ID, *flags.split()).wait()
    assert (done.code, done.err.splitlines()[0]) == (1, "r was cancelled: nothing to resume")
    assert scene.lines() == lines


@pytest.mark.slow
def test_a_cancel_that_is_found_in_the_inbox_ends_the_turn(scene: Scene) -> None:
    """Its driver could have no socket, and was killed before it looked."""
    scene.environment["RAYMOND_PORTABLE"] = "1"
    pid = at_the_gate(scene)
    inbox.leave(scene.project.run(ID).inbox, Request(id="c", kind="cancel"))

    scene.resume().wait()

    assert not alive(pid)
    run = journal.read(scene.project.run(ID)).run
    assert (run.final_status, run.outcomes) == ("cancelled", {})


@pytest.mark.slow
def test_a_run_of_another_machine_that_is_gone_can_be_cancelled(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    for pid in scene.marked():
        end(pid)
    driver = Path(scene.project.run(ID).driver)
    about = json.loads(driver.read_text())
    driver.write_text(json.dumps(about | {"host": "box-0f3c"}))
    refused = scene.start("cancel", ID).wait()
    assert refused.code == 2
    assert "box-0f3c" in refused.err
    assert scene.start("cancel", ID, "--force").wait().code == 0
    assert journal.read(scene.project.run(ID)).run.final_status == "cancelled"


SQUAT = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.set_inheritable(fd, True)
fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
os.execvp("sleep", ["sleep", "1000"])
"""
"""Waits until the lock of a run is free, and keeps it."""


def squatter(scene: Scene) -> int:
    """The process that holds the lock and does not drive the run; 0 when there is none."""
    found = lock.holder(scene.project.run(ID))
    return found.pid if isinstance(found, ForeignHolder) else 0


def squatted(scene: Scene, how: str = "") -> int:
    """A step has left a process that took the lock when the driver was killed; that process."""
    argv = shlex.join([*how.split(), sys.executable, "-c", SQUAT, scene.project.run(ID).journal])
    scene.reach(f"setsid {argv} > /dev/null 2>&1 & {SERVER.partition('& ')[2]}")
    if how:
        until(lambda: f"{scene.pid()} 0 " in noted(scene), "the note")
    scene.command.kill()
    assert until(lambda: squatter(scene), "the squatter") == scene.pid()
    return scene.pid()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["", "env -i"], ids=["marked", "bare"])
@pytest.mark.parametrize("command", ["stop r --now", "cancel r"])
def test_what_is_left_of_a_step_and_holds_the_lock_is_ended(scene: Scene, command: str, how: str) -> None:
    pid = squatted(scene, how)
    done = scene.start(*command.split()).wait()
    assert done.code == 0, done.err
    assert "ended: 3 processes\n" in done.err
    assert not alive(pid)


@pytest.mark.slow
@pytest.mark.parametrize("signs", [True, False])
def test_what_is_left_of_a_step_and_signs_as_the_driver_is_ended(scene: Scene, signs: bool) -> None:
    pid, driver = squatted(scene), Path(scene.project.run(ID).driver)
    about = {"pid": pid, "host": os.uname().nodename, "started": start_time(pid), "socket": ""}
    driver.write_text(json.dumps(about) if signs else "")
    done = scene.start("cancel", ID).wait()
    assert done.code == 0, done.err
    assert not alive(pid)


@pytest.mark.slow
def test_a_run_is_resumed_although_what_is_left_of_a_step_holds_the_lock(scene: Scene) -> None:
    pid = squatted(scene)
    (scene.room / "open").touch()
    done = scene.resume().wait()
    assert done.code == 1, done.err
    assert "drives r" not in done.err
    assert not alive(pid)


@pytest.mark.slow
def test_commands_that_end_nothing_name_what_holds_the_lock(scene: Scene) -> None:
    pid = squatted(scene)
    told = f"process {pid} (sleep 1000) holds the lock of r and does not drive it\n"
    stopped, cleaned, seen = (scene.start(name, ID).wait() for name in ("stop", "clean", "status"))
    assert (stopped.code, cleaned.code, seen.code) == (2, 2, 0)
    assert told in stopped.err
    assert told in cleaned.err
    assert told in seen.err
    assert seen.out.startswith("r: interrupted")
    assert alive(pid)


@pytest.mark.slow
def test_what_holds_the_lock_and_is_not_of_the_run_is_named_and_left_alone(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    with subprocess.Popen([sys.executable, "-c", SQUAT, scene.project.run(ID).journal]) as other:
        until(lambda: squatter(scene), "the squatter")
        ran = [scene.start(*one.split()).wait() for one in ("stop r --now", "cancel r", "resume r")]
        is_left = other.poll() is None and alive(scene.pid())
        other.kill()
    assert is_left
    for done in ran:
        assert done.code in (1, 2)
        assert f"error: process {other.pid} (" in done.err
        assert f"if not: kill {other.pid}\n" in done.err
