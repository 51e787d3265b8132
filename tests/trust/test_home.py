"""RAYMOND_HOME: where runs are kept, and what is said when it cannot be used. It is never the work tree instead."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from trust.places import Place, contents, no_traceback

DONE = {"START.sh": "echo '<result>done</result>'"}
RICH = {
    "START.sh": "printf '<goto input=\"%s\">THINK</goto>' $(printf 'x%.0s' {1..20000})",
    "THINK.md": "Think of {{input}} in {{task_folder}}",
    "lib/x.txt": "a text\n",
    "ASK.sh": "echo '<ask next=\"END\">Which?</ask>'",
    "END.sh": "echo '<result>done</result>'",
    "replies.yaml": "THINK.md: <goto>ASK</goto>",
}
"""Leaves one of everything that a run can leave."""


def a_link(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def a_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")


def open_to_all(path: Path) -> None:
    path.mkdir(parents=True)
    path.chmod(0o755)


BAD = [a_link, a_file, open_to_all]


@pytest.mark.parametrize("named", [True, False], ids=["named", "default"])
@pytest.mark.parametrize("make", BAD)
def test_a_home_that_cannot_be_trusted_is_refused(room: Place, make: Callable[[Path], None], named: bool) -> None:
    home = room.path.parent / "state" if named else room.home
    make(home)
    if named:
        room.environment["RAYMOND_HOME"] = str(home)
    flow = room.flow(DONE)
    before = contents(home.parent)
    done = room.raymond("run", flow)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "RAYMOND_HOME" in done.stderr
    assert contents(room.path) == {}, "nothing is kept in the work tree instead"
    assert contents(home.parent) == before


@pytest.mark.parametrize("args", [("list",), ("status", "r"), ("resume", "r"), ("clean",), ("answer", "r", "yes")])
def test_every_command_refuses_a_home_that_cannot_be_trusted(room: Place, args: tuple[str, ...]) -> None:
    room.ask()
    room.home.chmod(0o755)
    done = room.raymond(*args)
    assert done.returncode == 2, no_traceback(done)
    assert "RAYMOND_HOME" in done.stderr


def test_without_a_home_directory_nothing_is_started(room: Place) -> None:
    flow = room.flow(DONE)
    del room.environment["HOME"]
    done = room.raymond("run", flow)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "RAYMOND_HOME" in done.stderr
    assert contents(room.path) == {}


def test_a_home_that_is_named_needs_no_home_directory(room: Place) -> None:
    flow = room.flow(DONE)
    del room.environment["HOME"]
    home = room.path.parent / "state"
    room.environment["RAYMOND_HOME"] = str(home)
    done = room.raymond("run", flow, "--id", "r")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert list(home.glob("projects/*/runs/r/journal.jsonl"))


def test_xdg_state_home_is_honoured(room: Place) -> None:
    room.environment["XDG_STATE_HOME"] = str(room.path.parent / "xdg")
    assert room.command(DONE).code == 0
    assert list(room.path.parent.glob("xdg/raymond/projects/*/runs/r/journal.jsonl"))
    assert not room.home.exists()


def test_a_relative_home_is_refused(room: Place) -> None:
    """It would be another folder for every step that changes its directory."""
    done = room.raymond("run", room.flow(DONE), environment={"RAYMOND_HOME": "state"})
    assert done.returncode == 2, done.stderr
    assert "RAYMOND_HOME" in done.stderr
    assert contents(room.path) == {}


def test_a_home_that_cannot_be_written_is_refused(room: Place) -> None:
    room.environment["RAYMOND_HOME"] = "/proc/nowhere/state"
    done = room.raymond("run", room.flow(DONE))
    assert done.returncode == 2, done.stderr
    assert "RAYMOND_HOME" in done.stderr
    assert contents(room.path) == {}


def test_steps_are_handed_the_home_that_was_named(room: Place) -> None:
    home = str(room.path.parent / "state")
    room.environment["RAYMOND_HOME"] = home
    flow = {
        "START.sh": 'echo "$RAYMOND_HOME" >> ../ledger; echo "<goto>THINK</goto>"',
        "THINK.md": "Think.",
        "END.sh": 'echo "<result>$RAYMOND_HOME</result>"',
        "replies.yaml": "THINK.md: <goto>END</goto>",
    }
    done = room.command(flow, "--backend", "scripted-program")
    assert (done.code, done.out) == (0, f"{home}\n"), done.err
    assert room.ledger() == [home]


# --- modes


def open_modes(folder: Path) -> dict[str, str]:
    """What somebody else may do with anything in a folder."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*")) if not path.is_symlink()}
    return {
        str(path.relative_to(folder)): stat.filemode(seen.st_mode)
        for path, seen in found.items()
        if seen.st_mode & 0o077
    }


def everything(room: Place) -> None:
    done = room.raymond("run", room.flow(RICH), "--id", "r", "--debug", umask=0)
    assert done.returncode == 3, done.stderr
    assert room.raymond("answer", "r", "yes", "--no-resume", umask=0).returncode == 0
    assert room.raymond("resume", "r", "-d", umask=0).returncode == 0
    assert room.raymond("wait", "r").returncode == 0


def test_whatever_the_umask_nobody_else_can_open_the_home(room: Place) -> None:
    everything(room)
    assert (room.home / "projects").is_dir()
    assert open_modes(room.home) == {}


def test_whatever_the_umask_nobody_else_can_open_what_raymond_adds_to_the_work_tree(room: Place) -> None:
    everything(room)
    assert (room.path / ".raymond").is_dir()
    assert open_modes(room.path / ".raymond") == {}


def test_a_folder_that_came_with_a_checkout_keeps_its_mode(room: Place) -> None:
    """It is not Raymond's; only what Raymond adds to it is private."""
    root = room.path / ".raymond"
    root.mkdir()
    root.chmod(0o755)
    (root / "config.toml").write_text("budget = 3\n")
    os.chmod(root / "config.toml", 0o644)
    assert room.command(DONE).code == 0
    assert open_modes(root) == {".": "drwxr-xr-x", "config.toml": "-rw-r--r--"}
