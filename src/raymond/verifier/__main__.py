"""The process: an assignment on stdin, what happens as JSON lines on stdout."""

import os
import signal
import sys
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from raymond.errors import Error
from raymond.system.leaving import leave
from raymond.verifier.assignment import Assignment, Found, Told


def main() -> None:
    """Do what stdin says. Whoever started us may end us at any time: the check ends with us."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
    out = os.dup(1)
    os.dup2(2, 1)

    def tell(what: Told) -> None:
        data = msgspec.json.encode(what) + b"\n"
        while data:
            data = data[os.write(out, data) :]

    tell(_lost(given) or (_seal if given.does == "seal" else _verify)(given, tell))
    leave()


def _lost(given: Assignment) -> Found | None:
    """Go to where the checks run: whatever an agent left behind may have put another directory in its place."""
    try:
        os.chdir("/" if given.work else given.cwd or ".")
    except OSError as error:
        reason = f"the directory {given.cwd} cannot be entered: {(error.strerror or '').lower()}"
        return Found(verdict="could not start", reason=reason)
    return None


def _verify(given: Assignment, tell: Callable[[Told], None]) -> Found:
    from raymond.verifier.gate import verify  # a seal does without

    return verify(given, tell)


def _before(given: Assignment, tell: Callable[[Told], None]) -> str:
    from raymond.verifier.gate import before

    return before(given, tell)


def _seal(given: Assignment, tell: Callable[[Told], None]) -> Found:
    from raymond.verifier.sealing import seal_here

    began = time.monotonic()
    if given.work:
        from raymond.verifier.gate import before_work

        return replace(before_work(given, given.work, tell), seconds=time.monotonic() - began)
    try:
        found = seal_here(given, os.getcwd())
    except (OSError, ValueError, Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Found(verdict="could not start", reason=f"what decides the check cannot be sealed: {why}")
    return Found(
        verdict="passed",
        seal=found.digest,
        files=len(found.entries),
        commit=found.commit,
        seconds=time.monotonic() - began,
        before=_before(given, tell) if given.red_first else "",
    )


if __name__ == "__main__":
    main()
