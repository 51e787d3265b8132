#!/usr/bin/env python3
"""Takes webhooks of GitHub, and starts a run when somebody puts a label on an issue.

The secret of the webhook is in the environment: WEBHOOK_SECRET. It needs Python 3.11 and nothing else. It speaks plain
HTTP to this machine only: put a web server with TLS in front of it.
"""

import argparse
import contextlib
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECRET = "WEBHOOK_SECRET"
LARGEST = 5 << 20
"""Bytes of a payload. Raymond takes up to 16 MiB, GitHub sends up to 25 MB."""
BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"
PATIENCE = 60
"""Seconds for `raymond start`, which returns as soon as the run is in the background."""


class Receiver(ThreadingHTTPServer):
    """What the receiver was started with."""

    daemon_threads = False

    def __init__(self, given: argparse.Namespace, secret: bytes) -> None:
        self.given, self.secret = given, secret
        self.at_once = threading.BoundedSemaphore(4)
        self.places = threading.BoundedSemaphore(given.requests)
        super().__init__((given.host, given.port), Delivery)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:
        """Answer in a thread; 503 if there are too many."""
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.settimeout(1)
            request.sendall(BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket, client_address: tuple[str, int]) -> None:
        """Answer, and make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def start(self, key: str, payload: bytes) -> tuple[int, str]:
        """Start a run for the event, once per key; the status and the text of the answer."""
        given = self.given
        # The agents of the run inherit this environment: the secret is not for them.
        environment = {name: value for name, value in os.environ.items() if name != SECRET}
        with tempfile.NamedTemporaryFile(dir=given.spool, suffix=".payload") as file:  # mode 0600
            file.write(payload)
            file.flush()
            command = [given.raymond, "start", given.workflow, "--input", f"@{file.name}", "--id", key, "--json"]
            try:
                with self.at_once:
                    done = subprocess.run(
                        command,
                        cwd=given.project,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        text=True,
                        errors="replace",
                        timeout=PATIENCE,
                        check=False,
                    )
            except (OSError, subprocess.TimeoutExpired) as error:
                return 500, self.note(key, str(error))
        if done.returncode == 2:  # a payload or a key that Raymond refuses, however often it is delivered
            self.note(key, done.stderr)
            return 422, "not started; delivering it again will not help: see the log of the receiver\n"
        if done.returncode in (5, 6):  # the workflow or the agents' program is missing or wrong: not the payload
            return 503, self.note(key, done.stderr)
        if done.returncode != 0:
            return 500, self.note(key, done.stderr)
        return 202 if json.loads(done.stdout)["started"] else 200, done.stdout

    def note(self, key: str, why: str) -> str:
        """Keep the reason to ourselves; what whoever asked is told."""
        print(f"{key} was not started: {why!r}", file=sys.stderr, flush=True)
        return "not started: see the log of the receiver, then deliver it again\n"


class Delivery(BaseHTTPRequestHandler):
    """One request."""

    server: Receiver
    timeout = 10
    """Seconds for each read: whoever sends nothing does not keep us."""

    def setup(self) -> None:
        """Begin to read; a request that takes too long in all is cut off, however often a byte of it comes."""
        super().setup()
        self.deadline = threading.Timer(self.server.given.deadline, self.cut_off)
        self.deadline.daemon = True
        self.deadline.start()

    def cut_off(self) -> None:
        """End a request that is still being sent."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Forget the deadline."""
        self.deadline.cancel()
        super().finish()

    def do_POST(self) -> None:
        """Answer a delivery."""
        status, text = self.answer()
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        with contextlib.suppress(OSError):  # whoever asked is gone
            self.end_headers()
            self.wfile.write(data)

    def answer(self) -> tuple[int, str]:
        """The status and the text of the answer; nothing in a request counts before its signature was found right."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return 400, "the length is missing\n"
        if int(length) > LARGEST:
            return 413, f"more than {LARGEST} bytes\n"
        body = self.rfile.read(int(length))
        self.deadline.cancel()
        if len(body) < int(length):
            return 400, "the end is missing\n"
        right = "sha256=" + hmac.new(self.server.secret, body, hashlib.sha256).hexdigest()
        signature = self.headers.get("X-Hub-Signature-256", "")
        if not hmac.compare_digest(right.encode(), signature.encode("utf-8", "replace")):
            return 401, "the signature is wrong\n"
        try:
            event = json.loads(body)
        except (ValueError, RecursionError):
            return 400, "this is not JSON\n"
        if not self.is_meant(event):
            return 200, "nothing to do\n"
        # The id of the delivery is not signed: whoever has one delivery could repeat it under any number of ids.
        key = hashlib.sha256(body).hexdigest()
        print(f"{key} is the delivery {self.headers.get('X-GitHub-Delivery', '')[:100]!r}", file=sys.stderr, flush=True)
        return self.server.start(key, body)

    def is_meant(self, event: object) -> bool:
        """Whether somebody put our label on an issue: in a public repository only people who may do that start runs."""
        if self.headers.get("X-GitHub-Event") != "issues" or not isinstance(event, dict):
            return False
        label = event.get("label")
        name = label.get("name") if isinstance(label, dict) else ""
        return event.get("action") == "labeled" and name == self.server.given.label


def what_is_wrong(given: argparse.Namespace) -> str:
    """What no delivery could be started with; empty when nothing is wrong."""
    if not os.path.isdir(given.project):
        return f"--project: there is no folder {given.project}"
    if not os.path.exists(os.path.join(given.project, given.workflow)):
        return f"--workflow: there is no {given.workflow} in {given.project}"
    program = os.path.join(given.project, given.raymond) if "/" in given.raymond else given.raymond
    if not shutil.which(os.path.abspath(program) if "/" in given.raymond else program):
        return f"--raymond: there is no program {given.raymond}"
    return ""


def main() -> None:
    """Serve until SIGTERM; deliveries that have begun are answered first."""
    parser = argparse.ArgumentParser(description="Start a run for each webhook of GitHub.")
    parser.add_argument("--workflow", required=True, help="the workflow to start; relative to the project")
    parser.add_argument("--project", default=".", help="the directory to start it in")
    parser.add_argument("--label", default="raymond", help="the label that starts it")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8787)
    parser.add_argument("--deadline", type=float, default=20, help="seconds in which a request has to arrive (20)")
    parser.add_argument("--requests", type=int, default=32, help="requests at once (32)")
    parser.add_argument("--spool", required=True, help="a private folder of its own, for payloads")
    parser.add_argument("--raymond", default="raymond", help="the program to call")
    given = parser.parse_args()
    if wrong := what_is_wrong(given):
        parser.error(wrong)
    secret = os.environ.get(SECRET, "").encode()
    if len(secret) < 16:
        sys.exit(f"{SECRET} is missing, or shorter than 16 characters: openssl rand -hex 32")
    spool = Path(given.spool)
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    spool.chmod(0o700)
    for left in spool.glob("*.payload"):  # of a receiver that was killed
        left.unlink()
    given.spool = str(spool.resolve())
    with Receiver(given, secret) as receiver:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=receiver.shutdown).start())
        print(f"listening on http://{given.host}:{receiver.server_port}", file=sys.stderr, flush=True)
        receiver.serve_forever()


if __name__ == "__main__":
    main()
