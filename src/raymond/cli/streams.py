"""What the command prints for people: nothing in it controls their terminal, whatever was forgotten on the way here."""

import io
import sys
from typing import TextIO

from raymond.text import safe


class Guarded(io.TextIOWrapper):
    """A stream that writes control characters as escapes."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        stream.flush()
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Write it so that it is only read."""
        return super().write(safe(text))


def guard() -> None:
    """Guard stderr, and stdout where a person reads it: a program gets results and documents as they are."""
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = Guarded(sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.isatty():
        sys.stdout = Guarded(sys.stdout)


def unguarded(stream: TextIO) -> TextIO:
    """For a face that draws: it lets nothing through by itself."""
    return stream.unguarded if isinstance(stream, Guarded) else stream
