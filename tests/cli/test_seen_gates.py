"""What people see of gates before and while they run, and which commands are refused."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import LimitsChanged
from running import GO, Room, timeless, until


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def gated(policy: str, *replies: str) -> dict[str, str]:
    """A workflow with one prompt, whose turns run these scripts."""
    turns = ", ".join(f'"{one}"' for one in replies)
    return {"START.md": f"---\n{policy}\n---\nDo it. <result>x</result>\n", "replies.yaml": f"START: [[{turns}]]\n"}


def steps_of(text: str) -> str:
    """What is told of the commands, without what is sealed and how long a twin takes."""
    return "".join(
        line for line in text.splitlines(True) if not line.startswith(("sealed ", "nothing is sealed", "a twin of "))
    )


DONE = "<result>done</result>"

# --- what is refused


def test_a_gate_given_with_set_is_judged_like_that_of_a_file(room: Room) -> None:
    ran = room.command(gated("gate: make test", DONE), "--set", "START.gate=make; git reset --hard")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err == (
        "error: this check discards changes: `git reset --hard`\n --> --set START.gate=make; git reset --hard\n"
        "hint: a check only looks: remove this, or do it yourself before the run\n"
    )
    assert not room.home.exists(), "nothing was started"
    tried = room.raymond("gate", room.flow({}), "START", "--set", "START.gate=git clean -fdx")
    assert (tried.returncode, tried.stdout) == (6, "")


@pytest.mark.slow
def test_a_gate_that_comes_with_latest_is_judged_like_the_first(room: Room) -> None:
    ran = room.command(gated("gate: exit 1\ngate_tries: 0", DONE))
    assert ran.code == 1
    room.flow({"START.md": "---\ngate: rm -rf ..\n---\nDo it. <result>x</result>\n"})
    again = room.resume("--latest")
    assert again.code == 6
    assert "error: this check deletes everything in `..`\n --> ../flow/START.md:2:7\n" in again.err
    assert room.events() == ran.events, "nothing was changed"


@pytest.mark.slow
def test_a_gate_that_is_doubtful_is_told_before_the_first_turn(room: Room) -> None:
    ran = room.command(gated("gate: my-check", DONE))
    warning = "warning: `my-check` is no test runner, build tool or file of the project that Raymond knows"
    assert warning in ran.err
    assert room.command(gated("gate: my-check", DONE), "--strict", id="s").code == 6


# --- `raymond gate`


TWO = {
    "START.md": "---\ngate: echo one\n---\n<goto>B</goto>",
    "B.md": "---\ngate: [echo two, {run: exit 3, timeout: 1m}]\ngate_reruns: 0\n---\n<goto>C</goto>",
    "C.sh": "echo '<result/>'",
}


def tried(room: Room, command: str, *policy: str) -> tuple[int, str]:
    """Try one command; the exit code and what was shown."""
    lines = "\n".join((f"gate: {json.dumps(command)}", "gate_reruns: 0", *policy))
    done = room.raymond("gate", room.flow({"START.md": f"---\n{lines}\n---\n{DONE}"}), "START")
    assert "error" not in done.stderr
    return done.returncode, done.stdout


@pytest.mark.slow
def test_without_a_state_all_gates_are_tried_in_order(room: Room) -> None:
    done = room.raymond("gate", room.flow(TWO))
    assert (done.returncode, done.stderr) == (1, "")
    assert steps_of(done.stdout) == (
        "$ echo two\n  | two\n  exit code 0 after 0s\n$ exit 3\n  exit code 3 after 0s\n"
        "B.md: failed: `exit 3` ended with exit code 3\n"
        "$ echo one\n  | one\n  exit code 0 after 0s\nSTART.md: passed\n"
    )
    none = room.raymond("gate", room.flow({"START.md": DONE}, "plain"))
    assert (none.returncode, none.stdout) == (2, "")
    assert none.stderr == "error: no state of plain has a gate\nhint: put `gate: make test` at the top of a state\n"


@pytest.mark.slow
def test_what_is_doubtful_about_the_gates_that_are_tried_is_said_first(room: Room) -> None:
    files = {**TWO, "START.md": "---\ngate: make -v | tee log\n---\n<goto>B</goto>"}
    flow = room.flow(files)
    warning = (
        "warning: this check is green whatever comes before `| tee` [gate-command-masked]\n --> ../flow/START.md:2:7\n"
    )
    assert room.raymond("gate", flow).stderr.startswith(warning)
    assert room.raymond("gate", flow, "B").stderr == "", "of another state"


def test_a_command_of_several_lines_is_shown_on_several_lines(room: Room) -> None:
    code, shown = tried(room, "echo a\necho b\n")
    assert code == 0
    assert "$ echo a\n  echo b\n  | a\n  | b\n" in shown


def test_what_a_check_prints_is_made_visible_and_stays_in_its_lines(room: Room) -> None:
    code, shown = tried(room, r"printf 'a\033[2Jb\n'; printf 'x'; sleep 0.1; printf 'y\n'; echo '<result>z</result>'")
    assert code == 0
    assert "  | a\\x1b[2Jb\n  | xy\n  | <result>z</result>\n  exit code 0" in shown


@pytest.mark.slow
def test_a_check_that_needs_a_terminal_is_red(room: Room) -> None:
    code, shown = tried(room, "read -p 'Really? ' answer < /dev/tty")
    assert code == 1
    assert "/dev/tty: No such device or address" in shown
    assert tried(room, "read answer")[0] == 1, "there is nothing to read"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("./plain.sh", "the check `./plain.sh` cannot start: `./plain.sh` is not executable: chmod +x ./plain.sh"),
        (".", "the check `./.` cannot start: `./.` is a directory"),
        ("no-such-check", "the check `no-such-check` cannot start: there is no program `no-such-check`"),
    ],
)
def test_a_check_that_cannot_start_is_a_mistake_of_the_workflow(room: Room, command: str, why: str) -> None:
    (room.path / "plain.sh").touch()
    code, shown = tried(room, command if command != "." else "./.")
    assert (code, shown.splitlines()[-1]) == (6, f"START.md: could not start: {why}")


@pytest.mark.slow
def test_a_check_of_nothing_is_refused(room: Room) -> None:
    for command, message in (
        ("", "`gate` is empty"),
        ("# later", "`# later` is only a comment: it would always be green"),
    ):
        done = room.raymond("gate", room.flow({"START.md": f"---\ngate: {json.dumps(command)}\n---\n{DONE}"}))
        assert (done.returncode, done.stdout) == (6, "")
        assert f"error: {message}\n" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_the_command_ends_the_check_and_all_that_it_started(room: Room, number: int) -> None:
    check = "setsid bash -c 'echo $$ > daemon; exec sleep 600' & until [ -s daemon ]; do sleep 0.01; done; sleep 600"
    flow = room.flow({"START.md": f"---\ngate: {json.dumps(check)}\n---\n{DONE}"})
    with room.start("gate", flow) as live:
        until(lambda: (room.path / "daemon").exists() and (room.path / "daemon").read_text(), "the daemon")
        live.signal(number)
        assert live.process.wait() == 128 + number
        assert live.err == ""
        room.nothing_runs()


@pytest.mark.slow
def test_a_flood_of_a_gigabyte_is_cut_and_memory_is_bounded(room: Room) -> None:
    check = r"head -c 1000000000 /dev/zero | tr '\0' x; echo; echo the end"
    flow = room.flow({"START.md": f"---\ngate: {json.dumps(check)}\n---\n{DONE}"})
    out = room.path / "out"
    # A process begins with the memory of whoever starts it, and this one may have run a thousand tests.
    measure = (
        "import resource, subprocess, sys\nwith open(sys.argv[1], 'wb') as file:\n"
        "    code = subprocess.run(sys.argv[2:], stdout=file).returncode\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    argv = [sys.executable, "-c", measure, str(out), sys.executable, "-m", "raymond", "gate", flow]
    done = subprocess.run(argv, cwd=room.path, env=room.environment, capture_output=True, text=True, check=True)
    code, kilobytes = map(int, done.stdout.split())
    assert code == 0
    assert kilobytes < 200_000
    shown = out.read_text()
    assert len(shown) < 5 << 20
    assert re.search(r"\[99\d,\d{3},\d{3} characters are left out here\]", shown)
    assert re.search(r"  \| the end\n  exit code 0 after \w+\na twin of .*\nSTART.md: passed\n\Z", shown)


# --- before a run


@pytest.mark.slow
def test_a_dry_run_lists_the_gates(room: Room) -> None:
    head = "gate: [make lint, {run: make test, expected: 2, timeout: 5m}]\ngate_tries: 1\non_fail: RED"
    red = {"RED.sh": "# /// raymond\n# gate: ls\n# ///\necho '<result/>'"}
    done = room.raymond("run", room.flow(gated(head, DONE) | red), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(
        "gate:     RED.sh; when it is red, the agent fails\n"
        "          $ ls (at most 10m)\n"
        "gate:     START.md; when it is red, the agent is told 1 time, then goes to RED\n"
        "          $ make lint (at most 10m)\n"
        "          $ make test (at most 5m, exit code 2)\n"
        "nothing was started\n"
    )
    [red_gate, start_gate] = json.loads(room.raymond("run", room.flow({}), "--dry-run", "--json").stdout)["gates"]
    assert (red_gate["state"], red_gate["tries"]) == ("RED.sh", 0)
    assert start_gate == {
        "state": "START.md",
        "checks": [
            {"command": "make lint", "expected": "exit code 0", "timeout": 600.0},
            {"command": "make test", "expected": "exit code 2", "timeout": 300.0},
        ],
        "tries": 1,
        "reruns": 1,
        "on_fail": "RED",
        "verdict": None,
        "reason": None,
        "seconds": None,
        "flaky": None,
    }


@pytest.mark.slow
def test_a_dry_run_can_run_the_gates(room: Room) -> None:
    flow = room.flow(gated("gate: exit 3\ngate_reruns: 0", DONE))
    red = room.raymond("run", flow, "--dry-run", "--run-gates")
    assert (red.returncode, red.stderr) == (1, "")
    assert steps_of(red.stdout).endswith(
        "          $ exit 3 (at most 10m)\n$ exit 3\n  exit code 3 after 0s\n"
        "START.md: failed: `exit 3` ended with exit code 3\napart from the gates, nothing was started\n"
    )
    missing = room.raymond("run", flow, "--dry-run", "--run-gates", "--json", "--set", "START.gate=./no-such-check")
    assert missing.returncode == 6
    [gate] = json.loads(missing.stdout)["gates"]
    assert gate["verdict"] == "could not start"
    assert steps_of(missing.stderr).startswith("$ ./no-such-check\n")
    assert room.raymond("run", flow, "--dry-run", "--run-gates", "--set", "START.gate=ls").returncode == 0
    assert not room.home.exists(), "nothing was started"


@pytest.mark.slow
def test_gates_are_run_only_in_a_dry_run(room: Room) -> None:
    flow = room.flow(gated("gate: ls", DONE))
    done = room.raymond("run", flow, "--run-gates")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --run-gates needs --dry-run\nhint: raymond run {flow} --dry-run --run-gates\n"
    plain = room.raymond("run", room.flow({"START.sh": f"echo '{DONE}'"}, "plain"), "--dry-run", "--run-gates")
    assert plain.stdout.endswith("there is no gate to run\nnothing was started\n")


# --- what agents may run


@pytest.mark.slow
def test_exactly_the_commands_of_the_gates_are_allowed(room: Room) -> None:
    files = gated("gate: [make test, 'test (1 -eq 1)']", DONE) | {"B.sh": "# /// raymond\n# gate: make test\n# ///\n"}
    flow = room.flow(files)
    shown = room.raymond("run", flow, "--dry-run", "--allow-gate-commands", "--allow-tool", "WebSearch").stdout
    assert r"also allowed: WebSearch, Bash(make test), Bash(test \(1 -eq 1\));" in shown
    plain = room.raymond("run", flow, "--dry-run").stdout
    assert "also allowed" not in plain, "a gate gives no right"
    room.settings('allow_tools = ["WebSearch"]\n')
    shown = room.raymond("run", flow, "--dry-run", "--allow-gate-commands").stdout
    assert "also allowed: WebSearch, Bash(make test)" in shown, "the settings count too"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "what"), [("ls *.txt", "`*`"), ("echo a\nls", "a line break"), ("make:*", "`*`")])
def test_a_command_that_no_pattern_allows_alone_is_refused(room: Room, command: str, what: str) -> None:
    flow = room.flow(gated(f"gate: {json.dumps(command)}", DONE))
    done = room.raymond("run", flow, "--dry-run", "--allow-gate-commands")
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"error: --allow-gate-commands: a pattern with {what} would allow more than the gate of START.md\n"
        "hint: put the command into a file, as in `gate: ./check.sh`; or leave out --allow-gate-commands\n"
    )


@pytest.mark.slow
def test_there_has_to_be_a_gate_to_allow_its_commands(room: Room) -> None:
    done = room.raymond("run", room.flow({"START.sh": f"echo '{DONE}'"}), "--allow-gate-commands")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --allow-gate-commands: no state of flow has a gate\nhint: leave out --allow-gate-commands\n",
    )


@pytest.mark.slow
def test_what_is_allowed_is_journaled_and_a_resume_can_allow_it_later(room: Room) -> None:
    ran = room.command(gated("gate: exit 1\ngate_tries: 0", DONE), "--allow-gate-commands")
    assert ran.run.start.allowed_tools == ["Bash(exit 1)"]
    other = room.command(gated("gate: exit 1\ngate_tries: 0", DONE), id="o")
    assert other.run.rights.allowed == ()
    room.flow(gated("gate: ls", DONE, DONE))
    again = room.resume("--latest", "--allow-gate-commands", id="o")
    assert again.code == 0, again.err
    [changed] = again.all(LimitsChanged)
    assert changed.allowed_tools == ["Bash(ls)"]
    assert again.run.rights.allowed == ("Bash(ls)",)


@pytest.mark.slow
def test_a_step_cannot_allow_what_its_own_run_may_not(room: Room) -> None:
    inner = room.flow(gated("gate: make test", DONE), "inner")
    start = f'"{sys.executable}" -m raymond run {inner} --allow-gate-commands 2>&1 | grep -o "a step cannot.*"\n'
    ran = room.command({"START.sh": f'echo "<result>$({start.strip()})</result>"\n'})
    assert ran.out == "a step cannot start a run with --allow-tool 'Bash(make test)'\n"


# --- while it runs, and afterwards


RED = f"[ -e red ] || {{ touch red; echo 2 of 7 failed; exit 1; }}; {GO}"


@pytest.mark.slow
def test_status_shows_a_gate_that_runs_and_why_the_last_one_did_not_count(room: Room) -> None:
    policy = f"gate: [ls, {json.dumps(RED)}]\ngate_reruns: 0"
    with room.start("run", room.flow(gated(policy, DONE, DONE)), "--id", "r") as live:
        live.sees("the agent is told")
        until(lambda: f"main $ {RED}" in live.err.partition("the agent is told")[2], "the second check")
        until(lambda: "checks:" in room.raymond("status", "r").stdout, "the command")
        shown = room.raymond("status", "r").stdout
        agents = json.loads(room.raymond("status", "r", "--json").stdout)["agents"]
        room.go()
        assert live.wait().code == 0
    assert re.search(r"main  START.md  running  \d+s  its gate\n", shown)
    cut = f"`{RED}` ended with exit code 1"
    assert f"      checks: {RED}\n" in shown
    assert f"      red:   {cut} (the agent was told 1 of 3 times)\n" in shown
    assert [agent["gate"] for agent in agents] == [{"running": True, "told": 1, "reason": cut}]


@pytest.mark.slow
def test_logs_show_what_gates_found_and_printed(room: Room) -> None:
    policy = "gate: 'seq 20; test -e done'\ngate_reruns: 0\ngate_tries: 1\non_fail: RED"
    red = {"RED.sh": "# /// raymond\n# gate: ls -a\n# ///\necho '<result>red</result>'"}
    ran = room.command(gated(policy, DONE, DONE) | red, "--debug")
    assert ran.code == 0, ran.err
    why = "`seq 20; test -e done` ended with exit code 1"
    lines = timeless(room.raymond("logs", "r").stdout)
    printed = "".join(f"    | {number}\n" for number in range(11, 21))
    assert f"#3 main gate is red (0s): {why}; the agent is told\n{printed}[" in lines
    assert "#8 main gate passed (0s)\n" in lines
    heads = re.findall(r"^(step \d): .*Z, (.*) after", room.raymond("logs", "r", "--text").stdout, re.MULTILINE)
    assert heads == [
        ("step 1", "sealed"),
        ("step 2", "finished"),
        ("step 3", f"gate is red ({why})"),
        ("step 4", "finished"),
        ("step 5", f"gate is red ({why})"),
        ("step 6", "sealed"),
        ("step 7", "finished"),
        ("step 8", "gate passed"),
    ]
    step = room.raymond("logs", "r", "--step", "3").stdout
    assert step.startswith("step 3: main in START.md, gate is red\nstdout:\n  $ seq 20; test -e done\n  1\n  2\n")
    assert "verdict: failed\n" in step
    assert room.raymond("logs", "r", "--step", "8").stdout.startswith("step 8: main in RED.sh, gate passed\n")
    document = json.loads(room.raymond("logs", "r", "--step", "3", "--json").stdout)
    assert (document["ended"]["verdict"], document["transcript"][0]["gate"]) == ("failed", True)


@pytest.mark.slow
def test_the_debug_folder_has_what_was_requested_before_a_red_gate(room: Room) -> None:
    policy = "gate: exit 1\ngate_reruns: 0\ngate_tries: 0\non_fail: RED"
    ran = room.command(gated(policy, "<goto>B</goto>") | {"RED.sh": f"echo '{DONE}'", "B.md": DONE}, "--debug")
    assert ran.code == 0, ran.err
    [log] = (room.path / ".raymond" / "debug").glob("*/transitions.log")
    entries = [entry.split("\n") for entry in log.read_text().split("\n\n")]
    red, moved = (
        next(entry for entry in entries if text in entry[0]) for text in ("gate is red", "START.md -> RED.sh (on_fail)")
    )
    assert "[main] START.md gate is red (0s): `exit 1` ended with exit code 1" in timeless(red[0])
    for entry in (red, moved):
        assert next(line for line in entry if "requested" in line) == "  requested: goto B"
