"""One command of a gate: run through the shell, read while it runs, ended when its time is over."""

import codecs
import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from raymond.language.check import Check
from raymond.system.processes import GRACE
from raymond.verifier import matcher

SHELL = "bash"
_PIECE = 64 << 10
_SHOWN = 4 << 20
"""Characters of an output that are passed on; of what comes after that, only the end is kept."""
_KEPT = 16 << 20
"""Characters in which an expected text is looked for: the last ones."""
_DRAIN = 0.2
"""Seconds for which pipes stay open after the command has ended, for what it left running."""
_MATCHING = 10.0
"""Seconds of processor time at most in which a pattern is searched in an output."""
_LONGEST_FIRST = 256
"""Bytes of the line in which a script names its interpreter."""
_NOT_THERE = (126, 127)
"""The exit codes of a shell that could not start a command."""


class Place(Struct, frozen=True):
    """Where and how a command runs."""

    cwd: str = ""
    """Its directory; empty for the one of this process."""
    before: tuple[str, ...] = ()
    """What is put before the command."""
    after: "Callable[[Result], None] | None" = None
    """What is done when it has ended. OSError: it did not run there."""


class Result(Struct, frozen=True, kw_only=True):
    """What came of a command."""

    exit_code: int | None
    """None when it was ended because its time was over."""
    seconds: float
    output: str

    @property
    def timed_out(self) -> bool:
        """Whether its time was over."""
        return self.exit_code is None


HERE = Place()


def run(
    check: Check, seconds: float, environment: Mapping[str, str], tell: Callable[[str], None], place: Place = HERE
) -> Result:
    """Run a command of a gate; what it prints is also told as it comes."""
    began = time.monotonic()
    process = subprocess.Popen(
        [*place.before, SHELL, "-e", "-c", "--", check.run],
        cwd=place.cwd or None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    output = _Output(tell)
    try:
        in_time = _read(process, began + seconds, output)
    finally:
        _end(process)
    code = process.returncode if in_time else None
    result = Result(exit_code=code, seconds=time.monotonic() - began, output=output.close())
    if place.after:
        place.after(result)
    return result


def why_red(check: Check, result: Result, seconds: float) -> str:
    """Why a command is red, in a few words; empty when it is green."""
    if result.timed_out:
        return f"took longer than {seconds:g}s"
    code = result.exit_code or 0
    if code != check.exit:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{how} instead of {check.exit}" if check.exit else how
    if check.contains and check.contains not in result.output:
        return f'printed no "{check.contains}"'
    return _why_no_match(check.matches, result.output, seconds) if check.matches else ""


def _why_no_match(pattern: str, output: str, seconds: float) -> str:
    """Search in a process of its own, which ends itself when its time is over, also if this one is killed."""
    most = min(seconds, _MATCHING)
    given = json.dumps({"pattern": pattern, "text": output, "seconds": most})
    argv = [sys.executable, "-I", "-S", matcher.__file__]
    done = subprocess.run(argv, input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == -signal.SIGPROF:
        return f"printed something that /{pattern}/ takes longer than {most:g}s to search: make the pattern simpler"
    if done.returncode:
        return f"printed something that /{pattern}/ cannot be searched in"
    return "" if json.loads(done.stdout)["found"] else f"printed nothing that matches /{pattern}/"


def cannot_start(check: Check, result: Result, environment: Mapping[str, str]) -> str:
    """Why the shell could not start the program of a command, if that is why it failed; else empty."""
    if result.exit_code not in _NOT_THERE:
        return ""
    try:
        words = shlex.split(check.run, comments=True)
    except ValueError:
        return ""
    name = next((word for word in words if not re.match(r"[A-Za-z_]\w*=", word)), "")
    if "/" in name and os.path.lexists(name):
        return _why_not(name)
    known = subprocess.run(
        [SHELL, "-c", 'type -- "$1"', SHELL, name], env=environment, capture_output=True, stdin=subprocess.DEVNULL
    )
    is_known = known.returncode == 0 and "/" not in name
    return "" if is_known or not name else f"there is no program `{name}`"


def _why_not(path: str) -> str:
    """Why a file that is there cannot be started; empty when it can."""
    if os.path.isdir(path):
        return f"`{path}` is a directory"
    if not os.access(path, os.X_OK):
        return f"`{path}` is not executable: chmod +x {shlex.quote(path)}"
    try:
        with open(path, "rb") as file:
            first = file.readline(_LONGEST_FIRST)
    except OSError:
        return ""
    program = first[2:].split()[:1] if first.startswith(b"#!") else []
    if program and not os.path.exists(program[0]):
        return f"`{path}` needs {os.fsdecode(program[0])}, which does not exist"
    return ""


class _Output:
    """What a command prints: told up to a limit, kept from its end."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._room = _SHOWN
        self._kept: list[str] = []
        self._held = 0
        self._left_out = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def add(self, data: bytes) -> None:
        text = self._decode(data, not data)
        shown = text[: self._room]
        if shown:
            self._tell(shown)
            self._room -= len(shown)
        self._left_out += len(text) - len(shown)
        self._kept.append(text)
        self._held += len(text)
        while self._held - len(self._kept[0]) > _KEPT:
            self._held -= len(self._kept.pop(0))

    def close(self) -> str:
        """The end of it."""
        self.add(b"")
        output = "".join(self._kept)
        if self._left_out:
            end = output[-min(_PIECE, self._left_out) :]
            self._tell(f"\n[{self._left_out - len(end):,} characters are left out here]\n{end}")
        return output


def _read(process: "subprocess.Popen[bytes]", deadline: float, output: _Output) -> bool:
    """Read until the command has ended and its pipe is closed, or what it left running holds that; whether in time."""
    assert process.stdout
    fd = process.stdout.fileno()
    os.set_blocking(fd, False)
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= deadline:
            return False
        if process.poll() is not None:
            _drain(fd, poller, output)
            return True
        if poller.poll(min(50, 1000 * (deadline - now))) and not _take(fd, output):
            # The pipe is closed, and the command may go on.
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return False
            return True


def _drain(fd: int, poller: "select.poll", output: _Output) -> None:
    """Read what is left; a process that was left running may never stop writing."""
    until = time.monotonic() + _DRAIN
    while time.monotonic() < until and poller.poll(20):
        if not _take(fd, output):
            return


def _take(fd: int, output: _Output) -> bool:
    """Take a piece; False at the end."""
    try:
        data = os.read(fd, _PIECE)
    except BlockingIOError:
        return True
    output.add(data)
    return bool(data)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing of its session running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if number == signal.SIGTERM:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    process.wait()
    if process.stdout:
        process.stdout.close()
