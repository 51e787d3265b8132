"""What was asked of a driver that died before it heard of it: the next one finds it in the inbox of the run."""

from collections.abc import Iterator

from msgspec.structs import replace

from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.sender import Sender
from raymond.store import inbox
from raymond.store.run_folder import RunFolder


def found(folder: RunFolder, run: Run) -> Iterator[tuple[str, Request]]:
    """Every request that was left and not taken, with the path of its file; nobody can tell who left it."""
    for path, request in inbox.look(folder.inbox):
        if request and request.id not in run.requests:
            yield path, replace(request, sender=Sender(way="inbox"), given=None)


def stop(folder: RunFolder, run: Run) -> str:
    """That somebody has asked to stop or cancel the run; empty when nobody has."""
    asked = next((one.kind for _, one in found(folder, run) if one.kind in ("stop", "cancel")), "")
    return f"`raymond {asked} {folder.id}` was left for a driver that died" if asked else ""
