"""The webhook receiver of the example: a real process, asked over real HTTP."""

import hashlib
import hmac
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.delivering import EVENTS, RESULT, Machine
from running import PATIENCE, until

SECRET = "It's a secret to everybody"
ISSUE = (EVENTS / "workflow" / "lib" / "issue.json").read_bytes()
KEY = hashlib.sha256(ISSUE).hexdigest()
DELIVERY = "72d3162e-cc78-11e3-81ab-4c9367dc0958"


class Receiver:
    """A receiver that listens."""

    def __init__(self, machine: Machine, number: int = 0, *more: str) -> None:
        self.machine = machine
        self.spool = machine.ada / "spool"
        self._said = machine.ada / f"receiver.{number}.err"
        argv = [sys.executable, "-I", str(EVENTS / "receiver.py"), "--project", str(machine.path), "--port", "0"]
        argv += ["--workflow", "workflows/events", "--spool", str(self.spool), *more]
        environment = {**machine.environment, "PATH": machine.searched, "WEBHOOK_SECRET": SECRET}
        with self._said.open("wb") as err:
            self.process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stderr=err)
        found = until(lambda: re.search(r"listening on http://127\.0\.0\.1:(\d+)\n", self.said), "the receiver")
        self.port = int(found[1])

    @property
    def said(self) -> str:
        return self._said.read_text("utf-8")

    def post(self, body: bytes = ISSUE, **headers: str | None) -> tuple[int, str]:
        """Deliver as GitHub does, but for `headers`; None leaves one out."""
        signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        usual = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": DELIVERY, "X-Hub-Signature-256": signature}
        given = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {name: value for name, value in given.items() if value is not None}
        connection.request("POST", "/", body, sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.clear()


@pytest.fixture
def receiver(machine: Machine) -> Iterator[Receiver]:
    receiver = Receiver(machine)
    yield receiver
    receiver.process.kill()
    receiver.process.wait()


@pytest.mark.slow
def test_a_delivery_starts_a_run_and_its_repetition_starts_nothing(machine: Machine, receiver: Receiver) -> None:
    status, text = receiver.post()
    assert (status, json.loads(text)["workflow_id"]) == (202, KEY), receiver.said
    assert machine.ended(KEY) == (0, RESULT)
    status, text = receiver.post()
    assert (status, json.loads(text)["started"]) == (200, False)
    assert machine.project.ids() == [KEY]
    assert list(receiver.spool.iterdir()) == []
    assert receiver.spool.stat().st_mode & 0o777 == 0o700
    assert not (machine.path / "pwned").exists()


@pytest.mark.slow
def test_two_deliveries_at_once_come_to_one_run(machine: Machine, receiver: Receiver) -> None:
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(receiver.post()[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 200, 200, 202], receiver.said
    assert (machine.ended(KEY), machine.project.ids()) == ((0, RESULT), [KEY])


@pytest.mark.slow
def test_a_receiver_that_was_killed_finds_what_it_had_started(machine: Machine, receiver: Receiver) -> None:
    assert receiver.post()[0] == 202
    receiver.process.kill()
    receiver.process.wait()
    left = receiver.spool / "left.payload"
    left.touch()
    again = Receiver(machine, 1)
    try:
        assert not left.exists()
        assert again.post()[0] == 200
        assert (machine.ended(KEY), machine.project.ids()) == ((0, RESULT), [KEY])
        again.process.send_signal(signal.SIGTERM)
        assert again.process.wait(PATIENCE) == 0
    finally:
        again.process.kill()
        again.process.wait()


def test_what_is_not_signed_is_refused_whatever_it_contains(machine: Machine, receiver: Receiver) -> None:
    other = "sha256=" + hmac.new(b"another secret, as long", ISSUE, hashlib.sha256).hexdigest()
    for signature in (None, "", "sha256=", other, "sha1=" + "0" * 40, "sha256=\xe9"):
        assert receiver.post(X_Hub_Signature_256=signature)[0] == 401
    assert receiver.post(b"[", X_Hub_Signature_256=other)[0] == 401
    assert machine.project.ids() == []


@pytest.mark.slow
def test_the_same_payload_is_the_same_event_whatever_its_headers_say(machine: Machine, receiver: Receiver) -> None:
    ids = ["-h", "../up", "a b", None, DELIVERY]
    assert [receiver.post(X_GitHub_Delivery=id)[0] for id in ids] == [202, 200, 200, 200, 200], receiver.said
    assert machine.project.ids() == [KEY]
    assert f"{KEY} is the delivery '../up'\n" in receiver.said


@pytest.mark.parametrize("body", [b"", b"label=raymond", b'{"a": "\xff"}', b"[" * 100_000])
def test_a_body_that_is_not_json_is_refused(machine: Machine, receiver: Receiver, body: bytes) -> None:
    assert receiver.post(body) == (400, "this is not JSON\n")
    assert machine.project.ids() == []


def test_a_body_that_is_too_large_is_refused_before_it_is_read(machine: Machine, receiver: Receiver) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), PATIENCE) as connection:
        connection.sendall(f"POST / HTTP/1.0\r\nContent-Length: {(5 << 20) + 1}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.0 413 ")
    assert machine.project.ids() == []


