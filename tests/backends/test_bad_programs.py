"""Claude Code that is missing, old, broken or out of its mind, played by small programs: what is said, and what is lost.

Nothing is: every run goes on with `raymond resume` when the fault is mended.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.machine.events import AgentFailed, AgentPaused, RunStopped, StepFailed, StepRefused, StepStarted
from raymond.system import programs
from running import Ran, Room, until

pytestmark = pytest.mark.slow
"""All of them start processes that start processes; the contract of a backend is tested beside them, and fast."""
PLAYED = f"""\
#!{sys.executable} -IS
import json, os, pathlib, shutil, sys
if "--version" in sys.argv:
    print("2.1.325 (Claude Code)")
    sys.exit()
given = {{flag: value for flag, value in zip(sys.argv, sys.argv[1:]) if flag.startswith("--")}}
session, base, prompt = given["--session-id"], given.get("--resume", ""), sys.stdin.read()
home = pathlib.Path(os.environ["HOME"], ".claude", "projects", "-room")
home.mkdir(parents=True, exist_ok=True)

def say(**event):
    print(json.dumps(event), flush=True)

def text(words, **more):
    say(type="assistant", message={{"content": [{{"type": "text", "text": words}}]}}, **more)

def reply(words):
    (home / f"{{session}}.jsonl").write_text(prompt)
    text(words)
    say(type="result", subtype="success", is_error=False, result=words, model_usage_since_last_result=dict(m=dict(costUSD=0.25)))

def fail(error, words, **more):
    text(words, is_api_error_message=True, error=error)
    say(type="result", subtype="success", is_error=True, result=words, model_usage_since_last_result=dict(), **more)
    sys.exit(1)

