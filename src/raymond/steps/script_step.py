"""A script: its environment, its process, its output."""

import codecs
import contextlib
import os
import sys
import time
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from raymond import errors
from raymond.language.reading import Reader, Reading
from raymond.machine import evaluators
from raymond.machine.decide import meant
from raymond.machine.failures import Kind
from raymond.machine.inputs import Interruption, Output, Spending
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.redaction import Stream
from raymond.steps import output
from raymond.steps.job import ScriptJob
from raymond.steps.output import SLICE, VARIABLE, Answer, OutFile
from raymond.steps.step import FAR, UNKNOWN_EXIT, Host, Step
from raymond.steps.working_directory import directories, shown_files
from raymond.store.transcripts import PUBLISH_EVERY
from raymond.system.files import contents, make_private, private
from raymond.system.processes import DEV_NULL, spawn
from raymond.system.stragglers import MARK

LISTEN_AFTER = 0.02
"""Seconds before the pipes of a script are watched: most have ended by then, and wake the driver only once."""
DRAIN = 0.2
"""Seconds the pipes of an ended script stay open for processes it left running."""
LARGEST_VALUE = 32 << 10
LARGEST_TOGETHER = 128 << 10
_FEW = LARGEST_VALUE // 4
"""Characters, of four bytes at most: all values together fit then."""
_NOTHING = DEV_NULL.encode()
_MARK = MARK.encode()
_LAST = 1 << 20
"""Bytes that a pipe can hold: what is read after `DRAIN`, because a process left running may never stop writing."""
_TOLD, _TOLD_LINES = 2000, 10
"""Characters and lines of its output that are told with a failure."""


class _Names(dict[str, bytes]):
    """The environment variables of the values that have a name of their own; those of any others are made."""

    def __missing__(self, name: str) -> bytes:
        return f"RAYMOND_VAR_{name}".encode()


_NAMES = _Names(
    (name, f"RAYMOND_{name.upper()}".encode())
    for name in (
        "input",
        "result",
        "results",
        "error",
        "gate",
        "gate_result",
        "run_input",
        "transitions",
        "workflow_id",
        "agent_id",
        "state",
        "visit",
        "attempt",
        "task_folder",
        "workflow_dir",
    )
)


