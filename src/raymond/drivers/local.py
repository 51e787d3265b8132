"""This machine: do what is owed, write down what happened.

One thread that waits for file descriptors. A round takes what came in, decides, writes every decision to the journal
with one write, and only then starts what follows. Steps report into a list, so that nothing happens in the middle of
anything else.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping

from raymond.backends import Backend, Direct
from raymond.drivers.face import Face
from raymond.drivers.housekeeping import Upkeep
from raymond.machine import budget, requests
from raymond.machine.agent import ASKING, RUNNING, SCRIPTS, Agent, backend_of
from raymond.machine.decide import begin, decide
from raymond.machine.events import Decision, Event
from raymond.machine.evolve import apply
from raymond.machine.inputs import Begin, Ending, Failure, Input, Interruption, Named, Stop, Tick
from raymond.machine.run import Run
from raymond.machine.schedule import due, over_at, owed, wake_at
from raymond.machine.workspace import Workspace
from raymond.steps import spool
from raymond.steps.job import job_of
from raymond.steps.kinds import step_for
from raymond.steps.step import FAR, Host, Step
from raymond.store import inbox
from raymond.store.journal import Journal
from raymond.store.project import Project
from raymond.store.transcripts import Transcripts
from raymond.system.files import trouble
from raymond.system.marks import Marks
from raymond.system.processes import GRACE, HAS_PIDFD
from raymond.views.times import instant

LOOK_EVERY = 1.0
"""Seconds between two looks into the inbox."""
LONGEST_SLEEP = 30.0


class Driver:
    """Drives one run whose lock is held."""

    def __init__(
        self,
        project: Project,
        run: Run,
        workspace: Workspace,
        journal: Journal,
        backends: Mapping[str, Backend | Direct],
        face: Face,
        *,
        strict: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.run = run
        self.signal = 0
        """The signal that ended the run, for the exit code."""
        self._project = project
        self._placed = workspace
        self._journal = journal
        self._backends = backends
        self._face = face
        # As the journal keeps it, so that a fold is equal to what ran.
        self._clock: Callable[[], float] = lambda: round(clock(), 3)
        id = run.start.workflow_id
        self._inbox = project.beside(id, "inbox")
        self._upkeep = Upkeep(journal, project.beside(id, "json"), face, strict=strict)
        self._endings: list[tuple[Step, Ending]] = []
        self._told: list[Decision] = []
        self._steps: dict[str, Step] = {}
        self._signals: list[int] = []
        self._pausing: dict[str, tuple[str, requests.Request]] = {}
        """Agents whose step is being stopped, and the request for it: it waits in the inbox until then."""
        self._woken = False
        """Somebody typed an answer."""
        self._stop_now = ""
        self._look_at = 0.0
        self._marks = Marks(run.start.key, project.path("spool", f"{id}.pids"))
        self._host = Host(
            marks=self._marks,
            transcripts=Transcripts(project.path("transcripts", id)),
            spool=project.path("spool", id),
            clock=self._clock,
            report=self._report,
            named=self._name,
            show=self._show,
        )

    def drive(self, *, restart: bool = False, at_once: bool = False, fresh: bool = False) -> None:
        """Run until nothing is left that this process could do."""
        with self._listening():
            try:
                if self.run.seq > 1:
                    self._face.on_decisions(self.run, [])
                    self._settle(restart, at_once, fresh)
                else:
                    first = Decision(seq=1, time=self.run.started_at, events=begin(self.run.start))
                    self._told.append(first)
                    self._tell()
                while True:
                    self._round()
                    if self._done():
                        break
                    while not self._wait():
                        pass
                self._leave()
            finally:
                self._abandon()

    # --- a round

    def _round(self) -> None:
        """Everything that follows from what has come in so far."""
        self._take_signals()
        self._look()
        while True:
            ended = self._take_endings()
            while due(self.run, now := self._clock()) and self._commit(Tick(time=now)):
                pass
            if self._stop_now:
                self._upkeep.write()
                self._tell()
                return
            begun = [self._begin(name) for name in owed(self.run) if self._is_affordable(name)]
            self._upkeep.write()
            for agent in begun:
                if agent.status == RUNNING:
                    self._start(agent)
            # What nothing waits for comes after what a process can begin with.
            for step in ended:
                step.close()
            self._tell()
            # Who was held for a model has made room for others.
            if not self._endings and all(agent.status == RUNNING for agent in begun):
                break
        self._upkeep.keep(self.run)

    def _take_endings(self) -> list[Step]:
        ended: list[Step] = []
        while self._endings:
            step, ending = self._endings.pop(0)
            if self._steps.get(step.agent) not in (step, None):
                continue
            self._steps.pop(step.agent, None)
            ended.append(step)
            self._upkeep.must_sync = self._upkeep.must_sync or self._paid(self.run.agents[step.agent].pool)
            pausing = self._pausing.pop(step.agent, None)
            if (self._stop_now or pausing) and isinstance(ending, Failure):
                # We ended it: that is no failure of the work.
                ending = Interruption(time=ending.time, agent=ending.agent, spent=ending.spent)
            self._commit(ending)
            if pausing:
                self._take_request(*pausing)
        return ended

    def _begin(self, name: str) -> Agent:
        self._commit(Begin(time=self._clock(), agent=name))
        agent = self.run.agents[name]
        self._upkeep.must_sync = self._upkeep.must_sync or self._paid(agent.pool)
        return agent

    def _is_affordable(self, name: str) -> bool:
        """Those that began a moment ago may have reserved more than was expected."""
        return self.run.agents[name].pool == SCRIPTS or budget.affordable(self.run) > 0

    def _paid(self, pool: str) -> bool:
        backend = self._backends.get(backend_of(pool))
        return backend is not None and backend.paid

    def _start(self, agent: Agent) -> None:
        step = self._make(agent)
        try:
            step.start()
        except OSError as error:
            what = f"step {agent.step} of {agent.id} cannot be started, {error.filename or self._journal.path}"
            raise trouble(what, error) from None
        self._steps[agent.id] = step
        self._host.soonest = min(self._host.soonest, step.deadline())

    def _make(self, agent: Agent) -> Step:
        return step_for(self._host, job_of(self.run, self._placed, agent), self._backends)

    def _commit(self, input: Input) -> bool:
        """Decide and let it be true; written with the next `_write`."""
        return self._commit_events(input.time, decide(self.run, self._placed, input))

    def _commit_events(self, at: float, events: list[Event]) -> bool:
        if not events:
            return False
        decision = Decision(seq=self.run.seq + 1, time=at, events=events)
        self._journal.append(decision)
        apply(self.run, decision)
        self._told.append(decision)
        return True

    def _report(self, step: Step, ending: Ending) -> None:
        # Its process, its pipes and its time may all be over in one moment: a step ends once.
        if not step.ended:
            step.ended = True
            self._endings.append((step, ending))

    def _name(self, agent: str, session: str) -> None:
        if self.run.agents[agent].turn_session != session:
            self._commit(Named(time=self._clock(), agent=agent, session=session))
            self._upkeep.must_sync = self._woken = True

    def _show(self, agent: str, kind: str, text: str) -> None:
        self._tell()
        self._face.on_output(agent, kind, text)

    def _tell(self) -> None:
        if self._told:
            told, self._told = self._told, []
            self._face.on_decisions(self.run, told)
            self._upkeep.told()

    # --- waiting

    def _done(self) -> bool:
        if self._stop_now:
            return True
        if self._steps:
            return False
        if self.run.stopped or self.run.ended:
            return True
        if self._face.stdin >= 0 and self.run.statuses.get(ASKING):
            return False
        return wake_at(self.run) is None

    def _wait(self) -> bool:
        """Until something happens, or is due; whether it has to be decided on."""
        now = time.monotonic()
        until = min(self._host.soonest, self._look_at, self._upkeep.until(), now + LONGEST_SLEEP)
        if self._host.watcher.polls:
            until = min(until, now + 0.05)
        if not self.run.stopped:
            times = [at for at in (wake_at(self.run), over_at(self.run)) if at]
            if times:
                until = min(until, now + max(0.0, min(times) - self._clock()))
        self._host.poll.wait(max(0.0, until - now))
        now = time.monotonic()
        self._host.watcher.poll()
        if now >= self._host.soonest:
            self._check_steps(now)
        woken, self._woken = self._woken, False
        return bool(self._endings or self._signals) or woken or now >= until

    def _check_steps(self, now: float) -> None:
        for step in list(self._steps.values()):
            if not step.ended:
                step.check(now)
        self._host.soonest = min((step.deadline() for step in self._steps.values()), default=FAR)

    # --- from outside

    @contextlib.contextmanager
    def _listening(self):  # type: ignore[no-untyped-def]
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self._host.poll.register(reader, self._hear)
        if self._face.stdin >= 0:
            self._host.poll.register(self._face.stdin, self._hear_answers)
        # What was ignored when we were started stays ignored, as under nohup.
        heard = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        if not HAS_PIDFD:
            heard.append(signal.SIGCHLD)
        before = {number: signal.signal(number, self._note) for number in heard}
        waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(waker)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    def _note(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(number)

    def _hear(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)

    def _take_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            first = number == signal.SIGINT and self.signal == 0
            self.signal = number
            if first:
                self._commit(Stop(time=self._clock(), kind="parked", reason="parked with Ctrl-C"))
                self._face.on_pausing(self.run)
            else:
                self._stop("signal", f"stopped by {signal.Signals(number).name}")

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        if any(request.kind == "stop" and request.now for request in self._take_requests()):
            self._stop("stop", "stopped at once on request")

    def _take_requests(self) -> list[requests.Request]:
        """Journal what lies in the inbox; the requests that were not taken before."""
        taken = []
        for path, request in list(inbox.look(self._inbox)):
            if request is None:
                self._face.on_note(f"a request that cannot be read was put aside: {path}.broken")
                os.rename(path, f"{path}.broken")
                continue
            if request.kind == "pause" and self._ends_first(path, request):
                continue
            if self._take_request(path, request):
                taken.append(request)
        return taken

    def _take_request(self, path: str, request: requests.Request) -> bool:
        new = self._commit_events(self._clock(), requests.take(self.run, self._placed, request))
        self._upkeep.must_sync = True
        self._upkeep.write()
        self._tell()
        inbox.remove(path)
        return new

    def _ends_first(self, path: str, request: requests.Request) -> bool:
        """Stop the running step of an agent that is to pause; its request is taken when the step has ended."""
        step = self._steps.get(request.agent)
        if step is None or step.ended:
            return False
        if request.agent not in self._pausing:
            self._pausing[request.agent] = (path, request)
            step.pause()
        return True

    def _hear_answers(self, fd: int) -> None:
        for agent, answer in self._face.answers():
            request = requests.Request(id=f"typed-{self.run.seq + 1}", kind="answer", agent=agent, text=answer)
            self._commit_events(self._clock(), requests.take(self.run, self._placed, request))
            self._upkeep.must_sync = True
        if self._face.stdin < 0:
            self._host.poll.unregister(fd)  # nobody types any more
        self._woken = True

    # --- the end

    def _stop(self, kind: str, reason: str) -> None:
        """Stop every step now; what it did not finish runs again."""
        self._stop_now = kind
        self._commit(Stop(time=self._clock(), kind=kind, reason=reason))
        self._upkeep.write()
        for step in self._running():
            step.stop()
        deadline = time.monotonic() + GRACE
        while self._running() and time.monotonic() < deadline:
            self._host.poll.wait(max(0.0, min(deadline - time.monotonic(), 0.1)))
            self._host.watcher.poll()
            now = time.monotonic()
            for step in self._running():
                if now >= step.deadline():
                    step.check(now)
        for step in self._running():
            step.kill()
            step.cut()
        for step in self._take_endings():
            self._upkeep.write()
            step.close()
        self._upkeep.write()
        self._tell()

    def _running(self) -> list[Step]:
        ended = {id(step) for step, _ in self._endings}
        return [step for step in self._steps.values() if id(step) not in ended]

    def _leave(self) -> None:
        """Nothing is left to do: end what was left running, and leave the record in order."""
        self._marks.end()
        self._upkeep.write()
        self._tell()
        self._upkeep.leave(self.run)
        # Every step has ended in the journal; what an earlier driver was killed before deleting goes too.
        spool.remove(self._host.spool)

    def _abandon(self) -> None:
        """Also when something went wrong: no script outlives us unseen, no file stays open."""
        self._face.refresh(self.run)
        for step in self._steps.values():
            step.abandon()
        self._host.transcripts.close()
        self._host.close()

    # --- after a restart

    def _settle(self, restart: bool, at_once: bool, fresh: bool) -> None:
        """Every step that was started and not ended, before anything else."""
        from raymond import __version__

        # What was left for the driver before us comes first: a stop that reached nobody must not stop us.
        self._take_requests()
        now = self._clock()
        self._commit_events(now, requests.resume(self.run, __version__, now=now, at_once=at_once, fresh=fresh))
        self._upkeep.must_sync = True
        self._upkeep.write()
        self._tell()
        for backend, closed in self.run.closed.items():
            if closed.until > now and not self.run.stopped:
                self._face.on_note(f"{backend} is closed until {instant(closed.until)}: {closed.error}")
        spare: list[int] = []
        for agent in [one for one in self.run.agents.values() if one.status == RUNNING]:
            step = self._make(agent)
            if step.adopt(restart=restart):
                self._start_watching(step)
                spare.append(step.number)
        self._marks.end(spare=spare)

    def _start_watching(self, step: Step) -> None:
        self._steps[step.agent] = step
        self._host.soonest = min(self._host.soonest, step.deadline())


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
