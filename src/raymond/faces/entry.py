"""What a person types below a question: an answer is only what was typed for it, after it was shown."""

from collections.abc import Callable
from enum import Enum

from raymond.faces.draft import Draft, draft
from raymond.faces.editor import Editor
from raymond.faces.keys import ENTER, Key, Keys

MOST = 1 << 16
"""Characters of an answer that is typed or pasted: it is laid out again for every key."""
JUST_NOW = 3.0
"""Seconds after a key for which a person is taken to be in the middle of a line."""


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
            elif len(self._editor) + len(key.text) > MOST:
                if key.name != "paste":
                    # Pasted as if typed: what follows belongs to it.
                    self._editor, self.is_locked = Editor(), True
                return Typed.TOO_LONG
            else:
                self._editor.press(Key("delete") if key.name == "delete or leave" else key)
        return Typed.NOTHING

    def draft(self, width: int, most: int) -> Draft:
        """What was typed so far, on the terminal."""
        return draft(self._editor, width, most)

    def _note(self, keys: list[Key]) -> None:
        for key in keys:
            if key.name in ("text", "paste"):
                self._in_line = not key.text.endswith("\n")
            elif key == ENTER:
                self._in_line = False
        if keys:
            self._pressed_at = self._clock()
