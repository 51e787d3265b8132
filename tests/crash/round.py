"""One round of torture: a random workflow meets random trouble, is resumed until it is done, and is checked."""

import contextlib
import signal
import time
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from crash import gates, leftovers, nothing_lost, trouble
from crash.machine import Machine
from crash.random_workflow import QUICK, UNANSWERED, RandomWorkflow
from crash.torture import Command, end
from raymond.errors import Error
from raymond.machine.agent import ASKING, RUNNING
from raymond.machine.run import Run
from raymond.machine.schedule import wake_at
from raymond.store import journal

MOST_KILLS = 4
"""A visit during which drivers die again and again counts as failed after a while, and should."""
MOST_RESUMES = 25
"""More than any workflow here has reasons to wait for somebody."""
LONGEST = 1.5
"""Seconds to wait for the next moment; a run may also have nothing to do for a while."""


class Round:
    """What the seed says, done."""

    def __init__(self, seed: int, folder: Path, without: set[str]) -> None:
        self.seed = seed
        plan = trouble.plan(Random(f"{seed} trouble"), without)
        self.plan = trouble.moved(plan, Random(f"{seed} workspace"), without)
        self._chance = Random(f"{seed} chance")
        self.workflow = RandomWorkflow(Random(f"{seed} workflow"), self.plan.features)
        room = folder / "room"
        flow = self.workflow.write(folder / "flow", room)
        self.machine = Machine(folder, flow, self.plan.condition, self._chance, isolated=self.plan.workspace)
        self._flow = str(flow)
        self._left = {} if self.plan.workspace else self.workflow.left(room)
        self._drivers: list[Command] = []
        self._kills = 0
        self._abandoned = False
        """The last driver had no time to end what scripts had left running."""
        self._successes: dict[int, int] = {}
        """Question -> how many answers were taken."""

    def __str__(self) -> str:
        backend = "programs" if self.machine.program else "in this process"
        return f"seed {self.seed}: {', '.join(sorted(self.plan.names)) or 'no trouble'}; turns {backend}"

    def play(self) -> None:
        """Everything."""
        try:
            if "clean" in self.plan.events:
                self._command("run", self._flow, "--id", "other", "--input", QUICK)
            self._drivers = [self.machine.begin()]
            for name in self.plan.events:
                self._suffer(name)
            self._finish()
            self._check()
        finally:
            self.machine.clear()

    # --- the run as it is

    def _run(self) -> Run | None:
        with contextlib.suppress(Error, OSError):
            return journal.read(self.machine.project.run(self.machine.id)).run
        return None

    def _is_done(self) -> bool:
        run = self._run()
        return run is not None and run.final_status == "completed"

    def _live(self) -> list[Command]:
        for one in self._drivers:
            if one.ended and "drives r" not in one.wait().err and "holds the lock of r" not in one.wait().err:
                self._abandoned = one.process.returncode < 0
                if not self._abandoned or self._was_leaving():
                    self._note_leaving()
        self._drivers = [one for one in self._drivers if not one.ended]
        return self._drivers

    def _note_leaving(self) -> None:
        if not self.plan.workspace:  # there, nothing is left to be ended
            leftovers.note_leaving(self.machine.ledger)

    def _was_leaving(self) -> bool:
        """Whether a driver that was killed had nothing left to do but to end what was left running."""
        run = self._run()
        return run is not None and not run.statuses.get(RUNNING) and wake_at(run) is None

    def _questions(self) -> list[tuple[str, int, str]]:
        run = self._run()
        asking = [agent for agent in run.agents.values() if agent.status == ASKING] if run else []
        return [(one.id, one.asks, one.question) for one in asking if not one.question.startswith(UNANSWERED)]

    def _command(self, *args: str) -> int:
        return self.machine.start(*args).wait().code

    # --- trouble

    def _suffer(self, name: str) -> None:
        """Come to some moment of the run, and let something happen."""
        self._keep_going()
        self._moment(short=name == "early")
        self._worsen()
        getattr(self, f"_{name}")()

    def _keep_going(self) -> None:
        """See that somebody drives the run, unless it is done."""
        if not self._live() and not self._is_done():
            self._answer_all()
            exists = self.machine.project.run(self.machine.id).exists
            self._drivers.append(self.machine.resume() if exists else self.machine.begin())

    def _moment(self, *, short: bool) -> None:
        wanted = max(self.machine.lines(), 2) + self._chance.randint(0, 10)
        deadline = time.monotonic() + (self._chance.uniform(0, 0.25) if short else LONGEST)
        while self._live() and (short or self.machine.lines() < wanted) and time.monotonic() < deadline:
            time.sleep(0.003)
        time.sleep(self._chance.choice((0, 0, 0.005, 0.02, 0.06)) * self._chance.random())

    def _worsen(self) -> None:
        """What the machine itself does meanwhile."""
        if self.machine.condition == "disk":
            self.machine.free_disk()
            self.machine.fill_disk(self._chance.choice((0, 0, 4096, 8192, 40960)))
        if self.machine.condition == "clock" and self._live():
            before = self.machine.lines()
            self.machine.set_clock(self._chance.choice((-1, 1)) * self._chance.choice((20, 3600, 86400)))
            deadline = time.monotonic() + LONGEST
            while self._live() and self.machine.lines() < before + 2 and time.monotonic() < deadline:
                time.sleep(0.003)  # no driver can know of a clock that was set while there was none

    def _kill(self) -> None:
        if self._kills < MOST_KILLS:
            self._kills += 1
            for one in self._live():
                one.kill()

    _early = _kill

    def _all(self) -> None:
        self._kill()
        for pid in self.machine.marked():
            end(pid)

    def _program(self) -> None:
        for pid in self.machine.programs()[:1]:
            end(pid)

    def _stop(self, *args: str) -> None:
        self._command("stop", self.machine.id, *args)
        for one in self._live():
            if self.machine.is_limited:
                one.process.terminate()  # it may have begun after the stop, and wait for room that never comes
            one.wait()
        if args:
            self._note_leaving()

    def _now(self) -> None:
        self._stop("--now")

    def _dead(self) -> None:
        self._kill()
        if not self._live() and self._run() is not None:
            self._stop("--now")
            assert self.machine.marked() == [], "stop --now left something running"

    def _signal(self) -> None:
        for one in self._live():
            number = self._chance.choice((signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
            if not one.has_spoken:
                number = signal.SIGTERM  # what Python says of a Ctrl-C before Raymond has begun is not ours
            one.process.send_signal(number)
            if number == signal.SIGINT:
                time.sleep(0.02)
                with contextlib.suppress(ProcessLookupError):
                    one.process.send_signal(number)
            one.wait()

    def _answers(self) -> None:
        """From here on every answer is given several times at once, and questions are answered as they come."""
        deadline = time.monotonic() + LONGEST
        while self._live() and not self._questions() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._answer_all()

    def _answer_all(self) -> None:
        for agent, number, question in self._questions():
            args = ("answer", self.machine.id, agent, f"{question}!", "--question", str(number), "--no-resume")
            several = [self.machine.start(*args) for _ in range(2 if "answers" in self.plan.events else 1)]
            # Where there are no sockets, it is only left for the driver, which may leave before it looks.
            ends = [one.wait() for one in several]
            taken = sum(end.code == 0 and "waiting for process" not in end.err for end in ends)
            self._successes[number] = self._successes.get(number, 0) + taken

    def _resumes(self) -> None:
        if self._chance.random() < 0.6:
            self._kill()
        if self._run() is not None:
            self._drivers += [self.machine.resume() for _ in range(self._chance.choice((2, 3)))]

    def _clean(self) -> None:
        self._command("clean", *self._chance.choice((("other",), ())))

    def _person(self) -> None:
        if self.machine.person:
            self.machine.person.act(self._chance)

    # --- the end

    def _finish(self) -> None:
        """Resume until it is done."""
        for one in self._live() if self.machine.is_limited else ():
            one.process.terminate()  # it may wait for room that never comes
        self.machine.calm()
        for _ in range(MOST_RESUMES):
            for one in self._live():
                one.wait()
            if not self._live() and self._is_done() and not self._abandoned:
                return
            self._answer_all()
            exists = self.machine.project.run(self.machine.id).exists
            self._drivers.append(self.machine.resume("--now") if exists else self.machine.begin())
        raise AssertionError(f"resumed {MOST_RESUMES} times, and it is not done")

    def _check(self) -> None:
        endings = [command.wait() for command in self.machine.commands]
        crashes = any("crash" in state.tries for state in self.workflow.states)
        gentle = self.machine.program and not crashes and self.plan.names <= trouble.GENTLE
        expected = self.workflow.expected("it")
        if self.machine.person:
            expected.work = self.machine.person.taken | expected.work
        nothing_lost.check(self.machine, expected, endings, paid_once=gentle)
        gates.check_files(self.machine, self._left)
        assert all(taken <= 1 for taken in self._successes.values()), "two answers to one question were taken"
        if not self.plan.names & {"all", "resumes", "workspace"}:
            leftovers.check(self.machine.ledger)
        nothing_lost.check_views(self.machine)
        if self.seed % 4 == 0:
            nothing_lost.check_clean(self.machine)


def folder_of(seed: int) -> Path:
    """A new folder for a round, open to the user that it may run as."""
    folder = Path(mkdtemp(prefix=f"raymond-torture-{seed}-"))
    folder.chmod(0o755)
    return folder
