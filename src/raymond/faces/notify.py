"""Tell somebody elsewhere: a command gets a JSON document on stdin, a URL gets it posted.

A separate process does it, so that neither a slow network nor a broken command holds up a run.
"""

import os
import sys
from typing import Any

import msgspec

from raymond.drivers.face import Quiet
from raymond.faces import documents, words
from raymond.faces.notification import STAYS
from raymond.machine import budget
from raymond.machine.events import AskStarted, Decision
from raymond.machine.run import Run

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notification.py")
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
            self._send(run, {"event": "budget", "message": near})
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, AskStarted):
                    about = {"agent": event.agent, "question": event.question, "question_number": event.number}
                    about |= {"approve": event.approve or None}
                    self._send(run, {"event": "asked", **about})

    def _send(self, run: Run, about: dict[str, Any]) -> None:
        self._pids += send(self._targets, run, about, STAYS)

    def helpers(self) -> list[int]:
        """The processes that are telling somebody."""
        return self._pids


def ended(run: Run, code: int, targets: list[str]) -> None:
    """Tell how a run ended, and wait until it was told; an error here does not change how it ended."""
    try:
        for pid in send(targets, run, {"event": "ended", "exit_code": code}):
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


def send(targets: list[str], run: Run, about: dict[str, Any], *how: str) -> list[int]:
    """Start a process for each target; their pids."""
    data = msgspec.json.encode({**about, **documents.outcome(run)})
    return [_start([target, run.start.cwd, *how], data) for target in targets]


def _start(given: list[str], data: bytes) -> int:
    argv = [sys.executable, "-I", _PROGRAM, *given]
    reader = _opened(data if len(data) <= _MOST else _short(data))
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    try:
        # In its own group: Ctrl-C is meant for the run.
        return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setpgroup=0)
    finally:
        os.close(reader)


def _opened(data: bytes) -> int:
    """A descriptor to read `data` from."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        # A pipe holds it all: nothing has to wait until it is read.
        if os.write(writer, data) == len(data):
            return reader
    finally:
        os.close(writer)
    os.close(reader)
    # The system gives only small pipes to somebody who has many.
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def _short(data: bytes) -> bytes:
    """The document cut to what a pipe holds: without the texts of all agents, and with the start of the others."""
    fields = msgspec.json.decode(data, type=dict[str, Any])
    brief = {
        name: value[:_BEGINNING] if isinstance(value, str) else value
        for name, value in fields.items()
        if not isinstance(value, dict)
    }
    return msgspec.json.encode(brief | {"shortened": True})