"""
DOES = "reply('<goto>NEXT</goto>' if 'Begin' in prompt else '<result>done</result>')\n"
FLOW = {"START.md": "Begin.", "NEXT.md": "---\nretries: 0\n---\nGo on."}
ONCE = {"START.md": "---\nretries: 0\n---\nGo on, and end with <result>done</result>"}
INSTALL = "hint: install Claude Code, then start it once to log in; without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`\n"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"):
        room.environment.pop(name, None)
    (tmp_path / "bin").mkdir()
    room.environment["PATH"] = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    yield room
    room.clear()


def claude(room: Room, body: str, *, beginning: str = PLAYED) -> Path:
    """A program on the PATH that is called claude."""
    path = room.path.parent / "bin" / "claude"
    path.unlink(missing_ok=True)
    path.write_text(beginning + body, "utf-8")
    path.chmod(0o755)
    return path


def refused(room: Room, files: dict[str, str] = FLOW) -> tuple[int, str]:
    """What is said of a run that does not begin; nothing is written for it."""
    ran = room.command(files)
    assert (ran.out, room.project.ids()) == ("", [])
    return ran.code, ran.err


def failure(ran: Ran) -> tuple[int, str, str]:
    [failed] = ran.all(AgentFailed)
    return ran.code, failed.kind, failed.error


def said(ran: Ran) -> list[str]:
    """What was told, from the first failure on, without times and lengths of time."""
    first = next(number for number, line in enumerate(ran.lines) if "failed (" in line)
    return [line.partition(" after ")[0] if " after " in line else line for line in ran.lines[first:]]


def mended(room: Room, *args: str) -> Ran:
    """The fault is mended, and the run goes on to its end."""
    claude(room, DOES)
    ran = room.resume(*args)
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    return ran


# --- before a run begins


def test_a_program_that_is_not_installed(room: Room) -> None:
    assert refused(room) == (5, f"error: there is no program `claude` on the PATH\n{INSTALL}")
    claude(room, DOES)
    assert room.command(FLOW).out == "done\n"


def test_a_program_that_is_not_executable(room: Room) -> None:
    path = claude(room, DOES)
    path.chmod(0o644)
    assert refused(room) == (5, f"error: {path} is not executable: chmod +x {path}\n{INSTALL}")
    path.chmod(0o755)
    assert room.command(FLOW).out == "done\n"


def test_a_folder_is_no_program(room: Room) -> None:
    (room.path.parent / "bin" / "claude").mkdir()
    assert refused(room) == (5, f"error: there is no program `claude` on the PATH\n{INSTALL}")


@pytest.mark.parametrize("version", mostly_slow(["2.0.99", "1.0.3 (Claude Code)", "0.9.1-beta"]))
def test_a_program_that_is_too_old(room: Room, version: str) -> None:
    path = claude(room, f"echo '{version}'\n", beginning="#!/bin/sh\n")
    number = version.partition(" ")[0]
    error = f"error: {path} is Claude Code {number}; Raymond needs 2.1 or later\nhint: claude update\n"
    assert refused(room) == (5, error)
    claude(room, DOES)
    assert room.command(FLOW).out == "done\n"


@pytest.mark.parametrize("version", mostly_slow(["2.1", "2.1.0", "2.10.3 (Claude Code)", "10.0.1"]))
def test_a_program_that_is_new_enough(room: Room, version: str) -> None:
    claude(room, DOES, beginning=PLAYED.replace("2.1.325 (Claude Code)", version))
    assert room.command(FLOW).out == "done\n"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("echo 'segmentation fault'; echo 3.4; exit 139", "segmentation fault"),
        ("exit 0", "nothing"),
        ("printf '%0200d' 7", "0" * 100),
    ],
    ids=["garbage", "nothing", "long"],
)
def test_a_program_that_says_no_version(room: Room, body: str, what: str) -> None:
    path = claude(room, body, beginning="#!/bin/sh\n")
    hint = f"see what it does: {path} --version"
    assert refused(room) == (5, f"error: {path} did not print its version but: {what}\nhint: {hint}\n")


def test_a_program_that_says_no_version_in_time(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not waited for here: that it is given up is what counts."""
    path = claude(room, "sleep 1000", beginning="#!/bin/sh\n")
    monkeypatch.setattr(programs, "PATIENCE", 0.2)
    monkeypatch.setenv("TEST_ROOM", str(room.path))
    assert programs.version(str(path)) == ("", f"{path} did not print its version within 0.2s")
    room.nothing_runs()


def test_a_program_that_leaves_something_behind_when_asked_for_its_version(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ROOM", str(room.path))
    path = claude(room, "echo 2.1.5; sleep 1000 >/dev/null 2>&1 &\n", beginning="#!/bin/sh\n")
    assert programs.version(str(path)) == ("2.1.5", "")
    room.nothing_runs()


def test_a_program_of_another_machine(room: Room) -> None:
    path = claude(room, "", beginning="\x7fELF nonsense")
    code, error = refused(room)
    assert (code, error.splitlines()[0]) == (5, f"error: {path} cannot be started: exec format error")


def test_a_program_that_is_just_being_written_is_no_broken_one(room: Room) -> None:
    """Whoever can wait is told apart from whoever cannot."""
    path = shutil.copy("/bin/true", room.path.parent / "written")
    with open(path, "ab"), pytest.raises(OSError, match="Text file busy"):
        programs.version(str(path))


def test_names_in_the_environment_that_are_no_text_are_no_fault(room: Room) -> None:
    path = claude(room, DOES)
    script = "import sys; from raymond.system import programs; print(programs.version(sys.argv[1], ('X',)))"
    env = {os.fsencode(name): os.fsencode(value) for name, value in room.environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], env={**env, b"ODD\xff": b"\xff"}, capture_output=True, check=True
    )
    assert done.stdout.decode() == "('2.1.325 (Claude Code)', '')\n"


# --- in the middle of a run

