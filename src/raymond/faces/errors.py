"""Errors as people read them: what, where, and the way out."""

import sys
from collections.abc import Sequence

from raymond.errors import Diagnostic, Error, WorkflowError
from raymond.faces.foreign_text import MARGIN, fitted, hung, width_of
from raymond.text import visible

_WIDEST = 200
"""Characters of a line that are shown around an error."""


def error(problem: Error) -> str:
    """An error as people read it: what, where, and the way out."""
    if isinstance(problem, WorkflowError):
        return "\n".join(diagnostic(one) for one in problem.diagnostics)
    width = width_of(sys.stderr)
    hint = _hint(*(problem.lines or (problem.hint,)), width=width) if problem.hint else []
    return "\n".join([*hung(visible(f"error: {problem}"), MARGIN, width), *hint])


def _hint(first: str, *rest: str, width: int) -> list[str]:
    below = [part for line in rest for part in hung(visible(line), MARGIN, width)]
    return [*fitted(visible(f"hint: {first}"), MARGIN, width), *below]


def diagnostic(one: Diagnostic) -> str:
    """One finding with its line and a caret under the place."""
    code = f" [{one.id}]" if one.severity == "warning" else ""
    width = width_of(sys.stderr)
    lines = hung(visible(f"{one.severity}: {one.message}{code}"), MARGIN, width)
    if one.line:
        lines += hung(visible(f" --> {one.file}:{one.line}:{one.column or 1}"), MARGIN, width)
        if one.source:
            lines += _excerpt(one)
    elif one.file:
        # What was given on the command line is not in a file; it is its own place.
        lines += hung(visible(f" --> {one.file} {one.source}".rstrip()), MARGIN, width)
    if one.lines:
        # A text to copy, in which every word is ours.
        return "\n".join([*lines, *map(visible, (f"hint: {one.lines[0]}", *one.lines[1:]))])
    return "\n".join([*lines, *(_hint(one.hint, width=width) if one.hint else [])])


def warnings(found: Sequence[Diagnostic], most: int = 0, all_with: str = "") -> str:
    """Warnings as people read them before a run, each once; at most `most`, and the command that shows all."""
    told = list(dict.fromkeys(diagnostic(one) for one in found))
    left = len(told) - most if most else 0
    if left > 0:
        told = [
            *told[:most],
            *fitted(visible(f"warning: and {left} more; {all_with} lists all"), MARGIN, width_of(sys.stderr)),
        ]
    return "".join(f"{text}\n" for text in told)


def _excerpt(one: Diagnostic) -> list[str]:
    from raymond.faces.table import cell_count

    number, at = str(one.line), max(0, one.column - 1)
    margin = " " * len(number)
    width = width_of(sys.stderr)
    widest = max(20, min(_WIDEST, width - len(margin) - 3)) if width else _WIDEST
    start = max(0, at - widest // 2) if len(one.source) > widest else 0
    source = "".join(letter if _is_plain(letter) else "\ufffd" for letter in one.source[start : start + widest])
    # A tab is as wide as the terminal says, above and below; some characters are twice as wide as others.
    before = "".join("\t" if letter == "\t" else " " * cell_count(letter) for letter in source[: at - start])
    caret = before + "^" * max(1, cell_count(source[at - start : at - start + one.length]))
    return [f"{margin} |", f"{number} | {source}", f"{margin} | {caret}"]


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or letter == "\t" or (letter > "\x9f" and letter.isspace())
