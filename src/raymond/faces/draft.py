"""A text that is being written, laid out in lines of a terminal."""

from collections.abc import Iterator

from msgspec import Struct

from raymond.faces import cells
from raymond.faces.editor import Editor
from raymond.text import letters

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
    shown = _others([*editor.before, *editor.after])
    for number, one in enumerate([*editor.before, "", *editor.after]):
        if number == len(editor.before):
            row, at = len(lines) - 1, column
            continue
        if one == "\n":
            lines.append("")
            column = 0
            continue
        for part in [one] if len(one) == 1 and " " <= one <= "~" else _parts(next(shown), room):
            size = cells.size(part)
            if column and column + size > room:
                lines.append("")
                column = 0
            lines[-1] += part
            column += size
    first = max(0, min(row - most + 1, len(lines) - most)) if row >= most else 0
    prompt, margin = (PROMPT, MARGIN) if width > len(PROMPT) + 1 else ("", "")
    shown_lines = [f"{margin if number else prompt}{line}" for number, line in enumerate(lines)][first : first + most]
    return Draft(shown_lines, row - first, min(at + len(prompt), max(0, width - 1)))


def _others(typed: list[str]) -> Iterator[str]:
    """How those of `typed` look that are neither ASCII nor a line break; what joins letters depends on those beside."""
    text, at = "".join(typed), 0
    seen = letters(text)
    for one in typed:
        if one != "\n" and not (len(one) == 1 and " " <= one <= "~"):
            yield "".join(seen[at : at + len(one)])
        at += len(one)


def _parts(one: str, room: int) -> list[str]:
    """What is typed as one character, in parts that fit into a line: an escape or a family of emoji may be wider."""
    if cells.size(one) <= room:
        return [one]
    parts = [""]
    for letter in one:
        if parts[-1] and cells.size(parts[-1] + letter) > room:
            parts.append("")
        parts[-1] += letter
    return parts


def _room(width: int) -> int:
    """Cells of a line: the last one stays free, as terminals differ in what they do there."""
    return max(1, width - 1 - len(PROMPT) if width > len(PROMPT) + 1 else width - 1)
