"""Claims: how often an agent said that it was done while the check was red, and what the check printed."""

from collections.abc import Callable

from msgspec import Struct

from raymond.machine.events import AskEnded, GateEnded, StepFinished, StepStarted
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


def of(folder: RunFolder, is_claim: Callable[[str], bool] | None = None) -> Claims:
    """The claims of a run by its journal, and by its transcripts where a check was red.

    Without `is_claim`, every agent that has ended its turn claims to be done; a script never does.
    """
    records, found, turns = Records(folder.transcripts), Claims(), dict[str, list[StepFinished | AskEnded]]()
    answers: dict[str, bool] = {}

    def said(event: StepFinished | AskEnded) -> str:
        if isinstance(event, AskEnded):
            return event.answer
        return "".join(str(line.get("said", "")) for line in records.ended(event))

    for decision in journal.decisions(folder):
        for event in decision.events:
            if isinstance(event, StepStarted) and not event.phase:
                answers[event.agent] = bool(event.backend)
            elif isinstance(event, StepFinished | AskEnded):
                turns.setdefault(event.agent, []).append(event)
            elif isinstance(event, GateEnded) and event.verdict in _RED:
                found.red[event.agent] = event.output
                last = map(said, reversed(turns.pop(event.agent, [])))
                found.count += is_claim(next(filter(None, last), "")) if is_claim else answers.get(event.agent, False)
    return found