BROKEN = {
    "garbage": ("print('Segmentation fault \\x07 {{{ 429 <result>no</result>')", "exit code 0", 0.5),
    "garbage in bytes": ("sys.stdout.buffer.write(bytes(range(256)) * 9)\nsys.exit(2)", "exit code 2", 0.5),
    "half a line": ('sys.stdout.write(\'{"type":"result","is_error":false,"resu\')', "exit code 0", 0.5),
    "nothing": ("", "exit code 0", 0.0),
}


@pytest.mark.parametrize("name", ["garbage", "garbage in bytes", "half a line", "nothing"])
def test_what_is_no_result_is_a_crash_and_the_run_goes_on_when_it_is_mended(room: Room, name: str) -> None:
    body, how, cost = BROKEN[name]
    claude(room, "if 'Begin' in prompt:\n    reply('<goto>NEXT</goto>')\n    sys.exit()\n" + body)
    ran = room.command(FLOW)
    error = f"the program ended with {how} without a result"
    assert failure(ran) == (1, "crash", error)
    assert said(ran) == [
        f"main step 2 failed (crash): {error}" + (" ~$0.50 total ~$0.75" if cost else ""),
        f"main failed (crash): {error}",
        "run failed",
        "failed: r",
        "why:    1 agent failed",
        f"cost:   {'~' if cost else ''}${0.25 + cost:.2f} in 2 steps",
        *(["note:   ~ is an estimate: the program did not say what it cost"] if cost else []),
        f"failed: main in NEXT.md: {error}",
        "next:   raymond resume r",
    ]
    again = mended(room)
    # What was done is not done again, and the conversation is that of the turn before.
    first, _, third = again.all(StepStarted)
    assert (third.base, again.run.cost) == (first.session, 0.5 + cost)


@pytest.mark.slow
def test_a_program_that_crashes_is_tried_as_often_as_the_state_says_and_says_why(room: Room) -> None:
    claude(room, "sys.exit('TypeError: undefined is not a function')")
    ran = room.command({"START.md": "---\nretries: 1\n---\nGo on. <result>done</result>"})
    why = "the program ended with exit code 1 without a result: TypeError: undefined is not a function"
    assert (failure(ran), len(ran.all(StepFailed))) == ((1, "crash", why), 2)
    mended(room)


@pytest.mark.slow
def test_a_program_that_is_being_written_is_started_later_and_charged_once(room: Room) -> None:
    """Its state allows no second attempt and its run no second turn: a fault of the machine is neither."""
    program = claude(room, "reply('<result>done</result>')")
    writes = f"sleep 2 3>> {program} > /dev/null 2>&1 & echo '<goto>NEXT</goto>'"
    ran = room.command({"START.sh": writes, "NEXT.md": FLOW["NEXT.md"]}, "--max-turns", "1")
    assert (ran.code, ran.result) == (0, "done"), ran.err
    assert {(one.kind, one.charged, one.cost) for one in ran.all(StepFailed)} == {("machine", False, 0.0)}
    assert (ran.run.turns, ran.run.cost) == (1, 0.25)


@pytest.mark.slow
def test_a_line_of_thirty_megabytes_just_works(room: Room) -> None:
    claude(room, "reply('x' * 30_000_000 + '<result>done</result>')")
    ran = room.command(ONCE)
    assert (ran.code, ran.out) == (0, "done\n")
    [turn] = ran.transcript()
    assert len(turn["said"]) == 30_000_000 + len("<result>done</result>")


@pytest.mark.slow
def test_a_line_of_thirty_megabytes_that_means_nothing_is_passed_over(room: Room) -> None:
    claude(room, "sys.stdout.write('x' * 30_000_000 + chr(10))\n" + DOES)
    assert room.command(ONCE).out == "done\n"


@pytest.mark.slow
def test_thirty_megabytes_without_an_end_are_a_crash(room: Room) -> None:
    claude(room, "sys.stdout.write('{' * 30_000_000)")
    assert failure(room.command(ONCE)) == (1, "crash", "the program ended with exit code 0 without a result")
    mended(room)


