"""Steering a run from outside: `resume` with everything it can do, `stop` of one agent, `clean`."""

import json
import os
import shlex
import signal
import subprocess
import zipfile
from pathlib import Path

import pytest

from raymond.machine.events import (
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    BackendClosed,
    RequestTaken,
    StepInterrupted,
    StepStarted,
    WorkflowChanged,
)
from raymond.machine.limits import Limits
from raymond.machine.requests import Request
from raymond.store import inbox, journal, lock, program_cache, zips
from raymond.system import process_tree
from running import GO, Ran, Room, alive, until

DONE = {"START.sh": "echo '<result>done</result>'"}
ASKS = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>old $RAYMOND_INPUT</result>"'}
HELD = {"START.sh": f"touch started.$RAYMOND_WORKFLOW_ID; {GO}; echo '<result>done</result>'"}
TWO = {
    "START.sh": "echo '<fork>HELD</fork><fork>ASK</fork><wait>END</wait>'",
    "HELD.sh": f"touch started.$RAYMOND_AGENT_ID.$RAYMOND_ATTEMPT; {GO}; echo '<result>held</result>'",
    "ASK.sh": "echo '<ask next=\"TOLD\">Which?</ask>'",
    "TOLD.sh": 'echo "<result>told $RAYMOND_INPUT</result>"',
    "END.sh": 'echo "<result>all</result>"',
}
"""main waits for main_held1, which runs until `go`, and for main_ask2, which asks."""


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def pid_of(room: Room, id: str = "r") -> int:
    return int(json.loads(Path(room.project.run(id).driver).read_text())["pid"])


def background(room: Room, files: dict[str, str], started: str, id: str = "r") -> int:
    """A run in the background, once its script has made `started`; who drives it."""
    assert room.raymond("run", room.flow(files), "--id", id, "-d").returncode == 0
    until(lambda: (room.path / started).exists(), "the script")
    return pid_of(room, id)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the end of the driver")


def ran(room: Room, id: str = "r") -> Ran:
    return Ran(room, id, 0, "", "")


def bytes_of(room: Room, id: str = "r") -> bytes:
    return Path(room.project.run(id).journal).read_bytes()


def ended(room: Room, id: str = "r") -> Ran:
    """The run once nobody drives it any more."""
    room.nothing_runs()
    return ran(room, id)


# --- resume --all


@pytest.mark.slow
def test_all_takes_up_what_was_interrupted_and_nothing_else(room: Room) -> None:
    for id in ("killed1", "killed2"):
        kill(background(room, HELD, f"started.{id}", id))
    with room.start("run", room.flow(HELD), "--id", "paused") as live:
        until(lambda: (room.path / "started.paused").exists(), "the script")
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        live.signal(signal.SIGINT)
        assert live.wait("paused").code == 130
    room.drive(ASKS, id="asking")
    room.drive(DONE, id="done")
    driver = background(room, HELD, "started.driven", "driven")
    others = {id: bytes_of(room, id) for id in ("paused", "asking", "done")}
    before = {id: bytes_of(room, id) for id in ("killed1", "killed2")}
    budgets = "".join(f"{id}  interrupted  $0.00 of $10.00  {room.path}\n" for id in before)
    assert told(room.raymond("resume", "--all", "--dry-run")) == (0, "killed1\nkilled2\n", budgets)
    assert {id: bytes_of(room, id) for id in before} == before
    done = room.raymond("resume", "--all")
    logs = "".join(f"running in the background; log: {room.project.run(id).log}\n" for id in before)
    assert told(done) == (0, "killed1\nkilled2\n", f"{budgets}{logs}")
    assert pid_of(room, "driven") == driver
    room.go()
    assert [ended(room, id).result for id in ("killed1", "killed2", "driven")] == ["done"] * 3
    assert {id: bytes_of(room, id) for id in others} == others
    assert told(room.raymond("resume", "--all")) == (0, "", "")


TIMED = {
    "ask": 'echo \'<ask next="LATE" timeout="2s" timeout_next="LATE">well?</ask>\'',
    "wait": 'echo \'<fork>ASK</fork><wait timeout="2s" timeout_next="LATE">LATE</wait>\'',
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIMED)
def test_all_takes_up_what_would_have_gone_on_by_itself(room: Room, kind: str) -> None:
    asks = "echo '<ask next=\"LATE\">well?</ask>'"
    files = {"START.sh": TIMED[kind], "ASK.sh": asks, "LATE.sh": "echo '<result>late</result>'"}
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("asks: well?")
        live.signal(signal.SIGKILL)
        live.wait()
    assert room.raymond("list").stdout.splitlines()[2].split()[:2] == ["r", "interrupted"]
    assert told(room.raymond("resume", "--all", "--dry-run"))[:2] == (0, "r\n")
    room.raymond("resume", "--all")
    until(lambda: any(getattr(event, "timed_out", False) for event in ran(room).events), "the end of the time")


