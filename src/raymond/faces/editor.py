"""A text that a person writes: keys in, text out."""

import unicodedata
from collections.abc import Callable

from raymond.faces.keys import Key

_JOINER = "\u200d"


def clusters(text: str) -> list[str]:
    """The characters as a person counts them: with their accents, joined emoji and flags in one piece."""
    found: list[str] = []
    for one in text:
        last = found[-1] if found else ""
        if last and last != "\n" and (_belongs(one) or last.endswith(_JOINER) or _is_flag(last, one)):
            found[-1] += one
        else:
            found.append(one)
    return found


def _belongs(one: str) -> bool:
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
