"""Tell somebody elsewhere: a command gets a JSON document on stdin, a URL gets it posted.

A separate process does it, so that neither a slow network nor a broken command holds up a run.
"""

import os
import sys
from typing import Any

import msgspec

from raymond.drivers.face import Quiet
from raymond.faces import documents, words
from raymond.machine import budget
from raymond.machine.events import AskStarted, Decision
from raymond.machine.run import Run

PATIENCE = 10.0
"""Seconds a target may take."""
_MOST = 60 << 10
_BEGINNING = 2000


class Notifier(Quiet):
    """A face that tells of questions and of a budget that is nearly spent; whoever ends the run tells how it ended."""

    name = "--notify"

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets
        self._pids: list[int] = []

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what an agent asks."""
        self._pids = [pid for pid in self._pids if not _is_over(pid)]
        near = budget.warned(run, run.cost - words.cost_of(decisions))
        if near:
            self._pids += send(self._targets, {"event": "budget", "message": near, **documents.outcome(run)})
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, AskStarted):
                    about = {"agent": event.agent, "question": event.question, "question_number": event.number}
                    self._pids += send(self._targets, {"event": "asked", **about, **documents.outcome(run)})

    def helpers(self) -> list[int]:
        """The processes that are telling somebody."""
        return self._pids


def ended(run: Run, code: int, targets: list[str]) -> None:
    """Tell how a run ended, and wait until it was told; an error here does not change how it ended."""
    try:
        for pid in send(targets, {"event": "ended", "exit_code": code, **documents.outcome(run)}):
            _, status = os.waitpid(pid, 0)
            if status:
                code = os.waitstatus_to_exitcode(status)
                print(f"a notification was not delivered (exit code {code})", file=sys.stderr)
    except OSError as error:
        print(f"a notification was not delivered ({(error.strerror or '').lower()})", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped waiting for the notification", file=sys.stderr)


def _is_over(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True


def send(targets: list[str], document: dict[str, Any]) -> list[int]:
    """Start a process for each target; their pids."""
    return [_start(target, msgspec.json.encode(document)) for target in targets]


def _start(target: str, data: bytes) -> int:
    reader, writer = os.pipe()
    argv = [sys.executable, "-m", "raymond.faces.notify", target]
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    try:
        os.set_blocking(writer, False)
        # A pipe holds it all: nothing has to wait until it is read.
        os.write(writer, data if len(data) <= _MOST else _short(data))
        # In its own group: Ctrl-C is meant for the run.
        return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setpgroup=0)
    finally:
        os.close(reader)
        os.close(writer)


def _short(data: bytes) -> bytes:
    """The document cut to what a pipe holds: without the texts of all agents, and with the start of the others."""
    fields = msgspec.json.decode(data, type=dict[str, Any])
    brief = {
        name: value[:_BEGINNING] if isinstance(value, str) else value
        for name, value in fields.items()
        if not isinstance(value, dict)
    }
    return msgspec.json.encode(brief | {"shortened": True})


def _deliver(target: str, data: bytes) -> int:
    if target.startswith(("http://", "https://")):
        from urllib.request import Request, urlopen

        request = Request(target, data, {"Content-Type": "application/json", "User-Agent": "raymond"})
        with urlopen(request, timeout=PATIENCE) as answer:
            return 0 if answer.status < 400 else 1
    import signal
    import subprocess

    # In its own session, so that killing it also kills what it started.
    process = subprocess.Popen(["/bin/sh", "-c", target], stdin=subprocess.PIPE, start_new_session=True)
    try:
        process.communicate(data, PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode


def main() -> int:
    """Deliver stdin to the target named on the command line."""
    from http.client import HTTPException
    from subprocess import TimeoutExpired

    target = sys.argv[1]
    try:
        return _deliver(target, sys.stdin.buffer.read())
    except TimeoutExpired:
        print(f"--notify {target}: not finished after {PATIENCE:g} s", file=sys.stderr)
    except (OSError, ValueError, HTTPException) as error:
        print(f"--notify {target}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