@pytest.mark.slow
def test_all_takes_up_what_was_ended_with_the_machine(room: Room) -> None:
    os.kill(background(room, HELD, "started.r"), signal.SIGTERM)
    room.nothing_runs()
    assert told(room.raymond("resume", "--all", "--dry-run"))[:2] == (0, "r\n")


@pytest.mark.slow
def test_all_goes_on_after_a_run_that_cannot_be_read(room: Room) -> None:
    for id in ("bad", "good"):
        kill(background(room, HELD, f"started.{id}", id))
    path = Path(room.project.run("bad").journal)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"damage\n", *lines[2:]]))
    done = room.raymond("resume", "--all", "--dry-run")
    assert (done.returncode, done.stdout) == (1, "good\n")
    assert str(path) in done.stderr
    assert "raymond doctor --repair bad" in done.stderr


# --- resume --cd


def test_a_run_is_not_moved_over_another_of_its_name(room: Room) -> None:
    beside = room.path.parent / "beside"
    beside.mkdir()
    other = Room(beside, HOME=room.environment["HOME"])
    for one in (room, other):
        one.drive(ASKS)
    before, kept = tree(room), (bytes_of(room), bytes_of(other))
    assert told(room.raymond("resume", "r", "--cd", str(other.path))) == (
        2,
        "",
        f"error: {other.path} has a run `r` of its own\nhint: remove one of them\n",
    )
    assert (tree(room), (bytes_of(room), bytes_of(other))) == (before, kept)


@pytest.mark.slow
def test_a_run_that_is_driven_is_not_moved(room: Room) -> None:
    elsewhere = room.path.parent / "elsewhere"
    elsewhere.mkdir()
    pid = background(room, HELD, "started.r")
    done = room.raymond("resume", "r", "--cd", str(elsewhere))
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, f"error: process {pid} drives r")
    room.go()
    assert ended(room).result == "done"
    assert room.project.ids() == ["r"]


# --- resume --latest


@pytest.mark.slow
def test_latest_goes_on_with_todays_files_and_without_it_nothing_changes(room: Room) -> None:
    for id in ("old", "new"):
        room.drive(ASKS, id=id)
        room.raymond("answer", id, "x", "--no-resume")
    room.flow({"END.sh": 'echo "<result>new $RAYMOND_INPUT</result>"'})
    assert room.raymond("resume", "old").stdout == "old x\n"
    done = room.raymond("resume", "new", "--latest")
    assert (done.returncode, done.stdout) == (0, "new x\n")
    [changed] = ran(room, "new").all(WorkflowChanged)
    kept = zips.read_snapshot(Path(room.project.run("new").source).read_bytes(), file="")
    assert (zips.digest(kept), kept["END.sh"][:18]) == (changed.source, b'echo "<result>new ')


GONE = {**TWO, "HELD.sh": "echo '<result>held</result>'"}


@pytest.mark.slow
def test_latest_is_refused_with_every_state_that_is_gone_and_nothing_is_written(room: Room) -> None:
    room.drive(GONE)
    flow = room.path.parent / "flow"
    for name in ("TOLD.sh", "END.sh"):
        (flow / name).unlink()
    (flow / "START.sh").write_text("echo '<fork>ASK</fork><wait>LAST</wait>'")
    (flow / "ASK.sh").write_text("echo '<ask next=\"AFTER\">Which?</ask>'")
    for name in ("AFTER.sh", "LAST.sh"):
        (flow / name).write_text('echo "<result>new $RAYMOND_INPUT</result>"')
    before, kept = bytes_of(room), tree(room)
    assert told(room.raymond("resume", "r", "--latest")) == (
        2,
        "",
        (
            "error: today's files have no END.sh, which main needs; TOLD.sh, which main_ask2 needs\n"
            "hint: --map END.sh=NEW for each, or `resume` without --latest\n"
        ),
    )
    assert room.raymond("resume", "r", "--latest", "--map", "END.sh=LAST.sh").stderr == (
        "error: today's files have no TOLD.sh, which main_ask2 needs\n"
        "hint: --map TOLD.sh=NEW for each, or `resume` without --latest\n"
    )
    assert (bytes_of(room), tree(room)) == (before, kept)
    done = room.raymond("resume", "r", "--latest", "--map", "END=LAST", "--map", "TOLD.sh=AFTER.sh")
    assert done.returncode == 3
    [changed] = ran(room).all(WorkflowChanged)
    assert changed.renamed == {"END.sh": "LAST.sh", "TOLD.sh": "AFTER.sh"}
    room.raymond("answer", "r", "x", "--no-resume")
    done = room.raymond("resume", "r")
    assert (done.returncode, ran(room).run.outcomes["main_ask2"].result) == (0, "new x")
    assert done.stdout.startswith('new [{"agent":"main_held1"')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--map", "END"), "error: `END` is not OLD=NEW\nhint: --map OLD.md=NEW.md"),
        (
            ("--map", "END=NOWHERE"),
            "error: --map END=NOWHERE: there is no state `NOWHERE`\nhint: the states are: END.sh, START.sh",
        ),
        (
            ("--map", "OTHER=START"),
            "error: --map OTHER: no agent needs a state of that name\nhint: needed: START.sh, END.sh",
        ),
    ],
    ids=["no new name", "no such state", "nobody needs it"],
)
def test_a_map_that_leads_nowhere_is_refused_and_nothing_is_written(
    room: Room, flags: tuple[str, ...], error: str
) -> None:
    room.drive(ASKS)
    before = bytes_of(room)
    done = room.raymond("resume", "r", "--latest", *flags)
    assert (done.returncode, done.stdout, bytes_of(room)) == (2, "", before)
    assert done.stderr == f"{error}\n"


