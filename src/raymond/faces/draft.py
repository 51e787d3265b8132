"""A text that is being written, laid out in lines of a terminal."""

from msgspec import Struct

from raymond.faces import cells
from raymond.faces.editor import Editor
from raymond.text import visible

PROMPT, MARGIN = "> ", "  "


class Draft(Struct, frozen=True):
    """The lines to show, and where the cursor is in them."""

    lines: list[str]
    row: int
    column: int


def draft(editor: Editor, width: int, most: int) -> Draft:
    """The text of `editor`: at most `most` lines, those around the cursor, and nothing in them that is hidden."""
    room = _room(width)
    lines, column = [""], 0
    row = at = 0
    for number, one in enumerate([*editor.before, "", *editor.after]):
        if number == len(editor.before):
            row, at = len(lines) - 1, column
            continue
        if len(one) == 1 and " " <= one <= "~":
            shown, size = one, 1
        else:
            shown = "" if one == "\n" else visible(one)
            size = cells.size(shown)
        if one == "\n" or (column and column + size > room):
            lines.append("")
            column = 0
        lines[-1] += shown
        column += size
    first = max(0, min(row - most + 1, len(lines) - most)) if row >= most else 0
    prompt, margin = (PROMPT, MARGIN) if width > len(PROMPT) + 1 else ("", "")
    shown_lines = [f"{margin if number else prompt}{line}" for number, line in enumerate(lines)][first : first + most]
    return Draft(shown_lines, row - first, min(at + len(prompt), max(0, width - 1)))


def _room(width: int) -> int:
    """Cells of a line: the last one stays free, as terminals differ in what they do there."""
    return max(1, width - 1 - len(PROMPT) if width > len(PROMPT) + 1 else width - 1)