@pytest.mark.parametrize("length", ["", "Content-Length: -1\r\n", "Content-Length: x\r\n", "Content-Length: 9\r\n"])
def test_a_body_without_its_length_is_refused(receiver: Receiver, length: str) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), PATIENCE) as connection:
        connection.sendall(f"POST / HTTP/1.0\r\n{length}\r\n{{}}".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.0 400 ")


OTHERS = [
    ("ping", {"zen": "Keep it logically awesome."}),
    ("issues", {"action": "opened", "label": {"name": "raymond"}}),
    ("issues", {"action": "labeled", "label": {"name": "bug"}}),
    ("issues", {"action": "labeled", "label": "raymond"}),
    ("issues", ["labeled"]),
    ("push", {"action": "labeled", "label": {"name": "raymond"}}),
]


@pytest.mark.parametrize(("event", "body"), OTHERS)
def test_another_event_starts_nothing(machine: Machine, receiver: Receiver, event: str, body: object) -> None:
    assert receiver.post(json.dumps(body).encode(), X_GitHub_Event=event) == (200, "nothing to do\n")
    assert machine.project.ids() == []


@pytest.mark.slow
def test_a_start_that_fails_can_be_delivered_again_and_its_reason_is_only_in_the_log(
    machine: Machine, receiver: Receiver
) -> None:
    workflow, later = (
        machine.path / "workflows" / "events",
        "not started: see the log of the receiver, then deliver it again\n",
    )
    (workflow / "workflow.yaml").write_text("nonsense: [", "utf-8")
    assert receiver.post() == (503, later)
    assert "workflow.yaml" in receiver.said
    workflow.rename(workflow.parent / "elsewhere")
    assert receiver.post() == (503, later), "that is not the fault of the payload"
    (machine.ada / ".local" / "bin" / "raymond").unlink()
    assert receiver.post() == (500, later)
    assert machine.project.ids() == []


@pytest.mark.slow
def test_the_secret_does_not_reach_the_run(machine: Machine, receiver: Receiver) -> None:
    (machine.path / "workflows" / "events" / "START.py").write_text(
        "import os; print('<result>' + ' '.join(sorted(os.environ)) + '</result>')", "utf-8"
    )
    receiver.post()
    code, names = machine.ended(KEY)
    assert (code, "RAYMOND_INPUT_FILE" in names, "WEBHOOK_SECRET" in names) == (0, True, False)


@pytest.mark.slow
def test_without_a_secret_nothing_is_served(machine: Machine) -> None:
    argv = [sys.executable, str(EVENTS / "receiver.py"), "--workflow", "workflows/events"]
    argv += ["--project", str(machine.path), "--raymond", "/bin/sh", "--spool", str(machine.ada / "spool")]
    for secret in ({}, {"WEBHOOK_SECRET": "short"}):
        done = subprocess.run(argv, env={**machine.environment, **secret}, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"WEBHOOK_SECRET is missing, or shorter than 16 characters")
    assert not (machine.ada / "spool").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--workflow", "workflows/evnets", "--workflow: there is no workflows/evnets in {project}\n"),
        ("--project", "/nowhere/project", "--project: there is no folder /nowhere/project\n"),
        ("--raymond", "raymnod", "--raymond: there is no program raymnod\n"),
        ("--raymond", "./raymond", "--raymond: there is no program ./raymond\n"),
    ],
)
def test_what_no_delivery_could_be_started_with_is_refused_at_once(
    machine: Machine, flag: str, value: str, told: str
) -> None:
    given = {"--workflow": "workflows/events", "--project": str(machine.path), "--raymond": "sh", flag: value}
    argv = [sys.executable, str(EVENTS / "receiver.py"), "--spool", str(machine.ada / "spool")]
    argv += [word for pair in given.items() for word in pair]
    environment = {**machine.environment, "WEBHOOK_SECRET": SECRET}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: {told.format(project=machine.path)}")