@pytest.mark.slow
def test_latest_with_files_that_are_wrong_is_refused_and_nothing_is_written(room: Room) -> None:
    room.drive(ASKS)
    before = bytes_of(room)
    room.flow({"NEW.md": "---\nbackend: telepathy\n---\n"})
    done = room.raymond("resume", "r", "--latest")
    assert (done.returncode, done.stdout, bytes_of(room)) == (5, "", before)
    assert done.stderr.startswith("error: there is no backend `telepathy` for NEW.md\n")
    room.flow({"NEW.md": "", "END.sh": "# /// raymond\n# max_vists: 1\n# ///\necho '<result>end</result>'"})
    done = room.raymond("resume", "r", "--latest")
    assert (done.returncode, done.stdout, bytes_of(room)) == (6, "", before)
    assert done.stderr.startswith("error: there is no key `max_vists`\n --> ../flow/END.sh:2:3\n")


@pytest.mark.slow
def test_latest_lets_a_person_send_an_agent_to_a_state_that_is_new(room: Room) -> None:
    room.drive(ASKS)
    room.flow({"NEW.sh": "echo '<result>new</result>'"})
    assert room.raymond("resume", "r", "--latest", "--agent", "main", "--goto", "NEW").stdout == "new\n"


@pytest.mark.slow
def test_latest_does_not_look_at_files_that_the_run_cannot_come_to(room: Room) -> None:
    room.drive(
        {
            **ASKS,
            "END.sh": "echo '<result>end</result>' # see PLAN.md",
            "PLAN.md": "- [ ] all of it",
            "replies.yaml": "",
        }
    )
    done = room.raymond("resume", "r", "--latest", "--strict", "--agent", "main", "--goto", "END", "-q")
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert "PLAN.md" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("told", ["goto", "needed"])
def test_latest_looks_at_states_that_only_the_run_leads_to(room: Room, told: str) -> None:
    room.drive({**ASKS, "PLAN.md": "- [ ] all of it"})
    room.flow({"START.sh": DONE["START.sh"], "END.sh": "echo '<goto>PLAN</goto>'"} if told == "needed" else {})
    moved = ("--agent", "main", "--goto", "PLAN") if told == "goto" else ()
    done = room.raymond("resume", "r", "--latest", "--strict", *moved)
    assert done.returncode == 6
    assert done.stderr.startswith("error: PLAN.md does not tell the agent how to end its answer\n")


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"workflow.yaml": "name: thing"}], ids=["unnamed", "named"])
def test_latest_of_a_run_of_one_file_takes_that_file_again(room: Room, settings: dict[str, str]) -> None:
    flow = room.flow({"ONE.sh": ASKS["START.sh"], "END.sh": ASKS["END.sh"], **settings})
    assert room.raymond("run", f"{flow}/ONE.sh", "--id", "r").returncode == 3
    room.flow({"END.sh": "echo '<result>new</result>'"})
    done = room.raymond("resume", "r", "--latest", "--agent", "main", "--goto", "END")
    assert (done.returncode, done.stdout) == (0, "new\n")


@pytest.mark.slow
def test_latest_of_a_run_of_a_zip_takes_the_zip_as_it_is_now(room: Room) -> None:
    def pack(end: str) -> None:
        with zipfile.ZipFile(room.path / "flow.zip", "w") as made:
            made.writestr("START.sh", ASKS["START.sh"])
            made.writestr("END.sh", end)

    pack(ASKS["END.sh"])
    assert room.raymond("run", "flow.zip", "--id", "r").returncode == 3
    pack("echo '<result>new</result>'")
    assert room.raymond("resume", "r", "--latest", "--agent", "main", "--goto", "END").stdout == "new\n"


@pytest.mark.slow
def test_latest_of_a_run_that_is_driven_is_refused(room: Room) -> None:
    pid = background(room, TWO, "started.main_held1.1")
    until(lambda: ran(room).run.statuses.get("asking"), "the question")
    before = bytes_of(room)
    done = room.raymond("resume", "r", "--latest", "--agent", "main_ask2", "--goto", "TOLD")
    assert (done.returncode, bytes_of(room)) == (1, before)
    assert done.stderr.startswith(f"error: process {pid} drives r\n")
    assert list(Path(room.project.run("r").inbox).glob("*")) == []