@pytest.mark.slow
def test_a_login_that_is_missing_pauses_the_run_until_somebody_has_logged_in(room: Room) -> None:
    words = "Not logged in · Please run /login"
    claude(room, f"reply('<goto>NEXT</goto>') if 'Begin' in prompt else fail('authentication_failed', {words!r})")
    words += " (start `claude` once and log in, or set ANTHROPIC_API_KEY)"
    ran = room.command(FLOW)
    [paused] = ran.all(AgentPaused)
    assert (ran.code, paused) == (5, AgentPaused(agent="main", kind="auth", reason=words, backend="claude"))
    assert said(ran) == [
        f"main step 2 failed (auth): {words}",
        f"claude is unavailable (auth): {words}",
        f"main paused: {words}",
        "paused: r",
        f"why:    claude is unavailable: {words}",
        "cost:   $0.25 in 2 steps",
        "result: none yet",
        "next:   raymond resume r",
    ]
    [failed] = ran.all(StepFailed)
    assert (failed.charged, failed.cost) == (False, 0.0)
    assert mended(room).run.cost == 0.5


def test_a_model_that_nobody_knows_fails_at_once(room: Room) -> None:
    words = "There's an issue with the selected model (nobody-1)."
    claude(room, f"fail('model_not_found', {words!r}, api_error_status=404)")
    ran = room.command({"START.md": "Go on. <result>done</result>"}, "--model", "nobody-1")
    assert (failure(ran), len(ran.all(StepFailed))) == ((1, "setup", words), 1)
    mended(room)


def test_a_program_that_went_away_between_two_steps(room: Room) -> None:
    claude(room, "pathlib.Path(sys.argv[0]).unlink()\n" + DOES)
    ran = room.command(FLOW)
    assert failure(ran) == (1, "setup", "cannot start claude: no such file or directory")
    mended(room)


def test_a_directory_that_went_away_between_two_steps(room: Room) -> None:
    subprocess.run(["git", "init", "-q", room.path], check=True)
    (room.path / "work").mkdir()
    claude(room, "shutil.rmtree(os.getcwd())\n" + DOES)
    ran = room.command(FLOW, "--cd", "work")
    assert failure(ran) == (1, "setup", "the directory is gone: no such file or directory")
    (room.path / "work").mkdir()
    again = mended(room)
    assert [event.step for event in again.all(StepStarted)] == [1, 2, 3]


# --- conversations that are gone

GONE = """
if base and not (home / f"{base}.jsonl").exists():
    error = f"No conversation found with session ID: {base}"
    AS_A_RESULT
    sys.exit(error)
"""
"""As Claude Code 2.1.325 says it: on stderr, and as a result."""
RESULT = (
    'say(type="result", subtype="error_during_execution", is_error=True, num_turns=0, total_cost_usd=0, errors=[error])'
)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("pass", id="on stderr"),
        pytest.param(RESULT, id="as a result"),
    ],
)
def test_a_conversation_that_is_gone_is_named_and_can_be_done_without(room: Room, how: str) -> None:
    gone = GONE.replace("AS_A_RESULT", how)
    claude(room, gone + "reply('<goto>NEXT</goto>') if 'Begin' in prompt else fail('authentication_failed', 'log in')")
    assert room.command(FLOW).code == 5
    shutil.rmtree(Path(room.environment["HOME"], ".claude"))
    claude(room, gone + DOES)
    ran = room.resume()
    base = ran.all(StepStarted)[0].session
    folder = Path(room.environment["HOME"], ".claude", "projects")
    assert failure(ran) == (1, "session", f"the conversation {base} is gone from {folder}")
    assert ran.lines[-1] == "next:   raymond resume r --fresh"
    assert len(ran.all(StepFailed)) == 2
    # Without a word it is looked for again, and is not there.
    assert room.resume().code == 1
    again = room.resume("--fresh")
    assert (again.code, again.out, again.all(StepStarted)[-1].base) == (0, "done\n", "")


# --- what prompts and replies say


