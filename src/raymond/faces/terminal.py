"""A block of rows at the end of a terminal, and the lines a person types on.

The block is always the last thing on the screen, with the cursor on the line below it, or where the person types. To
change anything, the cursor goes up to its first row, lines that stay are written over it, and the block is written
again below them. The terminal echoes nothing: what is typed is drawn. Nothing above the block is ever erased: where
nobody knows what a terminal has made of the block when its size changed, old rows stay. So do those that a narrower
terminal has moved into its scrollback, as tmux does even if there is room on the screen: no escape reaches them there.
"""

import contextlib
import os
import select
import termios
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from raymond.faces import table
from raymond.faces.editor import Draft
from raymond.faces.rows import Row

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ATTRIBUTES = ("bold", "dim")
_MOST_TYPED = 1 << 20
_REWRAP = (
    "ALACRITTY_WINDOW_ID",
    "GHOSTTY_RESOURCES_DIR",
    "ITERM_SESSION_ID",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "VTE_VERSION",
    "WEZTERM_PANE",
    "WT_SESSION",
)
"""What terminals set that wrap the lines they have again when they are made narrower; others cut them off."""


def usable(stream: TextIO) -> bool:
    """Whether a block can be drawn on `stream`."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def rewraps(environment: Mapping[str, str]) -> bool:
    """Whether a terminal that is made narrower is known to wrap again what it shows."""
    if environment.get("TERM", "").startswith(("screen", "tmux")):
        return bool(environment.get("TMUX"))
    # xterm, and what was started from another terminal, has its variables too.
    is_other = environment.get("XTERM_VERSION") or environment.get("STY")
    known = any(environment.get(name) for name in _REWRAP)
    return not is_other and (known or environment.get("TERM_PROGRAM") in ("Apple_Terminal", "vscode"))


class Terminal:
    """Rows at the end of a terminal that are drawn again and again, and what is written above them."""

    def __init__(self, stream: TextIO, stdin: int, size: Callable[[], tuple[int, int]] | None = None) -> None:
        self.size = size or self._size
        self._stream = stream
        self._stdin = stdin if stdin >= 0 and os.isatty(stdin) else -1
        self._tty = self._stdin if self._stdin >= 0 else _tty(stream)
        self._modes: list[Any] | None = None
        """The terminal's modes before we changed them; None until then."""
        self._colours = not os.environ.get("NO_COLOR")
        self._rows: list[Row] = []
        self._cursor: tuple[int, int] | None = None
        """How many rows above the end of the block the cursor is, and in which column; None for below the block."""
        self._rewraps = rewraps(os.environ)
        self._width = 0
        self._title = ""
        self._hidden = False
        self._is_typing = False
        """A person is asked: the cursor is shown, and a paste is marked as one."""
        self._listens = False
        """The terminal gives us every key."""

    @property
    def real(self) -> bool:
        """Whether somebody sits at it."""
        return self._tty >= 0

    def paint(self, text: str, style: str) -> str:
        """`text` with the escapes of `style`."""
        codes = ";".join(_CODES[one] for one in style.split() if self._colours or one in _ATTRIBUTES)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text

    def draw(self, text: str, rows: list[Row], *, title: str = "", draft: Draft | None = None) -> None:
        """Write `text`, whole lines, above the block, which is then `rows` and the lines of `draft`."""
        width, _ = self.size()
        rows = [*rows, *([(line, "")] for line in draft.lines)] if draft else rows
        cursor = (len(draft.lines) - draft.row, draft.column) if draft else None
        parts = [self._name(title)]
        if text or rows != self._rows or width != self._width or cursor != self._cursor:
            parts += [self._erase() if text or width != self._width else self._up(), text]
            parts += [f"\x1b[K{''.join(self.paint(*piece) for piece in row)}\n" for row in rows]
            parts.append("\x1b[J" if len(rows) < len(self._rows) else "")
            self._rows, self._width, self._cursor = rows, width, cursor
            if cursor:
                parts.append(f"\x1b[{cursor[0]}A\r" + (f"\x1b[{cursor[1]}C" if cursor[1] else ""))
        if rows:
            self._listen()
            parts.insert(0, self._show_cursor(bool(draft)))
        self._write("".join(parts))

    def drain(self) -> bytes:
        """What was typed and not read yet."""
        data = b""
        while self._stdin >= 0 and _foreground(self._tty) and len(data) < _MOST_TYPED:
            try:
                if not select.select([self._stdin], [], [], 0)[0]:
                    break
                piece = os.read(self._stdin, 65536)
            except OSError:
                break
            data += piece
            if not piece:
                break
        return data

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
        self._write(self._leave() + ("\x1b]2;\x07\x1b[23;2t" if self._title else ""))
        self._title = ""
        if self._modes is not None and _foreground(self._tty):
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._tty, termios.TCSANOW, self._modes)
            self._listens = False

    def _up(self) -> str:
        lines = self._above()
        return f"\r\x1b[{lines}A" if lines else "\r" if self._rows else ""

    def _erase(self) -> str:
        """Line by line: some terminals first copy a screen that is cleared at once into the scrollback."""
        if not self._rows:
            return ""
        return ("\x1b[J" if self._cursor else "") + "\r\x1b[2K" + "\x1b[A\x1b[2K" * self._above()

    def _above(self) -> int:
        """Lines from the cursor up to the first row, none too many: a narrower terminal may have wrapped its rows.

        From the cursor and not from below the block: a terminal that is made lower drops the empty line there.
        """
        width, height = self.size()
        rows, column = self._rows, 0
        if self._cursor:
            rows, column = rows[: -self._cursor[0]], self._cursor[1]
        lines = len(rows)
        if width < self._width and self._rewraps:
            sizes = [sum(table.min_cells(text) for text, _ in row) for row in rows]
            lines = sum(max(1, -(-size // width)) for size in sizes) + max(0, column - 1) // width
        return min(lines, height - 1)

    def _name(self, title: str) -> str:
        if not title or title == self._title or not self._stream.isatty():
            return ""
        # Push the old title on the terminal's stack; a terminal without a stack has no title after us.
        kept = "" if self._title else "\x1b[22;2t"
        self._title = title
        return f"{kept}\x1b]2;{title}\x07"

    def _show_cursor(self, is_shown: bool) -> str:
        """Show the cursor where a person types, and hide it elsewhere; a paste is marked as one meanwhile."""
        if is_shown == self._is_typing and (is_shown or self._hidden):
            return ""
        was_typing, self._is_typing, self._hidden = self._is_typing, is_shown, not is_shown
        if is_shown:
            return "\x1b[?25h\x1b[?2004h"
        return "\x1b[?25l\x1b[?2004l" if was_typing else "\x1b[?25l"

    def _leave(self) -> str:
        typed, hidden = self._is_typing, self._hidden
        self._is_typing = self._hidden = False
        return "\x1b[?2004l" if typed else "\x1b[?25h" if hidden else ""

    def _listen(self) -> None:
        """Take keys one by one and echo none: an Enter would move the block. Ctrl-C and Ctrl-Z stay what they are."""
        if self._listens or not _foreground(self._tty):
            return
        # A terminal that is gone has no modes.
        with contextlib.suppress(termios.error):
            modes = termios.tcgetattr(self._tty)
            if self._modes is None:
                self._modes = [*modes[:6], [*modes[6]]]
            modes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._tty, termios.TCSANOW, modes)
            self._listens = True

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
