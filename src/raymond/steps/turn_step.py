"""One turn of a backend: started, read along, followed after a restart, settled."""

import contextlib
import os
import re
import time
from collections.abc import Mapping

from msgspec.structs import replace

from raymond.backends import Backend, Delayed, Direct, Observation, Reply, Trouble
from raymond.backends.guard import Guarded
from raymond.language.reading import read
from raymond.machine import failures
from raymond.machine.agent import Agent
from raymond.machine.decide import meant
from raymond.machine.inputs import Failure, Interruption, Output, Spending
from raymond.machine.run import Run
from raymond.machine.workspace import Workspace
from raymond.steps.spool import remove, turn_of
from raymond.steps.step import FAR, Host, Step
from raymond.steps.working_directory import directories
from raymond.system.files import private
from raymond.system.marks import MARK
from raymond.system.processes import alive, spawn, start_time

READ_EVERY = 0.1
LINGER = 2.0
"""Seconds a program may live on after it has said its result."""
_CHUNK = 1 << 20


class TurnStep(Step):
    """What every turn has, in this process or in another."""

    def __init__(self, host: Host, run: Run, workspace: Workspace, agent: Agent) -> None:
        state = workspace.workflow.states[agent.state]
        super().__init__(host, agent, state.policy)
        self._rules = state.policy
        self._run = run
        self._denied: list[str] = []
        """What would allow the tools that were refused."""
        self.turn = turn_of(run, workspace, agent, host.spool)
        self._record = host.transcripts.step(
            agent.id,
            step=agent.step,
            turn=agent.turn,
            state=agent.state,
            attempt=agent.attempt,
            time=host.clock(),
            session=agent.turn_session,
            base=agent.turn_base,
            sent=host.secrets.clean(self.turn.prompt),
        )
        if workspace.uses_task_folder:
            os.makedirs(workspace.task_folder(agent.id), 0o700, exist_ok=True)

    def see(self, observations: list[Observation]) -> None:
        """Show what the program does as it happens."""
        for raw in observations:
            seen = replace(raw, text=self.host.secrets.clean(raw.text))
            if seen.kind in ("tool", "text"):
                self.host.show(self.agent, seen.kind, seen.text)
            if seen.kind == "tool":
                self._record.add("tools", seen.text + "\n")
            if seen.kind == "denied":
                flags = " ".join(f"--allow-tool '{tool}'" for tool in seen.allow)
                flag = f" ({flags} would allow it)" if flags else ""
                self.host.show(self.agent, "note", f"was refused: {seen.text}{flag}")
                self._record.add("denied", seen.text + "\n")
                # What no flag allows is nothing to ask a person for.
                self._denied += seen.allow
            if seen.kind == "session" and seen.text != self.turn.session:
                self.host.named(self.agent, seen.text)

    def conclude(self, ending: Reply | Trouble) -> None:
        """Report how the turn ended."""
        if isinstance(ending, Trouble):
            self._give_up(ending)
            return
        # Also what passed the door in lines: a key may go over several of them.
        text = self.host.secrets.clean(ending.text)
        self._record.add("said", text)
        offset = self._record.end(cost=ending.spent.cost)
        reading = read(text)
        for shown in reading.prints:
            self.host.show(self.agent, "print", shown)
        output = Output(
            time=self.host.clock(),
            agent=self.agent,
            reading=reading,
            spent=_at(ending.spent, offset),
            session=ending.session,
            denied=tuple(self._denied),
            directories=directories(self._run, self.turn.cwd, meant(self._rules, reading)),
        )
        self.host.report(self, output)

    def _give_up(self, trouble: Trouble) -> None:
        kind, error = trouble.kind, self.host.secrets.clean(trouble.error)
        if kind == "crash" and any(re.search(pattern, trouble.error) for pattern in self._run.start.retryable):
            kind = "overload"
        offset = self._record.end(failed=kind, error=error)
        failure = Failure(
            time=self.host.clock(),
            agent=self.agent,
            kind=kind,
            error=error,
            spent=_at(trouble.spent, offset),
            retry_at=trouble.retry_at or (self.host.clock() + trouble.retry_after if trouble.retry_after else 0.0),
            only_model=trouble.only_model,
            session=trouble.session,
            denied=tuple(self._denied),
        )
        self.host.report(self, failure)

    def interrupted(self, spent: Spending) -> None:
        """Report that the turn was cut off."""
        offset = self._record.end(interrupted=True)
        cut = Interruption(time=self.host.clock(), agent=self.agent, spent=_at(spent, offset))
        self.host.report(self, cut)


