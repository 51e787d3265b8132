"""What a program prints or writes, without secrets: lines as they arrive, and what decides what comes next."""

import codecs
import contextlib
import os
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from raymond.language.reading import Reader, Reading, read
from raymond.redaction import Secrets, Stream
from raymond.system.files import contents

LONG = 1 << 15
"""Bytes after which a line is cleaned piece by piece: all of it at once would stop every other step for that long."""

SLICE = 1 << 15
"""Characters or bytes that are taken at once: other steps must go on meanwhile, however slow the text is to search."""

VARIABLE = "RAYMOND_OUT"
LARGEST = 1 << 20
"""Bytes: it holds a transition, and is read in one piece."""

_SLICE = 1 << 20


# A line of a program's output, cleaned of secrets as it arrives


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


# Every line that a program prints, without secrets, also without those that are spread over several lines


class _Object(msgspec.Struct):
    """Any JSON object."""


class RawLines:
    """What was printed so far. A line of JSON is a whole of its own; other lines are pieces of one text."""

    def __init__(self, secrets: Secrets) -> None:
        self._text = secrets.stream()
        self._rest = ""

    def add(self, cleaned: bytes, original: bytes) -> Iterator[str]:
        """Take a line, with and without its secrets; the lines that can be shown."""
        if _is_object(cleaned):
            yield cleaned.decode("utf-8", "replace")
            return
        self._rest += self._text.feed(original.decode("utf-8", "replace") + "\n")
        *lines, self._rest = self._rest.split("\n")
        yield from lines

    def close(self) -> Iterator[str]:
        """The program has ended: what was held back."""
        rest, self._rest = self._rest + self._text.close(), ""
        yield from rest.removesuffix("\n").split("\n") if rest else ()


def _is_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line, type=_Object)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


# A text that decides what comes next: cleaned of secrets and read, slice by slice


class Answer:
    """A complete text, and how far it is read."""

    def __init__(self, secrets: Secrets, text: str, *, script: bool = False) -> None:
        self._secrets = secrets
        self._raw = text
        self._script = script
        self._at = 0
        self._door = secrets.stream()
        self._reader = Reader(script=script)
        self._pieces: list[str] = []
        self._prints: list[str] = []
        self.text = ""
        """All of it without secrets, once it is read."""
        self.reading = Reading()
        """What it says, once it is read."""

    def go_on(self) -> bool:
        """Take the next slice; whether all of it is read."""
        if len(self._raw) <= SLICE:
            self.text = self._secrets.clean(self._raw)
            self.reading = read(self.text, script=self._script)
            return True
        self._take(self._door.feed(self._raw[self._at : self._at + SLICE]))
        self._at += SLICE
        if self._at < len(self._raw):
            return False
        self._take(self._door.close())
        self.text = "".join(self._pieces)
        reading = self._reader.close()
        self.reading = replace(reading, prints=(*self._prints, *reading.prints))
        return True

    def _take(self, cleaned: str) -> None:
        self._pieces.append(cleaned)
        self._prints += self._reader.feed(cleaned)


def glimpse(secrets: Secrets, text: str) -> str:
    """What a person is shown of a text while a step runs: at most a slice, without secrets."""
    if len(text) <= SLICE:
        return secrets.clean(text)
    # Not closed: what could become a secret at the cut is left out.
    return f"{secrets.stream().feed(text[:SLICE])} … ({len(text) - SLICE:,} more characters)"


# The file in which a script may say where it goes, apart from what it prints: `RAYMOND_OUT`


class OutFile:
    """One script's file. It is not made in advance: most scripts never write one, and each would pay for it."""

    def __init__(self, spool: str, step: int) -> None:
        # Nobody can write it before the script has started, nor a script that came before.
        self.path = f"{spool}/{step}.{os.urandom(6).hex()}.out"

    def take(self) -> str | None:
        """After the script ended: what it wrote, and the file is gone; None when there is none.

        Raises OSError when it is a link, no file, empty or too long.
        """
        try:
            os.lstat(self.path)
        except OSError:
            return None
        data = contents(self.path, LARGEST + 1)
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        if len(data) > LARGEST:
            raise OSError(0, f"it is longer than {LARGEST >> 20} MiB", self.path)
        if not data.strip():
            raise OSError(0, "it is empty", self.path)
        return data.decode("utf-8", "replace")


# Values that are too long for an environment, on their way to a file: slice by slice, never encoded whole


def plain(text: str) -> Iterator[bytes]:
    """`text` as it is."""
    for at in range(0, len(text), _SLICE):
        yield text[at : at + _SLICE].encode("utf-8", "surrogateescape")


def as_json(values: Mapping[str, str]) -> Iterator[bytes]:
    """`values` as one JSON document; a long text is often in it under several names."""
    sign = b"{"
    for name, value in values.items():
        yield sign + msgspec.json.encode(name) + b':"'
        for at in range(0, len(value), _SLICE):
            yield msgspec.json.encode(value[at : at + _SLICE])[1:-1]
        sign = b'",'
    yield b'"}' if values else b"{}"
