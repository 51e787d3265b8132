"""Deliver one notification: a program of its own, which gets a target and a directory, and the document on stdin.

While the run goes on it stays as long as anything that the command left in the background: what is below it is not
taken for a step by the driver, and only the kernel says what is below it.

It imports nothing of Raymond's and is started with `python -I` by its path: where a run stands, agents write, and a
`json.py` there must not be what Python imports.
"""

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

PATIENCE = 10.0
"""Seconds a target may take."""
STAYS = "stays"
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: become the parent of every process below whose own parent ends."""
_ENDS_WITH_PARENT = 1
"""PR_SET_PDEATHSIG."""


def main(target: str, directory: str, stays: str = "") -> int:
    """Deliver stdin to `target`; a command is run in `directory`, and with `stays`, what it started is waited for."""
    driver = os.getppid()
    _step_aside()
    if stays:
        _control(_SUBREAPER, 1)
    try:
        return _tell(target, directory)
    finally:
        if stays:
            _outlast(driver)


def _step_aside() -> None:
    """Leave the cgroup of the run, and with it all that is started here: what is left there is ended with the run."""
    path = os.environ.pop("RAYMOND_CGROUP", "")
    with contextlib.suppress(OSError):
        fd = os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, b"0")
        os.close(fd)


def _control(option: int, value: int) -> None:
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _outlast(driver: int) -> None:
    """Wait for all that is left below, and keep nobody waiting for the end of our own output.

    When the driver has left, nobody asks any more what is below this process.
    """
    from signal import SIGTERM

    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    _control(_ENDS_WITH_PARENT, SIGTERM)
    with contextlib.suppress(ChildProcessError):
        while os.getppid() == driver:
            os.wait()


def _tell(target: str, directory: str) -> int:
    from http.client import HTTPException
    from subprocess import TimeoutExpired

    os.chdir("/")
    data = sys.stdin.buffer.read()
    try:
        if target.startswith(("http://", "https://")):
            return _post(target, data)
        return _run(target, data, directory)
    except TimeoutExpired:
        print(f"--notify {target}: not finished after {PATIENCE:g} s", file=sys.stderr)
    except (OSError, ValueError, HTTPException) as error:
        print(f"--notify {target}: {error}", file=sys.stderr)
    return 1


def _post(address: str, data: bytes) -> int:
    from urllib.request import Request

    request = Request(address, data, {"Content-Type": "application/json", "User-Agent": "raymond"})
    with _opener().open(request, timeout=PATIENCE) as answer:
        return 0 if answer.status < 400 else 1


def _opener() -> "OpenerDirector":
    """Opens an address and no other: whoever answers there must not choose where results go, or what else is asked."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class Refused(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
            raise ValueError(f"not delivered: it redirects to {newurl} ({code}), and redirects are not followed")

    return build_opener(Refused)


def _run(command: str, data: bytes, directory: str) -> int:
    import signal
    import subprocess

    where = directory if os.path.isdir(directory) else "/"
    # In its own session, so that killing it also kills what it started.
    process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, start_new_session=True, cwd=where)
    try:
        process.communicate(data, PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
