"""Drive a run on this machine: carry out what the conductor orders, and tell it what happens.

One thread that waits for file descriptors. In a round it gives the conductor what came in, writes every decision to the
journal with one write, and only then starts what follows. Steps report into a list, so that nothing happens in the
middle of anything else.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from raymond import errors
from raymond.backends import Backend, Direct
from raymond.drivers.face import Face
from raymond.drivers.housekeeping import Describe, Export, Upkeep
from raymond.drivers.reception import Reception
from raymond.drivers.recovery import Look, Lookout
from raymond.drivers.signals import Signals
from raymond.machine.agent import RUNNING, Agent, backend_of
from raymond.machine.conductor import Conductor, Orders
from raymond.machine.decide import begin
from raymond.machine.events import UNRECORDED, Decision, Event, Program, Recording, RunStopped
from raymond.machine.inputs import Ending
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.requests import driver_died
from raymond.machine.run import CANCELLED, Run
from raymond.steps.job import job_of
from raymond.steps.kinds import step_for
from raymond.steps.step import FAR, Host, Step, stop_all
from raymond.store import exports
from raymond.store.journal import Journal
from raymond.store.leftovers import Leftovers
from raymond.store.lock import Heartbeat
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.store.transcripts import Transcripts
from raymond.store.workflow_snapshot import UnpackedWorkflow
from raymond.system import folders, processes
from raymond.system.files import trouble
from raymond.system.stragglers import Marks, Orphans

if TYPE_CHECKING:
    from raymond.workspace.place import Place

LONGEST_SLEEP = 30.0
_CROWDED = "at most {} steps run at once: this process may not open more files (ulimit -n)"
_PURSUING = "still ending processes that steps left running (Ctrl-C twice leaves them running)"
_LONG = 10.0
"""Seconds after which it is said that something does not end."""
_ENCLOSED_AFTER = 2.0
"""Seconds after which a run gets a cgroup, if no step lets go of a process before that.

