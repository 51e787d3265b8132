"""The webhook receiver of the example under people who keep it busy, and the copy that its pages tell to make."""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.delivering import EVENTS, Machine
from pages.test_receiver import KEY, Receiver
from running import PATIENCE, until


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.clear()


def serving(machine: Machine, *more: str) -> Iterator[Receiver]:
    receiver = Receiver(machine, 0, *more)
    yield receiver
    receiver.process.kill()
    receiver.process.wait()


@pytest.fixture
def hurried(machine: Machine) -> Iterator[Receiver]:
    yield from serving(machine, "--deadline", "1")


@pytest.fixture
def narrow(machine: Machine) -> Iterator[Receiver]:
    yield from serving(machine, "--requests", "1")


@pytest.mark.slow
def test_whoever_sends_a_byte_at_a_time_is_cut_off_and_does_not_keep_it_alive(hurried: Receiver) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), PATIENCE) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nX-Long: ")
        hurried.process.send_signal(signal.SIGTERM)

        def is_cut_off() -> bool | None:
            try:
                slow.sendall(b"a")
            except OSError:
                return True
            return None

        until(is_cut_off, "the end of the connection")
    assert hurried.process.wait(PATIENCE) == 0
    assert "Traceback" not in hurried.said


def test_more_requests_than_it_takes_are_answered_with_503(narrow: Receiver) -> None:
    place = ("127.0.0.1", narrow.port)
    with socket.create_connection(place, PATIENCE), socket.create_connection(place, PATIENCE) as other:
        assert other.recv(4096).startswith(b"HTTP/1.0 503 ")

    def is_free() -> bool:
        with contextlib.suppress(OSError):  # it is closed before all of it is sent
            return narrow.post(b"{}", X_GitHub_Event="ping") == (200, "nothing to do\n")
        return False

    until(lambda: is_free() or None, "a free place")


@pytest.mark.slow
def test_what_raymond_refuses_for_good_is_not_worth_another_delivery(machine: Machine) -> None:
    other = machine.flow({"START.sh": "echo '<result>x</result>'"}, "other")
    assert machine.raymond("run", other, "--id", KEY).returncode == 0
    for receiver in serving(machine):
        assert receiver.post() == (422, "not started; delivering it again will not help: see the log of the receiver\n")
        assert "was started with another workflow" in receiver.said


def test_the_copy_that_the_page_tells_to_make_has_no_scripted_replies(tmp_path: Path) -> None:
    lines = (EVENTS.parents[1] / "docs" / "events.md").read_text("utf-8").splitlines()
    at = lines.index("mkdir -p workflows/events")
    (tmp_path / "examples").symlink_to(EVENTS.parent)
    subprocess.run(["sh", "-ec", "\n".join(lines[at : at + 2])], cwd=tmp_path, check=True)
    copied = {path.name for path in (tmp_path / "workflows/events").iterdir()}
    assert copied == {path.name for path in (EVENTS / "workflow").iterdir()} - {"replies.yaml", "lib"}
