"""Whether a request is in the journal of a run: whoever says so may not be the process that drives it."""

import os

from raymond.store import journal, journal_file
from raymond.store.run_folder import RunFolder
from raymond.system import files

_LATEST = 4 << 20
"""Bytes at the end of a journal where what was just written is, most likely."""


def is_taken(folder: RunFolder, request: str) -> bool:
    """Whether the request of this id is there, taken or refused."""
    try:
        return _is_taken(folder.journal, request)
    except FileNotFoundError as error:
        raise journal_file.refused(folder, error) from None
    except OSError as error:
        raise files.trouble(folder.journal, error, run=folder.id) from None


def _is_taken(path: str, request: str) -> bool:
    with open(path, "rb", opener=files.private) as file:
        size = file.seek(0, os.SEEK_END)
        for start in (max(0, size - _LATEST), 0):
            file.seek(start)
            if _has(file.read(), request):
                return True
            if not start:
                break
    return False


def _has(lines: bytes, request: str) -> bool:
    # In a text that somebody wrote, the quotes would be escaped.
    needle = f'"request":"{request}"'.encode()
    return needle in lines and any(journal.whole([line for line in lines.split(b"\n") if needle in line]))
