"""What the command prints arrives whole, or it says that it did not."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from raymond.cli import terminal
from running import Room

DONE = {"START.sh": "echo '<result>done</result>'"}


class Narrow(io.RawIOBase):
    """A pipe that takes ten bytes at once."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:10])
        return min(10, len(data))


def test_all_of_a_text_is_written_where_python_was_told_not_to_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Narrow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(cast(Any, pipe), "utf-8", write_through=True))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    terminal.guard()
    sys.stdout.write("0123456789" * 10)
    sys.stdout.flush()
    assert pipe.taken == b"0123456789" * 10


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


UNWRITTEN = "error: standard output could not be written: no space left on device"
LOST = "hint: nothing already written is lost: fix this, then"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("logs", "r"), ("--help",)])
def test_standard_output_that_cannot_be_written_is_named(room: Room, words: tuple[str, ...], unbuffered: str) -> None:
    room.drive(DONE)
    with open("/dev/full", "wb") as full:
        done = room.raymond(*words, stdout=full, environment={"PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr.splitlines()) == (1, [UNWRITTEN, f"{LOST} try again"])


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("flags", [(), ("--json",), ("-d",)])
def test_a_run_whose_result_cannot_be_printed_is_not_to_be_resumed(room: Room, flags: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = room.raymond("run", room.flow(DONE), "--id", "r", *flags, stdout=full)
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (1, [UNWRITTEN, f"{LOST} `raymond status r`"])
    assert room.raymond("wait", "r").stdout == "done\n"


def test_a_reader_that_leaves_is_no_disk_that_is_full(room: Room) -> None:
    room.drive(DONE)
    reader, writer = os.pipe()
    os.close(reader)
    done = room.raymond("list", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