While the kernel moves processes, none can be started anywhere.
"""


class Driver:
    """Drives one run whose lock is held."""

    _began = 0.0
    """When driving began, by the monotonic clock."""
    _is_told_long = False
    """That what steps left running does not end was said."""

    def __init__(
        self,
        project: Project,
        run: Run,
        placed: PlacedWorkflow,
        unpacked: UnpackedWorkflow,
        journal: Journal,
        backends: Mapping[str, Backend | Direct],
        face: Face,
        describe: Describe,
        announce: Callable[[str], None],
        *,
        strict: bool = False,
        tails: bool = False,
        alone: bool = False,
        programs: Sequence[Program] = (),
        recording: Recording = UNRECORDED,
        look: Look | None = None,
        place: "Place | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.run = run
        self._programs = programs
        self._recording = recording
        self._lookout = Lookout(look) if look else None
        self._alone = alone
        """The process does nothing but drive this run: what steps let go of becomes its child."""
        self._orphans: Orphans | None = None
        self._most = processes.most_steps()
        self._conductor = Conductor(run, placed, self._most)
        self._is_told = False
        """That the limit of open files holds steps back was said."""
        self._journal = journal
        self._backends = backends
        self._paid = {name for name, backend in backends.items() if backend.paid}
        self._face = face
        # Rounded as the journal keeps it, so that a folded journal equals the run that was driven.
        self._clock: Callable[[], float] = lambda: round(clock(), 3)
        id = run.start.workflow_id
        folder = project.run(id)
        export = Export(lambda text: exports.put_state(project.tree, id, text), face)
        if run.seq > 1:
            export.put_off()
        self._upkeep = Upkeep(journal, folder.state, describe, face, export, strict=strict)
        self._endings: list[tuple[Step, Ending]] = []
        self._untold: list[Decision] = []
        self._steps: dict[str, Step] = {}
        self._last_end = 0, set[int]()
        """The tick of the kernel in which a step ended last, and the steps that ran on."""
        self._cut = set[int]()
        """The steps that were cut off here: what is left of them was not meant to stay."""
        self._woken = False
        """A turn was named."""
        self._left = Leftovers(folder, run.start)
        self._beat = Heartbeat(folder.beat)
        self._host = self._make_host(project, folder, unpacked, tails, place)
        self._signals = Signals(self._host.poll, self._pause, self._stop)
        self._place = place
        self._reception = Reception(
            folder, self._conductor, face, self._host.poll, self._clock, announce, self._host.secrets, self._make_room
        )

    def _make_host(
        self, project: Project, folder: RunFolder, unpacked: UnpackedWorkflow, tails: bool, place: "Place | None"
    ) -> Host:
        host = Host(
            marks=Marks(self.run.start.key, folder.pids),
            transcripts=Transcripts(folder.transcripts, folder.id, tails=tails),
            unpacked=unpacked,
            tree=project.tree,
            home=project.home.path,
            spool=folder.spool,
            seals=folder.seals,
            noted=folder.noted,
            clock=self._clock,
            report=self._report,
            named=self._name,
            show=self._show,
            place=place,
        )
        host.wants_raw = bool(getattr(self._face, "wants_raw", False))
        if self._lookout:
            host.unusable = self._lookout.unusable
        return host

    @property
    def signal(self) -> int:
        """The signal that ended the run, for the exit code."""
        return self._signals.last

    def drive(self, *, restart: bool = False, at_once: bool = False, fresh: bool = False, retries: bool = True) -> None:
        """Run until nothing is left that this process could do."""
        self._orphans = Orphans() if self._alone else None
        self._began = time.monotonic()
        with self._signals.listening():
            if self._face.stdin >= 0:
                self._host.poll.register(self._face.stdin, self._read_answers)
            try:
                if self.run.seq > 1:
                    self._face.on_decisions(self.run, [])
                    self._recover(restart, at_once, fresh, retries)
                else:
                    first = Decision(seq=1, time=self.run.started_at, events=begin(self.run.start))
                    self._untold.append(first)
                    self._tell()
                    self._open_place()
                while True:
                    self._round()
                    if self._conductor.is_done(can_answer=self._face.can_answer):
                        break
                    while not self._wait():
                        pass
                self._leave()
            except BaseException:
                self._end_orphans()
                raise
            finally:
                self._abandon()
            self._remove_spool()  # when every descriptor that can be had is free

    def _open_place(self) -> None:
        """Make the tree that steps work in, if they need one."""
        if self._place and not self.run.start.loop:  # a loop begins with a commit of its own
            from raymond.drivers import workplace

            now = self._clock()
            try:
                self._conductor.note(workplace.open(self._place, self.run, self._face.on_note, now), now)
            except OSError as error:
                raise trouble(error.filename or self._place.slot.path, error, run=self.run.start.workflow_id) from None
            self._upkeep.must_sync = True
            self._carry_out([])

    def _save_work(self) -> None:
        """Put what agents did in the tree under a reference; a run that is over needs the tree no more."""
        if self._place and self._place.is_there:
            from raymond.drivers import workplace

            now = self._clock()

            def note(saved: list[Event]) -> None:
                self._conductor.note(saved, now)
                self._upkeep.must_sync = True
                self._carry_out([])

            workplace.save(self._place, self.run, self._face.on_note, now, note)

    def tidy(self) -> None:
        """Of a run that is over: bring home the work that a driver which was killed had not."""
        if self._place and self._place.is_left:
            from raymond.drivers import workplace

            if self._place.is_there:
                self._save_work()
            else:
                workplace.drop(self._place, self._face.on_note)  # the kill came while it was removed
            self._upkeep.leave(self.run)

    def _recover(self, restart: bool, at_once: bool, fresh: bool, retries: bool) -> None:
        """Settle every step that was started and not ended, before anything else."""
        from raymond import __version__
        from raymond.drivers import recovery  # a run that begins has nothing to recover

        # What was left for the driver before us comes first: a stop that reached nobody must not stop us. Nor does it
        # make a driver that died one that was stopped: any step can leave it there.
        retries = retries and (at_once or fresh or not driver_died(self.run))
        self._reception.read_inbox(stops=False)
        restart = restart or self.run.final_status == CANCELLED
        now = self._clock()
        driven = self._beat.after(self.run.driven_until, now)
        self._conductor.resume(
            __version__,
            now,
            at_once=at_once,
            fresh=fresh,
            retries=retries,
            driven=driven,
            programs=self._programs,
            recording=self._recording,
        )
        self._upkeep.must_sync = True
        self._carry_out([])
        for note in recovery.notes(self.run, now):
            self._face.on_note(note)
        self._open_place()
        begun = [self._step(agent) for agent in self.run.agents.values() if agent.status == RUNNING]
        adopted = recovery.adopt(begun, restart=restart)
        for step in adopted:
            self._watch(step)
            if step.agent in self._conductor.waiting:
                step.pause()
        recovery.clear(self.run, self._endings, adopted, self._left)
        recovery.remove_twins(self._host.seals)

    # --- a round

    def _round(self) -> None:
        """Everything that follows from what has come in so far."""
        self._signals.act()
        if time.monotonic() >= self._reception.next_look and self._waits_out(self._reception.look):
            self._carry_out([])
            if self.run.limits.max_time:
                self._beat.keep()
            self._waits_out(self._see_to_orphans)
            self._publish()
        if self._conductor.stopping:
            self._stop_steps()
        while True:
            now = self._clock()
            # Endings bear the time as it was: what waits since then is moved with the clock.
            ended = self._hand_in()
            self._conductor.notice(now, time.monotonic())
            self._conductor.proceed(now)
            if self._conductor.is_crowded and not self._is_told:
                self._is_told = True
                self._face.on_note(_CROWDED.format(self._most))
            self._carry_out(ended)
            if not self._endings:
                break
        self._upkeep.keep(self.run)

    def _publish(self) -> None:
        """Let others read along; a time of its own for each step would wake us once more a second for each."""
        now = time.monotonic()
        for step in self._steps.values():
            if not step.ended:
                step.publish(now)

    def _waits_out(self, work: Callable[[], bool]) -> bool:
        """Do what is done once a second; it can wait while not even a module can be loaded for want of descriptors."""
        try:
            return work()
        except OSError as error:
            if not errors.is_passing_fault(error):
                raise
            self._make_room()
            return False

    def _see_to_orphans(self) -> bool:
        """Reap and note what steps have let go of; enclose it, and a run that lasts."""
        if self._orphans:
            self._orphans.reap(self._host.watcher.pids)
            has_let_go = self._note(self._orphans.new())
            if has_let_go or time.monotonic() > self._began + _ENCLOSED_AFTER:
                self._left.enclose(self._orphans.below)
        return True

    def _note(self, pids: list[int]) -> bool:
        """Note new processes, except those that work for a face; whether there is one that a step has let go of."""
        helpers = self._face.helpers()
        found = {pid: self._step_of(pid) for pid in pids if pid not in helpers}
        self._left.note(found)
        return not found.keys() <= {step.pid for step in self._steps.values()} | self._host.watcher.pids

    def _step_of(self, pid: int) -> int:
        """The step that a process is, or the only one that can have started it; 0 when it may have been another."""
        steps = [step for step in self._steps.values() if step.pid]
        its_own = [step.number for step in steps if step.pid == pid]
        if its_own:
            return its_own[0]
        began = processes.order(pid)
        able = [step.number for step in steps if processes.order(step.pid) <= began]
        # A step that had ended before this one began has started nothing since.
        tick, beside = self._last_end
        is_sure = len(able) == 1 and (able[0] not in beside or tick < began[0])
        return able[0] if is_sure else 0

    def _hand_in(self) -> list[Step]:
        """Give the conductor the endings that were reported; the steps that have ended."""
        ended: list[Step] = []
        while self._endings:
            step, ending = self._endings.pop(0)
            if self._steps.get(step.agent) in (step, None):
                if self._orphans and (step.job.policy.gate or self.run.start.loop):
                    # While it is clear whose they are: the gate ends them, or the loop.
                    self._note(self._orphans.new())
                self._steps.pop(step.agent, None)
                if self._orphans:
                    self._last_end = processes.tick(), {one.number for one in self._steps.values()}
                ended.append(step)
                self._conductor.end(ending)
        if not self._steps:
            self._host.soonest = FAR  # else the time of a step that has ended would wake us
        return ended

    def _carry_out(self, ended: list[Step]) -> None:
        """Write what was decided, and only then do what follows from it."""
        has_more = self._add_programs()
        orders = self._conductor.orders()
        for decision in orders.decisions:
            self._journal.append(decision)
        if orders.taken or (self._paid and self._concerns_paid_turns(orders, ended)):
            self._upkeep.must_sync = True
        self._upkeep.write()
        self._untold += orders.decisions
        if has_more:
            self._tell()  # who pays is said before it is paid
        for name in orders.start:
            self._start(self.run.agents[name])
        for name in orders.pause:
            self._pause_step(name)
        # Work that no process waits for comes last.
        for step in ended:
            step.close()
        if orders.taken:
            self._reception.done(orders.taken, orders.decisions)
        self._tell()

    def _add_programs(self) -> bool:
        """Journal the programs that are about to answer and were not named yet; whether there are any.

        One that cannot be used answers nothing, and is not named: its turns fail as soon as they start.
        """
        if self._lookout is None or not (unnamed := self._conductor.unnamed()):
            return False
        found = [program for name in unnamed if (program := self._lookout.find(name))]
        for program in found:
            self._conductor.add(program, self._clock())
        return bool(found)

    def _concerns_paid_turns(self, orders: Orders, ended: list[Step]) -> bool:
        starts = (backend_of(self.run.agents[name].pool) for name in orders.start)
        return any(step.job.backend in self._paid for step in ended) or any(name in self._paid for name in starts)

    def _step(self, agent: Agent) -> Step:
        return step_for(self._host, job_of(self.run, self._conductor.workspace, agent), self._backends)

    def _start(self, agent: Agent) -> None:
        step = self._step(agent)
        try:
            step.start()
        except OSError as error:
            step.withdraw()
            if errors.is_passing_fault(error):
                self._make_room()
                step.put_off(error)
                return
            what = f"step {step.number} of {agent.id} cannot be started, {error.filename or self._host.spool}"
            raise trouble(what, error, run=self.run.start.workflow_id) from None
        self._watch(step)
        if self.run.closed and not step.ended and self._conductor.started(agent.id, self._clock()):
            self._woken = True

    def _make_room(self) -> None:
        self._host.make_room(self._steps)

    def _watch(self, step: Step) -> None:
        self._steps[step.agent] = step
        self._host.soonest = min(self._host.soonest, step.deadline())

    def _pause_step(self, agent: str) -> None:
        step = self._steps.get(agent)
        if step and not step.ended:
            step.pause()

    def _tell(self) -> None:
        if self._untold:
            told, self._untold = self._untold, []
            self._face.on_decisions(self.run, told)
            self._upkeep.told()

    # --- what steps report

    def _report(self, step: Step, ending: Ending) -> None:
        # Its process, its pipes and its time may all end at the same moment, but a step ends once.
        if not step.ended:
            step.ended = True
            self._endings.append((step, ending))

    def _name(self, agent: str, session: str) -> None:
        if self._conductor.name(agent, session, self._clock()):
            self._upkeep.must_sync = self._woken = True

    def _show(self, agent: str, kind: str, text: str) -> None:
        self._tell()
        self._face.on_output(agent, kind, text)

    # --- waiting

    def _wait(self) -> bool:
        """Wait until something happens or is due; whether there is something to decide."""
        now = time.monotonic()
        until = min(self._host.soonest, self._reception.next_look, self._upkeep.next_due(), now + LONGEST_SLEEP)
        polls = self._host.watcher.polls
        if polls:
            until = min(until, now + 0.05)
        wakes_at = self._conductor.wakes_at()
        if wakes_at is not None:
            until = min(until, now + max(0.0, wakes_at - self._clock()))
        self._host.poll.wait(max(0.0, until - now))
        now = time.monotonic()
        if polls:
            self._host.watcher.poll()
        if now >= self._host.soonest:
            self._check_steps(now)
        woken, self._woken = self._woken or self._reception.woken, False
        self._reception.woken = False
        return bool(self._endings or self._signals.caught) or woken or now >= until

    def _check_steps(self, now: float) -> None:
        for step in list(self._steps.values()):
            if not step.ended:
                step.check(now)
        self._host.soonest = min((step.deadline() for step in self._steps.values()), default=FAR)

    # --- what people ask

    def _read_answers(self, fd: int) -> None:
        self._reception.listen()
        if self._face.stdin < 0:
            self._host.poll.unregister(fd)  # nobody types any more

    def _pause(self) -> None:
        self._conductor.pause(self._clock())
        self._face.on_pausing(self.run)

    def _stop(self, number: int) -> None:
        self._conductor.stop(RunStopped(kind="signal", signal=number), self._clock())

    # --- the end

    def _stop_steps(self) -> None:
        """Stop every step now, once that is written."""
        self._carry_out([])
        self._cut |= {step.number for step in self._steps.values()}
        stop_all(self._host, list(self._steps.values()))

    def _leave(self) -> None:
        """Nothing is left to do: end what was left running, and leave the record in order."""
        count = sum(step not in self._cut for step in self._left.end().values())
        self._conductor.leave(count + self._end_orphans(), self._clock())
        self._carry_out([])
        self._save_work()
        self._upkeep.leave(self.run)

    def _remove_spool(self) -> None:
        """Every step has ended in the journal: delete what turns printed, also what a killed driver had left."""
        try:
            folders.remove_path(self._host.spool)
        except OSError as error:
            self._face.on_note(f"what turns printed was not removed: {self._host.spool}: {error.strerror}")

    def _end_orphans(self) -> int:
        """End what steps let go of, however the driver leaves: it could pass for a person. How many there were."""
        # Steps that may start runs which outlive this one may leave anything.
        if not self._orphans or self.run.start.allow_start:
            return 0
        spare, orphans = [step.pid for step in self._steps.values()], self._orphans

        def enclose() -> None:
            # What is in a cgroup that we have left can be frozen while it is killed.
            self._left.enclose(orphans.below)
            self._left.leave(spare)

        ended, left = orphans.end(spare, enclose, self._goes_on)
        if left:
            self._face.on_note(f"{left} processes that steps left running could not be ended")
        return ended

    def _goes_on(self, seconds: float) -> bool:
        """Whether to go on ending what has not ended for so long; says once that this takes its time."""
        if seconds > _LONG and not self._is_told_long:
            self._is_told_long = True
            self._face.on_note(_PURSUING)
        return not self._signals.is_urgent

    def _abandon(self) -> None:
        """Also when something went wrong: leave no step running that nobody could find, and no file open."""
        self._face.refresh(self.run)
        for step in self._steps.values():
            step.abandon()
        self._reception.close()
        self._host.transcripts.close()
        self._host.close()
        self._left.leave([step.pid for step in self._steps.values()])
        if self._orphans:
            self._orphans.let_go()
