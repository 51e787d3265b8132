"""A disk that is full, or a project that is away, while agents work in a workspace: said in words, and nothing is lost."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import nothing_lost, runs, workshop
from crash.nothing_lost import Expected
from crash.torture import Command, Ending, until
from crash.workshop import Workshop
from raymond.machine.events import GateEnded, StepFailed
from raymond.store import journal
from running import Room

LARGE, SMALL = "100m", "2m"
"""A tree is only made where 64 MB stay free."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return workshop.unbroken(tmp_path_factory.mktemp("unbroken"))[0]


class Disk:
    """A small disk of its own."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"small", os.fsencode(folder), b"tmpfs", 0, f"size={size},mode=700".encode()):
            pytest.skip(f"no disk can be mounted here: {os.strerror(ctypes.get_errno())}")

    @property
    def fill(self) -> str:
        """The command that leaves no room on it."""
        return f"cat /dev/zero > {self.folder}/filler 2>/dev/null; true"

    def fill_up(self) -> None:
        """Leave no room."""
        subprocess.run(["sh", "-c", self.fill], check=True)

    def free(self) -> None:
        """Make room again."""
        (self.folder / "filler").unlink()


@pytest.fixture
def disks() -> Iterator[list[Disk]]:
    found: list[Disk] = []
    yield found
    for disk in found:
        subprocess.run(["umount", "-l", str(disk.folder)], check=False)


def mounted(disks: list[Disk], folder: Path, size: str) -> Disk:
    disks.append(Disk(folder, size))
    return disks[-1]


def said(done: Ending) -> str:
    """What a command said that met a full disk: no word of our insides."""
    nothing_lost.check_words(done)
    return done.err


def ends_well(place: Workshop, expected: Expected) -> None:
    """With room again, it ends as if nothing had been."""
    place.strike("never", 0)
    endings = place.finish()
    nothing_lost.check(place, expected, endings, paid_once=True)
    failed = [one for decision in journal.decisions(place.project.run("r")) for one in decision.events]
    assert not [event for event in failed if isinstance(event, StepFailed) and event.kind != "overload"]


def test_a_tree_is_not_made_where_it_would_fill_the_disk(expected: Expected, tmp_path: Path, disks: list[Disk]) -> None:
    disk = mounted(disks, tmp_path / "home", LARGE)
    place = Workshop(tmp_path)
    disk.fill_up()
    os.truncate(disk.folder / "filler", os.stat(disk.folder / "filler").st_size - (8 << 20))
    done = place.begin().wait()
    slot = f"{place.project.run('r').workspace}/1"
    assert done.code == 2
    assert f"error: a workspace needs 0 MB, and 7 MB are free at {slot}\nhint: make room, or " in said(done)
    disk.free()
    ends_well(place, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", ["write-tree", "checkout-index", "update-ref", "hash-object", "--index-info", "commit-tree"]
)
def test_a_disk_that_fills_up_while_git_works_on_the_tree_loses_nothing(
    word: str, expected: Expected, tmp_path: Path, disks: list[Disk]
) -> None:
    disk = mounted(disks, tmp_path / "home", LARGE)
    place = Workshop(tmp_path)
    place.first(word, disk.fill)
    done = place.begin().wait()
    assert "no space left on device" in said(done), done.err
    journal.read(place.project.run("r"))
    disk.free()
    ends_well(place, expected)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["unpack-objects", "update-ref"])
def test_a_full_disk_of_the_project_keeps_the_work_in_the_tree(
    word: str, expected: Expected, tmp_path: Path, disks: list[Disk]
) -> None:
    disk = mounted(disks, tmp_path / "room", SMALL)
    place = Workshop(tmp_path)
    assert place.person is not None
    place.first(word, f"case $(wc -l < {place.gits}/log) in 1?|2?) ;; *) {disk.fill} ;; esac")
    done = place.begin().wait()
    tree = place.person.slot.tree
    assert (
        f"the work is not saved yet, and stays in {tree}: no space left on device; fix this, then raymond resume r\n"
        in said(done)
    ), done.err
    assert place.person.read("ended") == "end\n"
    disk.free()
    ends_well(place, expected)


class Waiting(Workshop):
    """Its last script waits until it is told to go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        wait = "note begin\nwhile [ ! -e go ]; do sleep 0.02; done\n"
        script = workshop.STATES["END_sh"].replace("note begin\n", wait).replace("note end\n", "rm -f go\nnote end\n")
        runs.workflow(self.flow, END_sh=f"set -e\n{script}")

    def wait(self) -> Command:
        """The run, when its last script waits."""
        command = self.begin()
        until(lambda: command.ended or "begin main END.sh" in self.notes(), "the last script")
        assert not command.ended, command.wait().err
        return command

    def go(self) -> None:
        """Let it go on."""
        assert self.person is not None
        Path(self.person.slot.tree, "go").touch()


@pytest.mark.slow
def test_a_script_that_fails_on_a_full_disk_has_not_failed(
    expected: Expected, tmp_path: Path, disks: list[Disk]
) -> None:
    disk = mounted(disks, tmp_path / "home", LARGE)
    place = Waiting(tmp_path)
    command = place.wait()
    disk.fill_up()
    place.go()
    until(lambda: command.has_said("is full") or command.ended, "the end of the script")
    disk.free()
    place.go()
    if command.wait().code:
        assert "no space left on device" in said(command.wait())
    ends_well(place, expected)


@pytest.mark.slow
def test_no_folder_is_made_where_the_project_was_and_the_work_comes_home_when_it_is_back(
    expected: Expected, tmp_path: Path
) -> None:
    place = Waiting(tmp_path)
    command = place.wait()
    assert place.person is not None
    tree, away = place.person.slot.tree, place.room.with_name("away")
    place.room.rename(away)
    place.go()
    done = command.wait()
    assert (
        f"the work is not saved yet, and stays in {tree}: {place.room} is gone; fix this, then raymond resume r\n"
        in said(done)
    ), done.err
    assert not place.room.exists()
    gone = Ending(*_raymond(place, tmp_path, "apply", "r"))
    assert "Traceback" not in gone.err
    assert gone.code != 0
    assert not place.room.exists()
    away.rename(place.room)
    ends_well(place, expected)


def _raymond(place: Workshop, cwd: Path, *args: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-m", "raymond", *args]
    done = subprocess.run(argv, cwd=cwd, env=place.environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_a_check_that_finds_no_room_says_nothing_about_the_work(tmp_path: Path, disks: list[Disk]) -> None:
    (tmp_path / "place").mkdir()
    disk = mounted(disks, tmp_path / "state", LARGE)
    room = Room(tmp_path / "place", RAYMOND_HOME=str(disk.folder))
    (room.path / "code").write_text("x")
    for command in ("init -q", "add -A", "-c user.name=me -c user.email=me@localhost commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=room.path, env=room.environment, check=True)
    flow = {
        "START.sh": "head -c 25M /dev/urandom > more; echo '<goto>WORK</goto>'\n",
        "WORK.md": "---\ngate: test -e more\n---\nDone? <result>x</result>\n",
        "replies.yaml": "WORK: <result>ok</result>\n",
    }
    with (disk.folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 35 << 20)
    with room.start("run", room.flow(flow), "--id", "r", "--workspace", "isolated") as live:
        live.sees("o space left on device")
        disk.free()
        live.wait()
    assert room.raymond("resume", "r").returncode == 0
    events = room.events("r")
    assert [one.verdict for one in events if isinstance(one, GateEnded)] == ["passed"]
    room.clear()
