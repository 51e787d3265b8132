"""The output of a command that prints what happened: all of it, or only its last entries."""

import sys
from collections import deque


class Tail:
    """Entries on stdout; with `most`, those of the first batch only at its end, and not more than that."""

    def __init__(self, most: int = 0) -> None:
        self._kept: deque[str] | None = deque(maxlen=most) if most else None

    def put(self, entry: str) -> None:
        """Print one entry, or keep it until the batch ends."""
        if self._kept is None:
            sys.stdout.write(entry)
        else:
            self._kept.append(entry)

    def put_lines(self, text: str) -> None:
        """Print a text, each line of which is an entry."""
        if self._kept is None:
            sys.stdout.write(text)
        else:
            self._kept.extend(text.splitlines(keepends=True))

    def end(self) -> None:
        """The batch is complete; what comes later is printed as it comes."""
        kept, self._kept = self._kept or (), None
        sys.stdout.writelines(kept)
        sys.stdout.flush()
