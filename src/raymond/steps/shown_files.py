"""The files that a step asks to be shown with its question."""

from collections.abc import Iterable

from raymond.language.refusal import Refusal
from raymond.language.tags import Ask, Transition
from raymond.machine.asked_file import AskedFile
from raymond.store import asked_files


def shown_files(cwd: str, folder: str, asked: Iterable[Transition]) -> tuple[AskedFile, ...] | Refusal:
    """What they are now, or why they cannot be shown."""
    for one in asked:
        if isinstance(one, Ask) and one.files.strip():
            return asked_files.take(cwd, one.files, folder if folder != cwd else "")
    return ()
