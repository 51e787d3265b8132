"""What was asked of a driver that died before it heard of it: the next one finds it in the inbox of the run."""

import os
from collections.abc import Iterable, Iterator
from time import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.control.settings import OPTIONS
from raymond.errors import Error
from raymond.faces.lines import MARGIN
from raymond.faces.summary import one_line
from raymond.language.refusal import cut
from raymond.machine import limits
from raymond.machine.run import Run
from raymond.machine.sender import Sender
from raymond.store import inbox, journal, lock
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder

if TYPE_CHECKING:
    from raymond.machine.conductor import RequestOutcome
    from raymond.machine.requests import Request

_LEFT = "was left for a driver that died"
_SHOWN = 10
"""Requests, and agents of pauses, that are named."""
_WORDS = {
    "pause": "the pause of {agent}",
    "retry": "the retry of {agent}",
    "move": "the move of {agent} to {state}",
    "result": "the result of {agent}",
    "give_up": "the request to give up {agent}",
    "answer": "the answer to {agent}",
}
_LISTS = {"allowed_tools": "--allow-tool", "roots": "--root"}


def found(folder: RunFolder, run: Run) -> "Iterator[tuple[str, Request]]":
    """Every request that was left and not taken, with the path of its file; nobody can tell who left it."""
    for path, request in inbox.pending(folder.inbox):
        if request and request.id not in run.requests:
            yield path, replace(request, sender=Sender(way="inbox"), given=None)


def tell_senders(folder: RunFolder) -> bool:
    """Whether the next driver takes from others only where it sees who asks: see sender.is_heard."""
    from raymond.system import sockets

    return sockets.tell_senders(folder.path)


def of(project: Project, run: Run) -> "LeftRequests":
    """What was left, and what the next driver here does with it; `run` is as its journal says, and nobody drives it."""
    folder = project.run(run.start.workflow_id)
    left = [] if run.is_over else [request for _, request in found(folder, run)]
    if not left or lock.signed(folder).host not in ("", os.uname().nodename):
        return LeftRequests(folder.id, [])
    from raymond.machine.conductor import request_outcomes  # only what was left has to be judged
    from raymond.store import workflow_snapshot

    try:
        placed = workflow_snapshot.placed_workflow(project, run)
    except Error:
        placed = None  # the next driver does not come far either
    tried = journal.read(folder).run
    return LeftRequests(folder.id, request_outcomes(tried, placed, left, time(), knows_senders=tell_senders(folder)))


def onward(project: Project, id: str) -> str:
    """The command that continues a run which nobody drives, or what it would do instead."""
    left = of(project, journal.read(project.run(id)).run)
    return f"{left.stop()}: {left.then}" if left.ends_run else f"to continue: raymond resume {id}"


class LeftRequests(Struct, frozen=True):
    """The requests that were left for a driver of run `id`, the oldest first, with what becomes of them."""

    id: str
    fates: "list[RequestOutcome]"

    @property
    def ends_run(self) -> bool:
        """Whether the next driver ends the run for good."""
        return any(one.request.kind == "cancel" and not one.refusal for one in self.fates)

    @property
    def next_command(self) -> str:
        """The command to run next, if another one than without them."""
        return f"raymond cancel {self.id}" if self.ends_run else ""

    @property
    def then(self) -> str:
        """What a resume does."""
        return f"raymond resume {self.id} " + ("ends it for good" if self.ends_run else "continues it")

    def stop(self) -> str:
        """That a stop was left, or a cancel that holds; empty when none was."""
        stops = [one.request for one in self.fates if one.request.kind == "stop" and not one.refusal]
        if self.ends_run:
            return f"a cancel {_LEFT}"
        return f"{_stop(stops)} {_LEFT}" if stops else ""

    def lines(self) -> list[str]:
        """What was left, and what becomes of it when the run continues."""
        return [f"{what} {_LEFT}; {self._future(fate)}" for what, fate in self._shown()] + self._more()

    def note(self) -> str:
        """What becomes of it now that the run continues; what is put aside is told when that is done."""
        told = [f"{MARGIN}{what}: {_present(fate)}" for what, fate in self._shown() if not fate.is_put_aside]
        return "\n".join([f"what {_LEFT}:", *told]) if told else ""

    def _future(self, fate: "RequestOutcome") -> str:
        request = fate.request
        again = f"raymond {request.kind} {self.id}" + (" --now" if request.now and request.kind == "stop" else "")
        if fate.is_put_aside:
            own = f"; {again} ends the run" if request.kind == "cancel" else ""
            return f"the next one puts it aside, because {fate.refusal}{own}"
        if fate.refusal:
            return f"the next one refuses it: {one_line(fate.refusal)}"
        if request.kind == "stop":
            return f"{again} stops the run, a resume continues it"
        return "the next one ends the run for good" if request.kind == "cancel" else "the next one obeys it"

    def _shown(self) -> "list[tuple[str, RequestOutcome]]":
        return list(_told(self.fates))[:_SHOWN]

    def _more(self) -> list[str]:
        more = len(list(_told(self.fates))) - _SHOWN
        return [f"{more} more requests were left for a driver that died"] if more > 0 else []


def _told(all: "Iterable[RequestOutcome]") -> "Iterator[tuple[str, RequestOutcome]]":
    """Each request in words; stops, and pauses that are obeyed, together."""
    together: dict[str, list[RequestOutcome]] = {}
    for one in all:
        if one.request.kind in ("stop", "pause") and not one.refusal:
            together.setdefault(one.request.kind, []).append(one)
        else:
            yield _words(one.request), one
    for kind, same in together.items():
        asked = [one.request for one in same]
        yield _stop(asked) if kind == "stop" else f"the pause of {_names(one.agent for one in asked)}", _last(same)


def _last(stops: "list[RequestOutcome]") -> "RequestOutcome":
    """The one that stands for all of them."""
    return next((one for one in stops if one.request.now), stops[-1])


def _present(fate: "RequestOutcome") -> str:
    if fate.refusal:
        return f"refused, {one_line(fate.refusal)}"
    return "the run continues" if fate.request.kind == "stop" else "obeyed now"


def _stop(stops: "list[Request]") -> str:
    return "a stop --now" if any(one.now for one in stops) else "a stop"


def _names(agents: Iterable[str]) -> str:
    names = list(dict.fromkeys(map(cut, agents)))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _words(request: "Request") -> str:
    if request.kind == "limits":
        return f"a change of limits ({cut(_limits(request))})"
    if request.kind == "answer" and not request.agent:
        return "an answer"
    told = _WORDS.get(request.kind, f"a {request.kind}")
    return told.format(agent=cut(request.agent), state=cut(request.state))


def _limits(request: "Request") -> str:
    amounts = {name: getattr(request, name) for name in limits.LIMIT_NAMES}
    set_ = [f"{OPTIONS[name].flags[-1]} {value:g}" for name, value in amounts.items() if value is not None]
    more = [f"{flag} {one}" for name, flag in _LISTS.items() for one in getattr(request, name)]
    return " ".join([*set_, *more, *([f"--on-ask {request.on_ask}"] if request.on_ask else [])])
