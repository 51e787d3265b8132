"""What was asked of a driver that died before it heard of it: the next one finds it in the inbox of the run."""

from collections.abc import Iterator

from msgspec.structs import replace

from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.sender import Sender
from raymond.store import inbox
from raymond.store.run_folder import RunFolder

_LEFT = "was left for a driver that died"
_THEN = {"cancel": "the next one ends the run", "stop": "the same command again stops it, a resume continues"}
"""What ends or stops a run -> what becomes of it."""
_SHOWN = 10
"""Agents that are named."""


def found(folder: RunFolder, run: Run) -> Iterator[tuple[str, Request]]:
    """Every request that was left and not taken, with the path of its file; nobody can tell who left it."""
    for path, request in inbox.look(folder.inbox):
        if request and request.id not in run.requests:
            yield path, replace(request, sender=Sender(way="inbox"), given=None)


def pauses(folder: RunFolder, run: Run) -> list[str]:
    """The agents of the run that the next driver is asked to pause."""
    asked = {one.agent for _, one in found(folder, run) if one.kind == "pause"}
    return [name for name in run.agents if name in asked]


def stop(folder: RunFolder, run: Run) -> str:
    """That somebody has asked to stop or cancel the run; empty when nobody has."""
    asked = _stop(folder, run)
    return f"`raymond {asked} {folder.id}` {_LEFT}" if asked else ""


def told(folder: RunFolder, run: Run) -> list[str]:
    """What was left, and what becomes of it when the run continues."""
    names = pauses(folder, run)
    lines = [f"`raymond {asked} {folder.id}` {_LEFT}; {_THEN[asked]}"] if (asked := _stop(folder, run)) else []
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        lines.append(f"the pause of {', '.join(names[:_SHOWN])}{more} {_LEFT}; the next one takes it")
    return lines


def _stop(folder: RunFolder, run: Run) -> str:
    kinds = {one.kind for _, one in found(folder, run)}
    return next((kind for kind in _THEN if kind in kinds), "")
