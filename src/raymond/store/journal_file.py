"""The file of a journal, read as far as it makes sense and memory suffices."""

import contextlib
from collections.abc import Iterator

from raymond.errors import JournalError
from raymond.store.run_folder import RunFolder
from raymond.system import files

LONGEST = 128 << 20
"""Bytes in a line: texts are blobs, so no decision comes near it."""


def content(folder: RunFolder) -> bytes:
    """All of it; of a line that is too long only the beginning, and nothing after that."""
    return files.guard(folder.journal, lambda: files.lines(folder.journal, LONGEST), run=folder.id)


@contextlib.contextmanager
def memory(folder: RunFolder) -> Iterator[None]:
    """One run that is too large for this machine must not keep the others from being shown."""
    try:
        yield
    except MemoryError:
        message = f"there is not enough memory to read {folder.journal}"
        raise JournalError(message, path=folder.journal, hint="give this command more memory") from None
