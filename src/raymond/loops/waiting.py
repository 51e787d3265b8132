"""Waiting items: those that a loop has set aside and that wait for a decision, noted where lists of runs look."""

import os
from collections.abc import Iterable

from raymond.loops import documents
from raymond.loops.ledger import REVIEW, Entry, Ledger
from raymond.store.run_folder import SETTLED, RunFolder
from raymond.system.files import make_private

_DECIDED = "decided"
"""The file in the folder of the loop with the items that a person has decided about."""
ACCEPTED = "accepted, commit "
"""How a person has decided about one that is committed; the commit follows."""
REJECTED = "rejected"
"""How a person has decided about one that is in the queue again."""


def of(folder: RunFolder, ledger: Ledger) -> list[Entry]:
    """Those of a loop."""
    known = decided(folder)
    return [one for one in ledger.failed if one.verdict == REVIEW and one.kept and one.key not in known]


def is_settled(folder: RunFolder, ledger: Ledger) -> bool:
    """Whether a person has decided about all that did not count."""
    known = decided(folder)
    return bool(known) and all(one.key in known for one in ledger.failed)


def note(folder: RunFolder, entries: Iterable[Entry], *, settled: bool = False) -> None:
    """Note them in the folder of the run, or that nothing is left to decide."""
    text = SETTLED if settled else "".join(f"{one.number}\n" for one in entries)
    if text or os.path.exists(folder.set_aside):
        _write(folder.set_aside, text)


def decided(folder: RunFolder) -> dict[str, str]:
    """The items that a person has decided about, and how."""
    lines = (line.partition("\t") for line in documents.read(_path(folder)).split("\n") if line)
    return {key: how for key, _, how in lines}


def decide(folder: RunFolder, key: str, how: str, ledger: Ledger) -> None:
    """Write down that an item waits no longer."""
    _write(_path(folder), documents.read(_path(folder)) + f"{key}\t{how}\n")
    note(folder, of(folder, ledger), settled=is_settled(folder, ledger))


def _path(folder: RunFolder) -> str:
    return os.path.join(os.path.dirname(folder.set_aside), _DECIDED)


def _write(path: str, text: str) -> None:
    make_private(os.path.dirname(path))
    documents.write(path, text)
