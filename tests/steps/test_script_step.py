"""Script states, run for real: what they are given, how their output is read, how they fail and how they are stopped."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from raymond.machine.events import AgentFailed, AgentMoved, AgentStarted, StepFailed, StepFinished, StepStarted
from raymond.steps import script_step
from raymond.steps import step as step_module
from raymond.steps.output import SLICE
from raymond.store.project import Project
from raymond.system import processes
from running import GO, Ran, Room, alive, until, zombie


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


@pytest.fixture(params=["here", "portable"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Room, Callable[..., Ran]]]:
    """Runs a workflow in this process, and as a command without pidfds and /proc."""
    room = Room(tmp_path, **({"RAYMOND_PORTABLE": "1"} if request.param == "portable" else {}))
    yield room, room.drive if request.param == "here" else room.command
    room.clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, what does not end when asked to is ended after 0.3 seconds."""
    for module in (processes, step_module):
        monkeypatch.setattr(module, "GRACE", 0.3)


def failure(ran: Ran) -> str:
    """The error of the only agent that failed."""
    [failed] = ran.all(AgentFailed)
    return f"{failed.kind}: {failed.error}"


# Interpreters


def test_a_shell_script_runs_with_bash_and_hands_on_its_result(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.sh": 'list=(a b c); echo "<result>${#list[@]} in $BASH</result>"'})
    assert (ran.code, ran.result) == (0, f"3 in {shutil.which('bash')}")


def test_a_python_script_runs_with_the_python_that_runs_raymond(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.py": "import sys\nprint(f'<result>{sys.executable}</result>')"})
    assert ran.result == sys.executable


def test_workflow_yaml_names_another_python(room: Room) -> None:
    other = room.path / "other-python"
    other.write_text(f'#!/bin/sh\nSTARTED_BY=other exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    script = "import os\nprint(f'<result>{os.environ[\"STARTED_BY\"]}</result>')"
    ran = room.drive({"START.py": script, "workflow.yaml": f"python: {other}"})
    assert ran.result == "other"


def test_an_interpreter_that_is_not_there_fails_the_script_and_says_so(room: Room) -> None:
    ran = room.drive({"START.py": "print()", "workflow.yaml": "python: nowhere/python"})
    assert failure(ran) == "script: cannot start nowhere/python: no such file or directory"


@pytest.mark.skipif(not shutil.which("pwsh"), reason="pwsh is not installed on this machine")
def test_a_powershell_script_runs_with_pwsh(room: Room) -> None:
    ran = room.drive({"START.ps1": 'Write-Output "<result>$($PSVersionTable.PSEdition)</result>"'})
    assert ran.result == "Core"


@pytest.mark.skipif(bool(shutil.which("pwsh")), reason="pwsh is installed on this machine")
def test_a_powershell_script_without_pwsh_is_refused_before_the_run(room: Room) -> None:
    ran = room.command({"START.ps1": "Write-Output hello"})
    assert ran.code == 6
    assert ran.err == (
        "error: `START.ps1` cannot run on this machine (linux)\n"
        " --> flow\n"
        "hint: it needs PowerShell (pwsh); or add `START.py`, which runs everywhere\n"
    )


def test_a_script_with_windows_line_ends_runs(room: Room) -> None:
    (room.path.parent / "flow").mkdir()
    (room.path.parent / "flow" / "START.sh").write_bytes(
        b"\xef\xbb\xbfif true; then\r\n echo '<result>ok</result>'\r\nfi\r\n"
    )
    assert room.drive({}).result == "ok"


# What a script is given

ENVIRONMENT = """
import json, os
print("<result>" + json.dumps({k: v for k, v in os.environ.items() if k.startswith("RAYMOND")}) + "</result>")
"""


def given(ran: Ran, agent: str = "main") -> dict[str, Any]:
    """What an agent gave as its result, which is JSON."""
    found: dict[str, Any] = json.loads(ran.run.outcomes[agent].result)
    return found


def test_a_script_is_given_everything_there_is_to_know(room: Room) -> None:
    ran = room.drive({"START.py": ENVIRONMENT}, input="hello", variables={"colour": "red"})
    env = given(ran)
    assert Path(env.pop("RAYMOND_OUT")).parent == Path(room.project.run("r").spool)
    assert Path(env.pop("RAYMOND_INPUT_FILE")).parent == Path(room.project.run("r").spool)
    assert env.pop("RAYMOND_STEP_KEY") == f"{ran.run.start.key}-main-1"
    assert env.pop("RAYMOND_STEP") == f"{ran.run.start.key}/1"
    assert env == {
        "RAYMOND_WORKFLOW_ID": "r",
        "RAYMOND_AGENT_ID": "main",
        "RAYMOND_STATE": "START.py",
        "RAYMOND_VISIT": "1",
        "RAYMOND_ATTEMPT": "1",
        "RAYMOND_HOME": str(room.home),
        "RAYMOND_TASK_FOLDER": f"{room.path}/.raymond/tasks/r/main",
        "RAYMOND_WORKFLOW_DIR": f"{room.project.home.work}/{ran.run.start.source}",
        "RAYMOND_INPUT": "hello",
        "RAYMOND_RESULT": "hello",
        "RAYMOND_VAR_colour": "red",
        "RAYMOND_RUN_INPUT": "hello",
    }


def test_a_script_without_input_reads_nothing_from_its_input_file(room: Room) -> None:
    env = given(room.drive({"START.py": ENVIRONMENT}))
    assert (env["RAYMOND_INPUT_FILE"], env["RAYMOND_INPUT"], env["RAYMOND_RESULT"]) == ("/dev/null", "", "")
    assert "RAYMOND_VARS_FILE" not in env


def test_the_input_stands_in_a_file_that_is_gone_after_the_step(room: Room) -> None:
    ran = room.drive(
        {
            "START.sh": "echo '<goto input=\"two\nlines é\">NEXT</goto>'",
            "NEXT.sh": 'echo "<result>$RAYMOND_INPUT_FILE $(cat $RAYMOND_INPUT_FILE)</result>"',
        }
    )
    assert ran.result
    file, _, text = ran.result.partition(" ")
    assert text == "two\nlines é"
    assert not os.path.exists(file)


def test_a_script_may_remove_its_input_file(room: Room) -> None:
    ran = room.drive({"START.sh": 'rm "$RAYMOND_INPUT_FILE"; echo "<result>removed</result>"'}, input="x")
    assert (ran.code, ran.result) == (0, "removed")


def test_variables_of_a_fork_and_of_the_run_reach_the_scripts_of_the_fork(room: Room) -> None:
    ran = room.drive(
        {
            "START.sh": """echo '<fork next="END" item="a &quot;b&quot; &gt; c" colour="blue">WORK</fork>'""",
            "WORK.py": ENVIRONMENT,
            "END.sh": 'echo "<result>$RAYMOND_VAR_colour ${RAYMOND_VAR_item-none}</result>"',
        },
        variables={"colour": "red"},
    )
    env = given(ran, "main_work1")
    assert (env["RAYMOND_VAR_item"], env["RAYMOND_VAR_colour"]) == ('a "b" > c', "blue")
    assert (env["RAYMOND_AGENT_ID"], env["RAYMOND_STATE"]) == ("main_work1", "WORK.py")
    assert ran.result == "red none"


def test_results_of_a_wait_reach_a_script(room: Room) -> None:
    ran = room.drive(
        {
            "START.sh": 'echo "<fork>WORK</fork><fork>FAIL</fork><wait>END</wait>"',
            "WORK.sh": "echo '<result>7</result>'",
            "FAIL.sh": "exit 3",
            "END.sh": 'echo "<result>$RAYMOND_RESULTS</result>"; test "$RAYMOND_RESULTS" = "$RAYMOND_INPUT"',
        }
    )
    assert ran.result
    assert json.loads(ran.result) == [
        {"agent": "main_work1", "label": "", "state": "WORK.sh", "status": "done", "result": "7", "error": ""},
        {
            "agent": "main_fail2",
            "label": "",
            "state": "FAIL.sh",
            "status": "failed",
            "result": "",
            "error": "ended with exit code 3",
        },
    ]
    assert ran.code == 1, "a failure that was collected and that nobody expected"


def test_the_task_folder_is_there_when_a_script_speaks_of_it(room: Room) -> None:
    script = 'echo kept > "$RAYMOND_TASK_FOLDER/note"; echo "<goto>NEXT</goto>"'
    ran = room.drive({"START.sh": script, "NEXT.sh": 'echo "<result>$(cat "$RAYMOND_TASK_FOLDER/note")</result>"'})
    assert ran.result == "kept"


def test_no_task_folder_is_made_when_no_state_speaks_of_it(room: Room) -> None:
    room.drive({"START.sh": "echo '<result></result>'"})
    assert not (room.path / ".raymond" / "tasks").exists()


def test_what_a_model_writes_can_never_set_a_variable_of_the_system(room: Room) -> None:
    """`PATH` as a variable of a fork, as metadata and as input stays behind a prefix."""
    script = 'echo "<result>$PATH|$RAYMOND_VAR_PATH|$RAYMOND_VAR_LD_PRELOAD|${LD_PRELOAD-}</result>"'
    forks = """echo '<fork next="END" PATH="/evil" LD_PRELOAD="/evil.so">WORK</fork>'"""
    ran = room.drive({"START.sh": forks, "WORK.sh": script, "END.sh": "echo '<result></result>'"})
    assert ran.run.outcomes["main_work1"].result == f"{room.environment['PATH']}|/evil|/evil.so|"


def test_a_variable_of_an_outer_raymond_does_not_reach_a_script(tmp_path: Path) -> None:
    room = Room(tmp_path, RAYMOND_VAR_secret="outer", RAYMOND_INPUT="outer")
    env = given(room.drive({"START.py": ENVIRONMENT}))
    assert "RAYMOND_VAR_secret" not in env
    assert env["RAYMOND_INPUT"] == ""


SIZES = """
import json, os
vars_file = os.environ.get("RAYMOND_VARS_FILE")
found = {
    "input": len(os.environ.get("RAYMOND_INPUT", "")),
    "file": os.stat(os.environ["RAYMOND_INPUT_FILE"]).st_size,
    "names": sorted(k for k in os.environ if k.startswith("RAYMOND")),
    "vars": {k: len(v) for k, v in json.load(open(vars_file)).items()} if vars_file else None,
}
print("<result>" + json.dumps(found) + "</result>")
"""
LARGEST = script_step.LARGEST_VALUE


def test_a_value_of_32_kib_still_stands_in_the_environment(room: Room) -> None:
    found = given(room.drive({"START.py": SIZES}, input="x" * LARGEST))
    assert (found["input"], found["file"], found["vars"]) == (LARGEST, LARGEST, None)


def test_a_value_over_32_kib_stands_only_in_files(room: Room) -> None:
    """Counted in bytes: as many characters that take two bytes are too long."""
    found = given(room.drive({"START.py": SIZES}, input="é" * (LARGEST // 2) + "x", variables={"small": "1"}))
    assert "RAYMOND_INPUT" not in found["names"]
    assert "RAYMOND_RESULT" not in found["names"]
    assert "RAYMOND_VAR_small" in found["names"]
    assert found["file"] == LARGEST + 1
    assert found["vars"]["input"] == LARGEST // 2 + 1
    assert found["vars"]["small"] == 1


def test_a_script_that_takes_its_input_from_the_environment_is_told_where_a_long_one_is(room: Room) -> None:
    ran = room.drive({"START.sh": 'echo "<result>${#RAYMOND_INPUT}</result>"'}, input="x" * (LARGEST + 1))
    assert (ran.result, ran.transcript()[0]["note"]) == (
        "0",
        "gets no RAYMOND_INPUT, which is too long for the environment: read the file RAYMOND_INPUT_FILE instead\n",
    )
    read = 'echo "<result>$(wc -c < "$RAYMOND_INPUT_FILE")</result>"'
    assert "note" not in room.drive({"START.sh": read}, input="x" * (LARGEST + 1), id="read").transcript()[0]


def test_a_value_with_nul_stands_only_in_files(room: Room) -> None:
    nul = """
    import json, os
    assert "RAYMOND_INPUT" not in os.environ
    read = open(os.environ["RAYMOND_INPUT_FILE"]).read()
    assert json.load(open(os.environ["RAYMOND_VARS_FILE"]))["input"] == read
    print(f"<result>{read!r}</result>")
    """
    ran = room.drive({"START.sh": r"""printf '<goto input="a\0b">NEXT</goto>'""", "NEXT.py": nul})
    assert ran.result == "'a\\x00b'"


def test_values_that_are_together_over_128_kib_stand_only_in_the_file(room: Room) -> None:
    variables = {f"v{number}": "x" * 30_000 for number in range(6)}
    found = given(room.drive({"START.py": SIZES}, variables=variables))
    names = [name for name in found["names"] if name.startswith("RAYMOND_VAR_v")]
    assert len(names) == 4
    assert [found["vars"][f"v{number}"] for number in range(6)] == [30_000] * 6


def test_however_long_the_variables_are_the_names_of_run_agent_and_state_are_there(room: Room) -> None:
    """Four variables of 32 KiB are exactly what may stand in the environment together."""
    variables = {f"v{number}": "x" * LARGEST for number in range(4)}
    found = given(room.drive({"START.py": SIZES}, variables=variables))
    assert {
        "RAYMOND_WORKFLOW_ID",
        "RAYMOND_AGENT_ID",
        "RAYMOND_STATE",
        "RAYMOND_VISIT",
        "RAYMOND_ATTEMPT",
        "RAYMOND_TASK_FOLDER",
        "RAYMOND_WORKFLOW_DIR",
    } <= set(found["names"])


@pytest.mark.slow
def test_an_input_of_200_kb_goes_through_command_tag_and_script(room: Room) -> None:
    big = room.path / "big.txt"
    big.write_text("line of text\n" * 16_000)
    pass_on = "printf '<goto input=\"'; cat \"$RAYMOND_INPUT_FILE\"; printf '\">NEXT</goto>'"
    ran = room.command(
        {"START.sh": pass_on, "NEXT.sh": 'echo "<result>$(wc -c < $RAYMOND_INPUT_FILE)</result>"'}, "--input", f"@{big}"
    )
    assert (ran.code, ran.out) == (0, "207999\n"), "one line break at the end is dropped"


def test_a_script_works_where_raymond_was_started_not_in_the_folder_of_its_states(
    either: tuple[Room, Callable[..., Ran]],
) -> None:
    room, run = either
    ran = run({"START.sh": 'echo "<result>$PWD $(ls "$RAYMOND_WORKFLOW_DIR")</result>"'})
    assert ran.result == f"{room.path} START.sh"


def test_a_script_works_where_cd_brought_its_agent(room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = room.drive({"START.sh": "echo '<reset cd=\"sub\">NEXT</reset>'", "NEXT.sh": 'echo "<result>$PWD</result>"'})
    assert ran.result == str(room.path / "sub")


def test_a_directory_that_is_gone_fails_the_step_and_names_it(room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = room.drive(
        {
            "START.sh": "echo '<reset cd=\"sub\">GONE</reset>'",
            "GONE.sh": "cd ..; rmdir sub; echo '<goto>NEXT</goto>'",
            "NEXT.sh": "echo '<result></result>'",
        }
    )
    assert failure(ran) == f"script: the directory {room.path}/sub is gone: no such file or directory"


@pytest.mark.slow
def test_a_script_has_an_empty_standard_input_and_a_session_of_its_own(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    script = """
    import os, sys
    print(f"<result>{sys.stdin.read()!r} {os.getsid(0) == os.getpid()}</result>")
    """
    assert run({"START.py": script}).result == "'' True"


def test_a_script_keeps_nothing_open_of_raymonds(room: Room) -> None:
    script = 'echo "<result>$(ls /proc/self/fd | wc -l) $(readlink /proc/$$/fd/* | grep -c raymond)</result>"'
    ran = room.command({"START.sh": script})
    assert ran.result
    assert ran.result.split()[1] == "1", "its own script, and nothing else"


# Attempts and visits


@pytest.mark.slow
def test_the_step_key_is_the_same_in_every_attempt_and_another_in_every_visit(room: Room) -> None:
    script = """
    # /// raymond
    # retries: 1
    # ///
    echo "$RAYMOND_VISIT $RAYMOND_ATTEMPT $RAYMOND_STEP_KEY" >> keys
    if [ "$RAYMOND_ATTEMPT" -lt 2 ] && [ "$RAYMOND_VISIT" = 1 ]; then kill -KILL $$; fi
    if [ "$RAYMOND_VISIT" = 1 ]; then echo "<goto>START</goto>"; else echo "<result></result>"; fi
    """
    ran = room.drive({"START.sh": script})
    assert ran.code == 0
    lines = [line.split() for line in (room.path / "keys").read_text().splitlines()]
    assert [(visit, attempt) for visit, attempt, _ in lines] == [("1", "1"), ("1", "2"), ("2", "1")]
    assert len({key for _, _, key in lines[:2]}) == 1
    assert len({key for _, _, key in lines}) == 2


def test_a_silent_script_is_not_run_again_by_itself(room: Room) -> None:
    ran = room.drive({"START.sh": "# /// raymond\n# timeout: 200ms\n# ///\nsleep 100"})
    assert failure(ran) == "silent: said nothing for 0.2s"
    assert len(ran.all(StepStarted)) == 1
    assert ran.code == 1


def test_a_silent_script_with_retries_is_run_again_as_often_as_they_say(room: Room) -> None:
    ran = room.drive({"START.sh": "# /// raymond\n# timeout: 100ms\n# retries: 2\n# ///\nsleep 100"})
    assert [(event.attempt, event.step) for event in ran.all(StepStarted)] == [(1, 1), (2, 2), (3, 3)]
    assert [event.again for event in ran.all(StepFailed)] == [True, True, False]
    room.nothing_runs()


@pytest.mark.slow
def test_a_script_that_speaks_is_not_silent(room: Room) -> None:
    """On either of its outputs; together it takes much longer than its timeout."""
    script = """
    # /// raymond
    # timeout: 3s
    # ///
    for number in 1 2; do
        sleep 1; echo .
        sleep 1; echo . >&2
    done
    echo "<result>spoke</result>"
    """
    assert room.drive({"START.sh": script}).result == "spoke"


@pytest.mark.slow
def test_a_script_that_talks_for_ever_is_stopped_by_max_time(either: tuple[Room, Callable[..., Ran]]) -> None:
    room, run = either
    ran = run({"START.sh": "# /// raymond\n# max_time: 300ms\n# ///\nwhile true; do echo .; sleep 0.02; done"})
    assert failure(ran) == "time: took longer than max_time (0.3s)"
    room.nothing_runs()


def test_a_script_stopped_for_its_time_has_failed_whatever_it_says_then(room: Room) -> None:
    script = """
    # /// raymond
    # timeout: 200ms
    # ///
    trap 'echo "<result>late</result>"; exit 0' TERM
    while true; do sleep 0.02; done
    """
    assert failure(room.drive({"START.sh": script})) == "silent: said nothing for 0.2s"


@pytest.mark.slow
def test_a_script_that_ignores_sigterm_is_killed_after_its_timeout(
    either: tuple[Room, Callable[..., Ran]], impatient: None
) -> None:
    room, run = either
    script = """
    # /// raymond
    # timeout: 200ms
    # ///
    trap '' TERM
    (trap '' TERM; while true; do sleep 0.05; done) &
    while true; do sleep 0.05; done
    """
    ran = run({"START.sh": script})
    assert failure(ran) == "silent: said nothing for 0.2s"
    room.nothing_runs()


@pytest.mark.slow
def test_what_a_stopped_script_started_elsewhere_is_ended_with_it(room: Room, impatient: None) -> None:
    """A child in a session of its own is not reached through the group, but it carries the mark.

    It ignores the request to end, too: the time that takes must not end the step a second time.
    """
    script = """
    # /// raymond
    # timeout: 300ms
    # on_error: NEXT
    # ///
    setsid bash -c 'trap "" TERM; echo $$ > daemon; while true; do sleep 0.05; done' > /dev/null 2>&1 &
    sleep 1000
    """
    left = 'echo "<result>$(grep -s State /proc/$(cat daemon)/status || echo gone)</result>"'
    ran = room.drive({"START.sh": script, "NEXT.sh": left})
    assert ran.result in ("gone", "State:\tZ (zombie)")
    assert [event.step for event in ran.all(StepFailed)] == [1]


@pytest.mark.slow
def test_what_a_script_had_printed_when_it_was_killed_with_its_run_is_kept(room: Room) -> None:
    stops = "trap '' TERM; printf 'a line\nhalf'; kill -TERM $PPID; while true; do sleep 0.05; done"
    [record] = room.command({"START.sh": stops}).transcript()
    assert (record["out"], record["interrupted"]) == ("a line\nhalf", True)


# How a script fails


@pytest.mark.slow
def test_an_exit_code_fails_the_script_even_with_a_tag(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.sh": "echo '<result>fine</result>'; echo 'warming up' >&2; echo 'cannot reach it' >&2; exit 7"})
    assert (ran.code, ran.result) == (1, None)
    assert failure(ran) == "script: ended with exit code 7: cannot reach it"
    assert ran.all(StepFailed)[0].exit_code == 7


def test_a_script_that_says_nothing_on_stderr_fails_with_its_exit_code(room: Room) -> None:
    assert failure(room.drive({"START.sh": "exit 2"})) == "script: ended with exit code 2"


@pytest.mark.slow
def test_a_script_killed_by_a_signal_says_which(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.sh": "echo '<result>fine</result>'; kill -SEGV $$"})
    assert failure(ran) == "crash: was ended by signal 11"


def test_a_script_without_a_tag_fails_with_the_reason(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.sh": "echo all done"})
    assert (ran.code, failure(ran)) == (1, "script: the output has no transition")


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("<goto>A</goto> <goto>B</goto>", "the output has two transitions: <goto>A</goto> and <goto>B</goto>"),
        ("<goto>NOWHERE</goto>", "there is no state `NOWHERE`"),
        ("<goto>../../etc/passwd</goto>", "`../../etc/passwd` is not the name of a state"),
        ("<call>START</call>", "<call> needs `return`"),
        ('<goto inptu="x">START</goto>', "<goto> has no attribute `inptu`"),
        ("<result>never closed", "the output has no transition; its <result> is never closed"),
        ("<fork>START</fork>", "a <fork> needs `next`, or one <goto> or <wait> in the same output"),
    ],
)
def test_a_script_is_not_reminded_but_fails_with_what_was_wrong(room: Room, output: str, error: str) -> None:
    ran = room.drive({"START.sh": f"cat <<'END'\n{output}\nEND\n"})
    assert failure(ran) == f"script: {error}"
    assert len(ran.all(StepStarted)) == 1


def test_what_a_policy_does_not_allow_fails_the_script(room: Room) -> None:
    script = "# /// raymond\n# allowed_transitions: [{tag: goto, target: NEXT}]\n# ///\necho '<result>done</result>'"
    ran = room.drive({"START.sh": script, "NEXT.sh": "echo '<result></result>'"})
    assert failure(ran) == "script: `<result>done</result>` is not allowed here; allowed: `<goto>NEXT</goto>`"


def test_a_script_with_one_allowed_transition_may_leave_it_out(room: Room) -> None:
    script = "# /// raymond\n# allowed_transitions: [{tag: goto, target: NEXT}]\n# ///\necho working"
    ran = room.drive({"START.sh": script, "NEXT.sh": "echo '<result>there</result>'"})
    assert ran.result == "there"


def test_on_error_is_handed_the_error(room: Room) -> None:
    ran = room.drive(
        {
            "START.sh": "# /// raymond\n# on_error: MEND\n# ///\necho 'no such table' >&2; exit 5",
            "MEND.sh": 'echo "<goto>NEXT</goto><print>$RAYMOND_ERROR</print>"',
            "NEXT.sh": 'echo "<result>${RAYMOND_ERROR-gone}</result>"',
        }
    )
    assert (ran.code, ran.result) == (0, "gone")
    assert "main | ended with exit code 5: no such table" in ran.lines
    assert ran.all(AgentMoved)[0].tag == "on_error"


# Output


@pytest.mark.slow
def test_a_print_is_shown_before_the_script_ends(room: Room) -> None:
    """The script blocks on a fifo until the test has seen what it printed."""
    os.mkfifo(room.path / "fifo")
    script = 'echo "<print>half way</print>"; read answer < fifo; echo "<result>$answer</result>"'
    with room.start("run", room.flow({"START.sh": script}), "--id", "r") as live:
        live.sees("main | half way")
        fifo = os.open(room.path / "fifo", os.O_RDWR)
        os.write(fifo, b"seen\n")
        ran = live.wait()
        os.close(fifo)
    assert (ran.code, ran.out) == (0, "seen\n")


def test_every_line_of_a_print_is_shown_with_its_agent(room: Room) -> None:
    ran = room.drive({"START.sh": 'printf "<print>\\none\\ntwo\\n</print><print></print><result></result>"'})
    assert [line for line in ran.lines if line.startswith("main |")] == ["main | one", "main | two", "main | "]


def test_tags_on_standard_error_do_not_count(room: Room) -> None:
    ran = room.drive({"START.sh": "echo '<goto>NEXT</goto>' >&2; echo '<result>out</result>'", "NEXT.sh": ""})
    assert ran.result == "out"
    assert ran.transcript()[0]["err"] == "<goto>NEXT</goto>\n"


def test_the_result_of_a_script_loses_one_line_end_on_either_side(room: Room) -> None:
    ran = room.drive({"START.sh": 'printf "<result>\\n\\n  text \\n\\n</result>"'})
    assert ran.result == "\n  text \n"


def test_invalid_utf_8_is_replaced_and_noted_in_the_transcript(room: Room) -> None:
    ran = room.drive({"START.sh": r"""printf '<result>a\xff\xfeb</result>'; printf 'caf\xe9\n' >&2"""})
    assert ran.result == "a\ufffd\ufffdb"
    [step] = ran.transcript()
    assert (step["out"], step["err"]) == ("<result>a\ufffd\ufffdb</result>", "caf\ufffd\n")
    assert "invalid UTF-8 in stdout was replaced\n" in step["note"]
    assert "invalid UTF-8 in stderr was replaced\n" in step["note"]


def test_a_character_cut_off_by_the_end_of_the_output_is_replaced(room: Room) -> None:
    ran = room.drive({"START.sh": r"""printf '<result>ok</result>\xe2\x82'"""})
    assert ran.result == "ok"
    assert ran.transcript()[0]["out"] == "<result>ok</result>\ufffd"


@pytest.mark.slow
def test_a_character_split_over_two_writes_is_whole(room: Room) -> None:
    """The second half is written when the first has been read: the print between them was shown."""
    script = r"""
    printf '<print>first</print><result>\xe2\x82'
    %s
    printf '\xac and \xf0\x9f\xa6'; printf '\x8a</result>'
    """
    with room.start("run", room.flow({"START.sh": script % GO}), "--id", "r") as live:
        live.sees("main | first")
        room.go()
        ran = live.wait()
    assert ran.out == "€ and 🦊\n"
    assert "note" not in ran.transcript()[0]


def test_a_character_split_over_every_chunk_of_a_long_output_is_whole(room: Room) -> None:
    """An odd first byte puts each chunk's end into the middle of a character."""
    script = "import sys\nsys.stdout.buffer.write(('<result>x' + 'é' * 300_000 + '</result>').encode())"
    ran = room.drive({"START.py": script})
    assert ran.result == "x" + "é" * 300_000
    assert "note" not in ran.transcript()[0]


def test_a_line_of_two_mib_is_no_trouble(room: Room) -> None:
    ran = room.drive({"START.sh": "head -c 2097152 /dev/zero | tr '\\0' a; echo '<result>read</result>'"})
    assert ran.result == "read"
    assert len(ran.transcript()[0]["out"]) == 2097152 + len("<result>read</result>\n")


@pytest.mark.slow
def test_a_result_of_two_mib_arrives_whole(room: Room) -> None:
    script = "printf '<result>'; head -c 2097152 /dev/zero | tr '\\0' a; echo '</result>'"
    ran = room.command({"START.sh": script})
    assert (ran.code, ran.out) == (0, "a" * 2097152 + "\n")


@pytest.mark.slow
def test_a_payload_over_8_mib_is_refused(room: Room) -> None:
    ran = room.drive({"START.sh": "printf '<result>'; head -c 9000000 /dev/zero | tr '\\0' a; echo '</result>'"})
    assert failure(ran) == "script: the text of <result> is longer than 8 MiB"


def peak(room: Room, script: str) -> int:
    """Bytes the driver needed at most."""
    args = [sys.executable, "-m", "raymond", "run", room.flow({"START.sh": script}), "--quiet"]
    pid = os.posix_spawn(args[0], args, room.environment, file_actions=[(os.POSIX_SPAWN_OPEN, 2, "/dev/null", 1, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_maxrss * 1024


@pytest.mark.slow
def test_50_mb_of_output_need_no_memory(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room.path)
    long = "yes 'one more line of output' | head -c 50000000; echo; echo '<result></result>'"
    assert peak(room, long) - peak(room, "echo '<result></result>'") < 60_000_000


def test_several_forks_from_one_script_are_started_in_the_order_written(room: Room) -> None:
    ran = room.drive(
        {
            "START.sh": 'for n in 1 2 3; do echo "<fork number=\\"$n\\">WORK</fork>"; done; echo "<wait>END</wait>"',
            "WORK.sh": 'echo "<result>$RAYMOND_VAR_number</result>"',
            "END.py": "import json, os\nprint('<result>', *(one['result'] for one in json.loads(os.environ['RAYMOND_INPUT'])), '</result>')",
        }
    )
    assert [event.agent for event in ran.all(AgentStarted)] == ["main", "main_work1", "main_work2", "main_work3"]
    assert ran.result == " 1 2 3 "


def test_a_print_of_a_script_that_fails_is_shown_too(room: Room) -> None:
    ran = room.drive({"START.sh": "echo '<print>tried</print>'; exit 1"})
    assert "main | tried" in ran.lines


# What a script leaves behind


def noted(room: Room, name: str) -> int:
    """The pid that a script wrote to a file."""
    file = room.path / name
    return int(until(lambda: file.read_text() if file.exists() else "", name))


@pytest.mark.slow
def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_the_step_up(
    either: tuple[Room, Callable[..., Ran]],
) -> None:
    """The step ends with its process; the grandchild would hold its output for 1000 seconds."""
    room, run = either
    ran = run({"START.sh": "sleep 1000 & echo '<goto>NEXT</goto>'", "NEXT.sh": "echo '<result>next</result>'"})
    assert (ran.code, ran.result) == (0, "next")
    room.nothing_runs()


@pytest.mark.slow
def test_grandchildren_that_never_stop_speaking_do_not_hold_the_step_up(room: Room) -> None:
    ran = room.drive({"START.sh": "for n in 1 2 3; do yes & done; echo '<result>done</result>'"})
    assert (ran.code, ran.result) == (0, "done")
    room.nothing_runs()


@pytest.mark.parametrize(
    ("last", "kept"),
    [("the prefix is ghp_", "the prefix is ghp_"), ("cut off: \\xc3", "cut off: \ufffd"), ("\\\\u00", "\\u00")],
    ids=["the beginning of a token", "half a character", "half an escape"],
)
def test_the_last_words_are_not_lost_when_a_grandchild_keeps_the_pipe_open(room: Room, last: str, kept: str) -> None:
    ran = room.drive({"START.sh": f"sleep 1000 & printf '<result>done</result>\\n{last}'"})
    assert (ran.code, ran.result) == (0, "done")
    assert ran.transcript()[0]["out"] == f"<result>done</result>\n{kept}"
    room.nothing_runs()


BURST = """
import fcntl, os, subprocess
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
subprocess.Popen(["sleep", "1000"])
os.write(1, b"<result>done</result>\\n" + b"." * 1_000_000)
"""


def test_what_a_script_leaves_in_its_pipe_is_read_in_slices_and_the_driver_looks_around_between_them(
    room: Room,
) -> None:
    """Counted, not timed: how often a pipe is read between two looks at what else has happened."""
    reads = [0]

    def count(frame: FrameType, event: str, what: object) -> None:
        name = getattr(what, "__name__", "") if event == "c_call" else ""
        if name == "poll":
            reads.append(0)
        elif name == "read" and "/steps/" in frame.f_code.co_filename:
            reads[-1] += 1

    sys.setprofile(count)
    try:
        ran = room.drive({"START.py": BURST})
    finally:
        sys.setprofile(None)
    assert ran.result == "done"
    assert ran.transcript()[0]["out"].endswith("." * 1_000_000)
    assert 0 < max(reads) * SLICE <= 1 << 17


@pytest.mark.slow
def test_a_script_that_closes_its_outputs_is_waited_for(either: tuple[Room, Callable[..., Ran]]) -> None:
    _, run = either
    ran = run({"START.sh": "echo '<result>said</result>'; exec >&- 2>&-; sleep 0.1; exit 4"})
    assert failure(ran) == "script: ended with exit code 4"


def test_what_a_grandchild_says_right_after_the_end_still_counts(room: Room) -> None:
    ran = room.drive({"START.sh": "(sleep 0.02; echo '<result>late</result>') & exit 0"})
    assert ran.result == "late"


def test_a_pipe_that_speaks_and_ends_while_the_driver_looks_away_is_read(room: Room) -> None:
    """The end of the process, more output and the end of the pipe come to the driver at once, in this order."""
    script = f"""
    (exec 3>&1 1>&-; echo $BASHPID > grandchild; while [ ! -e go2 ]; do sleep 0.02; done; echo '<result>all</result>' >&3) &
    echo $$ > pid
    {GO}
    """
    with room.start("run", room.flow({"START.sh": script}), "--id", "r") as live:
        pid, grandchild = noted(room, "pid"), noted(room, "grandchild")
        live.signal(signal.SIGSTOP)
        room.go()
        until(lambda: zombie(pid), "the end of the script")
        (room.path / "go2").touch()
        until(lambda: not alive(grandchild), "the end of the grandchild")
        live.signal(signal.SIGCONT)
        ran = live.wait()
    assert (ran.code, ran.out) == (0, "all\n"), ran.err


DAEMON = """
setsid bash -c 'echo $$ > daemon; exec sleep 1000' < /dev/null > /dev/null 2>&1 &
while [ ! -s daemon ]; do sleep 0.02; done
echo "<goto>LATER</goto>"
"""


def test_a_daemon_stays_for_later_steps_and_is_gone_when_the_run_ends(room: Room) -> None:
    later = 'if kill -0 $(cat daemon); then echo "<result>serves</result>"; fi'
    ran = room.drive({"START.sh": DAEMON, "LATER.sh": later})
    assert (ran.code, ran.result) == (0, "serves")
    assert not alive(int((room.path / "daemon").read_text()))
    room.nothing_runs()


def test_a_daemon_that_ignores_sigterm_is_gone_too_when_the_run_ends(room: Room, impatient: None) -> None:
    daemon = DAEMON.replace("echo $$ > daemon;", 'trap "" TERM; echo $$ > daemon;')
    ran = room.drive({"START.sh": daemon, "LATER.sh": "echo '<result></result>'"})
    assert ran.code == 0
    room.nothing_runs()


@pytest.mark.slow
def test_without_proc_what_runs_in_the_background_of_an_ended_script_is_gone_when_the_run_ends(tmp_path: Path) -> None:
    """Its leader is gone and only the group is left."""
    room = Room(tmp_path, RAYMOND_PORTABLE="1")
    background = "sleep 1000 < /dev/null > /dev/null 2>&1 & echo $! > daemon; echo '<goto>LATER</goto>'"
    later = 'if kill -0 $(cat daemon); then echo "<result>serves</result>"; fi'
    ran = room.command({"START.sh": background, "LATER.sh": later})
    assert (ran.code, ran.result) == (0, "serves")
    assert not alive(int((room.path / "daemon").read_text()))
    room.clear()


@pytest.mark.slow
def test_a_daemon_is_gone_when_the_run_is_paused(room: Room) -> None:
    with room.start(
        "run", room.flow({"START.sh": DAEMON, "LATER.sh": GO + "; echo '<goto>END</goto>'", "END.sh": ""}), "--id", "r"
    ) as live:
        live.sees("main START.sh -> LATER.sh (goto)")
        daemon = int((room.path / "daemon").read_text())
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        assert alive(daemon)
        room.go()
        assert live.wait().code == 130
        assert not alive(daemon)


# A Raymond inside a script


@pytest.mark.slow
def test_a_raymond_inside_a_script_has_a_project_of_its_own_and_adds_to_the_path_of_marks(room: Room) -> None:
    inner = room.flow(
        {"START.sh": 'echo "<result>$RAYMOND_STEP $RAYMOND_WORKFLOW_ID ${RAYMOND_VAR_colour-none}</result>"'}, "inner"
    )
    outer = f"""
    mkdir nested; cd nested
    echo "<result>$({sys.executable} -m raymond run {inner} --id inner)</result>"
    """
    ran = room.drive({"START.sh": outer}, variables={"colour": "red"})
    assert ran.result
    marks, id, colour = ran.result.split()
    first, second = marks.split(":")
    assert first == f"{ran.run.start.key}/1"
    assert second.endswith("/1")
    assert second != first
    assert (id, colour) == ("inner", "none")
    assert Project(room.project.home, f"{room.path}/nested").run("inner").exists
    assert not room.project.run("inner").exists


@pytest.mark.slow
def test_the_end_of_the_outer_run_ends_what_the_inner_one_started(room: Room) -> None:
    inner = room.flow({"START.sh": "echo $$ > inner; sleep 1000"}, "inner")
    outer = f"mkdir nested; cd nested; exec {sys.executable} -m raymond run {inner} --id inner >&2"
    with room.start("run", room.flow({"START.sh": outer}), "--id", "r") as live:
        file = room.path / "nested" / "inner"
        pid = int(until(lambda: file.read_text() if file.exists() else "", "the script of the inner run"))
        live.signal(signal.SIGTERM)
        assert live.wait().code == 143
        assert not alive(pid)
        room.nothing_runs()


@pytest.mark.slow
def test_a_raymond_left_behind_in_the_background_is_ended_with_its_processes(room: Room) -> None:
    """It is nobody's child any more, and its script is in yet another session; both carry the outer mark."""
    inner = room.flow({"START.sh": "echo $$ > inner; sleep 1000"}, "inner")
    outer = f"""
    mkdir nested; cd nested
    (setsid {sys.executable} -m raymond run {inner} --id inner >&2 &)
    while [ ! -s inner ]; do sleep 0.02; done
    echo "<result></result>"
    """
    ran = room.command({"START.sh": outer})
    assert ran.code == 0
    assert not alive(int((room.path / "nested" / "inner").read_text()))
    room.nothing_runs()


def test_a_finished_step_has_its_place_in_the_transcript(room: Room) -> None:
    ran = room.drive({"START.sh": "echo said; echo '<goto>NEXT</goto>'", "NEXT.sh": "echo '<result></result>'"})
    first, second = ran.transcript()
    assert (first["step"], first["state"], first["attempt"], first["exit"]) == (1, "START.sh", 1, 0)
    assert (second["step"], second["state"], second["out"]) == (2, "NEXT.sh", "<result></result>\n")
    assert ran.all(StepFinished)[0].offset == 0