def test_a_prompt_that_shows_tags_as_examples_in_code_runs(room: Room) -> None:
    shown = """\
    Begin. End with one of the tags, such as `<goto>NEXT.md</goto>`:

    ```
    <goto>NOWHERE</goto>
    <call return="ALSO_NOWHERE">NO_SUB</call>
    <result>...</result>
    ```
    <!-- not <goto>HERE</goto> -->
    """
    claude(room, DOES)
    ran = room.command({**FLOW, "START.md": shown})
    assert (ran.code, ran.out) == (0, "done\n")
    assert "\n<goto>NOWHERE</goto>\n" in ran.transcript()[0]["sent"]


def test_a_reply_that_shows_tags_as_examples_in_code_means_its_last_one(room: Room) -> None:
    claude(
        room, "reply('I could say `<goto>NOWHERE</goto>`.\\n\\n```\\n<goto>NEXT</goto>\\n```\\n<result>done</result>')"
    )
    ran = room.command(FLOW)
    assert (ran.code, ran.out, ran.all(StepRefused)) == (0, "done\n", [])


def test_a_tag_that_only_another_state_may_use_is_refused_with_those_that_are_allowed_here(room: Room) -> None:
    flow = {
        "START.md": "---\nallowed_transitions: [{tag: goto, target: NEXT.md}]\n---\nBegin.",
        "NEXT.md": "---\nallowed_transitions: [{tag: result}]\n---\nGo on.",
    }
    claude(
        room, "reply('<result>too early</result>') if prompt == 'Begin.' else " + DOES.replace("'Begin'", "'<goto>'")
    )
    ran = room.command(flow)
    [asked_again] = ran.all(StepRefused)
    assert (ran.code, ran.out) == (0, "done\n")
    reason = "`<result>too early</result>` is not allowed here; allowed: `<goto>NEXT.md</goto>`"
    assert asked_again.reason == reason
    assert f"main is asked again: {reason} $0.25 total $0.25" in ran.lines
    first, second, _ = ran.all(StepStarted)
    assert (second.step, second.turn, second.base) == (1, 2, first.session)
    assert ran.transcript()[1]["sent"] == (
        f"I could not act on your reply: {reason}\n"
        "Do not repeat the work. Reply again and end with exactly one of:\n"
        "<goto>NEXT.md</goto>"
    )


# --- lines that no program should print

ODD = {
    "bytes that are no text": 'raw(b\'{"type":"user","message":"caf\\xff"}\')',
    "half a letter": 'raw(b\'{"type":"user","message":"a\\\\ud800"}\')',
    "brackets without end": 'raw(b"[" * 5000)',
    "a number without end": 'raw(b\'{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":\' + b"9" * 400 + b"}}")',
    "fields of another kind": 'raw(b\'{"type":"assistant","message":[1],"error":{}}\')',
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_an_odd_line_is_passed_over_and_the_turn_counts(room: Room, line: str) -> None:
    raw = "def raw(data):\n    sys.stdout.flush(); sys.stdout.buffer.write(data + b'\\n'); sys.stdout.flush()\n"
    claude(room, f"{raw}{line}\nreply('<result>fine</result>')")
    ran = room.command(ONCE)
    assert (ran.code, ran.result, ran.run.cost) == (0, "fine", 0.25)


def test_a_program_that_speaks_twice_is_believed_the_first_time_and_both_are_paid(room: Room) -> None:
    claude(room, "reply('<result>first</result>'); reply('I am still here.')")
    ran = room.command(ONCE)
    assert (ran.code, ran.result, ran.run.cost) == (0, "first", 0.5)


@pytest.mark.slow
def test_a_reset_beyond_all_calendars_is_one_that_nobody_knows(room: Room) -> None:
    limit = 'say(type="rate_limit_event", rate_limit_info=dict(status="rejected", resetsAt=1.8e12))'
    claude(room, f"{limit}\nfail('usage_limit_reached', 'used up', api_error_status=429)")
    room.environment["RAYMOND_MAX_WAIT"] = "0s"
    ran = room.command(ONCE)
    stopped = RunStopped(kind="limit", limit="wait", amount=0.0, backend="claude", wait=900.0)
    assert (ran.code, ran.run.stop) == (4, stopped)
    again = room.resume()
    assert again.run.stop
    assert (again.code, again.run.stop.kind) == (4, "limit"), "nor does a resume wait for it"


def test_a_model_that_no_program_could_be_told_is_refused(room: Room) -> None:
    claude(room, 'reply(\'<function return="NEXT" model="a\\0b">NEXT</function>\')')
    ran = room.command({"START.md": "Begin.", "NEXT.md": "Go on."})
    assert ran.code == 1
    assert "`model` and `effort` of `<function>` must be plain names (asked 4 times)" in ran.run.agents["main"].error


def test_files_that_changed_since_widen_no_rights(room: Room) -> None:
    claude(room, "fail('authentication_failed', 'log in')")
    room.command(ONCE)
    (room.path.parent / "flow" / "START.md").write_text(
        "---\npermission_mode: bypassPermissions\n---\n<result>done</result>\n"
    )
    done = room.raymond("resume", "r", "--latest")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        6,
        "error: START.md asks for permission mode `bypassPermissions`, but `acceptEdits` was given",
    )


