"""Claims: how often an agent said that it was done while the check was red, and what the check printed."""

from collections.abc import Callable

from msgspec import Struct

from raymond.machine.events import AskEnded, GateEnded, StepFinished
from raymond.store import journal
from raymond.store.records import Records
from raymond.store.run_folder import RunFolder

_RED = ("failed", "timed out")


class Claims(Struct):
    """What checks had to say against agents of a run."""

    count: int = 0
    """How often an agent was wrong about being done."""
    red: dict[str, str] = {}
    """What the last red check of each agent printed."""


def of(folder: RunFolder, is_claim: Callable[[str], bool]) -> Claims:
    """The claims of a run by its journal, and by its transcripts where a check was red."""
    records, found, turns = Records(folder.transcripts), Claims(), dict[str, list[StepFinished | AskEnded]]()

    def said(event: StepFinished | AskEnded) -> str:
        if isinstance(event, AskEnded):
            return event.answer
        return "".join(str(line.get("said", "")) for line in records.ended(event))

    for decision in journal.decisions(folder):
        for event in decision.events:
            if isinstance(event, StepFinished | AskEnded):
                turns.setdefault(event.agent, []).append(event)
            elif isinstance(event, GateEnded) and event.verdict in _RED:
                found.red[event.agent] = event.output
                last = next(filter(None, map(said, reversed(turns.pop(event.agent, [])))), "")
                found.count += is_claim(last)
    return found
