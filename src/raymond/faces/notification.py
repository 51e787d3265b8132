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
FAILED = "!"
"""What is said about a target that was not told begins with this."""
_LONGEST = 2000
"""Characters of a command's output that are passed on."""
_MARGIN = "    | "
"""Before every line of it."""
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
    failed, said = _told(target, directory)
    with contextlib.suppress(OSError):
        os.write(1, f"{FAILED if failed else ''}{said}".encode("utf-8", "replace"))
    if stays:
        _outlast(driver)
    return failed


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


def _told(target: str, directory: str) -> tuple[bool, str]:
    """Whether the target could not be told, and what to say about it."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    os.chdir("/")
    try:
        if target.startswith(("http://", "https://")):
            _post(target, sys.stdin.buffer.read())
            return False, ""
        code, out = _run(target, directory)
        out = "".join(f"\n{_MARGIN}{line}" for line in out.splitlines())
        if code == 0:
            return False, f"--notify {target}:{out}" if out else ""
        what = "" if code is None else f"exit code {code}" if code > 0 else f"ended by signal {-code}"
        return True, f"--notify {target}: {what or f'not finished after {PATIENCE:g} s'}{out}"
    except HTTPError as error:
        why = f"the server answered {error.code} {error.reason}".rstrip()
    except URLError as error:
        why = getattr(error.reason, "strerror", None) or str(error.reason)
    except (OSError, ValueError, HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error)
    return True, f"--notify {target}: not delivered: {why[:1].lower()}{why[1:]}"


def _post(address: str, data: bytes) -> None:
    from urllib.request import Request

    request = Request(address, data, {"Content-Type": "application/json", "User-Agent": "raymond"})
    with _opener().open(request, timeout=PATIENCE):
        pass


def _opener() -> "OpenerDirector":
    """Opens an address and no other: whoever answers there must not choose where results go, or what else is asked."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class Refused(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
            raise ValueError(f"it redirects to {newurl} ({code}), and redirects are not followed")

    return build_opener(Refused)


def _run(command: str, directory: str) -> tuple[int | None, str]:
    """The exit code of a command, None when it was ended because it took too long; and the beginning of its output."""
    import signal
    import subprocess
    from threading import Thread

    reader, writer = os.pipe()
    where = directory if os.path.isdir(directory) else "/"
    # In its own session, so that killing it also kills what it started.
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdout=writer, stderr=writer, start_new_session=True, cwd=where
    )
    os.close(writer)
    kept = bytearray()
    # What the command leaves in the background may print for as long as this process is there.
    keeping = Thread(target=_keep, args=(reader, kept), daemon=True)
    keeping.start()
    code: int | None = None
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    keeping.join(0.5)
    return code, _beginning(bytes(kept))


def _keep(reader: int, kept: bytearray) -> None:
    """Read all of it, so that nobody is held up; keep the beginning."""
    while more := os.read(reader, 1 << 16):
        kept += more[: max(0, 4 * _LONGEST - len(kept))]


def _beginning(out: bytes) -> str:
    text = out.decode("utf-8", "replace").strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n[more was printed]"


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
