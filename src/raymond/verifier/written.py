"""What a check itself writes: tracked files that are not as they were before it ran."""

import os
from collections.abc import Iterable


class Written:
    """Some files as they stand, to be compared with later; by size and time, so that nothing is read."""

    def __init__(self, top: str, paths: Iterable[str]) -> None:
        self._top = top
        self._known = {path: self._look(path) for path in paths}

    def names(self) -> list[str]:
        """Those that were written to, or removed, since."""
        return sorted(path for path, known in self._known.items() if known and self._look(path) != known)

    def _look(self, path: str) -> tuple[int, int] | None:
        try:
            found = os.lstat(f"{self._top}/{path}")
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns
