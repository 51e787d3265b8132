"""The terminal of a command: streams that do not let a text control it, and the face that it shows."""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from raymond.text import safe

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from raymond.faces import Face


class Unwritten(OSError):
    """Standard output could not be written: no file can be named, and no run has to be resumed for it."""


class Output(io.FileIO):
    """The file of standard output, whose errors can be told from those of other files; nobody reads: a broken pipe."""

    def write(self, data: "ReadableBuffer") -> int:
        """Write it, or as much as the file takes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritten(error.errno, error.strerror) from None


class Buffered(io.TextIOWrapper):
    """A stream with a buffer over `raw`, the file of another stream, which may have none."""

    def __init__(self, stream: io.TextIOWrapper, raw: io.RawIOBase) -> None:
        by_line = stream.line_buffering or stream.write_through
        super().__init__(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=by_line)
        self.around = stream  # which would close the file if nobody had it any more


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


class Said(Guarded):
    """stderr: where it cannot be written, nothing else fails for it: a full disk must not decide about a run."""

    def write(self, text: str) -> int:
        """Write it, if that is possible."""
        try:
            return super().write(text)
        except OSError as error:
            self._leave(error)
            return len(text)

    def flush(self) -> None:
        """Write what is left, if that is possible."""
        try:
            super().flush()
        except OSError as error:
            self._leave(error)

    def _leave(self, error: OSError) -> None:
        if not isinstance(error, BlockingIOError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())  # what could not be written would be tried again with every line
            os.close(null)


def guard() -> None:
    """Guard stderr, and stdout where a person reads it: a program gets results and documents as they are."""
    sys.stdout, sys.stderr = _named(_buffered(sys.stdout)), _buffered(sys.stderr)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = Said(sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.isatty():
        sys.stdout = Guarded(sys.stdout)


def _buffered(stream: TextIO) -> TextIO:
    """A stream that writes all of a text, whatever PYTHONUNBUFFERED says: without a buffer, one short write ends it."""
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.RawIOBase):
        return stream
    return Buffered(stream, stream.buffer)


def _named(stream: TextIO) -> TextIO:
    """Standard output that says so when it cannot be written."""
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.BufferedWriter):
        return stream
    if not isinstance(stream.buffer.raw, io.FileIO):
        return stream
    stream.flush()
    return Buffered(stream, Output(stream.fileno(), "wb", closefd=False))


def unguarded(stream: TextIO) -> TextIO:
    """For a face that draws: it lets nothing through by itself."""
    return stream.unguarded if isinstance(stream, Guarded) else stream


def face(*, quiet: bool = False, plain: bool = False, watches: bool = False) -> "Face":
    """What a person sees on stderr; with `plain` always lines, with `quiet` only what steps print.

    It `watches` a run that another process drives.
    """
    if sys.stderr.isatty() and not plain and not quiet:
        from raymond.faces.live import Live, usable
        from raymond.redaction import Secrets

        if usable(sys.stderr):
            stdin = 0 if os.isatty(0) else -1
            refuses = Secrets.of(os.environ).find
            return Live(unguarded(sys.stderr), stdin=stdin, refuses=refuses, watches=watches)
    from raymond.faces.lines import Lines

    return Lines(quiet=quiet)
