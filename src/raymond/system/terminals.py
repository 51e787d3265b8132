"""A command on a terminal of its own, joined to the one of this process.

What shares a terminal with a shell can type into it (TIOCSTI). So a command that is not trusted gets another one.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Mapping

_SIZE = b"\0" * 8
_PIECE = 1 << 16


def run(argv: list[str], cwd: str, env: Mapping[bytes, bytes]) -> int:
    """Run a command for a person who types; its exit code, or 128 and the number of the signal that ended it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        code = subprocess.run(argv, cwd=cwd, env=env, check=False, start_new_session=True).returncode
        return code if code >= 0 else 128 - code
    pid, screen = pty.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    before = termios.tcgetattr(0)
    resized = signal.signal(signal.SIGWINCH, lambda *_: _resize(screen))
    _resize(screen)
    try:
        tty.setraw(0)
        _join(screen)
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)
        signal.signal(signal.SIGWINCH, resized)
        os.close(screen)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


def _resize(screen: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.ioctl(screen, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, _SIZE))


def _join(screen: int) -> None:
    """Pass on what is typed and what is shown, until nothing is left that could show something."""
    sources = [screen, 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if screen in ready:
            try:
                shown = os.read(screen, _PIECE)
            except OSError:  # the last process that had it open has ended
                return
            if not shown:
                return
            _write(1, shown)
        if 0 in ready:
            typed = os.read(0, _PIECE)
            if typed:
                _write(screen, typed)
            else:
                sources.remove(0)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