# --- resume --agent


MOVES = {
    "goto": (("--goto", "END", "--input", "there"), 0, "old there\n"),
    "goto without an input": (("--goto", "END.sh"), 0, "old \n"),
    "result": (("--result", "given"), 0, "given\n"),
    "an empty result": (("--result", ""), 0, "\n"),
    "give up": (("--give-up",), 1, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "code", "out"), MOVES.values(), ids=MOVES)
def test_a_person_decides_for_an_agent_and_the_run_goes_on(
    room: Room, flags: tuple[str, ...], code: int, out: str
) -> None:
    room.drive(ASKS)
    done = room.raymond("resume", "r", "--agent", "main", *flags)
    assert (done.returncode, done.stdout) == (code, out)


@pytest.mark.slow
def test_an_input_or_result_can_come_from_a_file_or_from_stdin(room: Room) -> None:
    (room.path / "in.txt").write_text("from a file")
    room.drive(ASKS, id="a")
    flags = ("--agent", "main", "--goto", "END", "--input", "@in.txt")
    assert room.raymond("resume", "a", *flags).stdout == "old from a file\n"
    room.drive(ASKS, id="b")
    done = room.raymond("resume", "b", "--agent", "main", "--result", "-", stdin=None, input="from stdin")
    assert done.stdout == "from stdin\n"


@pytest.mark.slow
def test_an_agent_that_was_denied_a_tool_tries_again_with_it_as_status_says(room: Room) -> None:
    """The tool is allowed before the agent tries again, also when another process drives the run."""
    room.drive(
        {
            "START.md": "---\non_denied: pause\n---\nDo it. <result>what you did</result>\n",
            "replies.yaml": "START:\n- - {text: 'No. <result>no</result>', denied: ['Bash(make)']}\n  - <result>ok</result>",
        },
        backend="scripted",
    )
    lines = room.raymond("status", "r").stdout.splitlines()
    command = "raymond resume r --agent main --retry --allow-tool 'Bash(make)'"
    assert f"      next:  {command}" in lines
    assert lines[-1] == "next: raymond resume r --allow-tool 'Bash(make)'"
    assert room.raymond(*shlex.split(command)[1:]).stdout == "ok\n"
    asked = [event.kind for event in ran(room).all(RequestTaken)]
    assert asked == ["limits", "retry"]


@pytest.mark.slow
def test_retry_lets_an_agent_that_failed_try_again(room: Room) -> None:
    room.drive({"START.sh": "test -e fixed && echo '<result>ok</result>'"})
    (room.path / "fixed").touch()
    assert room.raymond("resume", "r", "--agent", "main", "--retry").stdout == "ok\n"
    assert len(ran(room).all(AgentRetried)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--retry"], ["--retry", "--fresh"], ["--give-up"]], ids=" ".join)
def test_what_is_asked_of_one_agent_concerns_no_other(room: Room, flags: list[str]) -> None:
    room.drive(
        {"START.sh": "echo '<fork>BAD</fork><fork>BAD</fork><wait>END</wait>'", "BAD.sh": "exit 1", "END.sh": ""}
    )
    room.raymond("resume", "r", "--agent", "main_bad1", *flags)
    assert {one.agent for one in ran(room).all(AgentRetried)} <= {"main_bad1"}


@pytest.mark.slow
def test_an_agent_that_was_given_up_is_not_tried_again_by_a_resume(room: Room) -> None:
    room.drive(ASKS)
    room.raymond("resume", "r", "--agent", "main", "--give-up")
    [failed] = ran(room).all(AgentFailed)
    assert (failed.kind, failed.error) == ("given up", "given up by a command"), "not typed on a terminal"
    assert room.raymond("resume", "r").returncode == 1
    assert ran(room).all(AgentRetried) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "what", "answer"),
    [
        (("--goto", "TOLD", "--input", "you"), AgentMoved, "told you"),
        (("--result", "given"), AgentEnded, "given"),
        (("--give-up",), AgentFailed, None),
    ],
    ids=["goto", "result", "give up"],
)
def test_a_run_that_is_driven_gets_the_request_and_takes_it(
    room: Room, flags: tuple[str, ...], what: type[AgentMoved | AgentEnded | AgentFailed], answer: str | None
) -> None:
    pid = background(room, TWO, "started.main_held1.1")
    until(lambda: ran(room).run.statuses.get("asking"), "the question")
    done = room.raymond("resume", "r", "--agent", "main_ask2", *flags)
    assert told(done) == (0, "", f"r received the request (process {pid})\n")
    until(lambda: [one for one in ran(room).all(what) if one.agent == "main_ask2"], "the move")
    assert pid_of(room) == pid
    room.go()
    after = ended(room)
    assert (after.result, after.run.outcomes["main_ask2"].result or None) == ("all", answer)