class ScriptStep(Step):
    """A script that runs; its pipes are read as it writes."""

    job: ScriptJob
    _errors = ""
    _printed = ""
    """The end of what it wrote to stdout."""
    _listening = False
    _reading: Reading | None = None
    _exit: int | None = None
    _ended_at = FAR
    _left = _LAST
    _decision: Answer | None = None
    """What it wrote into the file of `RAYMOND_OUT`, while it is read."""

    def __init__(self, host: Host, job: ScriptJob) -> None:
        super().__init__(host, job)
        self._reader = Reader(script=True)
        self._record = host.transcripts.step(
            job.agent, step=job.step, state=job.state, attempt=job.attempt, time=host.clock()
        )
        self._most = evaluators.LONGEST if job.policy.evaluator else _TOLD
        self._open: dict[int, str] = {}
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._doors: dict[str, Stream] = {}
        self._files: list[str] = []
        self._folder = host.spool
        """Where the files of the step are."""
        self._shown: dict[str, bool] = {}
        if job.way == "isolated":
            self._folder = f"{host.spool}/{job.step}.files"
            self._shown[self._folder] = True
        self._out_file = OutFile(self._folder, job.step)

    def start(self) -> None:
        """Start the script."""
        job = self.job
        if self.host.unpacked.check(job.state):
            self.host.show(self.agent, "note", self.host.unpacked.note)
        make_private(self._folder) if self._shown else self.host.make_spool()
        env = self._environment()
        self.make_task_folder()
        argv = [*runner(job.state, job.python), job.script]
        try:
            self._spawn(argv, env)
        except OSError as error:
            if errors.is_passing_fault(error):
                raise
            self._end_early(error, argv[0])
            return
        self.host.marks.note(self.pid, self.number)
        self.host.watcher.watch(self.pid, self._gone)
        self.host.stock()

    def _spawn(self, argv: list[str], env: Mapping[bytes, bytes]) -> None:
        (out, stdout), (err, stderr) = self.host.pipes()
        self._open = {out: "out", err: "err"}
        try:
            argv, env, cwd = self.entered(argv, env, self._shown)
            self.pid = self._launch(argv, env, cwd, stdout, stderr)
        finally:
            os.close(stdout)
            os.close(stderr)

    def _launch(self, argv: list[str], env: Mapping[bytes, bytes], cwd: str, stdout: int, stderr: int) -> int:
        """Start its process; the pid of that."""
        return spawn(self.host.marks.noting(argv, self.number), env, cwd, stdout=stdout, stderr=stderr)

    def _end_early(self, error: OSError, program: str) -> None:
        cwd = self.outside(self.job.cwd)
        what = f"the directory {cwd} is gone" if not os.path.isdir(cwd) else f"cannot start {program}"
        message = f"{what}: {(error.strerror or '').lower()}"
        self.close()
        self.fail("script", message, Spending(offset=self._record.end(error=message)))

    def _environment(self) -> dict[bytes, bytes]:
        values = self.job.values
        env = self.host.environment.copy()
        given, left_out = values["input"], list[str]()
        # Most scripts are given a few short values: there is no need to look at each.
        together = "\0".join(values.values()) if sum(map(len, values.values())) <= _FEW else None
        if together is not None and together.count("\0") < len(values):
            raw = together.encode("utf-8", "surrogateescape").split(b"\0")
            env.update(zip(map(_NAMES.__getitem__, values), raw, strict=True))
        else:
            left_out = _add_values(env, values)
        env[b"RAYMOND_INPUT_FILE"] = os.fsencode(self._file("input", output.plain(given))) if given else _NOTHING
        if left_out:
            self._warn_of_input(left_out)
            env[b"RAYMOND_VARS_FILE"] = os.fsencode(self._file("vars.json", output.as_json(values)))
        env[b"RAYMOND_OUT"] = os.fsencode(self._out_file.path)
        env[b"RAYMOND_STEP_KEY"] = self.job.key.encode()
        env[_MARK] = self.host.marks.of(self.number).encode()
        return env

    def _warn_of_input(self, left_out: Iterable[str]) -> None:
        """Say that a variable is missing which the script may take for empty."""
        if "input" not in left_out or b"RAYMOND_INPUT_FILE" in self._text():
            return
        told = "gets no RAYMOND_INPUT, which is too long for the environment: read the file RAYMOND_INPUT_FILE instead"
        self.host.show(self.agent, "note", told)
        self._record.add("note", f"{told}\n")

    def _text(self) -> bytes:
        try:
            return contents(self.job.script)
        except OSError:
            return b""

    def _file(self, name: str, parts: Iterable[bytes]) -> str:
        path = os.path.join(self._folder, f"{self.number}.{name}")
        with open(path, "wb", opener=private) as file:
            file.writelines(parts)
        self._files.append(path)
        return path

    def deadline(self) -> float:
        """Once the process is gone, the end of draining; at once while its decision is read."""
        if self._decision:
            return 0.0
        if self._has_ended:
            return self._ended_at + DRAIN
        return super().deadline() if self._listening else min(self.began + LISTEN_AFTER, super().deadline())

    def check(self, now: float) -> None:
        """Close a pipe that another process keeps open after the script has ended; read on in what it decided."""
        if self._decision:
            self._read_on(self._decision)
        elif not self._has_ended:
            if now >= self.began + LISTEN_AFTER:
                self._listen()
            super().check(now)
        elif now >= self._ended_at + DRAIN:
            self._drain()

    def publish(self, now: float) -> None:
        """Let others read what a script that lasts has printed."""
        if now >= self.began + PUBLISH_EVERY:
            self._record.flush()

    def _stop_for(self, kind: Kind | None, error: str, now: float) -> None:
        if not self._has_ended:
            super()._stop_for(kind, error, now)

    def stop(self) -> None:
        """Ask the process to end; one that has ended is only read to its end."""
        if not self._has_ended:
            super().stop()

    def kill(self) -> None:
        """Kill the process, unless it has ended: its number may be another's by now."""
        if not self._has_ended:
            super().kill()

    def cut(self) -> None:
        """Read what a script has said that has ended, and what it decided; any other was interrupted."""
        if not self._has_ended:
            for name, door in self._doors.items():
                self._say(name, door.close())
            spent = Spending(offset=self._record.end(interrupted=True))
            self.host.report(self, Interruption(time=self.host.clock(), agent=self.agent, spent=spent))
            return
        while not self.ended:
            if self._decision:
                self._read_on(self._decision)
            else:
                self._drain()

    @property
    def _has_ended(self) -> bool:
        return self._ended_at != FAR

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            for fd in self._open:
                self.host.poll.register(fd, self._readable)

    def _readable(self, fd: int) -> None:
        if fd in self._open:  # else it was closed because the process ended, which came in at the same moment
            self._read(fd)
            if not self._open and self._has_ended:
                self._finish()

    def _read(self, fd: int) -> int:
        """Take what is in the pipe, at most a chunk; how much it was."""
        try:
            data = os.read(fd, SLICE)
        except BlockingIOError:
            return 0
        if data:
            self.hear(time.monotonic())
            self._take(self._open[fd], data)
        else:
            self._shut(fd)
        return len(data)

    def _take(self, name: str, data: bytes, final: bool = False) -> None:
        try:
            text = data.decode() if name not in self._decoders else self._decode(name, data, final)
        except UnicodeDecodeError:
            self._decoders[name] = codecs.getincrementaldecoder("utf-8")("replace")
            text = self._decode(name, data, final)
        if name not in self._doors:
            if text.endswith("\n") and self.host.secrets.passes(text):
                self._say(name, text)
                return
            self._doors[name] = self.host.secrets.stream()
        self._say(name, self._doors[name].feed(text))

    def _say(self, name: str, text: str) -> None:
        if not text:
            return
        self._record.add(name, text)
        if name == "err":
            self._errors = (self._errors + text)[-4096:]
            return
        self._printed = (self._printed + text[-self._most :])[-self._most :]
        for shown in self._reader.feed(text):
            self.host.show(self.agent, "print", shown)

    def _decode(self, name: str, data: bytes, final: bool) -> str:
        text = self._decoders[name].decode(data, final)
        if "\ufffd" in text:
            self._record.add("note", f"invalid UTF-8 in std{name} was replaced\n")
        return text

    def _shut(self, fd: int) -> None:
        name = self._let_go(fd)
        if name in self._decoders:
            self._take(name, b"", final=True)
        if name in self._doors:
            self._say(name, self._doors[name].close())
        if name == "out":
            # Nothing more can come: parse it while the process is still exiting.
            self._reading = self._reader.close()

    def _gone(self, code: int | None) -> None:
        self._exit = code
        self.come_out(code)
        self._ended_at = time.monotonic()
        for fd in list(self._open):
            # Most scripts say little: that is all of it then, and the second read finds the end of the pipe.
            if 0 < self._read(fd) < SLICE:
                self._read(fd)
        if not self._open:
            self._finish()
        else:
            self._listen()
            self.host.soonest = min(self.host.soonest, self.deadline())

    def _drain(self) -> None:
        """It is time to end, although a process left running may hold the pipes: read what is in them, in slices."""
        self._left -= SLICE
        more = [self._read(fd) for fd in list(self._open)]
        if not any(more) or self._left <= 0:
            self._finish()

    def _finish(self) -> None:
        if self.ended or self._decision:
            return
        for fd in list(self._open):
            self._shut(fd)
        reading = self._reading or self._reader.close()
        for shown in reading.prints:
            self.host.show(self.agent, "print", shown)
        try:
            text = self._out_file.take()
        except OSError as error:
            self._conclude(reading, f"{VARIABLE} cannot be read: {error.strerror}")
            return
        if text is None:
            self._conclude(reading)
            return
        self._decision = Answer(self.host.secrets, text, script=True)
        self._read_on(self._decision)

    def _read_on(self, decision: Answer) -> None:
        if not decision.go_on():
            self.host.soonest = 0.0
            return
        self._decision = None
        self._record.add("decided", decision.text)
        reading = decision.reading
        for shown in reading.prints:
            self.host.show(self.agent, "print", shown)
        if reading.refused:
            reading = replace(reading, refused=replace(reading.refused, reason=f"{VARIABLE}: {reading.refused.reason}"))
        self._conclude(reading)

    def _conclude(self, reading: Reading, wrong: str = "") -> None:
        """Report how it ended: what it said, unless something is `wrong` with it."""
        spent = Spending(offset=self._record.end(exit=self._exit))
        kind, error = self._verdict or (None, "")
        if self._verdict and not (self.is_cut and self._exit == 0):  # a person came too late to stop it
            self.host.marks.end(step=self.number)
            self.fail(kind or "crash", error, spent, self._exit, output=self._output(error))
        elif self._exit is None:
            self.fail("crash", UNKNOWN_EXIT, spent)
        elif self.refused:
            self.fail(*self.refused, spent)
        elif self._exit:
            kind, error = _what_failed(self._exit, self._errors)
            self.fail(kind, error, spent, self._exit, output=self._output(error))
        elif wrong:
            self.fail("script", wrong, spent, self._exit)
        else:
            job, asked = self.job, meant(self.job.policy, reading)
            output = Output(
                time=self.host.clock(),
                agent=self.agent,
                reading=reading,
                spent=spent,
                directories=directories(job, asked, self.host.place),
                files=shown_files(job.cwd, self.outside(job.cwd), asked),
                text=self._printed if job.policy.evaluator else "",
            )
            self.host.report(self, output)

    def _output(self, error: str) -> str:
        """Its last lines, for people; none when the error says them."""
        lines = (self._errors if self._errors.strip() else self._printed).strip("\n").splitlines()[-_TOLD_LINES:]
        output = "\n".join(lines)[-_TOLD:]
        return output if len(lines) > 1 or output.strip() not in error else ""

    def close(self) -> None:
        """Close the pipes, remove the files."""
        while self._open:
            self._let_go(next(iter(self._open)))
        while self._files:
            with contextlib.suppress(FileNotFoundError):  # the script may have removed it
                os.unlink(self._files.pop())

    def _let_go(self, fd: int) -> str:
        if self._listening:
            self.host.poll.unregister(fd)
        os.close(fd)
        return self._open.pop(fd)


