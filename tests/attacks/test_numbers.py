"""No number, name or clock makes a command say that there is a bug, or a journal that cannot be read again."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raymond.backends import Reply, Trouble
from raymond.backends.guard import sound
from raymond.errors import JournalError
from raymond.machine.events import Decision, StepFinished
from raymond.machine.inputs import Spending
from raymond.machine.limits import Limits
from raymond.store import journal, lock
from trust.places import Place, no_traceback

DONE = {"START.sh": "echo '<result>done</result>'"}
LONG = "9" * 5000
BIG = "1" + "0" * 400
OVER = "at most 1,000,000,000"
AMOUNT = f"must be a number of dollars, {OVER}"
COUNT = f"must be a whole number, {OVER}"


def flag(name: str, value: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    return lambda room: room.raymond("run", room.flow(DONE), f"--{name}", value)


def variable(name: str, value: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    return lambda room: room.raymond("run", room.flow(DONE), environment={f"RAYMOND_{name}": value})


def setting(text: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    def run(room: Place) -> subprocess.CompletedProcess[str]:
        room.settings(text)
        return room.raymond("run", room.flow(DONE))

    return run


def workflow(text: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    return lambda room: room.raymond("run", room.flow(DONE | {"workflow.yaml": text}))


def policy(text: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    return lambda room: room.raymond("run", room.flow({"START.sh": f"# /// raymond\n# {text}\n# ///\n"}))


def reply(text: str) -> Callable[[Place], subprocess.CompletedProcess[str]]:
    return lambda room: room.raymond("run", room.flow({"START.md": "Begin.", "replies.yaml": f"START.md: {{{text}}}"}))


NUMBERS = {
    "flag budget": (flag("budget", "1e308"), f"--budget: `1e308` is not a number of dollars, {OVER}"),
    "flag iterations": (flag("max-iterations", "9" * 23), f"is not a whole number, {OVER}"),
    "flag long": (flag("max-turns", LONG), f"is not a whole number, {OVER}"),
    "flag parallel": (flag("max-parallel", "9" * 23), f"is not a whole number, {OVER}"),
    "flag time": (flag("max-time", "9" * 23 + "h"), "is not a duration"),
    "variable budget": (variable("BUDGET", "1e308"), AMOUNT),
    "variable iterations": (variable("MAX_ITERATIONS", LONG), COUNT),
    "variable patience": (variable("PATIENCE", LONG + "s"), "must be a duration"),
    "variable bytes": (variable("NOTIFY", "a\udcff"), "the environment: RAYMOND_NOTIFY is not UTF-8"),
    "setting budget": (setting(f"budget = {BIG}"), AMOUNT),
    "setting long": (setting(f"max_turns = {LONG}"), "has a number or a table that is too large"),
    "setting deep": (setting("notify = " + "[" * 5000), "has a number or a table that is too large"),
    "setting price": (setting("[prices.m]\ninput = 1e308\noutput = 1"), AMOUNT),
    "setting cost": (setting('[backends.m]\ncommand = ["x"]\ncost = 1e308'), ""),
    "workflow budget": (workflow("budget: 1.0e+308"), AMOUNT),
    "workflow agents": (workflow("max_agents: 1000000001"), COUNT),
    "policy retries": (policy("retries: 1000000001"), COUNT),
    "policy budget": (policy("budget: 1.0e+400"), AMOUNT),
    "reply cost": (reply("cost: 1.0e+400"), f"`cost` {AMOUNT}"),
    "reply negative": (reply("cost: -5"), "`cost` must be a number of dollars, 0 or more"),
    "reply tokens": (reply("tokens: {in: -1}"), "`tokens: in` must be a whole number, 0 or more"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_range_is_refused_in_words(room: Place, name: str) -> None:
    start, said = NUMBERS[name]
    done = start(room)
    err = no_traceback(done)
    assert done.returncode in ((2, 6) if said else (0,)), err
    assert said in err


SPENT = {
    "infinite": Spending(cost=float("inf")),
    "negative": Spending(cost=-5.0),
    "nan": Spending(cost=float("nan")),
    "huge": Spending(cost=1e308),
    "tokens": Spending(tokens_in=-1),
    "many": Spending(tokens_out=1 << 70),
    "meter": Spending(meter=(-1,)),
}


@pytest.mark.parametrize("name", SPENT)
def test_a_backend_that_reports_no_amount_is_broken(name: str) -> None:
    ending = sound(Reply(text="<result>x</result>", session="s", spent=SPENT[name]))
    assert isinstance(ending, Trouble)
    assert (ending.kind, ending.spent) == ("crash", Spending())
    assert "values that cannot be stored" in ending.error


@pytest.mark.parametrize("cost", [float("inf"), float("nan"), -5.0])
def test_no_cost_that_cannot_be_read_again_is_journaled(room: Place, cost: float) -> None:
    room.drive(DONE)
    folder, before = room.project.run("r"), room.journal().read_bytes()
    held = lock.take(folder)
    book = journal.Journal(folder, len(before), held)
    with pytest.raises(JournalError, match="a decision was not journaled, because it could not be read again"):
        book.append(Decision(seq=99, time=0.0, events=[StepFinished(agent="main", step=1, cost=cost)]))
    book.close()
    held.release()
    assert room.journal().read_bytes() == before


def test_a_snapshot_that_cannot_be_written_is_left_out(room: Place) -> None:
    """A snapshot has room for 64 bits."""
    ran = room.drive(DONE)
    run, folder = ran.run, room.project.run("r")
    run.limits = Limits(max_iterations=10**23)
    held = lock.take(folder)
    book = journal.Journal(folder, os.path.getsize(folder.journal), held)
    book.snapshot(run, force=True)
    assert not os.path.exists(folder.snapshot)
    os.mkdir(folder.snapshot)
    book.snapshot(ran.run, force=True)
    book.close()
    held.release()
    assert room.raymond("status", "r").returncode == 0


CLOCK = """import sys, time
at, real = float(sys.argv[1]), time.time
time.time = lambda: at + real() % 1
from raymond import cli
sys.exit(cli.main(sys.argv[2:]))"""


@pytest.mark.slow
@pytest.mark.parametrize("at", ["253402300798", "0", "-100000", "1e12", "-1e12"])
def test_a_clock_that_is_wrong_is_no_bug(room: Place, at: str) -> None:
    """The year 9999 and after it, 1970 and before it; what was written then is read today."""

    def then(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", CLOCK, at, *args],
            cwd=room.path,
            env=room.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, no_traceback(done)
        return done.stdout

    flow = {"START.sh": "echo '<fork>B.sh</fork><wait>B.sh</wait>'", "B.sh": "echo '<result>done</result>'"}
    assert then("run", room.flow(flow), "--id", "r") == "done\n"
    for command in (("status", "r"), ("logs", "r"), ("cost", "r"), ("list",), ("list", "--json")):
        then(*command)
    assert "completed" in no_traceback(room.raymond("list"))
    assert "run completed" in no_traceback(room.raymond("logs", "r"))


REFUSED = {
    "home": "/bad\\udcff/home (RAYMOND_HOME): it is not UTF-8\n",
    "folder": "error: the path of this directory is not UTF-8",
    "file": "is not allowed as a file name in a workflow",
    "directory": "is not UTF-8",
    "flow": "is not UTF-8",
    "relative": "error: the path of the workflow is not UTF-8: ",
    "root": "error: --root is not UTF-8: ",
    "notify": "error: --notify is not UTF-8: ",
    "cd": "error: --cd: the path of this directory is not UTF-8: ",
    "trust": "error: the path of the project is not UTF-8: ",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_is_not_utf8_works_or_is_refused_in_words(room: Place, name: str) -> None:
    bad = os.fsdecode(os.fsencode(room.path) + b"/bad\xff")
    os.mkdir(bad)
    flow, good = room.flow(DONE), str(room.path)
    Path(bad, "flow").symlink_to(flow)
    Path(bad, "tell").touch(0o700)
    (room.path / "link").symlink_to(bad)
    if name == "cd":
        room.drive(DONE)
    if name == "file":
        Path(f"{flow}/b\udcff.md").write_text("x")
    done = {
        "folder": lambda: room.raymond("run", flow, cwd=bad),
        "home": lambda: room.raymond("run", flow, environment={"RAYMOND_HOME": f"{bad}/home"}),
        "file": lambda: room.raymond("run", flow),
        "directory": lambda: room.raymond("run", flow, "--cd", bad),
        "flow": lambda: room.raymond("run", bad),
        "relative": lambda: room.raymond("run", "flow", "--cd", good, cwd=bad),
        "root": lambda: room.raymond("run", flow, "--root", "link"),
        "notify": lambda: room.raymond("run", flow, "--cd", good, "--notify", "./tell", cwd=bad),
        "cd": lambda: room.raymond("resume", "r", "--cd", "link"),
        "trust": lambda: room.raymond("trust", "link"),
    }[name]()
    err = no_traceback(done)
    assert REFUSED[name] in err
    assert done.returncode == {"file": 6}.get(name, 2)


@pytest.mark.parametrize("flags", [("--id", "r"), ("--dry-run",)])
def test_settings_that_no_rule_can_name_are_said_before_anything_starts(room: Place, flags: tuple[str, ...]) -> None:
    """Agents' programs are told to keep out of them."""
    program = room.path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '2.1.197 (Claude Code)'\n")
    program.chmod(0o700)
    home = os.fsdecode(os.fsencode(room.path) + b"/u\xff")
    os.mkdir(home)
    environment = {"HOME": home, "RAYMOND_HOME": str(room.home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    flow = room.flow({"START.md": "Begin. <result>x</result>"})
    done = room.raymond("run", flow, "--backend", "claude", *flags, environment=environment)
    assert "error: the path of your settings is not UTF-8: " in no_traceback(done)
    assert done.returncode == 2
    assert room.rows() == []


def test_a_deleted_directory_is_said_in_words(room: Place) -> None:
    gone = room.path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-P", "-m", "raymond", "list"]
    done = subprocess.run(command, cwd=gone, env=room.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, no_traceback(done).splitlines()[0]) == (2, "error: this directory was deleted")


def test_doctor_tells_programs_of_a_path_that_is_not_utf8(room: Place) -> None:
    bad = os.fsdecode(os.fsencode(room.path) + b"/bad\xff")
    os.mkdir(bad)
    done = room.raymond("doctor", "--json", cwd=bad)
    (found,) = [one["found"] for one in json.loads(no_traceback(done)) if one["what"] == "project"]
    assert found == f"{room.path}/bad\\udcff"


@pytest.mark.parametrize("command", ["wait", "attach"])
def test_a_journal_without_a_beginning_is_no_run_to_watch(room: Place, command: str) -> None:
    room.drive(DONE)
    room.journal().write_bytes(b"")
    err = no_traceback(room.raymond(command, "r"))
    assert err.startswith(f"error: {room.journal()} ends before its run begins\n")
