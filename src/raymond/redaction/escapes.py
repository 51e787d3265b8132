"""JSON escapes in a text: undone, however deeply nested, with the original positions."""

import re
from bisect import bisect_right

from msgspec import Struct

_ESCAPE = re.compile(r'\\+(?:u[0-9a-fA-F]{4}|["/bfnrt])?')


_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


_OPEN = re.compile(r"(?:u[0-9a-fA-F]{0,3})?")


STABLE = re.compile(r"[ !#-%(-*,-.0-;?-\[\]-~]+")
"""Characters that an escape never stands for: where they are in the unescaped text, they are in the text itself. That
makes it safe to search the text itself first."""


_UNREAD = "\ufffd"


class Unescaped(Struct, frozen=True):
    """A text with its escapes undone, and the original positions."""

    plain: str
    places: list[int]
    """Positions in `plain`, after each escape."""
    sources: list[int]
    """The same positions in the original text."""

    @classmethod
    def of(cls, text: str) -> "Unescaped":
        """Undo the escapes of `text`."""
        if "\\" not in text:
            return cls(text, [0], [0])
        pieces: list[str] = []
        places, sources = [0], [0]
        size = 0
        for escape in _ESCAPE.finditer(text):
            before = text[sources[-1] : escape.start()]
            pieces += (before, _undone(escape[0]))
            size += len(before) + 1
            places.append(size)
            sources.append(escape.end())
        pieces.append(text[sources[-1] :])
        return cls("".join(pieces), places, sources)

    def source(self, place: int) -> int:
        """The position in the original text of `place` in `plain`."""
        at = bisect_right(self.places, place) - 1
        return self.sources[at] + place - self.places[at]


def _undone(escape: str) -> str:
    code = escape.lstrip("\\")
    if len(code) < 2:
        return _CONTROLS.get(code, code or "\\")
    letter = chr(int(code[1:], 16))
    return _UNREAD if STABLE.match(letter) else letter


def whole(text: str) -> int:
    """Where an escape begins that is cut off by the end of `text`."""
    at = text.rfind("\\", max(0, len(text) - 5))
    if at < 0 or not _OPEN.fullmatch(text, at + 1):
        return len(text)
    return len(text[: at + 1].rstrip("\\"))