@pytest.mark.slow
def test_new_limits_reach_whoever_drives_the_run(room: Room) -> None:
    pid = background(room, TWO, "started.main_held1.1")
    assert told(room.raymond("resume", "r", "--budget", "7", "--max-iterations", "50", "--max-time", "2h")) == (
        0,
        "",
        f"r received the request (process {pid})\n",
    )
    until(
        lambda: ran(room).run.limits == Limits(7.0, 50, 0, 7200.0),
        "the limits",
    )


WRONG = {
    "goto of nobody": (("r", "--goto", "END"), "--goto needs an agent\nhint: --agent main"),
    "an empty result of nobody": (("r", "--result", ""), "--result needs an agent\nhint: --agent main"),
    "retry of nobody": (("r", "--retry"), "--retry needs an agent\nhint: --agent main"),
    "giving up nobody": (("r", "--give-up"), "--give-up needs an agent\nhint: --agent main"),
    "nothing to do": (("r", "--agent", "main"), "--agent needs one of --goto, --result, --retry, --give-up"),
    "two things to do": (
        ("r", "--agent", "main", "--retry", "--result", "x"),
        "--agent needs one of --goto, --result, --retry, --give-up",
    ),
    "an input for nothing": (
        ("r", "--input", "x"),
        "--input goes with --goto\nhint: raymond resume ID --agent main --goto STATE --input TEXT",
    ),
    "an input with a result": (
        ("r", "--agent", "main", "--result", "x", "--input", "y"),
        "--input goes with --goto\nhint: raymond resume ID --agent main --goto STATE --input TEXT",
    ),
    "all and one": (("r", "--all"), "--all is for every run, not for one\nhint: raymond resume --all"),
    "all and an agent": (
        ("--all", "--agent", "main", "--retry"),
        "--all is for every run, not for one\nhint: raymond resume --all",
    ),
    "all and latest": (("--all", "--latest"), "--all is for every run, not for one\nhint: raymond resume --all"),
    "all and a limit": (("--all", "--budget", "5"), "--all is for every run, not for one\nhint: raymond resume --all"),
    "a dry run of one": (("r", "--dry-run"), "--dry-run goes with --all\nhint: raymond resume --all --dry-run"),
    "a map without latest": (
        ("r", "--map", "A=B"),
        "--map goes with --latest\nhint: raymond resume ID --latest --map OLD=NEW",
    ),
    "nobody of that name": (
        ("r", "--agent", "mian", "--retry"),
        "there is no agent mian left in r\nhint: its agents: main",
    ),
    "no such state": (
        ("r", "--agent", "main", "--goto", "EDN"),
        "there is no state `EDN`\nhint: did you mean `END.sh`?",
    ),
    "an empty state": (("r", "--agent", "main", "--goto", ""), None),
    "not failed": (("r", "--agent", "main", "--retry"), "main is asking, not failed or paused"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("args", "error"), WRONG.values(), ids=WRONG)
def test_flags_that_make_no_sense_together_are_refused_and_nothing_is_written(
    room: Room, args: tuple[str, ...], error: str | None
) -> None:
    room.drive(ASKS)
    before = bytes_of(room)
    done = room.raymond("resume", *args)
    assert (done.returncode, done.stdout, bytes_of(room)) == (2, "", before)
    if error:
        assert done.stderr == f"error: {error}\n"


# --- stop --agent


@pytest.mark.slow
def test_an_agent_that_runs_is_stopped_while_the_others_go_on_and_resume_runs_it_again(room: Room) -> None:
    files = {**TWO, "ASK.sh": f"touch other; {GO}; echo '<result>other</result>'"}
    pid = background(room, files, "started.main_held1.1")
    assert told(room.raymond("stop", "r", "--agent", "main_held1")) == (
        0,
        "",
        f"r received the request (process {pid})\n",
    )
    until(lambda: ran(room).all(AgentPaused), "the pause")
    assert [one.agent for one in ran(room).all(StepInterrupted)] == ["main_held1"]
    assert ran(room).run.agents["main_ask2"].status == "running"
    assert alive(pid)
    room.go()
    left = ended(room)
    assert left.run.agents["main_held1"].status == "paused"
    assert left.run.outcomes["main_ask2"].result == "other"
    assert room.raymond("resume", "r").stdout == "all\n"
    assert (room.path / "started.main_held1.2").exists()
    assert ran(room).run.outcomes["main_held1"].result == "held"


@pytest.mark.slow
def test_the_turn_of_an_agent_that_is_stopped_is_ended(room: Room) -> None:
    files = {"START.md": "", "replies.yaml": "START: {silent: true}"}
    with room.start("run", room.flow(files), "--id", "r", "--backend", "scripted-program") as live:
        until(lambda: any("testing/fake_claude.py" in one for one in room.processes().values()), "the turn")
        assert room.raymond("stop", "r", "--agent", "main").returncode == 0
        after = live.wait()
        room.nothing_runs()
    assert (after.code, after.run.agents["main"].status, len(after.all(StepInterrupted))) == (3, "paused", 1)


@pytest.mark.slow
def test_an_agent_that_sleeps_is_stopped_and_sleeps_on_until_somebody_moves_it(room: Room) -> None:
    files = {"START.sh": "echo '<goto after=\"1h\">END</goto>'", "END.sh": "echo '<result>done</result>'"}
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("sleeps until")
        done = room.raymond("stop", "r", "--agent", "main")
        assert told(done) == (0, "", f"r received the request (process {live.pid})\n")
        after = live.wait()
    assert (after.code, after.run.agents["main"].status) == (3, "paused")
    assert "main paused: paused by a person" in after.lines
    with room.start("resume", "r") as live:
        live.sees("tries again")
        live.signal(signal.SIGTERM)
        slept = live.wait()
    assert slept.run.agents["main"].status == "sleeping"
    assert room.raymond("resume", "r", "--agent", "main", "--goto", "END").stdout == "done\n"


@pytest.mark.slow
def test_an_agent_of_a_run_nobody_drives_is_stopped_at_once(room: Room) -> None:
    files = {"START.sh": "echo '<goto after=\"1h\">END</goto>'", "END.sh": "echo '<result>done</result>'"}
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("sleeps until")
        live.signal(signal.SIGINT)
        assert live.wait().code == 130
    done = room.raymond("stop", "r", "--agent", "main")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "main of r is paused; to continue: raymond resume r")
    assert ran(room).run.agents["main"].status == "paused"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("main", "main is asking: there is nothing to pause"),
        ("mian", "there is no agent mian left in r"),
        ("main_done1", "there is no agent main_done1 left in r"),
    ],
)
def test_an_agent_that_starts_nothing_or_is_gone_cannot_be_stopped(room: Room, agent: str, error: str) -> None:
    files = {**ASKS, "1_START.sh": "echo '<fork>DONE</fork><goto>ASK</goto>'", "ASK.sh": ASKS["START.sh"]}
    files["DONE.sh"] = DONE["START.sh"]
    room.drive({name: text for name, text in files.items() if name != "START.sh"})
    before = bytes_of(room)
    done = room.raymond("stop", "r", "--agent", agent)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", f"error: {error}")
    assert bytes_of(room) == before


