"""The command line, as people use it: what is printed where, and the code it ends with."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from raymond import durations
from raymond.cli import COMMANDS, GROUPS, HIDDEN, demo
from raymond.cli.by_click import Grouped, group
from raymond.store.lock import Holder
from running import GO, Room, until

ROOT = Path(__file__).resolve().parents[2]
DONE = {"START.sh": "echo '<result>done</result>'"}
ASKS = {"START.sh": "echo '<ask next=\"END\">Which one?</ask>'", "END.sh": 'echo "<result>$RAYMOND_INPUT</result>"'}
HELD = {"START.sh": f"touch started; {GO}; echo '<result>done</result>'"}


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def held(room: Room) -> None:
    until(lambda: (room.path / "started").exists(), "the script")


# Endings


def test_a_run_that_is_done_says_so_in_four_lines_and_only_its_result_on_stdout(room: Room) -> None:
    ran = room.command(DONE)
    assert (ran.code, ran.out) == (0, "done\n")
    how, *rest = ran.lines[-4:]
    assert re.fullmatch(r"completed: r after \d+ms|completed: r after \d\.\ds", how)
    assert rest == [
        "cost:   $0.00 in 1 step",
        "result: done",
        "next:   raymond logs r",
    ]


@pytest.mark.slow
def test_everything_that_happens_is_told_in_lines_with_their_time(room: Room) -> None:
    ran = room.command({"START.sh": "echo '<goto>END</goto>'", "END.sh": "echo '<result>done</result>'"})
    shown = ran.err.splitlines()[:-4]
    assert all(re.match(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] \S", line) for line in shown)
    assert ran.lines[:-4] == [
        "run r started here: flow at START.sh, budget $10.00 (default)",
        "main starts at START.sh",
        "main START.sh -> END.sh (goto)",
        "main done",
        "run completed",
    ]


def test_quiet_tells_only_what_steps_print_and_the_ending(room: Room) -> None:
    ran = room.command({"START.sh": "echo '<print>hello</print><result>done</result>'"}, "--quiet")
    assert ran.lines[0] == "main | hello"
    assert len(ran.lines) == 5


@pytest.mark.slow
def test_a_result_that_ends_in_a_newline_gets_no_second_one(room: Room) -> None:
    assert room.command({"START.sh": "printf '<result>a\\n\\n</result>'"}).out == "a\n"


@pytest.mark.slow
def test_an_empty_result_is_one_empty_line(room: Room) -> None:
    assert room.command({"START.sh": "echo '<result></result>'"}).out == "\n"


@pytest.mark.slow
def test_a_long_result_is_cut_in_the_ending_and_whole_on_stdout(room: Room) -> None:
    ran = room.command({"START.py": "print('<result>' + 'x' * 500 + '</result>')"})
    assert ran.out == "x" * 500 + "\n"
    assert ran.lines[-2] == f"result: {'x' * 160} ..."


@pytest.mark.slow
def test_an_agent_that_failed_comes_before_one_that_asks(room: Room) -> None:
    files = {**ASKS, "FIRST.sh": "echo '<fork>BAD</fork><goto>START</goto>'", "BAD.sh": "exit 1"}
    room.flow(files)
    assert told(room.raymond("run", f"{room.path.parent}/flow/FIRST.sh"))[0] == 1


# Starting


def test_a_path_alone_is_run(room: Room) -> None:
    done = room.raymond(room.flow(DONE))
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_one_file_can_be_run(room: Room) -> None:
    flow = room.flow({"ONE.sh": "echo '<goto>TWO</goto>'", "TWO.sh": "echo '<result>two</result>'"})
    assert room.raymond("run", f"{flow}/ONE.sh").stdout == "two\n"


def test_an_id_is_made_of_the_name_and_eight_digits(room: Room) -> None:
    room.raymond("run", room.flow(DONE))
    [id] = room.project.ids()
    assert re.fullmatch(r"flow-[0-9a-f]{8}", id)


@pytest.mark.slow
def test_a_dry_run_refuses_an_id_that_exists_as_the_run_would(room: Room) -> None:
    room.drive(DONE)
    flow = room.flow(DONE)
    refused = told(room.raymond("run", flow, "--id", "r", "--dry-run"))
    assert refused == told(room.raymond("run", flow, "--id", "r"))
    assert refused[0] == 2
    document = room.raymond("run", flow, "--id", "r", "--dry-run", "--json")
    [error] = json.loads(document.stdout)["errors"]
    assert (document.returncode, error["message"]) == (2, "run `r` already exists")


@pytest.mark.slow
def test_a_dry_run_refuses_what_is_in_the_way_of_the_folder_as_the_run_would(room: Room) -> None:
    room.drive(DONE)
    flow, folder = room.flow(DONE), Path(room.project.run("other").path)
    folder.mkdir(0o700)
    assert room.raymond("run", flow, "--id", "other", "--dry-run").returncode == 0, "an empty folder is not"
    (folder / "notes").touch()
    refused = told(room.raymond("run", flow, "--id", "other", "--dry-run"))
    assert refused == told(room.raymond("run", flow, "--id", "other"))
    assert refused[2].startswith(f"error: {folder} is in the way\n")


@pytest.mark.parametrize("id", ["a/b", "../x", "", "x" * 101, "a b"])
def test_what_cannot_be_an_id_is_refused(room: Room, id: str) -> None:
    done = room.raymond("run", room.flow(DONE), f"--id={id}")
    if not id:
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: --id is empty")
    else:
        assert told(done) == (
            2,
            "",
            f"error: `{id}` is not a valid id\nhint: use up to 100 letters, digits, _ and -\n",
        )


def test_an_invalid_workflow_is_shown_with_its_place_and_nothing_is_written(room: Room) -> None:
    ran = room.command({"START.md": "Do it.\n\n`<goto>NEXTT</goto>`\n", "NEXT.md": "", "replies.yaml": ""})
    assert ran.code == 6
    assert ran.err == (
        "error: there is no state `NEXTT`\n"
        " --> ../flow/START.md:3:8\n"
        "  |\n"
        "3 | `<goto>NEXTT</goto>`\n"
        "  |        ^^^^^\n"
        "hint: did you mean `NEXT.md`?\n"
    )
    assert room.project.ids() == []


@pytest.mark.slow
def test_an_input_can_be_a_text_a_file_or_stdin(room: Room) -> None:
    flow = room.flow({"START.sh": 'echo "<result>$(cat $RAYMOND_INPUT_FILE)</result>"'})
    (room.path / "in.txt").write_text("from a file")
    assert room.raymond("run", flow, "--input", "a text").stdout == "a text\n"
    assert room.raymond("run", flow, "--input", "@in.txt").stdout == "from a file\n"
    piped = room.raymond("run", flow, "--input", "-", stdin=None, input="from stdin é")
    assert piped.stdout == "from stdin é\n"


@pytest.mark.slow
def test_an_input_that_is_not_utf_8_is_refused(room: Room) -> None:
    flow = room.flow(DONE)
    (room.path / "in.txt").write_bytes(b"caf\xe9")
    with (room.path / "in.txt").open("rb") as stdin:
        assert told(room.raymond("run", flow, "--input", "-", stdin=stdin)) == (
            2,
            "",
            "error: stdin is not UTF-8 (byte 4)\nhint: save it as UTF-8\n",
        )
    assert told(room.raymond("run", flow, "--input", "@in.txt")) == (
        2,
        "",
        "error: `in.txt` is not UTF-8 (byte 4)\nhint: save it as UTF-8\n",
    )
    argument = subprocess.run(
        [sys.executable, "-m", "raymond", "run", flow, "--input", b"caf\xe9"],
        cwd=room.path,
        env=room.environment,
        capture_output=True,
        check=False,
    )
    assert (argument.returncode, argument.stderr) == (
        2,
        b"error: `caf?` is not UTF-8\nhint: rename the file in UTF-8, or pass the text as @FILE\n",
    )


def test_a_workflow_that_needs_an_input_says_which(room: Room) -> None:
    ran = room.command({**DONE, "workflow.yaml": "input: {required: true, description: the ticket}"})
    assert (ran.code, ran.err) == (2, "error: flow needs an input\nhint: --input TEXT (the ticket)\n")


def test_variables_and_settings_are_given_with_flags(room: Room) -> None:
    script = """
    # /// raymond
    # max_visits: 1
    # ///
    if [ $RAYMOND_VISIT = 3 ]; then echo "<result>$RAYMOND_VAR_colour=$RAYMOND_VAR_empty.</result>"; else echo "<goto>START</goto>"; fi
    """
    flags = ("--var", "colour=a=b", "--var", "empty=", "--set", "START.max_visits=3")
    assert room.command({"START.sh": script}, *flags).out == "a=b=.\n"


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_every_command_in_its_group(room: Room, args: tuple[str, ...]) -> None:
    done = room.raymond(*args)
    assert (done.returncode, done.stderr) == (0, "")
    shown = {}
    for name, commands in GROUPS.items():
        section = done.stdout.partition(f"\n{name}:\n")[2].partition("\n\n")[0]
        shown[name] = re.findall(r"^  (\S+)", section, re.MULTILINE)
        assert shown[name] == [*commands]
    assert [*shown] == ["Start", "Watch", "Decide", "Steer", "Plans", "Write", "Upkeep"]
    assert sum(map(len, shown.values())) <= 34
    assert not {*HIDDEN} & {one for names in shown.values() for one in names}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(room: Room, command: str) -> None:
    done = room.raymond(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: raymond {command} ")
    assert "x>=" not in done.stdout


def every_command(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, child in command.commands.items() if isinstance(command, click.Group) else ():
        yield from every_command(f"{path} {name}", child)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_shows_more_than_15_flags_and_help_all_shows_every_one(command: str) -> None:
    context = click.Context(group, info_name="raymond")
    found = group.get_command(context, command)
    assert found
    for path, one in every_command(command, found):
        shown = re.findall(r"^  (-\S+)", click.Context(one, info_name=path).get_help(), re.MULTILINE)
        assert len(shown) <= 15, path
        if not isinstance(one, Grouped):
            continue
        told = CliRunner().invoke(one, ["--help-all"], prog_name=path)
        names = {name for param in one.params if isinstance(param, click.Option) for name in param.opts}
        assert told.exit_code == 0
        assert names <= {*re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", told.output)}, path


def test_the_version_is_told(room: Room) -> None:
    assert re.fullmatch(r"raymond \d+\.\d+\.\d+\S*\n", room.raymond("--version").stdout)


# In the background


@pytest.mark.slow
def test_in_the_background_the_id_is_printed_and_the_run_goes_on(room: Room) -> None:
    done = room.raymond("run", room.flow(HELD), "--id", "r", "-d")
    log = Path(room.project.run("r").log)
    first, *rest = done.stderr.splitlines()
    assert (done.returncode, done.stdout, rest) == (0, "r\n", [f"running in the background; log: {log}"])
    assert first.partition("] ")[2] == "run r started here: flow at START.sh, budget $10.00 (default)"
    held(room)
    status = json.loads(room.raymond("status", "r", "--json").stdout)
    assert status["status"] == "running"
    room.go()
    until(lambda: "next:   raymond logs r" in log.read_text(), "the end of the run")
    room.nothing_runs()
    text = log.read_text()
    assert "main starts at START.sh\n" in text
    assert text.endswith("next:   raymond logs r\ndone\n")
    assert oct(log.stat().st_mode)[-3:] == "600"


@pytest.mark.slow
def test_a_run_in_the_background_has_left_the_terminal(room: Room) -> None:
    room.raymond("run", room.flow(HELD), "--id", "r", "-d")
    held(room)
    pid = json.loads(Path(room.project.run("r").driver).read_text())["pid"]
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert os.readlink(f"/proc/{pid}/fd/2") == room.project.run("r").log
    os.kill(pid, signal.SIGTERM)
    room.nothing_runs()


@pytest.mark.slow
def test_errors_before_the_run_begins_come_to_the_terminal_and_not_to_a_log(room: Room) -> None:
    invalid = room.raymond("run", room.flow({"START.md": "---\nx: 1\n---\n"}, "bad"), "-d")
    assert (invalid.returncode, invalid.stdout) == (6, "")
    assert invalid.stderr.startswith("error: there is no key `x`\n --> ../bad/START.md:2:1\n")
    room.drive(DONE)
    assert told(room.raymond("run", room.flow(DONE), "--id", "r", "-d")) == (
        2,
        "",
        "error: run `r` already exists\nhint: `raymond status r` shows it; choose another --id\n",
    )
    assert room.project.ids() == ["r"]
    assert not os.path.exists(room.project.run("r").log)


DIES = """import os, signal, sys
fork = os.fork
os.fork = lambda: fork() or os.kill(os.getpid(), signal.SIGKILL)
from raymond import cli
sys.exit(cli.main(sys.argv[1:]))"""


@pytest.mark.slow
def test_a_process_that_is_killed_before_it_drives_is_said_and_is_not_our_bug(room: Room) -> None:
    flow = room.flow({"START.sh": "echo '<result>done</result>'"})
    command = [sys.executable, "-c", DIES, "run", flow, "--id", "r", "-d"]
    done = subprocess.run(command, cwd=room.path, env=room.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.partition("\n")[2]) == (
        1,
        "",
        "error: the background process was ended before it could drive the run\nhint: raymond resume r\n",
    )
    assert room.resume().out == "done\n"


@pytest.mark.slow
def test_a_second_process_in_the_background_is_refused_at_the_terminal(room: Room) -> None:
    room.raymond("run", room.flow(HELD), "--id", "r", "-d")
    held(room)
    pid = json.loads(Path(room.project.run("r").driver).read_text())["pid"]
    hint = "`raymond stop r` stops it; `raymond status r` shows what it does"
    assert told(room.raymond("resume", "r", "-d")) == (1, "", f"error: process {pid} drives r\nhint: {hint}\n")
    room.go()
    room.nothing_runs()


@pytest.mark.slow
def test_a_run_can_be_resumed_in_the_background(room: Room) -> None:
    room.drive(ASKS)
    room.raymond("answer", "r", "this one", "--no-resume")
    assert room.raymond("resume", "r", "-d").stdout == "r\n"
    room.nothing_runs()
    assert json.loads(room.raymond("status", "r", "--json").stdout)["results"] == {"main": "this one"}


# Looking


def documented() -> dict[str, Any]:
    """The example of a state file."""
    page = (ROOT / "docs" / "json.md").read_text("utf-8")
    found = re.search(r"^## Run\n.*?```json\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert found
    example: dict[str, Any] = json.loads(found[1])
    return example


@pytest.mark.slow
def test_the_status_as_json_has_exactly_the_documented_keys(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork n=\"1\">WORK</fork><goto>CALL</goto>'",
        "WORK.sh": "echo '<result>worked</result>'",
        "CALL.sh": "echo '<call return=\"END\">ASK</call>'",
        "ASK.sh": 'echo \'<ask next="END" timeout="1h">Which?</ask>\'',
        "END.sh": "echo '<result></result>'",
    }
    with room.start("run", room.flow(files), "--id", "r", "--var", "k=v", "--budget", "5") as live:
        live.sees("main asks: Which?")
        live.sees("main_work1 (1) done")
        live.signal(signal.SIGINT)
        live.wait()
    found, example = json.loads(room.raymond("status", "--json").stdout), documented()
    assert list(found) == list(example)
    assert list(found["agents"][0]) == list(example["agents"][0])
    assert list(found["agents"][0]["stack"][0]) == list(example["agents"][0]["stack"][0])
    assert (found["workflow_id"], found["status"], found["reason"]) == ("r", "paused", "paused with Ctrl-C")
    assert (found["budget_usd"], found["max_iterations"], found["metadata"]) == (5.0, None, {"k": "v"})
    assert (found["fork_counters"], found["results"]) == ({"main": 1}, {"main_work1": "worked"})
    [main] = found["agents"]
    assert (main["id"], main["current_state"], main["status"], main["question"]) == (
        "main",
        "ASK.sh",
        "asking",
        "Which?",
    )
    assert main["cwd"] == str(room.path)
    assert main["stack"] == [{"session": None, "state": "END.sh", "cwd": str(room.path)}]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", main["wake_at"])


@pytest.mark.slow
def test_the_state_file_says_what_status_says(room: Room) -> None:
    room.drive(ASKS)
    kept = json.loads(Path(room.project.run("r").state).read_text())
    assert kept.pop("journal_bytes") == os.stat(room.project.run("r").journal).st_size
    assert kept == json.loads(room.raymond("status", "--json").stdout)


@pytest.mark.slow
def test_status_shows_every_agent_and_the_command_that_leads_on(room: Room) -> None:
    room.drive(ASKS)
    done = room.raymond("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [re.sub(r"\d+(\.\d)?m?s", "T", line) for line in done.stdout.splitlines()]
    assert lines == [
        "r: waiting (1 agent waits for an answer), not running",
        f"  flow from {room.path.parent}/flow",
        "  1 step, $0.00 of $10.00, T",
        "  main  START.sh  asking  T",
        "      asks:  Which one? (question 1)",
        "      next:  raymond answer r main",
        "next: raymond answer r",
    ]


@pytest.mark.slow
def test_status_of_a_live_run_names_the_process_and_how_to_watch_it(room: Room) -> None:
    with room.start("run", room.flow(HELD), "--id", "r") as live:
        held(room)
        lines = room.raymond("status").stdout.splitlines()
        assert (lines[0], lines[-1]) == (f"r: running in process {live.pid}", "next: raymond attach r")


@pytest.mark.slow
def test_status_of_a_run_that_is_done_shows_its_result(room: Room) -> None:
    room.drive(DONE)
    lines = room.raymond("status", "r").stdout.splitlines()
    assert (lines[0], lines[-2:]) == ("r: completed", ["result: done", "next: raymond logs r"])


@pytest.mark.slow
def test_list_shows_the_latest_run_first(room: Room) -> None:
    room.drive(DONE, id="first")
    room.drive(ASKS, id="the-second")
    lines = room.raymond("list").stdout.splitlines()
    assert [re.sub(r"\d+(\.\d)?m?s", "T", line).split() for line in lines] == [
        ["ID", "STATUS", "AGE", "WORKFLOW", "AT", "COST", "WHY"],
        ["needs", "you"],
        "the-second waiting T flow START.sh $0.00 1 agent waits for an answer".split(),
        ["done"],
        ["first", "completed", "T", "flow", "$0.00"],
    ]


@pytest.mark.slow
def test_list_as_json_is_one_document(room: Room) -> None:
    room.drive(DONE)
    [row] = json.loads(room.raymond("list", "--json").stdout)
    instant = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert all(re.fullmatch(instant, row.pop(name)) for name in ("started_at", "updated_at"))
    assert row == {
        "workflow_id": "r",
        "project": str(room.path),
        "status": "completed",
        "driven": False,
        "pid": None,
        "workflow": "flow",
        "at": "",
        "is_over": True,
        "exit_code": 0,
        "agents": 1,
        "cost_usd": 0.0,
        "cost_is_estimated": False,
        "error": None,
        "group": "done",
        "reason": None,
        "questions": 0,
        "reviews": 0,
        "agents_failed": 0,
        "budget_usd": 10.0,
        "scripted_cost_usd": 0.0,
    }


@pytest.mark.slow
def test_a_run_whose_driver_is_dead_is_listed_as_interrupted(room: Room) -> None:
    with room.start("run", room.flow(HELD), "--id", "r") as live:
        held(room)
        assert json.loads(room.raymond("list", "--json").stdout)[0]["driven"] is True
        assert room.raymond("list").stdout.splitlines()[2].split()[:2] == ["r", "running"]
        live.signal(signal.SIGKILL)
        live.wait()
        assert room.raymond("list").stdout.splitlines()[2].split()[:2] == ["r", "interrupted"]
        assert json.loads(room.raymond("status", "r", "--json").stdout)["status"] == "interrupted"
        assert json.loads(room.raymond("wait", "r", "--json").stdout)["status"] == "interrupted"


@pytest.mark.slow
def test_list_where_nothing_was_started(room: Room) -> None:
    hint = "raymond run PATH starts one; raymond list --all shows the runs of all projects"
    assert told(room.raymond("list")) == (0, "", f"no run has been started here yet\nhint: {hint}\n")
    assert told(room.raymond("list", "--json")) == (0, "[]\n", "")


@pytest.mark.slow
def test_a_journal_that_cannot_be_read_does_not_hide_the_other_runs(room: Room) -> None:
    room.drive(DONE)
    room.folder("broken").mkdir()
    Path(room.project.run("broken").journal).write_text("no journal\n")
    rows = json.loads(room.raymond("list", "--json").stdout)
    assert {row["workflow_id"]: row["status"] for row in rows} == {"r": "completed", "broken": "unreadable"}
    assert rows[0].keys() == rows[1].keys()
    assert room.raymond("list").stdout.splitlines()[2].split()[:2] == ["broken", "unreadable"]


@pytest.mark.slow
def test_looking_writes_nothing(room: Room) -> None:
    room.drive(ASKS)

    def everything() -> dict[str, tuple[int, int]]:
        found = [*(room.path / ".raymond").rglob("*"), *room.home.rglob("*")]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = everything()
    for args in (("status",), ("status", "--json"), ("list",), ("list", "--json")):
        assert room.raymond(*args).returncode == 0
    assert everything() == before


# Naming a run


@pytest.mark.slow
def test_a_run_is_named_by_any_unique_beginning(room: Room) -> None:
    room.drive(ASKS, id="alpha-1")
    room.drive(ASKS, id="beta-1")
    assert room.raymond("answer", "al", "yes", "--no-resume").returncode == 0
    assert room.raymond("resume", "al").stdout == "yes\n"


@pytest.mark.slow
def test_a_beginning_of_two_ids_is_refused_with_both(room: Room) -> None:
    for id in ("alpha-1", "alpha-2"):
        room.drive(DONE, id=id)
    code, out, err = told(room.raymond("resume", "alpha"))
    assert (code, out) == (2, "")
    which = r"  raymond resume alpha-2  completed +\S+\n  raymond resume alpha-1  completed +\S+\n"
    assert re.fullmatch(rf"error: `alpha` is the beginning of 2 runs\nhint: say which:\n{which}", err)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "resume", "stop"])
def test_without_a_name_no_run_of_another_project_is_meant(room: Room, command: str) -> None:
    room.drive(ASKS)
    nowhere = room.path.parent / "nowhere"
    nowhere.mkdir()
    done = room.raymond(command, cwd=nowhere)
    hint = "raymond run PATH starts one; raymond list --all shows the runs of all projects"
    *said, which = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said == ["error: no run has been started here yet", f"hint: {hint}", "or say which:"]
    assert re.fullmatch(
        rf"  raymond {command} r  waiting  \S+  1 agent waits for an answer  {re.escape(str(room.path))}", which
    )
    assert os.listdir(nowhere) == []


@pytest.mark.slow
def test_what_changes_a_run_needs_its_name_when_several_are_live(room: Room) -> None:
    room.drive(ASKS, id="one")
    room.drive(ASKS, id="two")
    for args in (("resume",), ("stop",)):
        code, out, err = told(room.raymond(*args))
        assert (code, out) == (2, "")
        which = "".join(
            rf"  raymond {args[0]} {id}  waiting +\S+  1 agent waits for an answer\n" for id in ("two", "one")
        )
        assert re.fullmatch(rf"error: 2 runs match\nhint: say which:\n{which}", err)
    assert room.raymond("status").stdout.startswith("two: waiting"), "looking takes the latest"


@pytest.mark.slow
def test_without_a_name_the_only_live_run_is_meant(room: Room) -> None:
    room.drive(ASKS, id="live")
    room.drive(DONE, id="later")
    assert room.raymond("answer", "main", "yes", "--no-resume").returncode == 0
    assert room.raymond("resume").stdout == "yes\n"


@pytest.mark.slow
def test_a_resume_without_a_name_says_which_run_it_takes_and_never_chooses_between_two(room: Room) -> None:
    fails = {"START.sh": "exit 1", "END.sh": "echo '<result>ended</result>'"}
    room.drive(fails, id="broken")
    done = room.raymond("resume", "--agent", "main", "--goto", "END")
    assert (done.stdout, done.stderr.splitlines()[0]) == ("ended\n", "resuming broken")
    assert room.raymond("resume").stderr.splitlines()[0] == "broken has ended: nothing to resume"
    room.drive(fails, id="other")
    room.drive({"START.sh": "echo '<goto>START</goto>'"}, id="limited", max_iterations=2)
    before = room.events("limited"), room.events("other")
    code, out, err = told(room.raymond("resume", "--agent", "main", "--goto", "END"))
    assert (code, out, (room.events("limited"), room.events("other"))) == (2, "", before)
    commands = [re.split(r"  +", line.strip())[:2] for line in err.splitlines()[2:]]
    assert err.startswith("error: 2 runs match\nhint: say which:\n")
    assert commands == [
        ["raymond resume limited --agent main --goto END", "stopped"],
        ["raymond resume other --agent main --goto END", "failed"],
    ]


@pytest.mark.slow
def test_a_run_resumed_from_elsewhere_goes_on_where_it_was_started(room: Room) -> None:
    room.command({**ASKS, "END.sh": 'echo "<result>$PWD</result>"'})
    (room.path / "sub").mkdir()
    room.raymond("answer", "r", "yes", "--no-resume", cwd=room.path / "sub")
    assert room.raymond("resume", "r", cwd=room.path / "sub").stdout == f"{room.path}\n"


# Answering and stopping what nobody drives


@pytest.mark.slow
def test_an_answer_can_come_from_a_file_or_from_stdin(room: Room) -> None:
    (room.path / "answer.txt").write_text("from a file")
    room.drive(ASKS, id="one")
    room.raymond("answer", "one", "@answer.txt", "--no-resume")
    assert room.raymond("resume", "one").stdout == "from a file\n"
    room.drive(ASKS, id="two")
    room.raymond("answer", "two", "-", "--no-resume", stdin=None, input="from stdin")
    assert room.raymond("resume", "two").stdout == "from stdin\n"


@pytest.mark.slow
def test_an_answer_needs_a_name_when_several_agents_ask(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork>ASK</fork><fork>ASK</fork><wait>END</wait>'",
        "ASK.sh": "echo '<ask next=\"TOLD\">Which?</ask>'",
        "TOLD.sh": 'echo "<result>$RAYMOND_INPUT</result>"',
        "END.sh": 'echo "<result>$RAYMOND_RESULTS</result>"',
    }
    ran = room.command(files)
    assert ran.code == 3
    assert told(room.raymond("answer", "r", "yes", "--no-resume")) == (
        2,
        "",
        "error: several agents are waiting for an answer: main_ask1, main_ask2\nhint: say which one: raymond answer r AGENT TEXT\n",
    )
    room.raymond("answer", "r", "main_ask2", "two", "--no-resume")
    room.raymond("answer", "r", "main_ask1", "one", "--no-resume")
    assert [one["result"] for one in json.loads(room.resume().out)] == ["one", "two"]


@pytest.mark.slow
def test_stopping_a_run_nobody_drives_is_journaled_at_once(room: Room) -> None:
    room.drive(ASKS)
    done = room.raymond("stop", "r")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == "r is stopped; to continue: raymond resume r"
    assert room.raymond("status").stdout.startswith("r: stopped (on request), not running\n")


@pytest.mark.slow
def test_a_run_that_has_ended_cannot_be_stopped(room: Room) -> None:
    room.drive(DONE)
    assert told(room.raymond("stop", "r")) == (
        2,
        "",
        "error: r has ended\nhint: `raymond logs r` shows what happened\n",
    )


# Streams


def closed(*numbers: int) -> Callable[[], None]:
    """Makes a child start with these streams closed."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)])
