"""What became of a request, in words."""

from raymond.control.deliver import Delivery, Journaled, Left, Refused, Taken
from raymond.errors import UsageError


def words(delivery: Delivery, id: str) -> str:
    """Who has the request; nothing when it was journaled here. A refusal is an error."""
    match delivery:
        case Refused():
            raise UsageError(delivery.reason, hint=delivery.hint)
        case Journaled():
            return ""
        case Taken():
            return f"taken by process {delivery.pid}, which drives {id}"
        case Left():
            if not delivery.host:
                return f"left for process {delivery.pid}, which drives {id}"
            gone = f"when {delivery.host} is gone: raymond resume {id} --force"
            return f"left for process {delivery.pid} on {delivery.host}, which drives {id}; {gone}"
