"""Starting a run as a person does: every flag of `run`, what it tells and to whom."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from raymond.machine.events import AgentRetried, LimitsChanged, RunStarted, StepFailed, StepStarted
from raymond.store import loader
from raymond.store.project import Project
from raymond.testing import fake_claude
from raymond.text import visible
from running import GO, Room, until

DONE = {"START.sh": "echo '<print>hello</print><result>done</result>'"}
ASKS = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>$RAYMOND_INPUT</result>"'}
FAILS = {"START.sh": "echo broken >&2; exit 3"}
PROMPT = {
    "START.md": "Do {{input}} as {{colour}}: <result>it</result>\n",
    "replies.yaml": "START: {text: <result>ok</result>, cost: 0.25}",
}


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def begun(room: Room) -> RunStarted:
    return next(event for event in room.events() if isinstance(event, RunStarted))


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode)[-3:] for path in folder.iterdir()}


# --- starting


@pytest.mark.slow
def test_with_cd_agents_work_there_and_their_project_is_found_from_there(room: Room) -> None:
    flow = room.flow({"START.sh": 'echo "<result>$(pwd)</result>"'})
    there = room.path.parent / "elsewhere" / "deep"
    there.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", there.parent], check=True)
    done = room.raymond("run", os.path.relpath(flow, room.path), "--cd", os.path.relpath(there, room.path), "--id", "r")
    assert (done.returncode, done.stdout) == (0, f"{there}\n")
    assert Project(room.project.home, str(there.parent)).ids() == ["r"]
    assert room.project.ids() == []
    assert os.listdir(there) == []


def test_no_folder_above_the_working_directory_is_taken_for_its_project(room: Room) -> None:
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "config.toml").write_text("budget = 1")
    deep = room.path / "deep"
    deep.mkdir()
    done = room.raymond("run", room.flow(DONE), "--id", "r", cwd=deep)
    assert (done.returncode, Project(room.project.home, str(deep)).ids(), room.project.ids()) == (0, ["r"], [])
    assert "budget $10.00 (default)" in done.stderr


@pytest.mark.slow
def test_with_cd_other_flags_name_files_where_the_command_was_typed(room: Room) -> None:
    flow = room.flow({"START.md": "{{input}}"})
    for name, text in (("in.txt", "the input"), ("replies.yaml", "START: <result>ok</result>")):
        (room.path / name).write_text(text)
    subprocess.run(["git", "init", "-q", room.path], check=True)
    (room.path / "there").mkdir()
    (room.path / "roots").mkdir()
    names = ("--input", "@in.txt", "--replies", "replies.yaml", "--log-file", "log.txt", "--root", "roots")
    done = room.raymond("run", flow, "--cd", "there", "--id", "r", *names)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert (begun(room).input, begun(room).roots) == ("the input", [str(room.path / "roots")])
    assert (room.path / "log.txt").exists()


@pytest.mark.slow
def test_a_directory_that_is_not_there_is_refused_and_nothing_is_written(room: Room) -> None:
    assert told(room.raymond("run", room.flow(DONE), "--cd", "nowhere")) == (
        2,
        "",
        "error: --cd nowhere: no such file or directory\nhint: name a directory that exists\n",
    )
    assert room.project.ids() == []


@pytest.mark.slow
def test_model_and_effort_reach_the_program_that_answers(room: Room) -> None:
    files = {"START.md": "", "OTHER.md": "---\nmodel: haiku\n---\n", "replies.yaml": "START: {silent: true}"}
    flags = ("--backend", "scripted-program", "--model", "opus", "--effort", "high")
    with room.start("run", room.flow(files), "--id", "r", *flags):
        typed = until(
            lambda: [one for one in room.processes().values() if "testing/fake_claude.py" in one], "the program"
        )
        assert " --model opus --effort high " in typed[0]
    assert (begun(room).model, begun(room).effort) == ("opus", "high")


@pytest.mark.slow
def test_a_timeout_stops_a_script_that_says_nothing(room: Room) -> None:
    ran = room.command({"START.sh": "exec sleep 600"}, "--timeout", "200ms")
    assert ran.code == 1
    [failed] = ran.all(StepFailed)
    assert (failed.kind, failed.error) == ("silent", "said nothing for 0.2s")
    room.nothing_runs()


@pytest.mark.slow
def test_max_parallel_says_how_many_steps_run_at_once(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork>A</fork><fork>A</fork><fork>A</fork><wait>END</wait>'",
        "A.sh": "mkdir one && rmdir one && echo '<result></result>'",
        "END.sh": 'echo "<result>$(echo $RAYMOND_RESULTS | grep -o \'"done"\' | wc -l)</result>"',
    }
    assert room.command(files, "--max-parallel", "1").out == "3\n"
    assert (begun(room).max_turns_at_once, begun(room).max_scripts_at_once) == (1, 1)


@pytest.mark.slow
def test_what_agents_may_do_unasked_stands_in_the_journal(room: Room) -> None:
    flags = ("--allow-tool", "Bash(make test)", "--allow-tool", "Read", "--permission-mode", "plan")
    room.command(DONE, *flags, "--dangerously-skip-permissions", "--var", "a=b", "--set", "START.retries=2")
    start = begun(room)
    assert (start.allowed_tools, start.permission_mode, start.skip_permissions) == (
        ["Bash(make test)", "Read"],
        "plan",
        True,
    )
    assert (start.metadata, start.overrides) == ({"a": "b"}, {"START": {"retries": 2}})


# --- --dry-run


@pytest.mark.slow
def test_a_dry_run_of_a_script_shows_the_command_and_starts_nothing(room: Room) -> None:
    flow = room.flow({"START.sh": "touch started", "workflow.yaml": "max_iterations: 60"})
    done = room.raymond("run", flow, "--dry-run", "--id", "r", "--var", "k=v", "--max-parallel", "2", "--budget", "5")
    digest = re.search(r"\((2 files), ([0-9a-f]{16})\)", done.stdout)
    assert digest, done.stdout
    sha = loader.load(flow).digest
    assert sha.startswith(digest[2])
    names = (
        "RAYMOND_AGENT_ID RAYMOND_ATTEMPT RAYMOND_HOME RAYMOND_INPUT RAYMOND_INPUT_FILE RAYMOND_OUT RAYMOND_RESULT RAYMOND_RUN_INPUT RAYMOND_STATE"
        " RAYMOND_STEP RAYMOND_STEP_KEY RAYMOND_TASK_FOLDER RAYMOND_VAR_k RAYMOND_VISIT RAYMOND_WORKFLOW_DIR"
        " RAYMOND_WORKFLOW_ID"
    )
    assert told(done) == (
        0,
        (
            f"run:      flow at START.sh, in {room.path}\n"
            f"workflow: {flow} (2 files, {digest[2]})\n"
            f"command:  bash {room.project.home.work}/{sha}/START.sh\n"
            f"gets:     {', '.join(names.split())}\n"
            "          and your environment, without other variables that begin with RAYMOND_\n"
            f"rights:   acceptEdits; directories: {room.path}\n"
            "budget:   $5.00 (--budget)\n"
            "steps:    60 (the workflow)\n"
            "time:     no limit (default)\n"
            "turns:    no limit (default)\n"
            "parallel: up to 2 turns of a backend, 2 scripts\n"
            "silence:  a step that prints nothing for 10m is ended\n"
            "nothing was started\n"
        ),
        "",
    )
    assert files_in(room.path) == files_in(room.home) == []


@pytest.mark.slow
def test_the_names_a_dry_run_shows_are_those_the_script_gets(room: Room) -> None:
    flow = room.flow({"START.sh": "echo \"<result>$(env | grep -o '^RAYMOND_[A-Za-z_]*' | sort)</result>\""})
    shown = re.search(r"^gets: +(.*)$", room.raymond("run", flow, "--dry-run", "--var", "k=v").stdout, re.MULTILINE)
    assert shown
    assert room.raymond("run", flow, "--var", "k=v").stdout.split() == shown[1].split(", ")


@pytest.mark.slow
def test_a_dry_run_of_a_prompt_shows_it_rendered(room: Room) -> None:
    flow = room.flow(PROMPT)
    flags = ("--input", "it", "--var", "colour=red", "--allow-tool", "Read", "--max-time", "2h", "--timeout", "90s")
    done = room.raymond("run", flow, "--dry-run", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r"[0-9a-f]{16}", "DIGEST", done.stdout) == (
        f"run:      flow at START.md, in {room.path}\n"
        f"workflow: {flow} (2 files, DIGEST)\n"
        "command:  scripted, in this process\n"
        "prompt:\n"
        "  Do it as red: <result>it</result>\n"
        "answers:  scripted replies (flow/replies.yaml)\n"
        f"rights:   acceptEdits; also allowed: Read; directories: {room.path}\n"
        "budget:   $10.00 (default)\n"
        "steps:    no limit (default)\n"
        "time:     2h (--max-time)\n"
        "turns:    no limit (default)\n"
        f"parallel: up to 4 turns of a backend, {2 * (os.cpu_count() or 1)} scripts\n"
        "silence:  a step that prints nothing for 1m 30s is ended\n"
        "nothing was started\n"
    )
    assert files_in(room.path) == files_in(room.home) == []


@pytest.mark.slow
@pytest.mark.slow
def test_a_dry_run_that_is_refused_shows_all_warnings_too(room: Room) -> None:
    files = {"START.md": "Go {{inptu}} <goto>NOWHERE</goto> or <result>x</result>\n"}
    done = room.raymond("run", room.flow(files), "--dry-run")
    assert done.returncode != 0
    assert "unbound-variable" in done.stderr
    assert "error: " in done.stderr
    alone = {"START.md": "Go {{inptu}} <result>x</result>\n"}
    done = room.raymond("run", room.flow(alone, "alone"), "--dry-run", "--backend", "codxe")
    assert done.returncode != 0
    assert "unbound-variable" in done.stderr, "also without the backend"
    assert "error: " in done.stderr


def test_a_dry_run_says_when_agents_may_do_anything(room: Room) -> None:
    done = room.raymond("run", room.flow(PROMPT), "--dry-run", "--dangerously-skip-permissions")
    assert "\nrights:   agents may do anything without asking (--dangerously-skip-permissions)\n" in done.stdout


def test_a_dry_run_opens_no_log(room: Room) -> None:
    assert room.raymond("run", room.flow(DONE), "--dry-run", "--log-file", "log.txt", "--debug").returncode == 0
    assert files_in(room.path) == files_in(room.home) == []


# --- --json and --quiet

KEYS = [
    "workflow_id",
    "status",
    "reason",
    "exit_code",
    "result",
    "results",
    "collected_failures",
    "failed",
    "asks",
    "questions",
    "labels",
    "cost_usd",
    "scripted_cost_usd",
    "cost_is_estimated",
    "denied",
    "iterations",
    "agents",
    "agents_failed",
    "workspace",
    "work",
    "started_at",
    "ended_at",
]
ENDED = [key for key in KEYS if key != "exit_code"]
TIMED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
OUTCOMES: dict[str, tuple[dict[str, str], tuple[str, ...], int, dict[str, Any]]] = {
    "completed": (
        PROMPT,
        (),
        0,
        {"result": "ok", "results": {"main": "ok"}, "scripted_cost_usd": 0.25, "iterations": 1},
    ),
    "failed": (
        FAILS,
        (),
        1,
        {
            "reason": "START.sh: ended with exit code 3: broken",
            "failed": {"main": "ended with exit code 3: broken"},
            "iterations": 1,
        },
    ),
    "waiting": (ASKS, (), 3, {"reason": "1 agent waits for an answer", "asks": {"main": "Which?"}, "iterations": 1}),
    "stopped": (
        {"START.sh": "echo '<goto>START</goto>'"},
        ("--max-iterations", "2"),
        4,
        {"reason": "max_iterations (2) was reached", "iterations": 2},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("status", OUTCOMES)
def test_with_json_one_document_stands_on_stdout_and_nothing_else(room: Room, status: str) -> None:
    files, flags, code, says = OUTCOMES[status]
    ran = room.command(files, "--json", *flags)
    found = json.loads(ran.out)
    assert (ran.code, ran.out.count("\n"), list(found)) == (code, 1, KEYS)
    usual: dict[str, Any] = {
        "reason": None,
        "result": None,
        "results": {},
        "failed": {},
        "asks": {},
        "cost_usd": 0.0,
        "agents": 1,
    }
    expected = {"workflow_id": "r", "status": status, "cost_is_estimated": False, **usual, **says}
    assert {key: found[key] for key in expected} == expected
    assert re.fullmatch(TIMED, found["started_at"])
    assert (found["ended_at"] is None) == (status == "waiting")


# --- resume: without the conversation, with more tools, with more turns

LOSES = {
    "START.md": "",
    "NEXT.md": "",
    "replies.yaml": "START: {text: <goto>NEXT</goto>, cost: 0.25}\nNEXT: [[{fail: session, error: gone}, <result>ok</result>]]",
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["scripted", "scripted-program"])
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "as it was"])
def test_who_failed_tries_again_without_its_conversation_when_told_so(room: Room, backend: str, fresh: bool) -> None:
    ran = room.command(LOSES, "--backend", backend)
    assert (ran.code, [event.kind for event in ran.all(StepFailed)]) == (1, ["session"])
    again = room.resume(*(["--fresh"] if fresh else []))
    first, second, third = again.all(StepStarted)
    assert (again.code, again.out, second.base) == (0, "ok\n", first.session)
    assert third.base == ("" if fresh else first.session)
    assert [event.fresh for event in again.all(AgentRetried)] == [fresh]


@pytest.mark.slow
def test_who_did_not_fail_keeps_its_conversation(room: Room) -> None:
    """--fresh is for those that try again; one whose driver was stopped between two steps is none of them."""
    room.command(
        {**LOSES, "replies.yaml": LOSES["replies.yaml"].replace("[[{fail: session, error: gone}, ", "[[")},
        "--max-turns",
        "1",
    )
    again = room.resume("--fresh", "--max-turns", "9")
    first, second = again.all(StepStarted)
    assert (again.code, second.base) == (0, first.session)


@pytest.mark.slow
def test_a_run_stops_after_its_turns_and_goes_on_with_more(room: Room) -> None:
    files = {"START.md": "", "SCRIPT.sh": "echo '<goto>END</goto>'", "END.md": ""}
    replies = {"replies.yaml": "START: <goto>SCRIPT</goto>\nEND: <result>ok</result>"}
    ran = room.command(files | replies, "--max-turns", "1")
    assert (ran.code, ran.lines[-1]) == (4, "next:   raymond resume r --max-turns 2")
    assert "why:    max_turns (1) was reached" in ran.lines
    # Scripts are none.
    again = room.resume("--max-turns", "2")
    assert (again.code, again.out, again.all(LimitsChanged)[-1].max_turns) == (0, "ok\n", 2)


@pytest.mark.slow
def test_no_turns_at_all_make_no_sense(room: Room) -> None:
    done = room.raymond("run", room.flow(DONE), "--max-turns", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`0` is not a whole number, 1 or more" in done.stderr


@pytest.mark.slow
def test_tools_that_are_allowed_later_stand_beside_those_of_the_start(room: Room) -> None:
    ran = room.command(LOSES, "--allow-tool", "Read")
    assert ran.run.rights.allowed == ("Read",)
    again = room.resume("--allow-tool", "WebFetch", "--allow-tool", "Bash(make:*)")
    assert (again.code, again.run.rights.allowed) == (0, ("Read", "WebFetch", "Bash(make:*)"))
    assert again.all(LimitsChanged)[-1].allowed_tools == ["WebFetch", "Bash(make:*)"]


@pytest.mark.slow
def test_a_tool_with_an_open_bracket_is_refused_at_the_start_and_later(room: Room) -> None:
    error = (
        "error: --allow-tool: `allow_tools` must be names of tools; `Bash(` is empty or lacks a bracket\n"
        'hint: allow_tools = ["Bash(npm test)"]\n'
    )
    room.command(LOSES, "--allow-tool", "Read")
    for args in (("run", room.flow(DONE)), ("resume", "r")):
        done = room.raymond(*args, "--allow-tool", "Bash(")
        assert (done.returncode, done.stdout, done.stderr) == (2, "", error)


# --- --log-file


@pytest.mark.slow
def test_a_log_file_gets_the_lines_of_every_driver_and_is_private(room: Room) -> None:
    log = room.path / "log.txt"
    log.write_text("before\n")
    ran = room.command(ASKS, "--log-file", "log.txt")
    assert log.read_text().splitlines() == ["before", *ran.err.splitlines()[:-5]]
    room.raymond("answer", "r", "this", "--no-resume")
    again = room.resume("--log-file", "log.txt")
    assert log.read_text().splitlines() == ["before", *ran.err.splitlines()[:-5], *again.err.splitlines()[:-4]]
    room.raymond("run", room.flow(DONE), "--log-file", "new.txt")
    assert oct((room.path / "new.txt").stat().st_mode)[-3:] == "600"


@pytest.mark.slow
def test_a_log_file_can_have_a_json_object_a_line(room: Room) -> None:
    room.command(DONE, "--log-file", "log.jsonl", "--log-format", "json")
    lines = [json.loads(line) for line in (room.path / "log.jsonl").read_text().splitlines()]
    assert [line["type"] for line in lines] == [
        "RunStarted",
        "AgentStarted",
        "StepStarted",
        "print",
        "StepFinished",
        "AgentEnded",
        "RunEnded",
    ]
    assert lines[3] == {"type": "print", "agent": "main", "text": "hello"}
    assert re.fullmatch(TIMED, lines[-1].pop("time"))
    assert lines[-1] == {"type": "RunEnded", "status": "completed", "seq": 4}


@pytest.mark.slow
@pytest.mark.parametrize("detached", [(), ("-d",)])
def test_a_log_file_that_cannot_be_opened_is_refused_before_anything_starts(
    room: Room, detached: tuple[str, ...]
) -> None:
    flags = ("--log-file", "nowhere/log.txt", *detached)
    hint = f"mkdir -p {room.path}/nowhere"
    error = (2, "", f"error: --log-file nowhere/log.txt: no such file or directory\nhint: {hint}\n")
    assert told(room.raymond("run", room.flow(DONE), *flags)) == error
    assert told(room.raymond("run", room.flow(DONE), *flags, "--dry-run")) == error
    assert files_in(room.path) == files_in(room.home) == []
    room.drive(ASKS)
    before = Path(room.project.run("r").journal).read_bytes()
    assert told(room.raymond("resume", "r", "--agent", "main", "--result", "x", *flags)) == error
    assert Path(room.project.run("r").journal).read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_that_cannot_be_written_any_more_does_not_cost_the_run(room: Room, form: str) -> None:
    ran = room.command(DONE, "--log-file", "/dev/full", "--log-format", form)
    assert (ran.code, ran.out) == (0, "done\n")
    assert ran.lines.count("/dev/full: no space left on device; nothing more is written there") == 1
    assert len(ran.lines) == 5 + 4 + 1


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_is_not_waited_for(room: Room) -> None:
    """Neither by whoever names it nor, later, by the process that continues the run."""
    os.mkfifo(room.path / "pipe")
    refused = (2, "", "error: --log-file pipe: nobody reads this pipe\nhint: start what reads it first\n")
    assert told(room.raymond("run", room.flow(DONE), "--log-file", "pipe")) == refused
    reader = os.open(room.path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert room.command(ASKS, "--log-file", "pipe").code == 3
    assert b"main asks" in os.read(reader, 4096)
    os.close(reader)
    done = room.raymond("answer", "r", "yes", "--attach")
    assert (done.returncode, done.stdout) == (0, "yes\n"), done.stderr
    said = f"--log-file {room.path}/pipe: nobody reads this pipe; nothing more is written there"
    assert said in done.stderr.splitlines()


READER = """
import os, select, sys
fd = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
print("ready", flush=True)
poll = select.poll()
poll.register(fd)
poll.poll()
os.set_blocking(fd, True)
while data := os.read(fd, 4096):
    sys.stdout.buffer.write(data)
