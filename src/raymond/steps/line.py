"""A line of a program's output, cleaned of secrets as it arrives."""

import codecs

from raymond.redaction import Secrets, Stream

LONG = 1 << 15
"""Bytes after which a line is cleaned piece by piece: all of it at once would stop every other step for that long."""


class Line:
    """The line that is not complete yet."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._parts: list[bytes] = []
        self._size = 0
        self.length = 0
        """Bytes of it that have come."""
        self._door: Stream | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._cleaned: list[str] = []
        self.original = b""
        """The last complete line as it came; of a long one, without secrets."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it has come."""
        return not self._parts and not self._door

    def add(self, data: bytes) -> None:
        """Take more of it."""
        if data:
            self._parts.append(data)
            self._size += len(data)
            self.length += len(data)
        if self._size > LONG:
            self._clean()

    def end(self) -> bytes:
        """It is complete: the line without secrets, and the next one begins."""
        if self._door:
            self._clean()
            rest = self._door.feed(self._decoder.decode(b"", True))
            line = "".join([*self._cleaned, rest, self._door.close()]).encode("utf-8", "surrogateescape")
            self.original = line
        else:
            self.original = b"".join(self._parts)
            line = self._secrets.clean_bytes(self.original)
        self._parts, self._size, self.length, self._door, self._cleaned = [], 0, 0, None, []
        self._decoder.reset()
        return line

    def _clean(self) -> None:
        self._door = self._door or self._secrets.stream()
        self._cleaned.append(self._door.feed(self._decoder.decode(b"".join(self._parts))))
        self._parts, self._size = [], 0
