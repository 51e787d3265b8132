"""What it costs to look back at a run of very many steps."""

import os
import sys
from pathlib import Path
from statistics import median

from measure import Failed, run
from msgspec.structs import replace
from report import Reading
from workflows import ID, PYTHON, RAYMOND, Folder

from raymond.machine.events import AgentMoved, Decision, StepFinished, StepStarted
from raymond.store import journal, lock
from raymond.store.transcripts import Transcripts

_LOOP = """if [ "$RAYMOND_VISIT" = 1 ]; then echo '<goto>START</goto>'; else echo '<result>done</result>'; fi\n"""
_FLOOR = """
import sys, msgspec
decode = msgspec.json.Decoder().decode
for path in sys.argv[1:]:
    for line in open(path, "rb"):
        decode(line)
"""


def looking_back(home: Path, steps: int, rounds: int) -> dict[str, Reading]:
    """`logs` and `cost`, against a program that only decodes the journal and the transcript."""
    folder = _long(home / "long", steps)
    kept = folder.project.run(ID)
    floor = [PYTHON, "-c", _FLOOR, kept.journal, f"{kept.transcripts}/main.jsonl"]
    commands = {"floor": floor, "logs": [RAYMOND, "logs", ID], "cost": [RAYMOND, "cost", ID]}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds):
        print(f"looking back: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for name, words in commands.items():
            taken[name].append(run(words, folder.path).cpu)
            if name == "logs" and (folder.path / "child.out").read_text().count("START.sh ->") != steps - 1:
                raise Failed(f"`raymond logs` does not show {steps:,} steps")
    least = median(taken["floor"])
    return {name: _reading(least, median(taken[name])) for name in ("logs", "cost")}


def _reading(floor: float, ours: float) -> Reading:
    return Reading(f"{floor:.2f} s (decoding the lines)", f"{ours:.2f} s", f"{ours / floor:.1f}x", ours / floor)


def _long(path: Path, steps: int) -> Folder:
    """A run of two steps, the first of which was repeated in its journal and transcript."""
    folder = Folder(path, {"START.sh": _LOOP})
    folder.run(result="done", steps=2)
    kept = folder.project.run(ID)
    first, *_, last, end = journal.decisions(kept)
    Path(kept.snapshot).unlink(missing_ok=True)
    os.unlink(f"{kept.transcripts}/main.jsonl")
    held = lock.take(kept)
    size = len(b"".join(Path(kept.journal).read_bytes().splitlines(keepends=True)[:2]))
    os.truncate(kept.journal, size)
    book, said = journal.Journal(kept, size, held), Transcripts(kept.transcripts)
    for number in range(1, steps + 1):
        _step(book, said, number, first.time, last if number == steps else None)
    book.append(replace(end, seq=2 * steps + 2))
    book.close()
    held.release()  # whoever holds the lock of a run drives it, and what it starts are steps
    said.close()
    return folder


def _step(book: journal.Journal, said: Transcripts, number: int, time: float, last: Decision | None) -> None:
    record = said.step("main", step=number, state="START.sh", attempt=1, time=time)
    record.add("out", "<goto>START</goto>\n")
    ended = StepFinished(agent="main", step=number, offset=record.end(exit=0))
    follows = last.events[1] if last else AgentMoved(agent="main", tag="goto", state="START.sh")
    book.append(Decision(seq=2 * number, time=time, events=[StepStarted(agent="main", step=number)]))
    book.append(Decision(seq=2 * number + 1, time=time, events=[ended, follows]))
