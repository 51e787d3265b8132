"""Drive a loop whose items somebody else does, without a word, and stop it."""

from raymond.cli import foreground
from raymond.cli.flags import ShowFlags
from raymond.control.drive import AS_IT_IS
from raymond.control.handle import RunHandle
from raymond.faces.lines import Lines
from raymond.loops import ending, handing, starting
from raymond.loops.loop_run import LoopRun

QUIET = ShowFlags(quiet=True)


def driven(handle: RunHandle) -> LoopRun:
    """Drive the loop here until it waits or has ended; the loop as it is then."""
    faces = foreground.faces_of(handle, QUIET, Lines(quiet=True))
    try:
        held = foreground.take(handle, faces, QUIET, AS_IT_IS)
        try:
            held.drive()
        finally:
            held.close()
    finally:
        faces.close()
    if held.signal:
        raise KeyboardInterrupt
    loop = LoopRun(handle.project, held.run)
    if loop.run.is_over:
        ending.conclude(loop)
    return loop


def stop(loop: LoopRun) -> str:
    """Let it end after the item that is open, or now if none is; what was done, in words."""
    starting.stop(loop)
    if parked := handing.parked(loop):
        handing.answer(loop, parked, "stop")
        after = driven(RunHandle(loop.project, loop.id))
        if not after.run.is_over:
            return f"{loop.id} stops once a person has answered: raymond answer {loop.id} continue"
        return f"{loop.id} has stopped; raymond {loop.loop} status shows it."
    number = loop.ledger.open.get("iteration")
    first = f"{loop.settings.unit.capitalize()} {number} ends first" if number else "It is between two items"
    return f"Stopping {loop.id}. {first}; raymond {loop.loop} status shows it."
