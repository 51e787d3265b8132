"""Base64 that was broken into lines: joined again, with the original positions."""

from bisect import bisect_right

from raymond.redaction.patterns import Hint, compiled

LEAST = 32
"""Characters of base64 before a line end that count as a full line."""

_ALPHABET = r"A-Za-z0-9+/=_\-"

_AFTER = rf"(?:(?<=[{_ALPHABET}]{{{LEAST}}}\n)|(?<=[{_ALPHABET}]{{{LEAST}}}\r\n))"


# The first begins with a fixed character, and so skips a text without such lines as fast as can be.
_LINES = Hint("\n", _AFTER)

_ESCAPED_LINES = rf"\\(?<=[{_ALPHABET}]{{{LEAST}}}\\)\\*+(?:[rn]|u000)"

_END = rf"(?:\r?\n{_AFTER}|\r(?<=[{_ALPHABET}]{{{LEAST}}}\r)\Z)[ \t]{{0,40}}+(?=[{_ALPHABET}]|\Z)"

_OPEN = rf"[{_ALPHABET}]{{{LEAST}}}\r?\n\Z"

_LAST = rf"[{_ALPHABET}]*\Z"


class Joined:
    """A text in which the lines of base64 are joined, and the original positions."""

    def __init__(self, text: str, before: str = "") -> None:
        """`before` is the beginning of its first line, if the text does not begin with it."""
        self._offset = len(before)
        text = before + text
        pieces: list[str] = []
        self._places, self._sources = [0], [0]
        size = 0
        for end in compiled(_END).finditer(text) if _LINES.is_in(text) or text.endswith("\r") else ():
            piece = text[self._sources[-1] : end.start()]
            pieces.append(piece)
            size += len(piece)
            self._places.append(size)
            self._sources.append(end.end())
        self.plain = "".join((*pieces, text[self._sources[-1] :])) if pieces else text
        self.is_joined = bool(pieces)

    def source(self, place: int) -> int:
        """The position in the original text of `place` in `plain`."""
        at = bisect_right(self._places, place) - 1
        return self._sources[at] + place - self._places[at] - self._offset


def may_be_in(text: str) -> bool:
    """Whether a text, with or without escapes, may have base64 in lines: a no is always right."""
    return _LINES.is_in(text) or ("\\" in text and compiled(_ESCAPED_LINES).search(text) is not None)


def is_open(text: str) -> bool:
    """Whether the next line may continue base64 at the end of `text`, which ends with a line."""
    end = len(text) - LEAST
    return any(compiled(_OPEN).match(text, end - back) is not None for back in (1, 2) if end >= back)


def line_before(text: str) -> str:
    """The base64 at the end of `text`, as far as it matters for whether its line is full."""
    found = compiled(_LAST).search(text[-LEAST:])
    return found[0] if found else ""
