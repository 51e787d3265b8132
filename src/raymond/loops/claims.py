"""Claims: how often an agent said that it was done while the check was red."""

from raymond.loops import markers
from raymond.loops.loop_run import LoopRun
from raymond.machine.events import AskEnded, GateEnded, StepFinished
from raymond.store import journal
from raymond.store.records import Records

_RED = ("failed", "timed out")


def of(loop: LoopRun) -> int:
    """How often that happened, by the journal and the transcripts of the loop."""
    folder = loop.project.run(loop.id)
    records, said, count = Records(folder.transcripts), dict[str, str](), 0
    for decision in journal.decisions(folder):
        for event in decision.events:
            if isinstance(event, StepFinished):
                lines = records.ended(event)
                said[event.agent] = "".join(str(line.get("said", "")) for line in lines) or said.get(event.agent, "")
            elif isinstance(event, AskEnded):
                said[event.agent] = event.answer
            elif isinstance(event, GateEnded) and event.verdict in _RED:
                count += markers.claims(said.pop(event.agent, ""))
    return count