def _at(spent: Spending, offset: int) -> Spending:
    return replace(spent, offset=offset)


class DirectTurn(TurnStep):
    """A turn answered in this process."""

    def __init__(self, host: Host, run: Run, workspace: Workspace, agent: Agent, backend: Direct) -> None:
        super().__init__(host, run, workspace, agent)
        self._backend = backend
        self._answer: Delayed = backend.answer(self.turn)
        self._due = self.began + self._answer.delay if self._answer.ending else FAR
        self.see(self._answer.observations)

    def deadline(self) -> float:
        """The answer, or the end of patience."""
        return min(self._due, super().deadline())

    def check(self, now: float) -> None:
        """Answer when it is time."""
        ending = self._answer.ending
        if self._verdict or now < self._due or not ending:
            super().check(now)
            return
        try:
            _write(self.turn.cwd, self._answer.writes)
        except OSError as error:
            ending = Trouble(kind="setup", error=f"cannot write {error.filename}: {(error.strerror or '').lower()}")
        else:
            self._backend.finish(self.turn, self._answer)
        self.conclude(ending)

    def stop(self) -> None:
        """There is no process to wait for."""
        if self._verdict:
            kind, error = self._verdict
            self.conclude(Trouble(kind=kind, error=error))
        else:
            self.interrupted(Spending())


