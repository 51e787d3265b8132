"""What became of a request, in words."""

import sys

from raymond import pasted
from raymond.control.leftovers import Leftover
from raymond.control.request import Delivery, Journaled, Left, LeftBefore, Taken
from raymond.errors import UsageError
from raymond.faces import words as words_of
from raymond.faces.foreign_text import MARGIN, fitted, hung, width_of
from raymond.faces.summary import one_line
from raymond.language.refusal import Refusal
from raymond.text import visible

SHOWN = 20
"""Processes that are shown."""

_SHOWN = ("not_a_choice", "changed")
"""Refusals whose hint is to look at the question."""
_BY_HAND = "type it in a terminal (ssh -t), with no pipe:"
_HINTS = {
    "not_asking": "raymond status {id} shows what its agents are doing",
    "several_asking": "say which one: raymond answer {id} {agent} TEXT",
    "overdue": "raymond resume {id} continues without an answer",
    "agent_running": "stop it first: raymond stop {id} --agent {agent}",
    "other_question": "raymond status {id} shows what is asked now",
    "not_a_choice": "raymond answer {id} shows the question",
    "changed": "raymond review {id} shows it",
    "needs_person": f"{_BY_HAND} raymond answer {{id}} {{agent}} TEXT",
    "needs_review": f"{_BY_HAND} raymond accept {{id}} {{agent}} or raymond reject {{id}} {{agent}} REASON",
    "not_driven": "raymond resume {id} runs it again",
}
"""The command that helps, by what was refused."""


def words(delivery: Delivery, id: str, agent: str = "", *, is_shown: bool = False) -> str:
    """Who has the request; nothing when it was journaled here. A refusal is an error.

    `is_shown`: the question is on the screen, and is asked again.
    """
    match delivery:
        case Refusal():
            if is_shown and delivery.kind in _SHOWN:
                raise UsageError(delivery.reason)
            whom = pasted.word(agent or "AGENT", "AGENT")
            hint = delivery.hint or _HINTS.get(delivery.kind, "").format(id=id, agent=whom)
            raise UsageError(delivery.reason, hint=hint)
        case Journaled():
            is_over = not delivery.decisions and (delivery.ended or delivery.left)
            return f"{id} had ended already" if is_over else ""
        case Taken():
            return f"{id} received the request (process {delivery.pid})"
        case LeftBefore():
            kept = f"the pause of {delivery.agent} was left for a driver that died and waits for the next one"
            return f"{id} is not running: {kept}; to continue: raymond resume {id}"
        case Left():
            if not delivery.host:
                hangs = f"if it hangs: kill -9 {delivery.pid}, then the same command again"
                return f"waiting for process {delivery.pid}, which runs {id}; {hangs}"
            raise _elsewhere(delivery, id)


def _elsewhere(left: Left, id: str) -> UsageError:
    """Nobody can tell from here whether that process is still there."""
    what = f"nothing was done yet: only process {left.pid} on {left.host}, which runs {id}, can take this"
    gone = f"raymond cancel {id} --force ends it for good, raymond resume {id} --force continues it"
    return UsageError(what, hint=f"look at it on {left.host}; if {left.host} is gone: {gone}")


def leftovers(delivery: Delivery, id: str, *, now: bool) -> list[str]:
    """Of a stop: the processes that were ended, and those that still run."""
    if not isinstance(delivery, Journaled):
        return []
    lines = [f"ended: {words_of.many(delivery.ended, 'process')}"] if delivery.ended else []
    return [*lines, *still_running(delivery.left, id, now=now)]


def still_running(left: list[Leftover], id: str, *, now: bool = False) -> list[str]:
    """The processes of a run that nobody drives; with `now`, it was tried to end them."""
    if not left:
        return []
    lines = [f"  {one.pid}  {one.agent or '-'}  {one_line(one.command)}" for one in left[:SHOWN]]
    lines += [f"  ... and {len(left) - SHOWN} more"] if len(left) > SHOWN else []
    way = "they cannot be ended" if now else f"to end them: raymond stop {id} --now"
    width = width_of(sys.stdout) or width_of(sys.stderr)
    told = [part for line in lines for part in hung(visible(line), MARGIN, width)]
    return ["still there, although the run is not running:", *told, *fitted(visible(way), MARGIN, width)]
