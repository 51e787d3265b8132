"""Tell somebody elsewhere: a command gets a JSON document on stdin, a URL gets it posted.

Done by a process of its own, so that neither a slow network nor a broken command holds up a run.
"""

import os
import sys
from typing import Any

import msgspec

from raymond import views
from raymond.events import AskStarted, Decision
from raymond.run import Run

PATIENCE = 10.0
"""Seconds a target may take."""


class Notifier:
    """A face that tells of every question; the ending is told by who ends the run."""

    every = float("inf")
    keys = -1

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets

    def decided(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what an agent asks."""
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, AskStarted):
                    about = {"agent": event.agent, "question": event.question}
                    send(self._targets, {"event": "asked", **about, **views.outcome(run)})

    def shown(self, agent: str, kind: str, text: str) -> None:
        """Not worth a message."""

    def said(self, text: str) -> None:
        """Not worth a message."""

    def refresh(self, run: Run) -> None:
        """Nothing is shown here."""

    def typed(self) -> list[tuple[str, str]]:
        """Nobody answers here."""
        return []


def ended(run: Run, code: int) -> None:
    """Tell how a run ended, and wait until it was told."""
    pids = send(run.start.notify, {"event": "ended", "exit_code": code, **views.outcome(run)})
    for pid in pids:
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            continue
        if status:
            print(f"a notification was not delivered (exit code {os.waitstatus_to_exitcode(status)})", file=sys.stderr)


def send(targets: list[str], document: dict[str, Any]) -> list[int]:
    """Start a process for each target; their pids."""
    return [_start(target, msgspec.json.encode(document)) for target in targets]


def _start(target: str, data: bytes) -> int:
    reader, writer = os.pipe()
    argv = [sys.executable, "-m", "raymond.notify", target]
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions)
    os.close(reader)
    try:
        os.set_blocking(writer, False)
        os.write(writer, data[: 60 << 10] if len(data) <= 60 << 10 else _short(data))
    finally:
        os.close(writer)
    return pid


def _short(data: bytes) -> bytes:
    """What a pipe holds: the document without its long texts."""
    fields = msgspec.json.decode(data, type=dict[str, Any])
    brief = {name: value for name, value in fields.items() if not isinstance(value, dict)}
    result = str(brief.get("result") or "")
    return msgspec.json.encode(brief | {"result": result[:8000], "shortened": True})


def _deliver(target: str, data: bytes) -> int:
    if target.startswith(("http://", "https://")):
        from urllib.request import Request, urlopen

        request = Request(target, data, {"Content-Type": "application/json", "User-Agent": "raymond"})
        with urlopen(request, timeout=PATIENCE) as answer:
            return 0 if answer.status < 400 else 1
    import subprocess

    return subprocess.run(["/bin/sh", "-c", target], input=data, timeout=PATIENCE, check=False).returncode


def main() -> int:
    """Deliver what stands on stdin to the target named on the command line."""
    from http.client import HTTPException
    from subprocess import TimeoutExpired

    target = sys.argv[1]
    try:
        return _deliver(target, sys.stdin.buffer.read())
    except (OSError, ValueError, HTTPException, TimeoutExpired) as error:
        print(f"--notify {target}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
