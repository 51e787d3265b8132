"""Waiting items: those that a loop has set aside and that wait for a decision, noted where lists of runs look."""

import contextlib
import os
from collections.abc import Iterable

from raymond.loops import documents
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.ledger import REJECTED, REVIEW, Decided, Entry, Ledger
from raymond.store.run_folder import SETTLED, RunFolder
from raymond.system.files import make_private

_DECIDED = "decided"
"""The file in the folder of the loop with the items that a person has decided about."""


def of(ledger: Ledger) -> list[Entry]:
    """Those of a loop."""
    return [one for one in ledger.failed if one.verdict == REVIEW and one.kept]


def note(folder: RunFolder, ledger: Ledger, entries: Iterable[Entry]) -> None:
    """Note them in the folder of the run, or that a person has decided about all that did not count."""
    verdicts = {one.verdict for one in ledger.failed}
    text = SETTLED if verdicts == {REJECTED} else "".join(f"{one.number}\n" for one in entries)
    if text or os.path.exists(folder.set_aside):
        _write(folder.set_aside, text)


def decided(folder: RunFolder) -> dict[str, Decided]:
    """What a person has decided, by the keys of items."""
    lines = (line.split("\t") for line in documents.read(_path(folder)).split("\n") if line)
    return {key: Decided(commit, reason) for key, commit, reason in lines}


def decide(folder: RunFolder, key: str, commit: str, reason: str = "") -> None:
    """Write down that an item waits no longer."""
    _write(_path(folder), documents.read(_path(folder)) + f"{key}\t{commit}\t{one_line(reason)}\n")


def revise(folder: RunFolder, ledger: Ledger) -> None:
    """Write down what a loop that is over has come to since a person decided."""
    text = ledger.write()
    if decided(folder) and documents.read(folder.revised) != text:
        _write(folder.revised, text)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder.state)  # it is made of the journal alone


def _path(folder: RunFolder) -> str:
    return os.path.join(os.path.dirname(folder.set_aside), _DECIDED)


def _write(path: str, text: str) -> None:
    make_private(os.path.dirname(path))
    documents.write(path, text)
