"""A block of rows at the end of a terminal, and the line a person types on.

The block is always the last thing on the screen, with the cursor on the line below it. To change anything, the cursor
goes up to its first row, lines that stay are written over it, and the block is written again below them.
"""

import contextlib
import os
import termios
from collections.abc import Callable
from typing import Any, TextIO

from rich.cells import cell_len

from raymond.faces.rows import Row

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ATTRIBUTES = ("bold", "dim")


def usable(stream: TextIO) -> bool:
    """Whether a block can be drawn on `stream`."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


class Terminal:
    """Rows at the end of a terminal that are drawn again and again, and what is written above them."""

    def __init__(self, stream: TextIO, stdin: int, size: Callable[[], tuple[int, int]] | None = None) -> None:
        self.size = size or self._size
        self._stream = stream
        self._stdin = stdin if stdin >= 0 and os.isatty(stdin) else -1
        self._silent = stdin >= 0 > self._stdin
        """What is typed comes through a pipe: no terminal has echoed it."""
        self._tty = self._stdin if self._stdin >= 0 else _tty(stream)
        self._modes: list[Any] | None = None
        """The terminal's modes before we changed them; None until then."""
        self._colours = not os.environ.get("NO_COLOR")
        self._rows: list[Row] = []
        self._width = 0
        self._title = ""
        self._hidden = False

    @property
    def real(self) -> bool:
        """Whether somebody sits at it."""
        return self._tty >= 0

    def paint(self, text: str, style: str) -> str:
        """`text` with the escapes of `style`."""
        codes = ";".join(_CODES[one] for one in style.split() if self._colours or one in _ATTRIBUTES)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text

    def draw(self, text: str, rows: list[Row], *, title: str = "") -> None:
        """Write `text`, whole lines, above the block, which is then `rows`."""
        width, _ = self.size()
        parts = [self._name(title)]
        if text or rows != self._rows or width != self._width:
            parts += [self._erase() if text or width != self._width else self._up(), text]
            parts += [f"\x1b[K{''.join(self.paint(*piece) for piece in row)}\n" for row in rows]
            parts.append("\x1b[J" if len(rows) < len(self._rows) else "")
            self._rows, self._width = rows, width
        if rows and not self._hidden:
            self._echo(False)
            parts.insert(0, "\x1b[?25l")
            self._hidden = True
        self._write("".join(parts))

    def ask(self, text: str) -> None:
        """Write `text` in place of the block, and let the person type below it."""
        erased, self._rows = self._erase(), []
        self._echo(True)
        self._write(f"{erased}{text}> {self._unhide()}")

    def answered(self, text: str) -> None:
        """The line below the question is complete; show it when no terminal has echoed it."""
        self._write(f"{text}\n" if self._silent else "")

    def take_back(self) -> None:
        """Forget what was typed and erase the line for it."""
        if _foreground(self._tty):
            with contextlib.suppress(termios.error):
                termios.tcflush(self._tty, termios.TCIFLUSH)
        self._write("\r\x1b[K")

    def ours(self) -> bool:
        """Whether no other job has the terminal: what is typed is meant for us, and we know where the cursor is."""
        return self._tty < 0 or _foreground(self._tty)

    def there(self) -> bool:
        """Whether input comes from a terminal that was not hung up: more may follow the end of a file."""
        try:
            return self._stdin >= 0 and bool(termios.tcgetattr(self._stdin))
        except termios.error:
            return False

    def close(self) -> None:
        """Leave the cursor, the modes and the title as they were; what is drawn later starts afresh."""
        self._write(f"{self._unhide()}\x1b]2;\x07\x1b[23;2t" if self._title else self._unhide())
        self._title = ""
        if self._modes is not None and _foreground(self._tty):
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._tty, termios.TCSANOW, self._modes)

    def _up(self) -> str:
        lines = self._lines()
        return f"\r\x1b[{lines}A" if lines else ""

    def _erase(self) -> str:
        """Line by line: some terminals first copy a screen that is cleared at once into the scrollback."""
        lines = self._lines()
        return "\r\x1b[2K" + "\x1b[A\x1b[2K" * lines if lines else ""

    def _lines(self) -> int:
        """Lines from the cursor up to the first row; a terminal that was made narrower has wrapped its rows."""
        width, height = self.size()
        lines = sum(max(1, -(-sum(cell_len(text) for text, _ in row) // width)) for row in self._rows)
        return min(lines, height - 1)

    def _name(self, title: str) -> str:
        if not title or title == self._title or not self._stream.isatty():
            return ""
        # Push the old title on the terminal's stack; a terminal without a stack has no title after us.
        kept = "" if self._title else "\x1b[22;2t"
        self._title = title
        return f"{kept}\x1b]2;{title}\x07"

    def _unhide(self) -> str:
        shown, self._hidden = "\x1b[?25h" if self._hidden else "", False
        return shown

    def _echo(self, on: bool) -> None:
        """Echo what is typed, and drop what was typed before; or do not, as an Enter would move the block."""
        if not _foreground(self._tty):
            return
        # A terminal that is gone has no modes.
        with contextlib.suppress(termios.error):
            modes = termios.tcgetattr(self._tty)
            if self._modes is None:
                self._modes = [*modes]
            modes[3] = modes[3] | termios.ECHO | termios.ICANON if on else modes[3] & ~termios.ECHO
            termios.tcsetattr(self._tty, termios.TCSAFLUSH if on else termios.TCSANOW, modes)

    def _size(self) -> tuple[int, int]:
        try:
            width, height = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            width = height = 0
        return width or 80, height or 24

    def _write(self, text: str) -> None:
        try:
            if text:
                self._stream.write(text)
                self._stream.flush()
        except OSError:
            # Nobody is reading any more: the run continues.
            self._stream = open(os.devnull, "w", encoding="utf-8")


def _tty(stream: TextIO) -> int:
    try:
        return stream.fileno() if stream.isatty() else -1
    except (OSError, ValueError):
        return -1


def _foreground(tty: int) -> bool:
    """Whether we may read and change a terminal; trying that on another job's terminal would stop us."""
    try:
        return tty >= 0 and os.tcgetpgrp(tty) == os.getpgrp()
    except OSError:
        return True  # It has no job control.
