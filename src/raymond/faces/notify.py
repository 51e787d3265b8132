"""Notifications: a command gets a JSON document on stdin, a URL gets it posted; and the message in it.

A separate process does it, so that neither a slow network nor a broken command holds up a run. In a message, the
command to run comes first, where no text of an agent can push it away, and every line of an agent is quoted.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from raymond.drivers.face import Quiet
from raymond.faces import documents, summary, words
from raymond.faces.foreign_text import in_margin
from raymond.faces.notification import FAILED, STAYS
from raymond.faces.question import folded, size
from raymond.language import choices
from raymond.machine import budget
from raymond.machine.agent import ASKING, WAITING
from raymond.machine.events import AgentPaused, AskStarted, BackendClosed, Decision
from raymond.machine.run import Run
from raymond.text import visible
from raymond.views.status import loop_result, run_status, waits_for_review
from raymond.views.times import instant

LONGEST_MESSAGE = 8_000
"""Characters of a text: an environment variable holds them, and so do most services."""
_QUOTE = "> "
_ENDING_WORDS = {
    "waiting": "waits for an answer",
    "cancelled": "was cancelled",
    "paused": "is paused",
    "stopped": "is stopped",
    "running": "is interrupted",
}

_CLOSING_WORDS = {
    "limit": "has reached a usage limit",
    "auth": "is not logged in, or not paid for",
    "exhausted": "finds no resources on this machine",
}

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notification.py")
_LONGEST_DOCUMENT = 60 << 10
_LONGEST_BEGINNING = 2000
_CLOSING_NAMES = {"limit": "limit", "auth": "auth", "billing": "auth", "machine": "exhausted"}
"""Why a backend takes no turns, and what that is called."""
_NEVER_CUT = ("title", "text")


# What a person reads


class Message(Struct, frozen=True):
    """What a person reads."""

    title: str
    text: str


def question_message(run: Run, event: AskStarted) -> Message:
    """A question: whole, or only mentioned when it is too long; nobody should decide on a part of it."""
    id = run.start.workflow_id
    answer = f"raymond answer {id} {event.agent}"
    question = "\n".join(in_margin(folded(event.question.strip()), _QUOTE))
    if len(question) > LONGEST_MESSAGE:
        question = _instead_of_question(event.question, answer)
    # A file is read on the machine that has it.
    files = [f"file: {one.path} ({size(one.size)})" for one in event.files]
    offered = [f"choices: {choices.offer(event.choices)}"] if event.choices else []
    about = [visible(line) for line in (f"answer it with: {answer}", *offered, *files)]
    agent = run.agents.get(event.agent)
    title = f"{id}: {words.who(agent) if agent else event.agent} asks"
    return Message(visible(title), "\n".join([*about, "", question]))


def review_message(run: Run, event: AgentPaused) -> Message:
    """A green check that counts when a person says so."""
    id = run.start.workflow_id
    agent = run.agents.get(event.agent)
    who = words.who(agent) if agent else event.agent
    title = f"{id}: the work of {who} waits for a review"
    why = "\n".join(in_margin(event.reason, _QUOTE))
    look = f"look at it with: raymond review {id}"
    return Message(visible(title), "\n\n".join([look, why])[:LONGEST_MESSAGE])


def _instead_of_question(question: str, command: str) -> str:
    """What is said instead of a question that has no room."""
    return f"[a question of {len(question):,} characters: `{command}` shows it]"


def ending_message(run: Run) -> Message:
    """How a run ended."""
    id, status = run.start.workflow_id, run_status(run)
    if told := loop_result(run).get("text"):
        return Message(visible(f"{id}: the loop has ended"), visible(f"{told}\n\nraymond {run.start.loop} status"))
    lines = summary.ending(run, status).split("\n")
    # Only our own lines begin with their name: those of others are inside a margin.
    at = next((number for number, line in enumerate(lines) if line.startswith("next:")), len(lines))
    told = [line.replace(summary.MARGIN, _QUOTE, 1) if line.startswith(summary.MARGIN) else line for line in lines[:at]]
    text = "\n".join([*lines[at:], "", *told])
    if len(text) > LONGEST_MESSAGE:
        text = "\n".join([*lines[at:], "", lines[0], f"[too long to show here: `raymond status {id}` shows it]"])
    return Message(visible(f"{id} {_ENDING_WORDS.get(status, status)}"), text)


def closing_message(run: Run, event: BackendClosed, what: str) -> Message:
    """Nothing can be asked of a backend for a while, or until a person has done something."""
    id = run.start.workflow_id
    title = f"{id}: {event.backend} {_CLOSING_WORDS[what]}"
    until = f"it goes on by itself at {instant(event.until)}" if event.until else f"then: raymond resume {id}"
    return Message(visible(title), "\n\n".join([until, *in_margin(event.error, _QUOTE)])[:LONGEST_MESSAGE])


def budget_message(run: Run, warning: str) -> Message:
    """Most of the budget is spent."""
    id = run.start.workflow_id
    return Message(visible(f"{id}: the budget is nearly spent"), f"{warning} ({words.many(run.iterations, 'step')})")


# How it is sent


class Delivery:
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
        self._tellings: list[Delivery] = []
        self._failed: set[str] = set()
        self._asked: set[tuple[str, int]] = set()
        self._reviewed: set[str] = set()
        self._closed: set[tuple[str, str]] = set()

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what an agent asks."""
        near = budget.warned(run, run.cost - words.cost_of(decisions), run.cost)
        if near:
            self._send(run, {"event": "budget", "message": near}, budget_message(run, near), STAYS)
        for decision in decisions:
            for event in decision.events:
                if isinstance(event, AgentPaused) and event.kind == "review":
                    about: dict[str, Any] = {"agent": event.agent, "why": event.reason}
                    self._reviewed.add(event.agent)
                    self._send(run, {"event": "review", **about}, review_message(run, event), STAYS)
                elif isinstance(event, BackendClosed) and (told := self._closing(event)):
                    self._send(run, {"event": told, "message": event.error}, closing_message(run, event, told), STAYS)
                elif isinstance(event, AskStarted) and run.start.on_ask != "fail":
                    about = {"agent": event.agent, "question": event.question, "question_number": event.number}
                    about |= {"approve": event.approve or None}
                    self._asked.add((event.agent, event.number))
                    self._send(run, {"event": "asked", **about}, question_message(run, event), STAYS)

    def _closing(self, event: BackendClosed) -> str:
        """What the closing of a backend is called; empty when it was told before, or opens again in a moment."""
        kind = _CLOSING_NAMES.get(event.kind, "")
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
            for telling in self._send(run, {"event": "ended", "exit_code": code}, ending_message(run)):
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

    def _send(self, run: Run, about: dict[str, Any], says: Message, *how: str) -> list[Delivery]:
        document = {**about, "title": says.title, "text": says.text, **documents.outcome(run)}
        data = msgspec.json.encode(document) + b"\n"
        given = [_away_from(run.start.cwd), *how]
        made = [
            Delivery(target, given, data if len(data) <= _LONGEST_DOCUMENT else _shortened(document), says)
            for target in self._targets
        ]
        self._tellings += made
        return made

    def _say(self, telling: Delivery, note: Callable[[str], None], *, wait: bool = False) -> None:
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


def _shortened(document: dict[str, Any]) -> bytes:
    """The document cut to what a pipe holds: without the texts of all agents, and with the start of the others."""
    brief = {
        name: value[:_LONGEST_BEGINNING] if isinstance(value, str) and name not in _NEVER_CUT else value
        for name, value in document.items()
        if not isinstance(value, dict)
    }
    question = document.get("question", "")
    if len(question) > _LONGEST_BEGINNING:
        command = f"raymond answer {document['workflow_id']} {document['agent']}"
        short = len(question) <= LONGEST_MESSAGE
        brief["question"] = question if short else _instead_of_question(question, command)
    return msgspec.json.encode(brief | {"shortened": True}) + b"\n"
