"""A pattern that is searched in a final message: the process that searches, and what it found."""

import contextlib
import os
import signal
import sys

import msgspec

from raymond import errors
from raymond.machine.inputs import Interruption, Judged, Spending
from raymond.steps.evaluation import chosen
from raymond.steps.job import PatternJob
from raymond.steps.step import FAR, Host, Step
from raymond.steps.working_directory import directories, shown_files
from raymond.system.files import contents, private
from raymond.system.processes import spawn
from raymond.system.stragglers import MARK
from raymond.verifier import matcher

_WITHIN = 60.0
"""Seconds for all of it, if the process does not get to its work."""
_MOST = 64 << 10
"""Bytes that are read of what it found."""


class _Found(msgspec.Struct):
    verdict: str


class PatternStep(Step):
    """A search that runs; it has a second of processor time."""

    job: PatternJob

    def __init__(self, host: Host, job: PatternJob) -> None:
        super().__init__(host, job)
        self._silence, self._longest = FAR, _WITHIN
        self._record = host.transcripts.step(
            job.agent, step=job.step, state=job.state, attempt=job.attempt, evaluator=True, time=host.clock()
        )
        self._given = os.path.join(host.spool, f"{job.step}.pattern")
        self._told = os.path.join(host.spool, f"{job.step}.verdict")

    def start(self) -> None:
        """Start the search."""
        self.host.make_spool()
        with open(self._given, "wb", opener=private) as file:
            file.write(msgspec.json.encode({"pattern": self.job.evaluator.pattern, "text": self.job.text}))
        argv = [sys.executable, "-I", "-S", matcher.__file__]
        env = {MARK.encode(): self.host.marks.of(self.number).encode()}
        try:
            with open(self._told, "wb", opener=private) as out:
                noted = self.host.marks.noting(argv, self.number)
                self.pid = spawn(noted, env, "/", stdin=self._given, stdout=out.fileno(), stderr=out.fileno())
        except OSError as error:
            if errors.is_passing_fault(error):
                raise
            self._conclude("", f"the pattern cannot be searched: {(error.strerror or '').lower()}")
            return
        self.host.marks.note(self.pid, self.number)
        self.host.watcher.watch(self.pid, self._gone)

    def _gone(self, code: int | None) -> None:
        if self.is_cut:
            self.cut()
        elif self._verdict or code == -signal.SIGPROF:
            self._conclude("", f"the pattern took longer than {matcher.LONGEST:g}s")
        else:
            self._conclude(*self._read(code))

    def _read(self, code: int | None) -> tuple[str, str]:
        """What it found, or why it found nothing."""
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(contents(self._told, _MOST), type=_Found).verdict, ""
        return "", f"the pattern could not be searched: exit code {code}"

    def cut(self) -> None:
        """What is interrupted is searched again."""
        spent = Spending(offset=self._record.end(interrupted=True))
        self.host.report(self, Interruption(time=self.host.clock(), agent=self.agent, spent=spent))

    def _conclude(self, said: str, problem: str) -> None:
        asked = chosen(self.job.evaluator, said)
        self._record.add("said", said or problem)
        judged = Judged(
            time=self.host.clock(),
            agent=self.agent,
            said=said,
            problem=problem,
            spent=Spending(offset=self._record.end()),
            directories=directories(self.job, asked, self.host.place),
            files=shown_files(self.job.cwd, self.outside(self.job.cwd), asked),
        )
        self.host.report(self, judged)

    def close(self) -> None:
        """Remove the files."""
        for path in (self._given, self._told):
            with contextlib.suppress(OSError):
                os.unlink(path)
