"""Every line that a program prints, without secrets, also without those that are spread over several lines."""

from collections.abc import Iterator

import msgspec

from raymond.redaction import Secrets


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
