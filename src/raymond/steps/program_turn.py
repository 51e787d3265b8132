"""A turn of a program: started, read while it runs, adopted after a restart."""

import contextlib
import os
import time
from collections.abc import Mapping

from msgspec.structs import replace

from raymond import errors
from raymond.backends import Backend, Command, Observation, Reply, Trouble
from raymond.backends.guard import Guarded
from raymond.machine.inputs import Spending
from raymond.steps import spool
from raymond.steps.job import TurnJob
from raymond.steps.output import SLICE, Line, RawLines
from raymond.steps.spool import MOST_LINE
from raymond.steps.step import FAR, UNKNOWN_EXIT, Host
from raymond.steps.turn_step import TurnStep
from raymond.system import folders, programs
from raymond.system.files import make_private, private
from raymond.system.processes import age, alive, spawn, start_time
from raymond.system.stragglers import MARK

READ_EVERY = 0.1
"""Seconds between two reads of what a program has written."""
_MOST_LINES = 256
"""Lines that are read at once: each costs something, however short it is."""
_READ_WITHIN = 30.0
"""Seconds for which everything else waits until all output of a program is read: it is stopped, or was long ago."""
LINGER = 2.0
"""Seconds a program may keep running after it has given its result."""


class ProgramTurn(TurnStep):
    """A turn of a program that reads its prompt from the spool and writes its output there, so it outlives us."""

    def __init__(self, host: Host, job: TurnJob, backend: Backend) -> None:
        super().__init__(host, job)
        self._backend = backend
        self.reader = Guarded(backend, self.turn)
        self._line = Line(host.secrets)
        self._raw = RawLines(host.secrets)
        self._is_flooded = False
        """A line was too long: nothing that follows is read."""
        self._read_to = 0
        self._end_at = 1 << 62
        """Where the output ends, once the program is gone: what it left running may never stop writing."""
        self._code: int | None = None
        self._last_read = 0.0
        self._has_more = False
        """More is written than was read the last time."""
        self._out = -1
        self._began = ""
        self._is_adopted = False
        """The driver before us started it, so that nobody can tell us its exit code."""
        self._since = (0.0, 0.0)
        """When it was started, by the monotonic and by the wall clock; 0 when that is not known."""
        self._heard_to = 0
        """What it had written before this driver came."""
        self._gone = False
        self._ended_at = FAR

    def start(self) -> None:
        """Put the prompt into the spool, and start the program on it."""
        super().start()
        unusable = self.host.unusable.get(self.job.backend)
        if unusable:
            self._fail_to_start(Trouble(kind="setup", error=unusable))
            return
        self._open_spool()
        command = self._command()
        if isinstance(command, Trouble):
            self._fail_to_start(command)
            return
        for name, data in command.files.items():
            with open(os.path.join(self.turn.spool, name), "wb", opener=private) as file:
                file.write(data)
        try:
            self._spawn(command)
        except (OSError, ValueError) as error:
            if errors.is_passing_fault(error):
                raise
            what = (
                "the directory is gone"
                if not os.path.isdir(self.outside(self.turn.cwd))
                else f"cannot start {command.argv[0]}"
            )
            why = getattr(error, "strerror", None) or str(error)
            self._fail_to_start(Trouble(kind="setup", error=f"{what}: {why.lower()}"))
            return
        self._began = start_time(self.pid)
        self.host.marks.note(self.pid, self.number)
        with open(os.path.join(self.turn.spool, "pid"), "w", encoding="ascii", opener=private) as noted:
            noted.write(f"{self.pid} {self._began}\n{self.began} {time.time()}\n")
        self.host.watcher.watch(self.pid, self._end)

    def _command(self) -> Command | Trouble:
        """What to start, or why nothing is: a shell would be started for a program that is gone, and paid."""
        command = self.reader.command()
        if isinstance(command, Trouble) or not command.program:
            return command
        problem = programs.locate(command.program)[1]
        return Trouble(kind="setup", error=problem) if problem else command

    def _open_spool(self) -> None:
        folders.remove_path(self.turn.spool)
        make_private(self.turn.spool)
        path = os.path.join(self.turn.spool, "prompt")
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="", opener=private) as file:
            file.write(self.turn.prompt)

    def _spawn(self, command: Command) -> None:
        left_out = {name.encode() for name in command.without}
        env: Mapping[bytes, bytes] = {
            name: value for name, value in self.host.environment.items() if name not in left_out
        }
        added = {os.fsencode(key): os.fsencode(value) for key, value in command.environment.items()}
        env = {**env, **added, MARK.encode(): self.host.marks.of(self.number).encode()}
        folder, flags = self.turn.spool, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        prompt = os.path.join(folder, "prompt")
        with contextlib.ExitStack() as given:
            out, err = (_opened(os.path.join(folder, name), flags, given) for name in ("out", "err"))
            argv, env, cwd = self.entered(
                command.argv,
                env,
                {folder: False},
                command.needs,
                command.folders,
                program=command.program,
                only_reads=command.only_reads,
            )
            argv = self.host.marks.noting(argv, self.number)
            self.pid = spawn(argv, env, cwd, stdin=prompt, stdout=out, stderr=err)

    def _fail_to_start(self, trouble: Trouble) -> None:
        self._gone = True
        self.conclude(trouble)

    def adopt(self, *, restart: bool = False) -> bool:
        """Look for the turn of a driver that died; whether its program still runs. `restart` stops it instead.

        The order: a program that still runs is followed to its end, which comes soon when it has given its result;
        else the result counts that is in the spool; else the reply that is in the session; else it was interrupted.
        """
        # Look for the process before reading the spool: whatever ends in between has written its last line by then.
        lives = self._find()
        self._is_adopted = True
        self._know_prompt()
        if lives and not restart:
            self._count_on()
            self.host.watcher.watch(self.pid, self._end)
            return True
        if lives:
            self.host.marks.end(step=self.number)
        self._read_all()
        if self.reader.ending:
            self.conclude(self.reader.ending)
        else:
            self._recall(by_death=not restart)
        self.settle()
        return False

    def _know_prompt(self) -> None:
        """What it was sent, which may not be what it would be sent now: its project was moved, or its files changed."""
        sent = spool.sent(self.turn.spool)
        if sent is not None and sent != self.turn.prompt:
            self.turn = replace(self.turn, prompt=sent)
            self.reader = Guarded(self._backend, self.turn)

    def _recall(self, *, by_death: bool = True) -> None:
        recalled = self.reader.recall()
        if recalled:
            self.conclude(recalled)
        elif self._is_adopted:
            self.interrupted(self.reader.spent(), by_death=by_death)
        else:
            # An interruption would be repeated for ever, and paid each time.
            self.conclude(Trouble(kind="crash", error=UNKNOWN_EXIT, spent=self.reader.spent()))

    def _count_on(self) -> None:
        """Its limits of time did not begin anew with this driver."""
        began, at = self._since
        now, wall = time.monotonic(), time.time()
        self.began = now - age(
            self.pid, now - began if began > 0 else 0.0
        )  # the monotonic clock counts for all of a machine
        with contextlib.suppress(OSError):
            out = os.stat(os.path.join(self.turn.spool, "out"))
            # The clock may have been set before its last line or after: nobody knows, so the shorter silence counts.
            was_set = (wall - now) - (at - began)
            silent = wall - out.st_mtime - max(0.0, was_set)
            self.heard = max(self.began, now - max(0.0, silent))
            self._heard_to = out.st_size

    def _find(self) -> bool:
        path = os.path.join(self.turn.spool, "pid")
        with contextlib.suppress(OSError, ValueError), open(path, errors="replace", opener=private) as file:
            pid, self._began = file.readline().rstrip("\n").split(" ", 1)
            self.pid = int(pid)
            since, at = map(float, file.readline().split())
            self._since = since, at
        if not self.pid:
            # The driver died after it started the program and before it noted the pid: find it by its mark.
            self.pid = self.host.marks.leader(self.number)
            self._began = start_time(self.pid) if self.pid else ""
        return bool(self.pid) and alive(self.pid, self._began)

    def deadline(self) -> float:
        """The next read, unless something else comes first."""
        return min(self._next_read(), super().deadline(), self._ended_at + LINGER)

    def _next_read(self) -> float:
        return self._last_read + (0.0 if self._has_more else READ_EVERY)

    def check(self, now: float) -> None:
        """Read what was written; stop a program that keeps running after its result."""
        if self._concluding:
            self.go_on()
            return
        if self._gone:
            self._finish()
            return
        if now >= self._next_read():
            self.read()
        if self.reader.ending:
            if self._ended_at == FAR:
                self._ended_at = now
                self.heard = FAR
            elif now >= self._ended_at + LINGER:
                self._ended_at = FAR
                self._stop_for(None, "", now)
        super().check(now)

    def read(self) -> None:
        """Feed the reader what the program has written since, at most a slice."""
        self._last_read = time.monotonic()
        self._has_more = False
        if self._is_flooded:
            return
        if self._out < 0:
            try:
                self._out = spool.output(self.turn.spool)
            except OSError:
                return
        # A program may have made its output shorter than what was read of it.
        data = os.pread(self._out, max(0, min(SLICE, self._end_at - self._read_to)), self._read_to)
        lines, left = data.split(b"\n", _MOST_LINES), b""
        if len(lines) > _MOST_LINES:
            left, lines[-1] = lines[-1], b""
        self._has_more = len(data) == SLICE or bool(left)
        self._read_to += len(data) - len(left)
        self._take(lines)
        self.show_words()
        # A tool may be quiet for longer than a model.
        self._silence = self.job.tool_silence if self.reader.tool else self.job.silence

    def _take(self, pieces: list[bytes]) -> None:
        first, *lines = pieces
        self._line.add(first)
        for line in lines:
            seen = self._feed(self._line.end())
            self._line.add(line)
            if seen and self._read_to > self._heard_to:
                self.hear(self._last_read)
            self.see(seen)
        if self._line.length > MOST_LINE:
            self._is_flooded = True
            self._line.end()
            self.reader.overflow(f"the program wrote a line of more than {MOST_LINE >> 20} MiB")

    def _feed(self, line: bytes) -> list[Observation]:
        """Give the reader a line, whole and without secrets; who wants to see it as it is sees it."""
        if self.host.wants_raw:
            for text in self._raw.add(line, self._line.original):
                self.host.show(self.agent, "raw", text)
        return self.reader.feed(line)

    def conclude(self, ending: Reply | Trouble) -> None:
        """Report how it ended, after the last of what it has printed."""
        for text in self._raw.close():
            self.host.show(self.agent, "raw", text)
        self._export()
        super().conclude(ending)

    def interrupted(self, spent: Spending, *, by_death: bool = False) -> None:
        """Report that it was cut off."""
        self._export()
        super().interrupted(spent, by_death=by_death)

    def _export(self) -> None:
        """Let the person open the conversation: it is in the folder of the run, which goes with the run."""
        if self.turn.isolated:
            self.reader.export(self.session)

    def _is_silent(self, now: float) -> bool:
        # What is not read yet may say that a tool runs, which may be silent for longer.
        return not self._has_more and super()._is_silent(now)

    def _quiet(self) -> str:
        tool = self.reader.tool
        if not tool:
            return super()._quiet()
        return f"a tool ran for {self.job.tool_silence:g}s without a sign of life (tool_timeout): {tool[:200]}"

    def _read_all(self) -> None:
        """Nobody writes any more: a last line without a newline counts too. What takes too long to read is left out."""
        self._note_end()
        until = time.monotonic() + _READ_WITHIN
        self.read()
        while self._has_more and time.monotonic() < until:
            self.read()
        if not self._line.is_empty and not self.reader.ending:
            self.see(self._feed(self._line.end()))

    def _end(self, code: int | None) -> None:
        self._gone, self._code = True, code
        self.come_out(code)
        self._note_end()
        self._finish()

    def _note_end(self) -> None:
        if self._end_at == 1 << 62:
            with contextlib.suppress(OSError):
                self._end_at = os.stat(os.path.join(self.turn.spool, "out")).st_size

    def _finish(self) -> None:
        """The program is gone: read on, slice by slice, and conclude."""
        self.read()
        if self._has_more:
            self.host.soonest = min(self.host.soonest, self._next_read())
            return
        self._read_all()
        code = self._code
        kind, error = self._verdict or (None, "")
        if self.reader.ending:
            self.conclude(self.reader.ending)
        elif self.refused:
            kind, error = self.refused
            self.conclude(Trouble(kind=kind, error=error, spent=self.reader.spent()))
        elif kind:
            self.host.marks.end(step=self.number)
            self.conclude(Trouble(kind=kind, error=error, spent=self.reader.spent()))
        elif code is None:
            self._recall()
        else:
            self.conclude(self.reader.close(code, self._errors()))

    def _errors(self) -> str:
        try:
            with open(os.path.join(self.turn.spool, "err"), "rb", opener=private) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
                return self.host.secrets.clean(file.read().decode("utf-8", "replace"))
        except OSError:
            return ""

    def stop(self) -> None:
        """Ask the program to end; one that is gone is only read to its end."""
        if not self._gone:
            super().stop()

    def cut(self) -> None:
        """We stopped it and do not wait: what it has said and cost so far counts."""
        if not self._concluding:
            self._read_all()
            if not self.reader.ending:
                self.interrupted(self.reader.spent())
                return
            self.conclude(self.reader.ending)
        self.settle()

    def abandon(self) -> None:
        """Leave it running: the next driver adopts it."""

    def close(self) -> None:
        """The ending is in the journal: delete the spool."""
        if self._out >= 0:
            os.close(self._out)
            self._out = -1
        # What cannot be removed now, for want of descriptors, goes when the driver leaves.
        with contextlib.suppress(OSError):
            folders.remove_path(self.turn.spool)


def _opened(path: str, flags: int, until: contextlib.ExitStack) -> int:
    fd = os.open(path, flags, 0o600)
    until.callback(os.close, fd)
    return fd