def test_a_run_does_not_mind_streams_that_are_closed(room: Room, numbers: tuple[int, ...]) -> None:
    script = "echo out; echo err >&2; echo '<result>done</result>'"
    subprocess.run(
        [sys.executable, "-m", "raymond", "run", room.flow({"START.sh": script}), "--id", "r"],
        cwd=room.path,
        env=room.environment,
        preexec_fn=closed(*numbers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    assert json.loads(room.raymond("status", "--json").stdout)["results"] == {"main": "done"}
    text = (Path(room.project.run("r").transcripts) / "main.jsonl").read_text()
    assert json.loads(text)["out"] == "out\n<result>done</result>\n"
    assert json.loads(text)["err"] == "err\n"


@pytest.mark.slow
@pytest.mark.parametrize("args", [("status",), ("status", "--json"), ("list",), ("list", "--json"), ("--help",)])
def test_a_reader_that_left_ends_a_command_without_a_word(room: Room, args: tuple[str, ...]) -> None:
    room.drive(DONE)
    reader, writer = os.pipe()
    os.close(reader)
    done = room.raymond(*args, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
def test_a_reader_that_left_does_not_end_a_run(room: Room) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = room.raymond("run", room.flow(DONE), "--id", "r", stdout=writer)
    os.close(writer)
    assert done.returncode == 141, "the result could not be delivered"
    assert done.stderr.splitlines()[-1] == "next:   raymond logs r"
    assert "Traceback" not in done.stderr
    assert json.loads(room.raymond("status", "--json").stdout)["results"] == {"main": "done"}


@pytest.mark.slow
def test_a_result_that_the_terminal_cannot_show_is_written_all_the_same(room: Room) -> None:
    done = room.raymond(
        "run", room.flow({"START.sh": "echo '<result>é</result>'"}), environment={"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stdout) == (0, "\\xe9\n")


@pytest.mark.slow
def test_the_demo_runs_to_its_end(room: Room) -> None:
    done = room.raymond("demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Release notes: features, fixes, upgrading. Reviewed three times, 7 words in the title.\n"


INSTALLED = str(Path(sys.executable).with_name("raymond"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "path", "shown"),
    [
        ((INSTALLED,), f"{os.path.dirname(INSTALLED)}:{os.defpath}", "raymond"),
        ((INSTALLED,), os.defpath, INSTALLED),
        ((sys.executable, "-m", "raymond"), os.defpath, f"{sys.executable} -m raymond"),
    ],
    ids=["on the PATH", "by its path", "as a module"],
)
def test_what_the_demo_suggests_can_be_pasted_wherever_raymond_is(
    room: Room, argv: tuple[str, ...], path: str, shown: str
) -> None:
    def typed(*words: str) -> "subprocess.CompletedProcess[str]":
        environment = {**room.environment, "PATH": path}
        return subprocess.run(words, cwd=room.path, env=environment, capture_output=True, text=True, check=False)

    done = typed(*argv, "demo")
    tried = re.findall(r"^  (\S.*)$", done.stderr.partition("three things to try:\n")[2], re.MULTILINE)
    assert [line.count(f"{shown} ") for line in tried] == [1, 1, 1]
    said = [typed("bash", "-c", line) for line in (tried[0], *(f"{line} --dry-run" for line in tried[1:]))]
    assert [one.returncode for one in said] == [0, 0, 0]
    assert "Developers who run agents overnight." in said[0].stdout


def test_the_demo_takes_ten_seconds_for_whoever_watches_and_no_time_otherwise() -> None:
    replies = yaml.safe_load(Path(demo.FOLDER, "replies.yaml").read_text("utf-8"))
    way = ["1_START.md", "main_write2/WRITE.md", "CHECK.md", "SEND.md", "ASSEMBLE.md", "FIX.md", "FIX.md"]
    turns = [*(replies[name] for name in way), *replies["REVIEW.md"]]
    assert 8 <= sum(durations.parse(turn["delay"]) or 0 for turn in turns) <= 12
    at_once = yaml.safe_load(demo._at_once())
    assert "delay" not in str(at_once)
    assert at_once.keys() == replies.keys()


@pytest.mark.slow
def test_an_answer_for_a_host_that_may_be_gone_is_refused_and_says_how_to_go_on(room: Room) -> None:
    room.command(
        {"START.sh": "echo '<ask next=\"END\">well?</ask>'", "END.sh": 'echo "<result>$RAYMOND_INPUT</result>"'}
    )
    Path(room.project.run("r").driver).write_bytes(msgspec.json.encode(Holder(7, "elsewhere", "1")))
    said = room.raymond("answer", "r", "yes", "--no-resume")
    where = "error: process 7 on elsewhere drives r, and takes this only from processes there\n"
    what_then = "hint: do it on elsewhere; if elsewhere is gone: raymond resume r --force, then answer\n"
    assert (said.returncode, said.stderr) == (2, where + what_then)
    stopped = room.raymond("stop", "r", "--now")
    where = "error: nothing was done yet: only process 7 on elsewhere, which runs r, can take this\n"
    what_then = "raymond cancel r --force ends it for good, raymond resume r --force continues it\n"
    assert stopped.returncode == 2
    assert stopped.stderr == f"{where}hint: look at it on elsewhere; if elsewhere is gone: {what_then}"
    assert room.resume("--force").code == 3
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    assert room.resume().out == "yes\n"


@pytest.mark.slow
def test_a_run_that_another_host_may_drive_is_shown_as_such_and_cancelled_by_force(room: Room) -> None:
    room.command({"START.sh": "echo '<ask next=\"END\">well?</ask>'", "END.sh": ""})
    Path(room.project.run("r").driver).write_bytes(msgspec.json.encode(Holder(7, "elsewhere", "1")))
    first, *_, last = room.raymond("status", "r").stdout.splitlines()
    assert first == "r: waiting (1 agent waits for an answer), elsewhere may be running it"
    assert last == "next: look at it on elsewhere; if elsewhere is gone: raymond resume r --force"
    refused = room.raymond("cancel", "r")
    assert refused.returncode == 2
    assert refused.stderr.endswith("\nhint: do it on elsewhere; if elsewhere is gone: raymond cancel r --force\n")
    hint = "hint: raymond cancel r --force ends it for good; raymond clean --force r ends and removes it\n"
    assert hint in room.raymond("clean", "r").stderr
    retried = room.raymond("resume", "r", "--agent", "main", "--goto", "END")
    assert retried.stderr.endswith("\nhint: do it on elsewhere; if elsewhere is gone: the same command with --force\n")
    assert room.raymond("cancel", "r", "--force").returncode == 0
    assert room.raymond("status", "r").stdout.startswith("r: cancelled")
