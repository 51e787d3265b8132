"""The process: an assignment on stdin, what happens as JSON lines on stdout."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from raymond.errors import Error
from raymond.system import faults
from raymond.system.leaving import leave
from raymond.verifier.assignment import Assignment, Found, Told, Work


def main() -> None:
    """Do what stdin says. Whoever started us may end us at any time: the check ends with us."""
    gc.disable()  # it ends soon
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
    if given.turns:
        # An agent that goes on could change what is checked.
        from raymond.system import stragglers

        stragglers.end(given.key, given.noted, lambda step: step in given.turns)
    if given.work:
        return _placed(given, given.work, tell)
    from raymond.verifier.gate import verify

    return verify(given, tell)


def _placed(given: Assignment, work: Work, tell: Callable[[Told], None]) -> Found:
    """What comes of work in a workspace. If the machine has no room for its check, that says nothing about the work."""
    from raymond.verifier import placed

    began = time.monotonic()
    try:
        found = (placed.before if given.does == "seal" else placed.verify)(given, work, tell)
    except (OSError, Error) as error:
        is_fault = isinstance(error, OSError) and (faults.is_passing(error) or error.errno in faults.FULL)
        found = Found(verdict="could not start", reason=f"the check cannot be judged: {error}", is_fault=is_fault)
    return replace(found, seconds=time.monotonic() - began)


def _seal(given: Assignment, tell: Callable[[Told], None]) -> Found:
    if given.work:
        return _placed(given, given.work, tell)
    from raymond.verifier.gate import before
    from raymond.verifier.sealing import seal_here

    began = time.monotonic()
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
        before=before(given, tell) if given.red_first else "",
    )


if __name__ == "__main__":
    main()