@pytest.mark.slow
def test_a_turn_that_had_to_be_killed_counts_what_it_said(room: Room) -> None:
    hangs = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nreply('<result>said</result>')\nimport time; time.sleep(600)"
    claude(room, hangs)
    with room.start("run", room.flow(ONCE), "--id", "r") as live:
        out = Path(room.project.run("r").spool, "1.1", "out")
        until(lambda: out.exists() and b'"result"' in out.read_bytes(), "its words")
        live.signal(signal.SIGTERM)
        live.wait()
    ran = Ran(room, "r", 0, "", "")
    assert (ran.run.cost, ran.result) == (0.25, "said"), "its reply is in the journal"


# --- a backend of somebody else's that reports what does not exist

GREMLINS = """\
from raymond.backends import Setup, Trouble
from raymond.backends.command import CommandBackend
from raymond.machine.inputs import Spending

ENDS_EARLY = {early}


class Reader:
    tool = ""
    ending = None

    def feed(self, line):
        if ENDS_EARLY:
            self.ending = self.close(None, "")
        return []

    def close(self, exit_code, errors):
        return Trouble(kind="gremlins", error="they ate it", retry_after=60.0, spent=self.spent())

    def spent(self):
        return Spending(cost=0.5)


class Gremlins(CommandBackend):
    def reader(self, turn):
        return Reader()


def make(setup):
    return Gremlins(Setup(name=setup.name, options={{"command": ["/bin/sh", "-c", "echo hm"]}}))
"""


@pytest.mark.parametrize("early", [True, False], ids=["while it reads", "when the program is gone"])
def test_a_failure_class_that_does_not_exist_is_a_crash_that_names_it(room: Room, early: bool) -> None:
    """A journal with an unknown class in it could not be read again."""
    packages = room.path.parent / "packages"
    about = packages / "gremlins-1.0.dist-info"
    about.mkdir(parents=True)
    (packages / "gremlins.py").write_text(GREMLINS.format(early=early))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gremlins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[raymond.backends]\ngremlins = gremlins:make\n")
    room.environment["PYTHONPATH"] = str(packages)
    ran = room.command(ONCE, "--backend", "gremlins")
    error = "its backend reports an unknown failure class, `gremlins`: they ate it"
    assert failure(ran) == (1, "crash", error)
    [failed] = ran.all(StepFailed)
    assert (failed.kind, failed.cost, failed.charged) == ("crash", 0.5, True)
    again = room.resume()
    assert (again.code, [event.kind for event in again.all(StepFailed)]) == (1, ["crash", "crash"]), "it can be resumed"
