"""The process of a gate. The driver forks it: to start Python again and load all this takes longer than most checks."""

import os
import signal
import sys
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from raymond import errors
from raymond.errors import Error
from raymond.verifier.assignment import Assignment, Found, Told, Work
from raymond.verifier.checks import Tell


def ready(given: Assignment) -> Callable[[int], None]:
    """What a process of its own does with an assignment; what that needs is loaded now, for the next one too.

    It writes what happens to a descriptor, as JSON lines. If the driver ends it, the check ends too.
    """
    does = _placed(given, given.work) if given.work else _here(given)

    def run(out: int) -> None:
        def tell(what: Told) -> None:
            data = msgspec.json.encode(what) + b"\n"
            while data:
                data = data[os.write(out, data) :]

        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        if given.turns and given.does == "gate":
            # An agent that goes on could change what is checked.
            from raymond.system import stragglers

            stragglers.end_stragglers(given.key, given.noted, lambda step: step in given.turns)
        tell(does(tell))

    return run


def _placed(given: Assignment, work: Work) -> Callable[[Tell], Found]:
    """What comes of work in a workspace. If the machine has no room for its check, that says nothing about the work."""
    from raymond.verifier import placed

    def does(tell: Tell) -> Found:
        began = time.monotonic()
        try:
            found = (placed.before if given.does == "seal" else placed.verify)(given, work, tell)
        except (OSError, Error) as error:
            is_fault = isinstance(error, OSError) and (
                errors.is_passing_fault(error) or error.errno in errors.DISK_FULL
            )
            found = Found(verdict="could not start", reason=f"the check cannot be judged: {error}", is_fault=is_fault)
        return replace(found, seconds=time.monotonic() - began)

    return does


def _here(given: Assignment) -> Callable[[Tell], Found]:
    from raymond.verifier import gate

    return lambda tell: _seal(given, tell) if given.does == "seal" else gate.verify(given, tell)


def _seal(given: Assignment, tell: Tell) -> Found:
    from raymond.verifier import gate
    from raymond.verifier.seal import seal_here

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
        before=gate.before(given, tell) if given.red_first else "",
    )
