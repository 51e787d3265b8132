"""Tell somebody elsewhere: a command gets a JSON document on stdin, a URL gets it posted.

A separate process does it, so that neither a slow network nor a broken command holds up a run.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from raymond.drivers.face import Quiet
from raymond.faces import documents, message, words
from raymond.faces.message import Message
from raymond.faces.notification import FAILED, STAYS
from raymond.machine import budget
from raymond.machine.agent import ASKING, WAITING
from raymond.machine.events import AgentPaused, AskStarted, BackendClosed, Decision
from raymond.machine.run import Run
from raymond.views.status import run_status, waits_for_review

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notification.py")
_MOST = 60 << 10
_BEGINNING = 2000
_CLOSINGS = {"limit": "limit", "auth": "auth", "billing": "auth", "machine": "exhausted"}
"""Why a backend takes no turns, and what that is called."""
_WHOLE = ("title", "text")


class Telling:
    """A process that tells one target, and the pipe on which it says how that went."""

    def __init__(self, target: str, given: list[str], data: bytes, says: Message) -> None:
        self.target = target
        self.pid, self._pipe = _start([target, *given], data, says)
        self._said = b""

    @property
    def is_over(self) -> bool:
        """Whether it has said all, and nothing that the target left in the background keeps it."""
        if self._pipe >= 0:
            return False
        try:
            return os.waitpid(self.pid, os.WNOHANG) != (0, 0)
        except ChildProcessError:
            return True

    def heard(self, *, wait: bool = False) -> str:
        """What it says of the target once that was told, or was not; empty before that, and afterwards."""
        if self._pipe < 0:
            return ""
        os.set_blocking(self._pipe, wait)
        try:
            while more := os.read(self._pipe, 1 << 16):
                self._said += more
        except BlockingIOError:
            return ""
        os.close(self._pipe)
        self._pipe = -1
        return self._said.decode("utf-8", "replace")

    def join(self) -> None:
        """Wait until the process has ended."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Notifier(Quiet):
    """A face that tells of questions, of a budget that is nearly spent, and how the run ended."""

    name = "--notify"

    def __init__(self, targets: list[str], note: Callable[[str], None]) -> None:
        self._targets = targets
        self._note = note
        self._tellings: list[Telling] = []
        self._failed: set[str] = set()
        self._asked: set[tuple[str, int]] = set()
        self._reviewed: set[str] = set()
        self._closed: set[tuple[str, str]] = set()

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what an agent asks."""
        near = budget.warned(run, run.cost - words.cost_of(decisions), run.cost)
        if near:
            self._send(run, {"event": "budget", "message": near}, message.near_budget(run, near), STAYS)
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, AgentPaused) and event.kind == "review":
                    about: dict[str, Any] = {"agent": event.agent, "why": event.reason}
                    self._reviewed.add(event.agent)
                    self._send(run, {"event": "review", **about}, message.review(run, event), STAYS)
                elif isinstance(event, BackendClosed) and (told := self._closing(event)):
                    self._send(run, {"event": told, "message": event.error}, message.closed(run, event, told), STAYS)
                elif isinstance(event, AskStarted) and run.start.on_ask != "fail":
                    about = {"agent": event.agent, "question": event.question, "question_number": event.number}
                    about |= {"approve": event.approve or None}
                    self._asked.add((event.agent, event.number))
                    self._send(run, {"event": "asked", **about}, message.asked(run, event), STAYS)

    def _closing(self, event: BackendClosed) -> str:
        """What the closing of a backend is called; empty when it was told before, or opens again in a moment."""
        kind = _CLOSINGS.get(event.kind, "")
        if not kind or (event.backend, kind) in self._closed:
            return ""
        self._closed.add((event.backend, kind))
        return kind

    def refresh(self, run: Run | None = None) -> None:
        """Say what the processes have said."""
        for telling in self._tellings:
            self._say(telling, self._note)
        self._tellings = [telling for telling in self._tellings if not telling.is_over]

    def helpers(self) -> list[int]:
        """The processes that are telling somebody."""
        return [telling.pid for telling in self._tellings]

    def ended(self, run: Run, code: int, note: Callable[[str], None]) -> None:
        """Tell how a run ended, after all else was told; an error here does not change how it ended.

        A run that ends only because nobody has answered or decided yet was told of already.
        """
        try:
            for telling in self._tellings:
                self._say(telling, note, wait=True)
            if self._was_told(run):
                return
            for telling in self._send(run, {"event": "ended", "exit_code": code}, message.ended(run)):
                self._say(telling, note, wait=True)
                telling.join()
        except OSError as error:
            note(f"a notification was not delivered ({(error.strerror or '').lower()})")
        except KeyboardInterrupt:
            note("stopped waiting for the notification")

    def _was_told(self, run: Run) -> bool:
        """Whether all that a run waits for are questions and reviews that were told of."""
        status = run_status(run)
        if status not in ("waiting", "paused") or run.stop or run.closed:
            return False
        idle = [agent for agent in run.agents.values() if agent.status != WAITING]
        return all(
            agent.id in self._reviewed
            if waits_for_review(agent)
            else agent.status == ASKING and (agent.id, agent.asks) in self._asked
            for agent in idle
        )

    def _send(self, run: Run, about: dict[str, Any], says: Message, *how: str) -> list[Telling]:
        document = {**about, "title": says.title, "text": says.text, **documents.outcome(run)}
        data = msgspec.json.encode(document) + b"\n"
        given = [_away_from(run.start.cwd), *how]
        made = [
            Telling(target, given, data if len(data) <= _MOST else _short(document), says) for target in self._targets
        ]
        self._tellings += made
        return made

    def _say(self, telling: Telling, note: Callable[[str], None], *, wait: bool = False) -> None:
        """Pass on what a target printed; that it does not work is said once."""
        said = telling.heard(wait=wait)
        if said.startswith(FAILED):
            if telling.target in self._failed:
                return
            self._failed.add(telling.target)
        if said:
            note(said.removeprefix(FAILED))


def _away_from(directory: str) -> str:
    """Where commands run: at home, or in / when the agents work there; what they write must not be what is run."""
    home, theirs = os.path.realpath(os.path.expanduser("~")), os.path.realpath(directory)
    return home if os.path.isdir(home) and os.path.commonpath([home, theirs]) != theirs else "/"


def _start(given: list[str], data: bytes, says: Message) -> tuple[int, int]:
    """Start the program that tells; its pid, and where it says how that went."""
    argv = [sys.executable, "-I", _PROGRAM, *given]
    environment = {**os.environ, "RAYMOND_TITLE": says.title, "RAYMOND_MESSAGE": says.text}
    reader = _opened(data)
    heard, said = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, said, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
    try:
        # In its own group: Ctrl-C is meant for the run.
        return os.posix_spawn(sys.executable, argv, environment, file_actions=actions, setpgroup=0), heard
    except OSError:
        os.close(heard)
        raise
    finally:
        os.close(reader)
        os.close(said)


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


def _short(document: dict[str, Any]) -> bytes:
    """The document cut to what a pipe holds: without the texts of all agents, and with the start of the others."""
    brief = {
        name: value[:_BEGINNING] if isinstance(value, str) and name not in _WHOLE else value
        for name, value in document.items()
        if not isinstance(value, dict)
    }
    question = document.get("question", "")
    if len(question) > _BEGINNING:
        command = f"raymond answer {document['workflow_id']} {document['agent']}"
        short = len(question) <= message.LONGEST
        brief["question"] = question if short else message.too_long(question, command)
    return msgspec.json.encode(brief | {"shortened": True}) + b"\n"
