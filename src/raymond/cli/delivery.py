"""What became of a request, in words."""

from raymond.control.deliver import Delivery, Journaled, Left, Taken
from raymond.errors import UsageError
from raymond.faces import words as words_of
from raymond.faces.summary import one_line
from raymond.language.refusal import Refusal
from raymond.text import visible

SHOWN = 20
"""Processes that are shown."""


def words(delivery: Delivery, id: str, agent: str = "") -> str:
    """Who has the request; nothing when it was journaled here. A refusal is an error."""
    match delivery:
        case Refusal():
            raise UsageError(delivery.reason, hint=delivery.hint or _hint(delivery, id, agent or "AGENT"))
        case Journaled():
            is_over = not delivery.decisions and (delivery.ended or delivery.left)
            return f"{id} had ended already" if is_over else ""
        case Taken():
            return f"received by process {delivery.pid}, which drives {id}"
        case Left():
            if not delivery.host:
                return f"waiting for process {delivery.pid}, which drives {id}"
            gone = f"if {delivery.host} is gone: raymond resume {id} --force"
            return f"waiting for process {delivery.pid} on {delivery.host}, which drives {id}; {gone}"


def leftovers(delivery: Delivery, id: str, *, now: bool) -> list[str]:
    """Of a stop: the processes that were ended, and those that still run."""
    if not isinstance(delivery, Journaled):
        return []
    lines = [f"ended: {words_of.many(delivery.ended, 'process')}"] if delivery.ended else []
    if delivery.left:
        lines.append("still running, although no process drives it:")
        lines += [f"  {one.pid}  {one.agent or '-'}  {one_line(one.command)}" for one in delivery.left[:SHOWN]]
        lines += [f"  ... and {len(delivery.left) - SHOWN} more"] if len(delivery.left) > SHOWN else []
        lines.append("they cannot be ended" if now else f"to end them: raymond stop {id} --now")
    return [visible(line) for line in lines]


def _hint(refusal: Refusal, id: str, agent: str) -> str:
    """The command that helps."""
    match refusal.kind:
        case "not_asking":
            return f"raymond status {id} shows what its agents are doing"
        case "several_asking":
            return f"say which one: raymond answer {id} {agent} TEXT"
        case "agent_running":
            return f"stop it first: raymond stop {id} --agent {agent}"
        case "other_question":
            return f"raymond status {id} shows what is asked now"
        case "needs_person":
            return f"type it in a terminal (ssh -t), with no pipe: raymond answer {id} {agent} TEXT"
        case "not_driven":
            return f"raymond resume {id} runs it again"
        case _:
            return ""
