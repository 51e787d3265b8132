"""Deliver one notification: a program of its own, which gets a target and a directory, and the document on stdin.

It imports nothing of Raymond's and is started with `python -I` by its path: where a run stands, agents write, and a
`json.py` there must not be what Python imports.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

PATIENCE = 10.0
"""Seconds a target may take."""


def main(target: str, directory: str) -> int:
    """Deliver stdin to `target`; a command is run in `directory`."""
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