def _write(cwd: str, writes: Mapping[str, str]) -> None:
    for name, text in writes.items():
        path = os.path.join(cwd, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class ProgramTurn(TurnStep):
    """A turn of a program that reads its prompt from the spool and writes its output there, so it outlives us."""

    def __init__(
        self, host: Host, run: Run, workspace: Workspace, agent: Agent, backend: Backend, *, found: bool
    ) -> None:
        """With `found`, the turn was started by an earlier driver and is settled, not started."""
        super().__init__(host, run, workspace, agent)
        self._backend = backend
        self.reader = Guarded(backend, self.turn)
        self._parts: list[bytes] = []
        """The line that is not whole yet."""
        self._read_to = 0
        self._out = -1
        self._began = ""
        self._gone = False
        self._ended_at = FAR
        rules, start = self._rules, run.start
        self._tool_time = rules.tool_timeout or start.tool_timeout or failures.TOOL_TIME
        self._usual_silence = self._silence
        if not found:
            self._launch()

    def _launch(self) -> None:
        spool = self.turn.spool
        remove(spool)
        os.makedirs(spool, 0o700)
        path = os.path.join(spool, "prompt")
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="", opener=private) as file:
            file.write(self.turn.prompt)
        command = self.reader.command()
        if isinstance(command, Trouble):
            self._gone = True
            self.conclude(command)
            return
        for name, data in command.files.items():
            with open(os.path.join(spool, name), "wb", opener=private) as beside:
                beside.write(data)
        left_out = {name.encode() for name in command.without}
        env = {name: value for name, value in self.host.environment.items() if name not in left_out}
        env |= {os.fsencode(key): os.fsencode(value) for key, value in command.environment.items()}
        env[MARK.encode()] = self.host.marks.of(self.number).encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        out = os.open(os.path.join(spool, "out"), flags, 0o600)
        err = os.open(os.path.join(spool, "err"), flags, 0o600)
        try:
            argv = self.host.marks.noting(command.argv, self.number)
            self.pid = spawn(argv, env, self.turn.cwd, stdin=path, stdout=out, stderr=err)
        except (OSError, ValueError) as error:
            self._gone = True
            what = "the directory is gone" if not os.path.isdir(self.turn.cwd) else f"cannot start {command.argv[0]}"
            why = getattr(error, "strerror", None) or str(error)
            self.conclude(Trouble(kind="setup", error=f"{what}: {why.lower()}"))
            return
        finally:
            os.close(out)
            os.close(err)
        self._began = start_time(self.pid)
        self.host.marks.note(self.pid, self.number)
        with open(os.path.join(spool, "pid"), "w", encoding="ascii", opener=private) as file:
            file.write(f"{self.pid} {self._began}")
        self.host.watcher.watch(self.pid, self._end)

    def settle(self, *, restart: bool = False) -> bool:
        """Take up a turn of an earlier driver; whether it goes on and must be watched.

        The order: the process lives, and is followed to its end, which comes soon when its result is there already;
        the spool holds a result; the session holds the reply; it runs again.
        """
        # Looked for before the spool is read: what ends in between has said its last word by then.
        lives = self._find()
        if lives and not restart:
            self.host.watcher.watch(self.pid, self._end)
            return True
        if lives:
            self._end_process()
        self._read_all()
        if self.reader.ending:
            self.conclude(self.reader.ending)
        else:
            self._take_up_lost()
        return False

    def _take_up_lost(self) -> None:
        recalled = self.reader.recall()
        if recalled:
            self.conclude(recalled)
        else:
            self.interrupted(self.reader.spent())

    def _find(self) -> bool:
        with contextlib.suppress(OSError, ValueError), open(os.path.join(self.turn.spool, "pid")) as file:
            pid, self._began = file.read().split(" ", 1)
            self.pid = int(pid)
        if not self.pid:
            # Killed between the start of the program and the note of its pid: only the mark knows it.
            self.pid = self.host.marks.leader(self.number)
            self._began = start_time(self.pid) if self.pid else ""
        return bool(self.pid) and alive(self.pid, self._began)

    def _end_process(self) -> None:
        self.host.marks.end(step=self.number)

    def deadline(self) -> float:
        """Reading along comes every 100 ms."""
        return min(self._read_at(), super().deadline(), self._ended_at + LINGER)

    def _read_at(self) -> float:
        return self._last_read + READ_EVERY

    _last_read = 0.0

    def check(self, now: float) -> None:
        """Read what was written; stop a program that lives on after its result."""
        if now >= self._read_at():
            self.read()
        if self.reader.ending:
            if self._ended_at == FAR:
                self._ended_at = now
                self.heard = FAR
            elif now >= self._ended_at + LINGER:
                self._ended_at = FAR
                self._stop_for("", "", now)
        super().check(now)

    def read(self) -> None:
        """Feed the reader what the program has written since."""
        self._last_read = time.monotonic()
        if self._out < 0:
            try:
                self._out = os.open(os.path.join(self.turn.spool, "out"), os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return
        while data := os.pread(self._out, _CHUNK, self._read_to):
            self._read_to += len(data)
            for line in self._lines(data):
                seen = self.reader.feed(self.host.secrets.clean_bytes(line))
                if seen:
                    self.heard = self._last_read
                self.see(seen)
        # A tool may be quiet for longer than a model.
        self._silence = self._tool_time if self.reader.tool else self._usual_silence

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that are whole now; one may come in very many pieces."""
        if b"\n" not in data:
            self._parts.append(data)
            return []
        *lines, rest = b"".join([*self._parts, data]).split(b"\n")
        self._parts = [rest] if rest else []
        return lines

    def _quiet(self) -> str:
        tool = self.reader.tool
        if not tool:
            return super()._quiet()
        return f"a tool ran for {self._tool_time:g}s without a sign of life (tool_timeout): {tool[:200]}"

    def _read_all(self) -> None:
        """Nobody writes any more: a last line without its end counts too."""
        self.read()
        rest, self._parts = b"".join(self._parts), []
        if rest and not self.reader.ending:
            self.see(self.reader.feed(self.host.secrets.clean_bytes(rest)))

    def _end(self, code: int | None) -> None:
        self._gone = True
        self._read_all()
        if self.reader.ending:
            self.conclude(self.reader.ending)
        elif self._verdict and self._verdict[0]:
            self.host.marks.end(step=self.number)
            kind, error = self._verdict
            self.conclude(Trouble(kind=kind, error=error, spent=self.reader.spent()))
        elif code is None:
            self._take_up_lost()
        else:
            self.conclude(self.reader.close(code, self._errors()))

    def _errors(self) -> str:
        try:
            with open(os.path.join(self.turn.spool, "err"), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
                return self.host.secrets.clean(file.read().decode("utf-8", "replace"))
        except OSError:
            return ""

    def cut(self) -> None:
        """Ended by us, and not waited for: what it has said and cost by now counts."""
        self._read_all()
        if self.reader.ending:
            self.conclude(self.reader.ending)
        else:
            self.interrupted(self.reader.spent())

    def close(self) -> None:
        """The end is journaled: the spool is not needed any more."""
        if self._out >= 0:
            os.close(self._out)
            self._out = -1
        remove(self.turn.spool)
