"""Whatever a command finds, it works or says in words what is wrong: it never says that there is a bug, nor hangs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from attacks import matrix
from attacks.situations import SITUATIONS
from attacks.spoiled import PUT
from attacks.world import Said, commands
from raymond import cli
from running import PATIENCE
from trust.places import Place, no_traceback

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def bugs(room: Place, kind: str, name: str) -> list[Said]:
    """What commands said that they should not have said."""
    folder = room.path.parent / "w"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "attacks.matrix", kind, name, str(folder)],
        env=room.environment
        | {"PYTHONPATH": str(Path(__file__).parent.parent), "MATRIX": os.environ.get("MATRIX", "")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = msgspec.json.decode(done.stdout, type=list[Said])
    assert said
    return [one for one in said if one.is_a_bug]


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_command_works_or_says_what_is_wrong(room: Place, name: str) -> None:
    assert bugs(room, "situation", name) == []


@pytest.mark.parametrize("name", PUT)
def test_whatever_lies_in_the_folder_of_a_run_is_no_bug(room: Place, name: str) -> None:
    assert bugs(room, "runs", name) == []


@pytest.mark.parametrize("name", ["garbage", "a folder", "a pipe", "a device", "a hole"])
def test_whatever_lies_in_the_home_is_no_bug(room: Place, name: str) -> None:
    assert bugs(room, "homes", name) == []


def test_the_matrix_has_every_command() -> None:
    said = {one[0] for one in commands(matrix.READING + ";" + matrix.CHANGING)}
    assert said >= {*cli.COMMANDS} - {"demo", "docs"}


LIVE = {
    "START.sh": "echo '<fork>ASK</fork><fork>WAIT</fork><wait>END</wait>'",
    "ASK.sh": "echo '<ask next=\"END\">Which?</ask>'",
    "WAIT.sh": "while [ ! -e ~/go ]; do sleep 0.02; done; echo '<goto>END</goto>'",
    "END.sh": "echo '<result>end</result>'",
}


@pytest.mark.parametrize("what", ["project", "run", "home"])
def test_what_is_deleted_under_a_live_run_is_said(room: Place, what: str) -> None:
    above = room.path.parent
    with room.start("run", room.flow(LIVE), "--id", "r") as live:
        live.sees("asks: Which?")
        doomed = Path({"project": room.path, "run": room.folder(), "home": room.home}[what])
        while doomed.exists():  # the driver may write into it while it is deleted
            shutil.rmtree(doomed, ignore_errors=True)
        for command in ("list", "list --all", "status r", "logs r", "answer r main_ask1 yes", "wait x", "stop x"):
            no_traceback(room.raymond(*command.split(), cwd=above))
        (above / "home" / "go").touch()
        code = live.process.wait(PATIENCE)
    assert "Traceback" not in live.err
    assert code == 1, live.err
    said = f"the directory {room.path} is gone" if what == "project" else ": no such file or directory"
    assert said in live.err
    room.nothing_runs()
