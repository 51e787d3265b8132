"""No number or name makes a command say that there is a bug."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", ["folder", "home", "file", "directory", "flow"])
def test_a_name_that_is_not_utf8_works_or_is_refused_in_words(room: Place, name: str) -> None:
    bad = os.fsdecode(os.fsencode(room.path) + b"/bad\xff")
    os.mkdir(bad)
    flow = room.flow(DONE)
    if name == "file":
        Path(f"{flow}/b\udcff.md").write_text("x")
    done = {
        "folder": lambda: room.raymond("run", flow, cwd=bad),
        "home": lambda: room.raymond("run", flow, environment={"RAYMOND_HOME": f"{bad}/home"}),
        "file": lambda: room.raymond("run", flow),
        "directory": lambda: room.raymond("run", flow, "--cd", bad),
        "flow": lambda: room.raymond("run", bad),
    }[name]()
    said = {
        "folder": "error: the path of this directory is not UTF-8",
        "file": "is not allowed as a file name in a workflow",
        "directory": "is not UTF-8",
        "flow": "is not UTF-8",
    }
    err = no_traceback(done)
    assert said.get(name, "completed: ") in err
    assert done.returncode == {"home": 0, "file": 6}.get(name, 2)


def test_a_deleted_directory_is_said_in_words(room: Place) -> None:
    gone = room.path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-P", "-m", "raymond", "list"]
    done = subprocess.run(command, cwd=gone, env=room.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, no_traceback(done).splitlines()[0]) == (2, "error: this directory was deleted")
