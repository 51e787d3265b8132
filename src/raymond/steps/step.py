"""A step while it runs: a process, its time limits, and how it is stopped."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from raymond import errors
from raymond.errors import JournalError
from raymond.machine.failures import Kind
from raymond.machine.inputs import Ending, Failure, Interruption, Spending
from raymond.redaction import Secrets
from raymond.steps.job import Job
from raymond.store import exports
from raymond.store.transcripts import Transcripts
from raymond.store.workflow_snapshot import UnpackedWorkflow
from raymond.system.files import make_private
from raymond.system.processes import GRACE, Poll, Watcher, signal_group
from raymond.system.stragglers import Marks

if TYPE_CHECKING:  # most runs have no workspace, and start without it
    from raymond.workspace.place import Place

FAR = float("inf")
UNKNOWN_EXIT = "its exit code is unknown: another part of this process has taken it"
"""Of a process that we started ourselves: it may have failed, so it has not succeeded."""

_ALIVE_EVERY = 1.0
"""Seconds between two signs of life that are shown."""


class Host:
    """What every step of a run needs from this machine."""

    def __init__(
        self,
        *,
        marks: Marks,
        transcripts: Transcripts,
        unpacked: UnpackedWorkflow,
        tree: str,
        home: str,
        spool: str,
        seals: str,
        noted: str,
        clock: Callable[[], float],
        report: Callable[["Step", Ending], None],
        named: Callable[[str, str], None],
        show: Callable[[str, str, str], None],
        place: "Place | None" = None,
    ) -> None:
        self.poll = Poll()
        self.watcher = Watcher(self.poll)
        self.marks = marks
        self.transcripts = transcripts
        self.unpacked = unpacked
        """The scripts, as they should be."""
        self.tree = tree
        """The project, which holds the task folders of agents."""
        self.spool = spool
        self.seals = seals
        self.noted = noted
        """The file of the processes that the driver has seen."""
        self._has_spool = False
        self.clock = clock
        self.report = report
        self.named = named
        """Called with agent and session when a backend says which conversation its turn writes."""
        self.secrets = Secrets.of(os.environ)
        """Removes secrets from what a step says before it is parsed, stored or shown."""
        self._pipes: Pipes | None = None
        self.soonest = FAR
        """When, by the monotonic clock, a step has to be checked."""
        self.unusable: Mapping[str, str] = {}
        """Backends whose program cannot be used, and why."""
        self.wants_raw = False
        """Somebody wants to see every line that a program prints, as the kind `raw`."""
        self.place = place
        """The workspace of the run, if some of its steps work in one."""
        self.show = show
        """Called with agent, kind (print, tool, text, note, words, context, life) and text while a step runs."""
        self.environment = {k: v for k, v in os.environb.items() if not k.startswith(b"RAYMOND_")}
        # A Raymond that a step starts keeps its runs where this one does.
        self.environment[b"RAYMOND_HOME"] = os.fsencode(home)
        if b"RAYMOND_PORTABLE" in os.environb:
            self.environment[b"RAYMOND_PORTABLE"] = b"1"

    def make_spool(self) -> None:
        """Make the folder for the files of steps, once."""
        if not self._has_spool:
            make_private(self.spool)
            self._has_spool = True

    def pipes(self) -> "Pipes":
        """The pipes of a step; those made in advance when there are some."""
        made, self._pipes = self._pipes or _pipes(), None
        return made

    def stock(self) -> None:
        """Make the pipes of the next step while this one runs; if there is no room for them now, it makes its own."""
        try:
            self._pipes = self._pipes or _pipes()
        except OSError:
            return

    def make_room(self, running: Container[str]) -> None:
        """Close every file that can be opened again; the agents that run will write to theirs soon."""
        self.transcripts.close_all_but(running)
        self._close_pipes()

    def close(self) -> None:
        """Stop polling, and close the pipes that no step has used."""
        self.poll.close()
        self._close_pipes()

    def _close_pipes(self) -> None:
        made, self._pipes = self._pipes, None
        for pipe in made or ():
            _close(pipe)


Pipes: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
"""Two pipes, each with its reading end first, which does not block."""


def _pipes() -> Pipes:
    out = os.pipe()
    try:
        err = os.pipe()
    except OSError:
        _close(out)
        raise
    os.set_blocking(out[0], False)
    os.set_blocking(err[0], False)
    return out, err


def _close(pipe: tuple[int, int]) -> None:
    for fd in pipe:
        os.close(fd)


class Step:
    """One step. A subclass knows what to start and how to read what it says."""

    pid = 0
    ended = False
    """Its ending was reported."""
    is_cut = False
    """It is stopped for a person or with its run, so that it has not failed."""
    refused: tuple[Kind, str] | None = None
    """The failure class and error of a step that found no place, or no room, to work in."""
    _kill_at = FAR
    _verdict: tuple[Kind | None, str] | None = None
    """The failure class and error of a step that we stopped."""

    def __init__(self, host: Host, job: Job) -> None:
        self.host = host
        self.job = job
        self.agent = job.agent
        self.number = job.step
        self.began = self.heard = self._shown_alive = time.monotonic()
        self._silence = job.silence
        self._longest = job.policy.max_time or FAR

    def start(self) -> None:
        """Start the process."""
        raise NotImplementedError

    def adopt(self, *, restart: bool = False) -> bool:
        """Look for the step of a driver that died; whether it still runs. If it does not, its ending is reported."""
        self.host.report(self, Interruption(time=self.host.clock(), agent=self.agent, by_death=not restart))
        return False

    def hear(self, now: float) -> None:
        """It showed a sign of life; people are told so, but not more than once a second."""
        self.heard = now
        if now >= self._shown_alive + _ALIVE_EVERY:
            self._shown_alive = now
            self.host.show(self.agent, "life", "")

    def deadline(self) -> float:
        """When, by the monotonic clock, `check` has something to do."""
        if self._verdict:
            return self._kill_at
        return min(self.heard + self._silence, self.began + self._longest)

    def check(self, now: float) -> None:
        """Stop a step that is silent or takes too long; kill it when it does not stop."""
        if self._verdict:
            if now >= self._kill_at:
                self._kill_at = FAR
                self.kill()
        elif now >= self.began + self._longest:
            self._stop_for("time", f"took longer than max_time ({self._longest:g}s)", now)
        elif self._is_silent(now):
            self._stop_for("silent", self._quiet(), now)

    def publish(self, now: float) -> None:
        """Called about once a second: write down what others may read along."""

    def _is_silent(self, now: float) -> bool:
        return now >= self.heard + self._silence

    def _quiet(self) -> str:
        return f"said nothing for {self._silence:g}s"

    def _stop_for(self, kind: Kind | None, error: str, now: float) -> None:
        self._verdict = (kind, error)
        self._kill_at = now + GRACE
        self.stop()

    def pause(self) -> None:
        """Stop the process because a person pauses the agent; kill it when it does not stop."""
        self.is_cut = True
        self._stop_for("crash", "was stopped by a person", time.monotonic())
        self.host.soonest = min(self.host.soonest, self._kill_at)

    def stop(self) -> None:
        """Ask the process to end."""
        signal_group(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process."""
        signal_group(self.pid, signal.SIGKILL)

    def abandon(self) -> None:
        """The driver leaves: leave nothing running that the next driver could not adopt."""
        self.kill()

    def cut(self) -> None:
        """Report an interruption without waiting for the process to end."""
        self.host.report(self, Interruption(time=self.host.clock(), agent=self.agent))

    def entered(
        self,
        argv: list[str],
        env: Mapping[bytes, bytes],
        shown: Mapping[str, bool],
        needs: Iterable[str] = (),
        written: Mapping[str, str] = {},
        *,
        program: str = "",
        only_reads: bool = False,
    ) -> tuple[list[str], Mapping[bytes, bytes], str]:
        """What to start, with which environment and in which directory, so that the step works where it should.

        `shown` are paths that it finds although they are in places that are empty for it, and whether it may write.
        `written`: where it finds other places that it may write, and where these are. `only_reads`: not the project.
        `program`: what it starts in its turn, if it is a shell.
        """
        job, place = self.job, self.host.place
        if place is None or job.way == "here":
            return argv, env, job.cwd
        if job.way == "isolated":
            from raymond.workspace import home

            shown = {**shown, **home.lent(job.lend, env), self.host.unpacked.path: False}
            env = home.environment(env, job.lend, needs)
            written = {**written, job.task_folder: job.task_folder} if os.path.isdir(job.task_folder) else written
        env = {**env, b"RAYMOND_WORKSPACE": job.way.encode()}
        self.host.make_spool()
        # A program that is not on the PATH is shown like those that are.
        path = b":".join([env.get(b"PATH", b""), os.fsencode(os.path.dirname(program or argv[0]))])
        argv, cwd = place.entered(
            argv,
            way=job.way,
            cwd=job.cwd,
            name=str(self.number),
            environment={**env, b"PATH": path},
            shown=shown,
            written=written,
            only_reads=only_reads,
            net=job.net,
            aside=os.path.join(self.host.spool, f"{self.number}.plan"),
        )
        return argv, env, cwd

    def come_out(self, exit_code: int | None) -> None:
        """Its process is gone: see whether its workspace could be entered, and that nothing of it is inside."""
        if self.host.place is None or self.job.way != "isolated":
            return
        error = self.host.place.refusal(str(self.number), exit_code)
        if error:
            kind: Kind = "machine" if errors.is_passing_fault(error) or error.errno in errors.DISK_FULL else "setup"
            self.refused = kind, f"its workspace cannot be entered: {error.strerror}"
        elif exit_code and self.host.place.is_full:
            # It was started, and is again: that is an attempt, and no failure of its own.
            self.refused = "overload", f"the disk of its workspace is full: {self.host.place.slot.path}"

    def outside(self, path: str) -> str:
        """Where a path that the step knows is on this machine."""
        return path if self.host.place is None or self.job.way == "here" else self.host.place.outside(path)

    def make_task_folder(self) -> None:
        """Make the folder the agent keeps files in."""
        if self.job.task_folder:
            try:
                exports.make(self.job.task_folder, self.host.tree)
            except JournalError as error:
                cause = error.__context__
                if errors.is_passing_fault(cause):
                    raise cause from None
                self.host.show(self.agent, "note", f"has no task folder: {error}")

    def withdraw(self) -> None:
        """The start failed half-way: leave nothing of it behind."""
        if self.pid:
            self.kill()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.close()

    def put_off(self, error: OSError) -> None:
        """Report that the machine could not start it; it is started again later."""
        self.fail("machine", f"this machine cannot start it: {(error.strerror or '').lower()}", Spending())

    def close(self) -> None:
        """The ending is in the journal: release everything held for the step."""

    def fail(
        self,
        kind: Kind,
        error: str,
        spent: Spending,
        exit_code: int | None = None,
        retry_at: float = 0.0,
        output: str = "",
    ) -> None:
        """Report a failure."""
        failure = Failure(
            time=self.host.clock(),
            agent=self.agent,
            kind=kind,
            error=error,
            spent=spent,
            exit_code=exit_code,
            retry_at=retry_at,
            output=output,
        )
        self.host.report(self, failure)


def stop_all(host: Host, steps: list[Step]) -> None:
    """Stop every step that runs, and wait until all have reported their endings; kill those that do not stop."""
    running = [step for step in steps if not step.ended]
    for step in running:
        step.is_cut = True
        step.stop()
    deadline = time.monotonic() + GRACE
    while running and time.monotonic() < deadline:
        due = min(deadline, *(step.deadline() for step in running))
        host.poll.wait(max(0.0, min(due - time.monotonic(), 0.1)))
        host.watcher.poll()
        now = time.monotonic()
        for step in running:
            if now >= step.deadline() and not step.ended:
                step.check(now)
        running = [step for step in running if not step.ended]
    for step in running:
        step.kill()
        step.cut()
