"""A gate, or the seal before it: the verifier's process, what it tells, and what it found."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import assert_never

import msgspec

from raymond import errors
from raymond.machine.inputs import Checked, Failure, Interruption, SealTaken, Spending
from raymond.machine.step_events import TO_REVIEW
from raymond.steps.job import GateJob
from raymond.steps.step import FAR, UNKNOWN_EXIT, Host, Step
from raymond.store.transcripts import PUBLISH_EVERY
from raymond.system.files import make_private
from raymond.system.processes import fork
from raymond.system.stragglers import MARK
from raymond.verifier import process
from raymond.verifier.assignment import IN_WORDS, TAIL, Assignment, Began, Ended, Found, Noted, Printed, Told, Work
from raymond.verifier.checks import environment_of

_BY_SIGNAL = 128
"""What a program that ends because of a signal adds to its number, by custom."""
_MOST_SAID = 300
_SLICE = 256 << 10
_LONGEST = 8 << 20
"""Bytes of a line of the verifier: it tells no longer ones."""


class GateStep(Step):
    """A gate that runs."""

    job: GateJob

    def __init__(self, host: Host, job: GateJob) -> None:
        super().__init__(host, job)
        self._silence = self._longest = FAR  # the verifier keeps the times of its commands
        self._record = host.transcripts.step(
            job.agent, step=job.step, state=job.state, attempt=job.attempt, gate=True, time=host.clock()
        )
        self._caches = os.path.join(host.seals, "caches")
        self._socket: socket.socket | None = None
        self._rest = b""
        self._door = host.secrets.stream()
        self._tail = ""
        """The end of what the last command printed."""
        self._found: Found | None = None
        self._has_ended = False
        self._exit: int | None = None
        self._said = ""
        """The last line that was no message: why the verifier died, if it could say so."""

    def start(self) -> None:
        """Start the verifier."""
        make_private(self._caches)
        given = self._assignment()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._socket = ours
        env: Mapping[bytes, bytes] = {
            b"PATH": os.environb.get(b"PATH", b""),
            MARK.encode(): self.host.marks.of(self.number).encode(),
        }
        try:
            with theirs:
                cwd = "/" if given.work else self.job.cwd
                out = theirs.fileno()
                self.pid = fork(process.ready(given), env, cwd, stdout=out, stderr=out)
        except OSError as error:
            if errors.is_passing_fault(error):
                raise
            self._end_early(error)
            return
        self.host.marks.note(self.pid, self.number)
        self.host.poll.register(ours.fileno(), self._readable)
        self.host.watcher.watch(self.pid, self._gone)

    def _assignment(self) -> Assignment:
        job = self.job
        return Assignment(
            checks=job.policy.gate,
            timeout=job.timeout,
            reruns=job.reruns,
            environment=self._environment(),
            cwd=job.cwd,
            work=self._work,
            key=job.key,
            step=job.step,
            turns=job.turns,
            noted=self.host.noted,
            does=job.does,
            folder=self.host.seals,
            seal=job.policy.seal,
            unseal=job.policy.unseal,
            may_change=job.policy.may_change or job.may_change,
            sealed=job.sealed,
            digest=job.digest,
            accepted=job.accepted,
            allows_edits=job.allows_edits,
            red_first=job.red_first,
        )

    @property
    def _work(self) -> Work | None:
        """The workspace whose work is checked; None when the agents work here."""
        job, place = self.job, self.host.place
        if place is None or job.way == "here":
            return None
        return Work(place.folder, place.top, place.run, place.raymond, job.way, job.lend, job.net, job.setup)

    def _environment(self) -> dict[str, str]:
        given = {}
        for name, value in self.host.environment.items():
            with contextlib.suppress(UnicodeDecodeError):  # nobody has such a variable on purpose
                given[name.decode()] = value.decode()
        more = {**self.job.policy.gate_env, MARK: self.host.marks.of(self.number)}
        return environment_of(given, more, self._caches)

    def _end_early(self, error: OSError) -> None:
        cwd = self.job.cwd
        what = f"the directory {cwd} is gone" if not os.path.isdir(cwd) else "the check cannot start"
        self._found = Found(verdict="could not start", reason=f"{what}: {(error.strerror or '').lower()}")
        self._conclude()

    def publish(self, now: float) -> None:
        """Let others read what a check that lasts has printed."""
        if now >= self.began + PUBLISH_EVERY:
            self._record.flush()

    def _readable(self, _: int) -> None:
        self._read()
        if self._has_ended and self._socket is None:
            self._conclude()

    def _read(self) -> int:
        """Take a slice of what it tells; how much it was."""
        if self._socket is None:
            return 0
        try:
            data = self._socket.recv(_SLICE)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self._let_go()
            return 0
        self.hear(time.monotonic())
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > _LONGEST:
            self._rest = b""
        return len(data)

    def _take(self, line: bytes) -> None:
        try:
            told: Told = msgspec.json.decode(line, type=Told)
        except msgspec.DecodeError:
            self._said = self.host.secrets.clean(line.decode("utf-8", "replace"))
            self._record.add("note", f"{self._said}\n")
            return
        match told:
            case Began():
                again = " once more" if told.again else ""
                where = IN_WORDS[told.where]
                self.host.show(self.agent, "check", f"{told.command}{again}{where}")
                self._record.add("out", f"$ {self.host.secrets.clean(told.command)}{where}\n")
                self._tail = ""
            case Noted():
                text = self.host.secrets.clean(told.text)
                self.host.show(self.agent, "note", text)
                self._record.add("out", f"{text}\n")
            case Printed():
                self._say(self._door.feed(told.text))
            case Ended():
                self._say(self._door.close())
                self._door = self.host.secrets.stream()
                how = "time is over" if told.exit_code is None else f"exit code {told.exit_code}"
                self._record.add("out", f"[{how}, {told.seconds:.1f}s]\n")
            case Found():
                self._found = told
            case _:
                assert_never(told)

    def _say(self, text: str) -> None:
        self._record.add("out", text)
        self._tail = (self._tail + text)[-TAIL:]

    def _gone(self, code: int | None) -> None:
        self._has_ended, self._exit = True, code
        while self._read():
            pass
        self._conclude()

    def cut(self) -> None:
        """What is interrupted runs again."""
        spent = Spending(offset=self._record.end(interrupted=True))
        self.host.report(self, Interruption(time=self.host.clock(), agent=self.agent, spent=spent))

    def _conclude(self) -> None:
        """Report what it found; a verifier that was stopped, or that died, has found nothing."""
        if self.ended:
            return
        self.close()
        found = self._found
        if self.is_cut or (found is None and self._verdict):
            self.cut()
            return
        if found is None and (self._exit is None or self._exit < 0 or self._exit > _BY_SIGNAL):
            self._die()
            return
        if found is None:
            reason = f"the verifier ended with exit code {self._exit}: {self._said.strip()[-_MOST_SAID:]}".rstrip(": ")
            found = Found(verdict="could not start", reason=reason)
        if found.is_fault:
            spent = Spending(offset=self._record.end(interrupted=True))
            self.host.report(
                self, Failure(time=self.host.clock(), agent=self.agent, kind="machine", error=found.reason, spent=spent)
            )
            return
        self.host.report(self, self._sealed(found) if self.job.does == "seal" else self._checked(found))

    def _die(self) -> None:
        """Somebody killed the verifier alone: it is started again, without the command that it ran beside it."""
        from raymond.verifier import twin

        self.host.marks.end(step=self.number)
        twin.remove_left(self.host.seals, self.number)
        spent = Spending(offset=self._record.end(interrupted=True))
        cause = _cause(self._exit)
        self.host.report(
            self, Interruption(time=self.host.clock(), agent=self.agent, spent=spent, by_death=True, cause=cause)
        )

    def _sealed(self, found: Found) -> SealTaken:
        reason = self.host.secrets.clean(found.reason)
        return SealTaken(
            time=self.host.clock(),
            agent=self.agent,
            seal=found.seal,
            files=found.files,
            commit=found.commit,
            seconds=found.seconds,
            reason=reason,
            before=self.host.secrets.clean(found.before),
            spent=Spending(offset=self._record.end(verdict=found.verdict, reason=reason, files=found.files)),
        )

    def _checked(self, found: Found) -> Checked:
        clean = self.host.secrets.clean
        spent = Spending(offset=self._record.end(verdict=found.verdict, reason=clean(found.reason)))
        output = clean(found.output) if found.verdict in TO_REVIEW else self._tail
        return Checked(
            time=self.host.clock(),
            agent=self.agent,
            verdict=found.verdict,
            command=clean(found.command),
            exit_code=found.exit_code,
            seconds=found.seconds,
            flaky=found.flaky,
            reason=clean(found.reason),
            output="" if found.verdict == "passed" else output.strip("\n"),
            changes=tuple(clean(one) for one in found.changes),
            digest=found.digest,
            twin=found.twin,
            review=found.review,
            seal=found.seal,
            tree=found.tree,
            commit=found.commit,
            new_tests=found.new_tests,
            vouched=found.vouched,
            sign=found.sign,
            wrote=tuple(clean(one) for one in found.wrote),
            spent=spent,
        )

    def close(self) -> None:
        """Close the socket."""
        self._let_go()

    def _let_go(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(KeyError, ValueError, FileNotFoundError):
            self.host.poll.unregister(self._socket.fileno())
        self._socket.close()
        self._socket = None


def _cause(code: int | None) -> str:
    """How a verifier died."""
    if code is None:
        return f"the verifier died: {UNKNOWN_EXIT}"
    number = -code if code < 0 else code - _BY_SIGNAL
    memory = ", perhaps for want of memory" if number == signal.SIGKILL else ""
    return f"the verifier was killed by signal {number}{memory}"
