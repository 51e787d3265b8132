"""A place where one point after another is tried: `python -m crash.crash_site FOLDER`.

Points come in, one line of JSON each, and what came of them goes out. Where the system allows it, the process has its
own process numbers (`unshare --pid`): then nothing else on the machine changes which calls a command makes.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from crash import nothing_lost, syscalls
from crash.crashpoints import ANSWER, INSIDE, MIDDLE, RESUME, STAGES, Point, Stage, corrected, named, points, start
from crash.nothing_lost import Expected
from crash.person import LEDGER, Person
from crash.syscalls import Call
from crash.torture import ID, PATIENCE, Ending, Place, end, pids, told
from crash.worlds import Worlds
from raymond import __main__ as program
from raymond.machine.agent import ASKING
from raymond.machine.run import Run
from raymond.store import home as homes
from raymond.store import journal
from raymond.views.status import run_status

TRIES = 5


class Trial(Struct):
    """What came of a point."""

    point: Point
    met: bool = False
    finding: str = ""
    """What is wrong."""


class Done:
    """A command that has ended."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending

    def wait(self) -> Ending:
        """How."""
        return self._ending


class CrashSite(Place):
    """A place whose worlds can be put back, and whose commands need no new interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        os.environ[homes.VARIABLE] = str(folder / "home")
        super().__init__(folder)
        self.records: dict[str, list[Call]] = {}
        self._expected: dict[str, Expected] = {}
        self._applied: dict[str, str] = {}
        """The checkout after `apply`."""
        self._work: dict[str, str] = {}
        """What the run that failed has changed."""
        self._worlds = Worlds(folder, "home", "room", "ledger")

    # --- worlds

    def prepare(self) -> None:
        """Record every stage, and keep the worlds in between."""
        shutil.rmtree(self.folder / "home")
        self._worlds.keep("nothing")
        for stage, world in (("run", "asked"), ("answer", "answered"), ("resume", "done")):
            self._record(STAGES[stage])
            self._worlds.keep(world)
        self._expected["short"] = nothing_lost.expected(self)
        self._record(STAGES["clean"])
        self._come_to_middle()
        self._come_to_rest()
        self._worlds.keep("crashed")
        for stage in ("recover", "door"):
            self._worlds.put_back(STAGES[stage].world)
            self._record(STAGES[stage])
        self._expected["door"] = nothing_lost.expected(self)
        self._move_in()

    def _move_in(self) -> None:
        """The same for the stages with a workspace."""
        self._worlds.put_back("nothing")
        self._settle(isolated=True)
        self._worlds.keep("repository")
        self._record(STAGES["workspace"])
        self._expected["place"] = nothing_lost.expected(self)
        self._worlds.keep("worked")
        self._record(STAGES["apply"])
        assert self.person is not None
        self._applied = self.person.standing()
        self._worlds.put_back("repository")
        done = self._raymond(*start("fails"))
        assert done.code == 1, done.err
        self._worlds.keep("failed")
        self._record(STAGES["drop"])
        self._work = self.person.work()
        assert "made" in self._work

    def _settle(self, *, isolated: bool) -> None:
        """Work in the checkout, or in a workspace."""
        self.person = Person(self.room, self.project.run(ID).workspace) if isolated else None
        self.ledger = self.room / LEDGER if isolated else self.folder / "ledger"
        self.environment["LEDGER"] = str(self.ledger)

    def _come_to_middle(self) -> None:
        """Crash the run there; how many writes come before it also depends on how fast the machine is just now."""
        for _ in range(TRIES):
            if self.strike(named(MIDDLE, self.records)):
                return
            self._worlds.put_back("nothing")
            self._record(STAGES["run"])
        raise AssertionError("the run did not come to its middle")

    def _record(self, stage: Stage) -> None:
        done = self._trace(stage, "all")
        assert done.code in (0, 3), done.err
        self.records[stage.name] = syscalls.parse(self.folder / "trace", self.folder)

    # --- commands

    def _trace(self, stage: Stage, names: str, injection: str = "") -> Ending:
        """Run the command of a stage under strace, and answer what it asks at its door."""
        out, err = self.folder / "traced.out", self.folder / "traced.err"
        strace = [
            "strace",
            "-y",
            "-s",
            "0",
            "-e",
            "signal=none",
            "-o",
            str(self.folder / "trace"),
            "-e",
            f"trace={names}",
        ]
        strace += ["-e", f"inject={injection}"] if injection else []
        argv = [*strace, sys.executable, "-m", "raymond", *stage.args]
        with out.open("wb") as stdout, err.open("wb") as stderr:
            traced = subprocess.Popen(
                argv, cwd=self.room, env=self.environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        try:
            if stage.flow == "door":
                self._answer_while(traced)
            code = traced.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs:\n{err.read_text('utf-8')}") from None
        finally:
            traced.kill()
            traced.wait()
        return Ending(code, out.read_text("utf-8"), err.read_text("utf-8"))

    def _answer_while(self, traced: "subprocess.Popen[bytes]") -> None:
        """Answer as soon as something is asked, and again if that did not help."""
        deadline = time.monotonic() + PATIENCE
        while traced.poll() is None and time.monotonic() < deadline:
            run = self._run()
            if run and _asks(run):
                self._raymond(*ANSWER)
            time.sleep(0.02)

    def _raymond(self, *args: str) -> Ending:
        """Run a command in a process of its own, which has imported everything already."""
        out, err = self.folder / "said.out", self.folder / "said.err"
        pid = os.fork()
        if pid == 0:
            self._become(out, err, args)
        deadline = time.monotonic() + PATIENCE
        while not (found := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                end(pid)
            time.sleep(0.003)
        return Ending(os.waitstatus_to_exitcode(found[1]), out.read_text("utf-8"), err.read_text("utf-8"))

    def _become(self, out: Path, err: Path, args: tuple[str, ...]) -> None:
        try:
            os.chdir(self.room)
            os.environ.clear()
            os.environ.update(self.environment)
            for number, path in enumerate((Path(os.devnull), out, err)):
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(fd, number)
                os.close(fd)
            sys.stdin, sys.stdout, sys.stderr = (open(n, "w" if n else "r", closefd=False) for n in range(3))
            sys.argv = ["raymond", *args]
            program.main()
        finally:
            os._exit(99)

    def start(self, *args: str, code: str = "") -> Done:  # type: ignore[override]
        """The command, which has ended when this returns."""
        return Done(self._raymond(*args))

    # --- a point

    def try_out(self, point: Point) -> Trial:
        """Strike at a point, and see what comes of it."""
        trial = Trial(point)
        try:
            struck = self.strike(point)
            trial.met = struck is not None
            if struck:
                self._check(point, struck)
        except Exception:
            trial.met, trial.finding = True, _end_of(traceback.format_exc())
        finally:
            self.clear()
        return trial

    def strike(self, point: Point) -> Ending | None:
        """Run its stage until it is met; how the command ended, None when the point is not met."""
        stage = STAGES[point.stage]
        recorded = self.records[stage.name]
        when = next((call.when for call in recorded if point.is_at(call)), point.when)
        point = replace(point, when=when)
        for _ in range(TRIES if when else 0):
            self._worlds.put_back(stage.world)
            self._settle(isolated=stage.flow in INSIDE)
            done = self._trace(stage, point.name, f"{point.name}:{point.injection}:when={when}")
            made = syscalls.parse(self.folder / "trace", self.folder)
            if any(call.struck and point.is_at(call) for call in made):
                return done
            self.clear()
            when = corrected(point, recorded, made)
        return None

    def _check(self, point: Point, struck: Ending) -> None:
        """Nothing is lost, whatever happened there."""
        stage = STAGES[point.stage]
        if not point.kills:
            _check_said(struck)
        if stage.name in ("clean", "apply", "drop"):
            getattr(self, f"_check_{stage.name}")()
            return
        expected = self._expected[stage.flow]
        nothing_lost.check(self, expected, self._finish(stage))
        run = self._run()
        # A turn that was not started yet is started again, but none that was.
        assert run is not None
        assert not point.kills or run.cost == expected.cost, f"paid {run.cost}"
        assert self._left_running() == {}, "processes are left"
        self._check_removal()

    def _check_removal(self) -> None:
        """`clean` also removes what was left half written in the project, after an hour."""
        for path in self.room.rglob("*"):
            os.utime(path, (0, 0), follow_symlinks=False)
        nothing_lost.check_clean(self)
        assert list(self.room.rglob("*.tmp")) == []

    def _check_apply(self) -> None:
        """Each file is as it was or as it should be; after the same again, all are, and nothing else changed."""
        assert self.person is not None
        before, now = self.person.before, self.person.standing()
        for path in before.keys() | now.keys() | self._applied.keys():
            if path != "status":
                assert now.get(path) in (before.get(path), self._applied.get(path)), path
        done = self._raymond("apply", ID)
        nothing_lost.check_words(done)
        assert done.code == 0, done.err
        assert self.person.standing() == self._applied
        assert list((self.room / ".raymond").glob("apply-*")) == []
        self.person.check_sound()

    def _check_drop(self) -> None:
        """The work is in the tree or under its reference; after the same again, it is there and the run is gone."""
        assert self.person is not None
        assert self.person.read("made") == "made\n", "the work is lost"
        if self.project.run(ID).exists:
            done = self._raymond("clean", ID)
            nothing_lost.check_words(done)
            assert done.code == 0, done.err
        assert self.person.work() == self._work
        assert not self.project.run(ID).exists
        assert self.person.standing() == self.person.before
        self.person.check_sound()
        assert self._left_running() == {}, "processes are left"

    def _check_clean(self) -> None:
        if self.journal.exists():
            nothing_lost.check(self, self._expected["short"])
            self._check_removal()
        else:
            done = self._raymond("list")
            nothing_lost.check_words(done)
            assert done.code == 0, done.err

    def _finish(self, stage: Stage) -> list[Ending]:
        """Do what a person does until the run is done; whoever saw a command die resumes in any case."""
        endings: list[Ending] = []
        for _ in range(8):
            run = self._run()
            if endings and run and run_status(run) == "completed":
                return endings
            args = start(stage.flow) if run is None else ANSWER if _asks(run) else RESUME
            done = self._raymond(*args)
            assert done.code in (0, 3), f"{' '.join(args)}: exit {done.code}\n{done.err}"
            endings.append(done)
        raise AssertionError("it is never done:\n" + "\n".join(one.err for one in endings))

    def _run(self) -> Run | None:
        return journal.read(self.project.run(ID)).run if self.journal.exists() else None

    # --- processes

    def _left_running(self) -> dict[int, bytes]:
        """Everything that was started here and still runs."""
        mark = f"LEDGER={self.ledger}".encode()
        return {pid: told(pid, "cmdline") for pid in pids() if mark in told(pid, "environ").split(b"\0")}

    def _come_to_rest(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._left_running():
            assert time.monotonic() < deadline, self._left_running()
            time.sleep(0.01)

    def clear(self) -> None:
        """End whatever is left, and take note of its end: with process numbers of our own, everything is our child."""
        while left := self._left_running():
            for pid in left:
                end(pid)
            self._reap()
        self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _check_said(struck: Ending) -> None:
    """A command that met an error carried on, or said in words what is wrong."""
    nothing_lost.check_words(struck)
    assert struck.code >= 0, f"ended by signal {-struck.code}\n{struck.err}"
    assert struck.code in (0, 3) or struck.err.strip(), f"exit {struck.code} and not a word"


def _end_of(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-40:])


def _asks(run: Run) -> bool:
    return any(agent.status == ASKING for agent in run.agents.values())


def main(folder: str) -> None:
    """Say which points there are, then try those that are asked for."""
    site = CrashSite(Path(folder))
    site.prepare()
    _say(list(points(site.records)))
    for line in sys.stdin:
        _say(site.try_out(msgspec.json.decode(line, type=Point)))


def _say(what: object) -> None:
    print(msgspec.json.encode(what).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