@pytest.mark.slow
def test_a_request_outlives_the_driver_it_was_left_for_and_the_next_one_takes_it(room: Room) -> None:
    pid = background(room, HELD, "started.r")
    os.kill(pid, signal.SIGSTOP)
    hangs = f"if it hangs: kill -9 {pid}, then the same command again"
    said = room.raymond("stop", "r", "--agent", "main").stderr
    assert said == f"waiting for process {pid}, which runs r; {hangs}\n"
    kill(pid)
    inbox = Path(room.project.run("r").inbox)
    [left] = inbox.iterdir()
    assert json.loads(left.read_text())["kind"] == "pause"
    room.go()
    assert room.raymond("resume", "r").returncode == 3
    [taken] = ran(room).all(RequestTaken)
    assert (taken.request, taken.kind, taken.problem) == (left.stem, "pause", "")
    assert [event.agent for event in ran(room).all(AgentPaused)] == ["main"]
    assert list(inbox.iterdir()) == []
    assert room.raymond("resume", "r").stdout == "done\n"


def orphaned_pause(room: Room, agent: str, files: dict[str, str], started: str) -> Path:
    """The file of a pause that was left for a driver, which was killed before it could look."""
    pid = background(room, files, started)
    os.kill(pid, signal.SIGSTOP)
    path = inbox.leave(room.project.run("r").inbox, Request(id="left", kind="pause", agent=agent))
    kill(pid)
    return Path(path)


@pytest.mark.slow
def test_an_agent_that_was_moved_is_not_paused_by_what_was_left_before(room: Room) -> None:
    left = orphaned_pause(room, "main", {**HELD, "END.sh": "echo '<result>moved</result>'"}, "started.r")
    done = room.raymond("resume", "r", "--agent", "main", "--goto", "END")
    assert (done.returncode, done.stdout) == (0, "moved\n")
    assert "pause refused: too late: main was moved first" in done.stderr
    assert not left.exists()
    taken = [(event.kind, event.problem) for event in ran(room).all(RequestTaken)]
    assert taken == [("pause", "too late: main was moved first"), ("move", "")]


@pytest.mark.slow
def test_a_run_that_was_stopped_resumes_every_agent_whatever_pause_was_left_before(room: Room) -> None:
    left = orphaned_pause(room, "main", HELD, "started.r")
    assert room.raymond("stop", "r").returncode == 0
    assert not left.exists()
    room.go()
    done = room.raymond("resume", "r")
    assert (done.returncode, done.stdout, ran(room).all(AgentPaused)) == (0, "done\n", [])