def variable(name: str) -> bytes:
    """The environment variable for the value `name`."""
    return _NAMES[name]


def _add_values(env: dict[bytes, bytes], values: Mapping[str, str]) -> list[str]:
    """Add the values that fit into an environment; the names of the others."""
    room = LARGEST_TOGETHER
    left_out: list[str] = []
    # Built-in names come first: whatever a model passed on, a script can tell its run, agent and state.
    for name, value in values.items():
        raw = value.encode("utf-8", "surrogateescape") if len(value) <= LARGEST_VALUE else None
        if raw is None or len(raw) > min(LARGEST_VALUE, room) or b"\0" in raw:
            left_out.append(name)
            continue
        room -= len(raw)
        env[_NAMES[name]] = raw
    return left_out


def _what_failed(code: int, errors: str) -> tuple[Kind, str]:
    last = errors.strip().rpartition("\n")[2].strip()
    tail = f": {last[-300:]}" if last else ""
    if code < 0:
        return "crash", f"was ended by signal {-code}{tail}"
    return "script", f"ended with exit code {code}{tail}"


def interpreter(placed: PlacedWorkflow, state: str) -> list[str]:
    """The program that runs a script, by its extension."""
    return runner(state, placed.workflow.settings.python)


def runner(state: str, python: str) -> list[str]:
    """The same, with the `python` of the workflow."""
    match state.rpartition(".")[2]:
        case "py":
            # What is unpacked is read-only, and root would write there all the same.
            return [python or sys.executable, "-B"]
        case "ps1":
            return ["pwsh", "-NoProfile", "-File"]
        case "bat":
            return ["cmd", "/c"]
        case _:
            return ["bash"]
