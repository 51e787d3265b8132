"""JSON escapes in a text: undone, however deeply nested, with the original positions."""

from bisect import bisect_right
from functools import cached_property, lru_cache

from raymond.redaction.patterns import compiled

_ESCAPE = r'\\\\*+(?:u[0-9a-fA-F]{4}|["/bfnrt])?'

_START = r"(?<!\\)\\"

_SIMPLE = {'\\"': '"', "\\/": "/", "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t"}

_NUMBERED = r"\\u[0-9a-fA-F]{4}"

_OPEN = r"(?:u[0-9a-fA-F]{0,3})?"

STABLE = r"[ !#-%(-*,-.0-;?-\[\]-~]+"
"""Characters that an escape never stands for: where they are in the unescaped text, they are in the text itself. That
makes it safe to search the text itself first."""

DEEPEST = 4096
"""Backslashes that an escape may begin with: twelve levels of nesting have fewer."""

_BLOCK = 1024

_FEW = 64
"""Characters for each backslash, of a text that has few."""

_UNREAD = "\ufffd"


class Unescaped:
    """A text with its escapes undone, and the original positions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.plain = _undone(text) if "\\" in text else text
        self._maps: dict[int, tuple[list[int], list[int]]] = {}

    def source(self, place: int) -> int:
        """The position in the original text of `place` in `plain`."""
        if self.plain is self._text:
            return place
        if place == len(self.plain):
            return len(self._text)
        starts, sources = self._blocks
        block = bisect_right(starts, place) - 1
        if block not in self._maps:
            self._maps[block] = _places(self._text[sources[block] : sources[block + 1]])
        ends, texts = self._maps[block]
        place -= starts[block]
        at = bisect_right(ends, place) - 1
        return sources[block] + texts[at] + place - ends[at]

    @cached_property
    def _blocks(self) -> tuple[list[int], list[int]]:
        """Where blocks of the text begin, in `plain` and in the original: few of them are looked at more closely."""
        starts, sources = [0], [0]
        while sources[-1] < len(self._text):
            begin = sources[-1]
            escape = compiled(_START).search(self._text, begin + _BLOCK)
            end = escape.start() if escape else len(self._text)
            starts.append(starts[-1] + len(_undone(self._text[begin:end])))
            sources.append(end)
        return starts, sources


def _places(text: str) -> tuple[list[int], list[int]]:
    """Where each escape ends, unescaped and in the original."""
    places, sources = [0], [0]
    spared = 0
    for escape in compiled(_ESCAPE).finditer(text):
        start, stop = escape.span()
        spared += stop - start - 1
        places.append(stop - spared)
        sources.append(stop)
    return places, sources


def _undone(text: str) -> str:
    if text.count("\\") < len(text) // _FEW:
        return compiled(_ESCAPE).sub(lambda escape: _character(escape[0]), text)
    # Replacing all of one kind is far quicker than one by one, where there are hundreds of thousands.
    while "\\\\" in text:
        text = text.replace("\\\\", "\\")
    for escape, character in _SIMPLE.items():
        text = text.replace(escape, character)
    return compiled(_NUMBERED).sub(lambda escape: _character(escape[0]), text) if "\\u" in text else text


@lru_cache(maxsize=4096)
def _character(escape: str) -> str:
    code = escape.lstrip("\\")
    if len(code) < 2:
        return _SIMPLE.get(f"\\{code}", "\\")
    character = chr(int(code[1:], 16))
    return _UNREAD if compiled(STABLE).match(character) else character


def core(text: str) -> str:
    """A part of `text` that is in every text in which it stands, however that is escaped."""
    # Not a percent sign if possible: what is quoted for an address then has the same part as what is not.
    parts = compiled(STABLE).findall(text.replace("%", "\\"))
    return max(parts or compiled(STABLE).findall(text), key=len, default="")


def whole(text: str) -> int:
    """Where an escape begins that is cut off by the end of `text`."""
    at = text.rfind("\\", max(0, len(text) - 5))
    if at < 0 or not compiled(_OPEN).fullmatch(text, at + 1):
        return len(text)
    return max(at + 1 - DEEPEST, len(text[: at + 1].rstrip("\\")))