@pytest.mark.slow
def test_what_is_refused_leaves_a_pause_that_was_left_where_it_is(room: Room) -> None:
    left = orphaned_pause(room, "main", HELD, "started.r")
    before = bytes_of(room)
    assert room.raymond("resume", "r", "--agent", "main", "--goto", "NOWHERE").returncode == 2
    assert (left.exists(), bytes_of(room)) == (True, before)


@pytest.mark.slow
def test_a_pause_that_is_asked_for_again_after_its_driver_was_killed_is_kept(room: Room) -> None:
    left = orphaned_pause(room, "main", HELD, "started.r")
    before = bytes_of(room)
    kept = "the pause of main was left for a driver that died and waits for the next one"
    assert told(room.raymond("stop", "r", "--agent", "main")) == (
        0,
        "",
        f"r is not running: {kept}; to continue: raymond resume r\n",
    )
    assert (bytes_of(room), [*left.parent.iterdir()]) == (before, [left])
    said = room.raymond("status", "r").stdout.splitlines()
    assert said[-2:] == [
        "left: the pause of main was left for a driver that died; the next one obeys it",
        "next: raymond resume r",
    ]
    room.go()
    assert room.raymond("resume", "r").returncode == 3
    assert "left:" not in room.raymond("status", "r").stdout


@pytest.mark.slow
def test_an_agent_whose_driver_was_killed_is_not_said_to_be_paused(room: Room) -> None:
    kill(background(room, HELD, "started.r"))
    before = bytes_of(room)
    assert told(room.raymond("stop", "r", "--agent", "main")) == (
        2,
        "",
        "error: r is not running: main was interrupted\nhint: raymond resume r runs it again\n",
    )
    assert bytes_of(room) == before


@pytest.mark.slow
def test_an_agent_whose_driver_was_killed_can_be_moved_without_doing_its_step_again(room: Room) -> None:
    files = {**HELD, "END.sh": 'echo "<result>moved $RAYMOND_INPUT</result>"'}
    kill(background(room, files, "started.r"))
    done = room.raymond("resume", "r", "--agent", "main", "--goto", "END", "--input", "here")
    assert (done.returncode, done.stdout) == (0, "moved here\n")
    assert "main step 1 interrupted" in done.stderr
    story = ran(room)
    assert [event.step for event in story.all(StepStarted)] == [1, 2]
    assert [event.state for event in story.all(AgentMoved)] == ["END.sh"]
    assert [event.step for event in story.all(StepInterrupted)] == [1]


@pytest.mark.slow
def test_a_limit_is_not_waited_out_when_a_person_says_now(room: Room) -> None:
    files = {
        "START.md": "Go.",
        "replies.yaml": "START: [[{fail: limit, retry_after: 1h}, {text: <result>at last</result>}]]",
    }
    assert room.raymond("run", room.flow(files), "--id", "r", "-d").returncode == 0
    until(lambda: bool(ran(room).all(BackendClosed)), "the limit")
    assert room.raymond("stop", "r").returncode == 0
    assert room.raymond("wait", "r").returncode == 3
    done = room.raymond("resume", "r", "--now")
    assert (done.returncode, done.stdout) == (0, "at last\n")
    assert "scripted is tried again" in done.stderr


# --- clean


def tree(room: Room) -> set[str]:
    """Every path in the project and in the home, except what bash is remembered to have said about scripts."""
    found = (path for top in (room.path, room.home) for path in top.rglob("*"))
    return {str(path) for path in found if path.name != program_cache.VERDICTS_FILE}


def hours_later(room: Room) -> dict[str, str]:
    """The environment of a command whose clock is two hours ahead."""
    folder = room.path.parent / "clock"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text("import time\nnow = time.time\ntime.time = lambda: now() + 7200\n")
    return {"PYTHONPATH": str(folder)}


LONG = {"START.py": "print('<result>' + 'long ' * 5000 + '</result>')"}


@pytest.mark.slow
def test_clean_removes_everything_of_a_run_that_ended_and_nothing_of_another(room: Room) -> None:
    room.raymond("run", room.flow(DONE, "kept"), "--id", "kept", "--input", "x" * 20_000)
    prompt = {"START.md": "{{task_folder}}", "replies.yaml": "START: <result>ok</result>"}
    flow = room.flow(prompt, "other")
    room.raymond("run", flow, "--id", "first")
    room.raymond("clean", "first")
    before = tree(room)
    room.raymond("run", flow, "--id", "old", "--input", "y" * 20_000, "--debug")
    room.raymond("run", flow, "--id", "old2", "-d")
    room.nothing_runs()
    names = {Path(path).name for path in tree(room) - before}
    assert {"blobs", "debug", "log", "old.json", "old2.json", "sessions", "source.zip", "transcripts"} <= names
    assert told(room.raymond("clean", "old", "old2")) == (0, "old\nold2\n", "2 runs removed\n")
    assert tree(room) - before == {str(room.path / ".raymond" / "debug")}
    assert before <= tree(room)
    assert room.raymond("status", "kept").returncode == 0


