"""Where a driver takes what others ask of its run: at its door, in its inbox, and from whoever types at its face.

The door is opened a moment after the start: a short run does without. Where there can be a door, the inbox takes only
what any step may ask for, since a file does not tell who wrote it; also while something is in the way of the door.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from raymond.drivers.face import Face
from raymond.errors import JournalError
from raymond.language.refusal import Refusal
from raymond.machine import requests
from raymond.machine.conductor import Conductor
from raymond.machine.events import Decision, RequestTaken
from raymond.machine.requests import Request
from raymond.machine.sender import FOR_STEPS, Sender, is_heard
from raymond.redaction import Secrets
from raymond.store import inbox
from raymond.store.run_folder import RunFolder
from raymond.system import processes
from raymond.system.processes import Poll

if TYPE_CHECKING:
    from raymond.drivers.door import Door

LOOK_EVERY = 1.0
"""Seconds between two looks into the inbox."""
OPEN_AFTER = 0.2
"""Seconds after which the door is opened."""
_TOLD = 1000
"""Requests of which it is remembered what became of them."""
_CROWDED = "the process that drives the run has too many files open at the moment"
IN_INBOX = "inbox"
"""What a driver without a door says of where it takes requests."""


class Reception:
    """Hands requests to the conductor, and tells those who asked what became of them."""

    def __init__(
        self,
        folder: RunFolder,
        conductor: Conductor,
        face: Face,
        poll: Poll,
        clock: Callable[[], float],
        announce: Callable[[str], None],
        secrets: Secrets,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        """`make_room` closes files that can be opened again."""
        self.next_look = 0.0
        """When, by the monotonic clock, something is to be looked at."""
        self.woken = False
        """Something was asked since this was last set to False."""
        self._folder = folder
        self._conductor = conductor
        self._face = face
        self._poll = poll
        self._clock = clock
        self._announce = announce
        self._secrets = secrets
        self._make_room = make_room
        self._opens_at = time.monotonic() + OPEN_AFTER
        self._door: Door | None = None
        self._is_announced = False
        """Others can find out where we take requests."""
        self._paths: dict[str, str] = {}
        """The files of the requests that were seen in the inbox, by their ids."""
        self._refused: dict[str, Refusal] = {}
        """Why requests that came in by the door will be refused."""
        self._told: dict[str, Refusal | None] = {}
        """What became of the last requests: whoever asks again is told the same."""

    def look(self) -> bool:
        """See to the inbox and the door when it is time; whether it was."""
        now = time.monotonic()
        if now < self.next_look:
            return False
        self.next_look = now + LOOK_EVERY
        if now >= self._opens_at or (self._door and self._door.problem):
            self._open()
        if self._door:
            self._door.dismiss_idle()
            self._tell_where(self._door)
        self.next_look = min(self.next_look, max(now, self._opens_at))
        self.read_inbox()
        return True

    def read_inbox(self, *, stops: bool = True) -> None:
        """Hand over what is in the inbox; a request stays there until it is in the journal. `stops`: see Conductor."""
        left: list[Request] = []
        for path, request in list(inbox.pending(self._folder.inbox)):
            if request is None:
                self._put_aside(path, "broken", "cannot be read")
            elif request.kind in FOR_STEPS or is_heard(request.kind, knows_senders=self._knows_senders()):
                self._paths[request.id] = path
                left.append(replace(request, sender=Sender(way="inbox"), given=None))
            else:
                self._put_aside(path, "refused", f"asks for `{request.kind}` and does not tell who it comes from")
        self._conductor.ask_left(left, self._clock(), stops=stops)

    def _put_aside(self, path: str, why: str, what: str) -> None:
        aside = inbox.put_aside(path, why)
        if aside:
            self._face.on_note(f"a request that {what} was put aside: {aside}")

    def _knows_senders(self) -> bool:
        """Whether the door tells who asks, or would if nothing were in its way: a step may have put it there."""
        door = self._door or self._open()
        return door.is_open or door.problem is not None

    def _open(self) -> "Door":
        """Open the door, and tell where it is; when something is in its way, the next look tries again."""
        if self._door is None:
            from raymond.drivers.door import Door  # short runs do without

            self._door = Door(self._folder.socket, self._poll, self._hear)
        told, self._opens_at = self._door.problem is not None, float("inf")
        if not self._door.open() and self._door.problem and not told:
            why = f"{self._folder.socket} cannot be opened: {self._door.problem.strerror}"
            self._face.on_note(f"only `stop` and `pause` are taken until that works: {why}")
        self._tell_where(self._door)
        return self._door

    def _tell_where(self, door: "Door") -> None:
        """Say where requests are taken; a full disk does not end a run for this, and the next look tries again."""
        if not self._is_announced and not door.problem:
            with contextlib.suppress(JournalError):
                self._announce(self._folder.socket if door.is_open else IN_INBOX)
                self._is_announced = True

    def _hear(self, request: Request, pid: int) -> None:
        """Somebody asks at the door."""
        from raymond.drivers import origin

        if request.id in self._told and self._door:
            return self._door.reply(request.id, self._told[request.id])
        if self._door and request.kind not in FOR_STEPS and not self._has_room():
            # It could not be seen who asks.
            hint = f"ask again in a moment; if that does not help: kill {os.getpid()}, which loses nothing, then again"
            return self._door.reply(request.id, Refusal("too_late", _CROWDED, hint))
        secret = self._secrets.find("\n".join(request.words()))
        if secret and self._door:
            what = Refusal("too_late", f"it contains {secret}", "a step reads secrets from its environment")
            return self._door.reply(request.id, what)
        drives = self._conductor.run.start.key
        sender = origin.of(pid, "socket", drives=drives, helpers=self._face.helpers())
        asked = origin.signed(request, sender, self._secrets)
        problem = requests.problem(self._conductor.run, self._conductor.workspace, asked, self._clock())
        if problem:
            self._refused[request.id] = problem
        self._conductor.ask(asked, self._clock())
        self.woken = True

    def _has_room(self) -> bool:
        if not processes.has_room():
            self._make_room()
        return processes.has_room()

    def listen(self) -> None:
        """Take what was typed at the face."""
        for agent, answer in self._face.answers():
            secret = self._secrets.find(answer)
            if secret:
                self._face.on_note(f"the answer to {agent} contains {secret}, so it was not taken")
            else:
                id = f"typed-{os.urandom(16).hex()}"
                self._conductor.answer(id, agent, answer, self._clock(), self._typist())
        self.woken = True

    def _typist(self) -> Sender:
        from raymond.drivers import origin

        return origin.described(origin.this("face"), self._secrets)

    def done(self, taken: Iterable[str], decisions: Iterable[Decision]) -> None:
        """These requests are in the journal now."""
        problems = {event.request: event.problem for event in _taken(decisions)}
        for request in taken:
            path = self._paths.pop(request, "")
            if path:
                inbox.remove(path)
            refused, problem = self._refused.pop(request, None), problems.get(request, "")
            self._told[request] = (refused or Refusal("too_late", problem)) if problem else None
            if self._door:
                self._door.reply(request, self._told[request])
            if len(self._told) > _TOLD:
                del self._told[next(iter(self._told))]

    def close(self) -> None:
        """Take nothing more; what is asked of a run that is over is not kept for anybody."""
        if self._door:
            self._door.close()
        if self._conductor.run.is_over:
            for path, _ in list(inbox.pending(self._folder.inbox)):
                inbox.remove(path)


def _taken(decisions: Iterable[Decision]) -> Iterator[RequestTaken]:
    return (event for decision in decisions for event in decision.events if isinstance(event, RequestTaken))