"""
"""What `cat pipe` does, and says when it reads: it ends when nobody has the pipe open for writing any more."""


@pytest.mark.slow
@pytest.mark.parametrize("detached", [(), ("-d",)])
def test_whoever_reads_a_log_from_a_pipe_is_not_lost_before_the_run_begins(
    room: Room, detached: tuple[str, ...]
) -> None:
    os.mkfifo(room.path / "pipe")
    with subprocess.Popen([sys.executable, "-c", READER], cwd=room.path, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
        assert room.raymond("run", room.flow(DONE), "--log-file", "pipe", *detached).returncode == 0
        assert "completed" in reader.stdout.read().splitlines()[-1]


def test_a_disk_is_no_log_file(room: Room) -> None:
    """It cannot be appended to: what is on it would be written over."""
    try:
        os.mknod(room.path / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 255))
    except OSError:
        pytest.skip("a device cannot be made here: that takes root, and a system that lets it")
    refused = (2, "", "error: --log-file disk: a disk cannot be appended to\nhint: name a file that you can write to\n")
    assert told(room.raymond("run", room.flow(DONE), "--log-file", "disk")) == refused


# --- --debug

BOTH = {
    "START.sh": "echo '<fork>P</fork><wait>END</wait>'",
    "P.md": "Do it.",
    "END.sh": "echo '<result>done</result>'",
    "replies.yaml": "P: {text: <result>ok</result>, cost: 0.25, tools: [{name: Read, input: {file_path: x.py}}]}",
}


def debug_folders(room: Room) -> list[Path]:
    return sorted((room.path / ".raymond" / "debug").iterdir())


def transitions(folder: Path) -> str:
    """Its transitions.log, without the times."""
    return re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", (folder / "transitions.log").read_text())


@pytest.mark.slow
def test_debug_keeps_every_step_and_transition_as_files(room: Room) -> None:
    ran = room.command(BOTH, "--debug")
    [folder] = debug_folders(room)
    assert re.fullmatch(r"r_\d{8}_\d{6}", folder.name)
    assert files_in(folder) == ["main_END_002.json", "main_START_001.json", "main_p1_P_001.json", "transitions.log"]
    assert modes(folder) == {"600"}
    sent, ended = json.loads((folder / "main_p1_P_001.json").read_text())
    assert (sent["sent"], sent["tools"], sent["said"]) == ("Do it.", "Read x.py\n", "<result>ok</result>")
    assert (ended["type"], ended["cost"]) == ("StepFinished", 0.25)
    assert transitions(folder) == (
        "[main] -> START.sh (start)\n\n"
        "[main_p1] -> P.md (fork by main)\n\n"
        "[main] START.sh -> (wait, then END.sh)\n  requested: fork P, wait END\n  stack_depth: 0\n  step: 1\n  cost: $0.0000\n  total_cost: $0.0000\n\n"
        f"[main_p1] P.md -> (result, ended)\n  session_id: {ran.sessions('main_p1', 'P.md')[0]}\n"
        '  requested: result\n  stack_depth: 0\n  step: 2\n  cost: $0.2500\n  total_cost: $0.2500\n  result: "ok"\n\n'
        "[main] START.sh -> END.sh (wait)\n\n"
        "[main] END.sh -> (result, ended)\n"
        "  requested: result\n  stack_depth: 0\n"
        '  step: 3\n  cost: $0.0000\n  total_cost: $0.2500\n  result: "done"\n\n'
        "[run] completed\n\n"
    )


@pytest.mark.slow
def test_transitions_tell_what_was_asked_for_reminders_depth_stops_and_resumes(room: Room) -> None:
    loops = {
        "START.md": 'Call: <call return="END">SUB</call>',
        "SUB.sh": "echo '<goto>SUB</goto>'",
        "END.sh": "echo '<result>done</result>'",
        "replies.yaml": "START: [[no tag, '<call return=\"END\">SUB</call>']]",
    }
    room.command(loops, "--debug", "--max-iterations", "2")
    room.resume("--max-iterations", "3", "--debug")
    before, after = map(transitions, debug_folders(room))
    told = [line for line in before.splitlines() if line.startswith(("[", "  requested", "  stack"))]
    assert told == [
        "[main] -> START.md (start)",
        "[main] START.md asked again (reminder 1): the output has no transition",
        "  requested: refused, the output has no transition",
        "  stack_depth: 0",
        "[main] START.md -> SUB.sh (call, then END.sh)",
        "  requested: call SUB END",
        "  stack_depth: 1",
        "[main] SUB.sh -> SUB.sh (goto)",
        "  requested: goto SUB",
        "  stack_depth: 1",
        "[run] stopped (iterations): max_iterations (2) was reached",
    ]
    assert after.startswith("[run] resumed\n")
    assert "  stack_depth: 1\n" in after
    assert after.endswith("[run] stopped (iterations): max_iterations (3) was reached\n\n")


@pytest.mark.slow
def test_an_answer_that_came_while_nobody_drove_the_run_is_among_the_transitions(room: Room) -> None:
    room.command({**ASKS, "END.sh": "echo '<result>done</result>'"}, "--debug")
    room.raymond("answer", "r", "hunter2", "--no-resume")
    room.resume("--debug")
    before, after = map(transitions, debug_folders(room))
    assert before.startswith("[main] -> START.sh (start)\n\n[main] START.sh -> (ask, then END.sh)\n")
    assert after.startswith(
        "[main] START.sh -> END.sh (answered)\n\n[run] resumed\n\n[main] END.sh -> (result, ended)\n"
    )
    assert "hunter2" not in before + after


@pytest.mark.slow
def test_the_same_files_can_be_made_afterwards_and_none_is_overwritten(room: Room) -> None:
    room.command(BOTH, "--debug")
    [folder] = debug_folders(room)
    assert told(room.raymond("logs", "r", "--debug-dir", "a/new one")) == (
        0,
        "",
        "a/new one holds every step and transition of r\n",
    )
    made = {path.name: path.read_text() for path in (room.path / "a" / "new one").iterdir()}
    assert made == {path.name: path.read_text() for path in folder.iterdir()}
    (room.path / "mine").mkdir()
    (room.path / "mine" / "transitions.log").write_text("mine")
    assert told(room.raymond("logs", "r", "--debug-dir", "mine")) == (
        2,
        "",
        "error: mine is not empty\nhint: name a new folder: nothing is overwritten\n",
    )
    assert files_in(room.path / "mine") == ["transitions.log"]
    assert (room.path / "mine" / "transitions.log").read_text() == "mine"


@pytest.mark.slow
def test_a_second_driver_has_a_debug_folder_of_its_own_that_knows_where_the_agents_were(room: Room) -> None:
    ran = room.command({**FAILS, "replies.yaml": ""}, "--debug")
    assert ran.code == 1
    first = {path.name: path.read_bytes() for path in debug_folders(room)[0].iterdir()}
    room.resume("--debug")
    before, after = debug_folders(room)
    assert {path.name: path.read_bytes() for path in before.iterdir()} == first
    assert files_in(after) == ["main_START_001.json", "transitions.log"]
    assert (
        "[main] START.sh failed (script): ended with exit code 3: broken\n" in (after / "transitions.log").read_text()
    )


def test_a_debug_folder_that_cannot_be_made_does_not_cost_the_run(room: Room) -> None:
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "debug").write_text("in the way")
    ran = room.command(DONE, "--debug")
    assert (ran.code, ran.out) == (0, "done\n")
    [said] = [line for line in ran.lines if "debug" in line]
    folder = re.escape(str(room.path / ".raymond" / "debug"))
    assert re.fullmatch(folder + r"/r_\d{8}_\d{6}: not a directory; nothing more is written there", said)


def test_a_debug_folder_that_is_a_link_is_not_written_to(room: Room) -> None:
    outside = room.path.parent / "outside"
    outside.mkdir()
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "debug").symlink_to(outside)
    ran = room.command(DONE, "--debug")
    assert (ran.code, ran.out, os.listdir(outside)) == (0, "done\n", [])
    assert sum("; nothing more is written there" in line for line in ran.lines) == 1


# --- --notify


def heard(room: Room) -> list[dict[str, Any]]:
    """The documents that TELL was given."""
    return [json.loads(path.read_text()) for path in (room.path.parent / "home").glob("heard.*")]


TELL = "cat > part.$$; mv part.$$ heard.$$"


@pytest.mark.slow
def test_a_command_is_told_what_an_agent_asks_and_how_the_run_ends(room: Room) -> None:
    assert room.command(ASKS, "--notify", TELL).code == 3
    # All of what is told was told when the command ends: one question, and not its waiting once more.
    [asked] = heard(room)
    assert list(asked) == ["event", "agent", "question", "question_number", "approve", "title", "text", *KEYS]
    assert (asked["event"], asked["agent"], asked["question"], asked["status"]) == (
        "asked",
        "main",
        "Which?",
        "waiting",
    )
    assert (asked["title"], asked["text"]) == ("r: main asks", "answer it with: raymond answer r main\n\n> Which?")
    # Whoever looks again without a question that is new is told that it still waits.
    assert room.resume().code == 3
    ended = next(one for one in heard(room) if one["event"] == "ended")
    assert list(ended) == ["event", "exit_code", "title", "text", *ENDED]
    assert (ended["exit_code"], ended["workflow_id"], ended["asks"]) == (3, "r", {"main": "Which?"})
    assert ended["title"] == "r waits for an answer"


@pytest.mark.slow
def test_whoever_resumes_tells_the_same_command(room: Room) -> None:
    room.command(ASKS, "--notify", TELL)
    room.raymond("answer", "r", "this", "--no-resume")
    assert room.resume().code == 0
    last = until(lambda: [one for one in heard(room) if one.get("status") == "completed"], "the ending")
    assert (last[0]["event"], last[0]["exit_code"], last[0]["result"]) == ("ended", 0, "this")


@pytest.mark.slow
def test_whoever_resumes_may_name_another_command(room: Room) -> None:
    room.drive(ASKS)
    room.raymond("answer", "r", "this", "--no-resume")
    assert room.resume("--notify", TELL).code == 0
    [ended] = heard(room)
    assert (ended["event"], ended["result"]) == ("ended", "this")


@pytest.mark.slow
def test_a_text_that_no_pipe_holds_is_told_shortened(room: Room) -> None:
    files = {"START.py": "print('<ask next=\"END\">' + 'é' * 100_000 + '</ask>')", "END.sh": "echo '<result></result>'"}
    assert room.command(files, "--notify", TELL).code == 3
    [asked] = heard(room)
    mentioned = "[a question of 100,000 characters: `raymond answer r main` shows it]"
    assert (asked["question"], asked["shortened"], asked["status"]) == (mentioned, True, "waiting")
    assert asked["text"] == f"answer it with: raymond answer r main\n\n{mentioned}"


@pytest.mark.slow
def test_a_command_that_fails_does_not_cost_the_run(room: Room) -> None:
    fails = "echo no '\x1b[2J' >&2; cat > /dev/null; exit 9"
    ran = room.command(DONE, "--notify", fails)
    assert (ran.code, ran.out) == (0, "done\n")
    assert ran.lines[-2:] == [f"--notify {visible(fails)}: exit code 9", "    | no \\x1b[2J"]


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_and_does_not_cost_the_run(room: Room) -> None:
    ran = room.command(FAILS, "--notify", "sleep 600; true")
    assert (ran.code, ran.out) == (1, "")
    assert ran.lines[-1] == "--notify sleep 600; true: not finished after 10 s"
    room.nothing_runs()


@pytest.mark.slow
def test_ctrl_c_does_not_reach_a_notification_and_does_not_change_how_the_run_ended(room: Room) -> None:
    slow = f"cd {room.path}; touch telling; {GO}; cd; {TELL}"
    command = [sys.executable, "-m", "raymond", "run", room.flow(FAILS), "--notify", slow]
    # A group of its own, all of which a terminal would interrupt.
    with subprocess.Popen(command, cwd=room.path, env=room.environment, start_new_session=True) as process:
        until(lambda: (room.path / "telling").exists(), "the notification")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 1
        room.go()
        until(lambda: heard(room), "the notification all the same")


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str, dict[str, Any]]]]]:
    """A server on this machine; its address and what was posted."""
    posted: list[tuple[str, str, dict[str, Any]]] = []

    class Posted(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append((self.path, self.headers["Content-Type"], body))
            self.send_response(500 if self.path == "/broken" else 204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Posted) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}", posted
        made.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_url_gets_the_document_posted(room: Room, server: tuple[str, list[tuple[str, str, dict[str, Any]]]]) -> None:
    address, posted = server
    assert room.command(DONE, "--notify", f"{address}/hook").code == 0
    [(path, kind, document)] = posted
    assert (path, kind, list(document)) == (
        "/hook",
        "application/json",
        ["event", "exit_code", "title", "text", *ENDED],
    )
    assert (document["event"], document["status"], document["result"]) == ("ended", "completed", "done")


@pytest.mark.slow
def test_a_url_that_answers_with_an_error_does_not_cost_the_run(
    room: Room, server: tuple[str, list[tuple[str, str, dict[str, Any]]]]
) -> None:
    address, _ = server
    ran = room.command(DONE, "--notify", f"{address}/broken")
    assert (ran.code, ran.out) == (0, "done\n")
    said = "not delivered: the server answered 500 Internal Server Error"
    assert [line for line in ran.lines if "notif" in line] == [f"--notify {address}/broken: {said}"]


@pytest.mark.slow
def test_a_dry_run_of_a_program_shows_its_exact_command_line(room: Room) -> None:
    flow = room.flow(PROMPT)
    shown = room.raymond("run", flow, "--dry-run", "--backend", "scripted-program", "--id", "r", "--model", "small")
    [command] = re.findall(r"^command: +(.*)$", shown.stdout, re.MULTILINE)
    assert room.raymond("run", flow, "--backend", "scripted-program", "--id", "r", "--model", "small").returncode == 0
    started = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "SESSION", command)
    folder = room.project.run("r")
    spool = f"{folder.spool}/1.1"
    assert started == (
        f"{sys.executable} -I {fake_claude.__file__} --sessions {folder.sessions} --reply {spool}/reply.json "
        f"-p --output-format stream-json --verbose --session-id SESSION --model small --max-budget-usd 10.0000 "
        f"< {spool}/prompt"
    )
