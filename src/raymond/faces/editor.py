"""The line on which a person answers a question: keys in, a text laid out for the terminal, an answer out."""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

from raymond.faces import table
from raymond.patterns import regex
from raymond.text import letters

_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_SEQUENCE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z])")
_UNFINISHED = regex(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_LONGEST_SEQUENCE = 32
"""Characters of an escape sequence; what is longer is not one."""
_LONGEST_PASTE = 1 << 20
"""Characters of a paste that are kept: enough to see that it is too long."""
SEQUENCE_SECONDS = 0.1
"""Seconds within which the rest of an escape sequence comes; else the key Escape was pressed."""
_SEQUENCES_OF = {
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
_KEY_NAMES = {sequence: name for name, sequences in _SEQUENCES_OF.items() for sequence in sequences}

_JOINER = "\u200d"

PROMPT, MARGIN = "> ", "  "

LONGEST_ANSWER = 1 << 16
"""Characters of an answer that is typed or pasted: it is laid out again for every key."""
JUST_NOW = 3.0
"""Seconds after a key for which a person is taken to be in the middle of a line."""


# Keys


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
        if self._rest == "\x1b" and now - self._came > SEQUENCE_SECONDS:
            self._rest = ""
        text, self._rest, self._came = self._rest + self._decoder.decode(data), "", now
        keys: list[Key] = []
        while text:
            text = self._rest_of_paste(text, keys) if self._pasted is not None else self._next(text, keys)
        return _with_line_breaks(keys)

    def _next(self, text: str, keys: list[Key]) -> str:
        if text.startswith(_PASTE):
            self._pasted = ""
            return text[len(_PASTE) :]
        if text[0] == "\x1b":
            found = _SEQUENCE.match(text)
            if found:
                keys.append(Key(_KEY_NAMES.get(found[0], "unknown")))
                return text[found.end() :]
            if _UNFINISHED.match(text) and len(text) < _LONGEST_SEQUENCE:
                self._rest = text
                return ""
            return text[2:]  # a key with Alt, or Escape
        if text[0] in "\r\n":
            keys.append(ENTER)
            return text[2:] if text.startswith("\r\n") else text[1:]
        if text[0] in _KEY_NAMES:
            keys.append(Key(_KEY_NAMES[text[0]]))
        elif text[0] >= " " and not "\x7f" <= text[0] <= "\x9f":
            keys.append(Key("text", text[0]))
        return text[1:]

    def _rest_of_paste(self, text: str, keys: list[Key]) -> str:
        # Its end may come in two pieces.
        self._pasted, end, rest = ((self._pasted or "") + text).partition(_PASTED)
        if len(self._pasted) > _LONGEST_PASTE:
            self._pasted = self._pasted[:_LONGEST_PASTE] + self._pasted[-len(_PASTED) :]
        if end:
            whole, self._pasted = self._pasted, None
            if not self._is_dropped:
                keys.append(Key("paste", re.sub(r"[^\n\t -~\xa0-\U0010ffff]", "", re.sub(r"\r\n?", "\n", whole))))
            self._is_dropped = False
        return rest


def _with_line_breaks(keys: list[Key]) -> list[Key]:
    last = len(keys)
    while last and keys[last - 1] == ENTER:
        last -= 1
    broken = [Key("text", "\n") if key == ENTER else key for key in keys[:last]]
    return [*broken, *([ENTER] if last < len(keys) else [])]


# The text


def clusters(text: str) -> list[str]:
    """The characters as a person counts them: with their accents, joined emoji and flags in one piece."""
    found: list[str] = []
    for one in text:
        last = found[-1] if found else ""
        if last and last != "\n" and (_belongs_to_last(one) or last.endswith(_JOINER) or _is_flag(last, one)):
            found[-1] += one
        else:
            found.append(one)
    return found


def _belongs_to_last(one: str) -> bool:
    return one == _JOINER or "\U0001f3fb" <= one <= "\U0001f3ff" or unicodedata.category(one) in ("Mn", "Me", "Mc")


def _is_flag(last: str, one: str) -> bool:
    return len(last) == 1 and all("\U0001f1e6" <= letter <= "\U0001f1ff" for letter in last + one)


class Editor:
    """A text and the place of the cursor in it."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._after: list[str] = []
        """What is behind the cursor, the last character first."""

    def __len__(self) -> int:
        """How many characters, as a person counts them."""
        return len(self._before) + len(self._after)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._before) + "".join(reversed(self._after))

    @property
    def before(self) -> list[str]:
        """The characters before the cursor."""
        return self._before

    @property
    def after(self) -> list[str]:
        """The characters behind it."""
        return self._after[::-1]

    def press(self, key: Key) -> None:
        """Do what `key` does; one that does nothing here is ignored."""
        before, after = self._before, self._after
        match key.name:
            case "text" | "paste":
                # An accent belongs to the character before it.
                before[-1:] = clusters("".join(before[-1:]) + key.text)
            case "left" if before:
                after.append(before.pop())
            case "right" if after:
                before.append(after.pop())
            case "backspace" if before:
                before.pop()
            case "delete" if after:
                after.pop()
            case "home" | "end" | "up" | "down" | "word left" | "word right":
                self._move(key.name)
            case "cut to start" | "cut word":
                left = len(after)
                self._move("home" if key.name == "cut to start" else "word left")
                del after[left:]
            case "cut to end":
                left = len(before)
                self._move("end")
                del before[left:]
            case _:
                pass

    def _move(self, where: str) -> None:
        match where:
            case "home":
                self._back(lambda: self._before[-1] != "\n")
            case "end":
                self._on(lambda: self._after[-1] != "\n")
            case "word left":
                self._back(lambda: self._before[-1].isspace())
                self._back(lambda: not self._before[-1].isspace())
            case "word right":
                self._on(lambda: self._after[-1].isspace())
                self._on(lambda: not self._after[-1].isspace())
            case _:
                self._to_line(up=where == "up")

    def _to_line(self, *, up: bool) -> None:
        """Go to the line above or below, to the same column."""
        column = next((at for at, one in enumerate(reversed(self._before)) if one == "\n"), len(self._before))
        self._move("home" if up else "end")
        if up and self._before:
            self._after.append(self._before.pop())
            self._move("home")
        elif not up and self._after:
            self._before.append(self._after.pop())
        else:
            return
        for _ in range(column):
            if not self._after or self._after[-1] == "\n":
                break
            self._before.append(self._after.pop())

    def _back(self, goes: Callable[[], bool]) -> None:
        while self._before and goes():
            self._after.append(self._before.pop())

    def _on(self, goes: Callable[[], bool]) -> None:
        while self._after and goes():
            self._before.append(self._after.pop())


# Its lines on the terminal


class Draft(Struct, frozen=True):
    """The lines to show, and where the cursor is in them."""

    lines: list[str]
    row: int
    column: int


def lay_out(editor: Editor, width: int, most: int) -> Draft:
    """The text of `editor`: at most `most` lines, those around the cursor, and nothing in them that is hidden."""
    room = _room_in_line(width)
    lines, column = [""], 0
    row = at = 0
    shown = _shown_letters([*editor.before, *editor.after])
    for number, one in enumerate([*editor.before, "", *editor.after]):
        if number == len(editor.before):
            row, at = len(lines) - 1, column
            continue
        if one == "\n":
            lines.append("")
            column = 0
            continue
        for part in [one] if len(one) == 1 and " " <= one <= "~" else _parts(next(shown), room):
            size = table.cell_count(part)
            if column and column + size > room:
                lines.append("")
                column = 0
            lines[-1] += part
            column += size
    first = max(0, min(row - most + 1, len(lines) - most)) if row >= most else 0
    prompt, margin = (PROMPT, MARGIN) if width > len(PROMPT) + 1 else ("", "")
    shown_lines = [f"{margin if number else prompt}{line}" for number, line in enumerate(lines)][first : first + most]
    return Draft(shown_lines, row - first, min(at + len(prompt), max(0, width - 1)))


def _shown_letters(typed: list[str]) -> Iterator[str]:
    """How those of `typed` look that are neither ASCII nor a line break; what joins letters depends on those beside."""
    text, at = "".join(typed), 0
    seen = letters(text)
    for one in typed:
        if one != "\n" and not (len(one) == 1 and " " <= one <= "~"):
            yield "".join(seen[at : at + len(one)])
        at += len(one)


def _parts(one: str, room: int) -> list[str]:
    """What is typed as one character, in parts that fit into a line: an escape or a family of emoji may be wider."""
    if table.cell_count(one) <= room:
        return [one]
    parts = [""]
    for letter in one:
        if parts[-1] and table.cell_count(parts[-1] + letter) > room:
            parts.append("")
        parts[-1] += letter
    return parts


def _room_in_line(width: int) -> int:
    """Cells of a line: the last one stays free, as terminals differ in what they do there."""
    return max(1, width - 1 - len(PROMPT) if width > len(PROMPT) + 1 else width - 1)


# The answer


class Typed(Enum):
    """What else than an answer was typed."""

    NOTHING = 0
    AGAIN = 1
    """The question is to be shown again."""
    LEAVE = 2
    """The question is to be left open."""
    TOO_LONG = 3
    """More than fits into an answer that is typed: it was dropped."""


class Entry:
    """The line editor, and what is dropped: whatever was typed before a question, or for one that is over."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._keys = Keys()
        self._editor = Editor()
        self._in_line = False
        """Something was typed after the last Enter."""
        self._pressed_at = float("-inf")
        self.is_locked = False
        """A line was begun before the question was shown: all of it is dropped, up to its Enter."""

    def begin(self, typed: bytes) -> None:
        """A question is shown, after `typed` came in: drop that, and the rest of the line it belongs to."""
        self._note(self._keys.feed(typed, self._clock()))
        self._keys.drop()
        self._editor = Editor()
        self.is_locked = self._in_line and self._clock() - self._pressed_at < JUST_NOW

    def end(self) -> None:
        """The question is over."""
        self._editor = Editor()

    def take(self, data: bytes, *, is_asked: bool, enter: str = "") -> str | Typed:
        """An answer, when it is complete; what follows it in `data` was typed before the next question.

        Enter alone gives the answer `enter`, if there is one.
        """
        keys = self._keys.feed(data, self._clock())
        self._note(keys)
        if not is_asked:
            return Typed.NOTHING
        for key in keys:
            if self.is_locked:
                self.is_locked = key != ENTER
            elif key == ENTER:
                if self._editor.text.strip() or enter:
                    return self._editor.text.rstrip("\n") if self._editor.text.strip() else enter
            elif key.name == "again":
                return Typed.AGAIN
            elif key.name == "delete or leave" and not self._editor.text:
                return Typed.LEAVE
            elif len(self._editor) + len(key.text) > LONGEST_ANSWER:
                if key.name != "paste":
                    # Pasted as if typed: what follows belongs to it.
                    self._editor, self.is_locked = Editor(), True
                return Typed.TOO_LONG
            else:
                self._editor.press(Key("delete") if key.name == "delete or leave" else key)
        return Typed.NOTHING

    def draft(self, width: int, most: int) -> Draft:
        """What was typed so far, on the terminal."""
        return lay_out(self._editor, width, most)

    def _note(self, keys: list[Key]) -> None:
        for key in keys:
            if key.name in ("text", "paste"):
                self._in_line = not key.text.endswith("\n")
            elif key == ENTER:
                self._in_line = False
        if keys:
            self._pressed_at = self._clock()