@pytest.mark.slow
def test_what_another_run_still_needs_stays(room: Room) -> None:
    for id in ("one", "two"):
        room.raymond("run", room.flow(LONG), "--id", id, "--input", "x" * 20_000)
    [source], [work] = (list(Path(folder).iterdir()) for folder in (room.project.home.sources, room.project.home.work))
    later = hours_later(room)
    assert told(room.raymond("clean", "one", environment=later)) == (0, "one\n", "1 run removed\n")
    assert room.raymond("resume", "two").stdout == "long " * 5000 + "\n"
    assert room.raymond("clean", "--keep", "0s").stderr == "1 run removed (keep: 0s)\n"
    assert source.exists(), "a run that is just starting may be about to need it"
    assert work.exists()
    gone = f"{source}\n{work}\n"
    said = "0 runs removed, and 2 things that no run needs (keep: 30d)\n"
    assert told(room.raymond("clean", "--dry-run", environment=later)) == (
        0,
        gone,
        said.replace("removed", "would be removed"),
    )
    assert told(room.raymond("clean", environment=later)) == (0, gone, said)
    assert not source.exists()
    assert not work.exists()


def test_a_dry_run_of_clean_says_what_would_go_and_removes_nothing(room: Room) -> None:
    room.drive(DONE, id="a")
    before = tree(room)
    assert told(room.raymond("clean", "--keep", "0s", "--dry-run")) == (0, "a\n", "1 run would be removed (keep: 0s)\n")
    assert tree(room) == before


@pytest.mark.slow
def test_clean_keeps_what_ended_lately_and_the_time_can_be_set(room: Room) -> None:
    room.drive(DONE, id="a")
    assert told(room.raymond("clean")) == (0, "", "0 runs removed (keep: 30d)\n")
    room.settings('keep = "1h"')
    assert told(room.raymond("clean")) == (0, "", "0 runs removed (keep: 1h)\n")
    assert room.raymond("clean", environment={"RAYMOND_KEEP": "0s"}).stdout == "a\n"


@pytest.mark.slow
def test_a_run_that_is_not_finished_is_never_removed(room: Room) -> None:
    room.drive(ASKS, id="asking")
    kill(background(room, HELD, "started.killed", "killed"))
    background(room, HELD, "started.driven", "driven")
    assert told(room.raymond("clean", "--keep", "0s")) == (0, "", "0 runs removed (keep: 0s)\n")
    for id in ("asking", "killed", "driven"):
        assert told(room.raymond("clean", id)) == (
            2,
            "",
            f"error: {id} is not finished\nhint: raymond cancel {id} ends it for good; raymond clean --force {id} ends and removes it\n",
        )
    assert sorted(room.project.ids()) == ["asking", "driven", "killed"]
    room.go()
    assert room.raymond("resume", "killed").stdout == "done\n"


@pytest.mark.slow
def test_a_damaged_journal_is_left_alone_with_all_it_needs(room: Room) -> None:
    room.raymond("run", room.flow(LONG), "--id", "bad", "--input", "x" * 20_000)
    path = Path(room.project.run("bad").journal)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"damage\n", *lines[2:]]))
    with pytest.raises(Exception, match="damage"):
        journal.read(room.project.run("bad"))
    before = tree(room)
    assert told(room.raymond("clean", "--keep", "0s")) == (0, "", "0 runs removed (keep: 0s)\n")
    assert room.raymond("clean", "bad").returncode == 1
    assert tree(room) == before


def knocks(pid: int) -> bool:
    """Whether a command has connected to something."""
    return any(path.startswith("socket:") for path in process_tree.open_files(pid).values())


@pytest.mark.slow
def test_of_two_answers_at_once_the_second_is_told_that_it_came_too_late(room: Room) -> None:
    """Both wait for a driver that does not look for a while; each command says what became of its own."""
    files = {
        "START.sh": "echo '<fork>HOLD</fork><fork>ASK</fork><wait>END</wait>'",
        "ASK.sh": "echo '<ask next=\"GOT\">which?</ask>'",
        "GOT.sh": 'echo "<result>$RAYMOND_INPUT</result>"',
        "HOLD.sh": "touch held; while [ ! -e go ]; do sleep 0.02; done; echo '<result></result>'",
        "END.sh": "echo '<result>done</result>'",
    }
    with room.start("run", room.flow(files), "--id", "r") as live:
        live.sees("asks: which?")
        until(lambda: lock.signed(room.project.run("r")).socket, "a driver that takes requests")
        live.signal(signal.SIGSTOP)
        commands = [room.popen("answer", "r", "main_ask2", text, "--no-resume") for text in ("one", "two")]
        until(lambda: all(knocks(command.pid) for command in commands), "both answers")
        live.signal(signal.SIGCONT)
        codes = sorted(command.wait() for command in commands)
        (room.path / "go").touch()
        live.wait()
    assert codes == [0, 2]
