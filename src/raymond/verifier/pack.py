"""Pack: the contents of sealed files, one after the other in one file."""

import os

from raymond.system.files import private, sync, write_all

_AT_ONCE = 8 << 20


class Pack:
    """Collects the contents of one seal."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self._fd = private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._pending = bytearray()
        self._written = 0

    def add(self, content: bytes) -> int:
        """Where it is."""
        offset = self._written + len(self._pending)
        self._pending += content
        if len(self._pending) > _AT_ONCE:
            self._write()
        return offset

    def close(self) -> None:
        """Wait until the disk has it all."""
        self._write()
        sync(self._fd)
        os.close(self._fd)

    def _write(self) -> None:
        write_all(self._fd, self._pending)
        self._written += len(self._pending)
        self._pending = bytearray()


def read(path: str, offset: int, size: int) -> bytes:
    """What was added there."""
    with open(path, "rb", buffering=0) as file:
        return os.pread(file.fileno(), size, offset)
