"""What became of a request, in words."""

from raymond.control.deliver import Delivery, Journaled, Left, Taken
from raymond.errors import UsageError
from raymond.language.refusal import Refusal


def words(delivery: Delivery, id: str, agent: str = "") -> str:
    """Who has the request; nothing when it was journaled here. A refusal is an error."""
    match delivery:
        case Refusal():
            raise UsageError(delivery.reason, hint=delivery.hint or _hint(delivery, id, agent or "AGENT"))
        case Journaled():
            return ""
        case Taken():
            return f"received by process {delivery.pid}, which drives {id}"
        case Left():
            if not delivery.host:
                return f"waiting for process {delivery.pid}, which drives {id}"
            gone = f"if {delivery.host} is gone: raymond resume {id} --force"
            return f"waiting for process {delivery.pid} on {delivery.host}, which drives {id}; {gone}"


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
