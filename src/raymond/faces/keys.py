"""Bytes from a terminal -> the keys that were pressed."""

import codecs
import re

from msgspec import Struct

from raymond.patterns import regex

_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_SEQUENCE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z])")
_UNFINISHED = regex(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_LONGEST = 32
"""Characters of an escape sequence; what is longer is not one."""
_MOST = 1 << 20
"""Characters of a paste that are kept: enough to see that it is too long."""
SOON = 0.1
"""Seconds within which the rest of an escape sequence comes; else the key Escape was pressed."""
_KEYS = {
    "left": ("\x1b[D", "\x1bOD", "\x02"),
    "right": ("\x1b[C", "\x1bOC", "\x06"),
    "up": ("\x1b[A", "\x1bOA", "\x10"),
    "down": ("\x1b[B", "\x1bOB", "\x0e"),
    "home": ("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "\x01"),
    "end": ("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "\x05"),
    "word left": ("\x1b[1;5D", "\x1b[1;3D"),
    "word right": ("\x1b[1;5C", "\x1b[1;3C"),
    "backspace": ("\x7f", "\x08"),
    "delete": ("\x1b[3~",),
    "delete or leave": ("\x04",),
    "cut to start": ("\x15",),
    "cut to end": ("\x0b",),
    "cut word": ("\x17",),
    "again": ("\x0c",),
}
_NAMES = {sequence: name for name, sequences in _KEYS.items() for sequence in sequences}


class Key(Struct, frozen=True):
    """A key, by its name; what was typed or pasted is `text`."""

    name: str
    text: str = ""


ENTER = Key("enter")


class Keys:
    """What is typed, as it arrives: a character, an escape sequence or a paste may come in several pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._came = 0.0
        self._pasted: str | None = None
        self._is_dropped = False
        """The paste that arrives began before anybody asked for it."""

    def drop(self) -> None:
        """Forget what was begun, and the rest of a paste that has begun."""
        self._is_dropped = self._pasted is not None
        if not self._is_dropped:
            self._rest = ""

    def feed(self, data: bytes, now: float) -> list[Key]:
        """The keys in `data`; an Enter with more behind it is a line break, as where lines are pasted as if typed."""
        if self._rest == "\x1b" and now - self._came > SOON:
            self._rest = ""
        text, self._rest, self._came = self._rest + self._decoder.decode(data), "", now
        keys: list[Key] = []
        while text:
            text = self._rest_of_paste(text, keys) if self._pasted is not None else self._next(text, keys)
        return _broken(keys)

    def _next(self, text: str, keys: list[Key]) -> str:
        if text.startswith(_PASTE):
            self._pasted = ""
            return text[len(_PASTE) :]
        if text[0] == "\x1b":
            found = _SEQUENCE.match(text)
            if found:
                keys.append(Key(_NAMES.get(found[0], "unknown")))
                return text[found.end() :]
            if _UNFINISHED.match(text) and len(text) < _LONGEST:
                self._rest = text
                return ""
            return text[2:]  # a key with Alt, or Escape
        if text[0] in "\r\n":
            keys.append(ENTER)
            return text[2:] if text.startswith("\r\n") else text[1:]
        if text[0] in _NAMES:
            keys.append(Key(_NAMES[text[0]]))
        elif text[0] >= " " and not "\x7f" <= text[0] <= "\x9f":
            keys.append(Key("text", text[0]))
        return text[1:]

    def _rest_of_paste(self, text: str, keys: list[Key]) -> str:
        # Its end may come in two pieces.
        self._pasted, end, rest = ((self._pasted or "") + text).partition(_PASTED)
        if len(self._pasted) > _MOST:
            self._pasted = self._pasted[:_MOST] + self._pasted[-len(_PASTED) :]
        if end:
            whole, self._pasted = self._pasted, None
            if not self._is_dropped:
                keys.append(Key("paste", re.sub(r"[^\n\t -~\xa0-\U0010ffff]", "", re.sub(r"\r\n?", "\n", whole))))
            self._is_dropped = False
        return rest


def _broken(keys: list[Key]) -> list[Key]:
    last = len(keys)
    while last and keys[last - 1] == ENTER:
        last -= 1
    broken = [Key("text", "\n") if key == ENTER else key for key in keys[:last]]
    return [*broken, *([ENTER] if last < len(keys) else [])]
