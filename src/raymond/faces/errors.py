"""Errors as people read them: what, where, and the way out."""

import sys
from collections.abc import Sequence

from raymond.errors import Diagnostic, Error, WorkflowError
from raymond.faces.foreign_text import fitted, hung, width_of
from raymond.text import visible

MARGIN = "  | "
"""Before what a terminal would wrap: others' words are quoted in errors."""
_WIDEST = 200
"""Characters of a line that are shown around an error."""


def error(problem: Error) -> str:
    """An error as people read it: what, where, and the way out."""
    if isinstance(problem, WorkflowError):
        return "\n".join(diagnostic(one) for one in problem.diagnostics)
    width = width_of(sys.stderr)
    lines = [part for line in f"error: {problem}".split("\n") for part in hung(visible(line), MARGIN, width)]
    hint = [visible(line) for line in f"hint: {problem.hint}".split("\n")] if problem.hint else []
    # One that has several lines is ours, and may be a text to copy.
    return "\n".join([*lines, *(fitted(hint[0], MARGIN, width) if len(hint) == 1 else hint)])


def diagnostic(one: Diagnostic) -> str:
    """One finding with its line and a caret under the place."""
    code = f" [{one.id}]" if one.severity == "warning" else ""
    lines = hung(visible(f"{one.severity}: {one.message}{code}"), MARGIN, width_of(sys.stderr))
    if one.line:
        lines.append(visible(f" --> {one.file}:{one.line}:{one.column or 1}"))
        if one.source:
            lines += _excerpt(one)
    elif one.file:
        # What was given on the command line is not in a file; it is its own place.
        lines.append(visible(f" --> {one.file} {one.source}".rstrip()))
    lines += [visible(line) for line in f"hint: {one.hint}".split("\n")] if one.hint else []
    return "\n".join(lines)


def warnings(found: Sequence[Diagnostic], most: int = 0, all_with: str = "") -> str:
    """Warnings as people read them before a run, each once; at most `most`, and the command that shows all."""
    told = list(dict.fromkeys(diagnostic(one) for one in found))
    left = len(told) - most if most else 0
    if left > 0:
        told = [*told[:most], visible(f"warning: and {left} more; {all_with} lists all")]
    return "".join(f"{text}\n" for text in told)


def _excerpt(one: Diagnostic) -> list[str]:
    from raymond.faces.cells import size

    number, at = str(one.line), max(0, one.column - 1)
    margin = " " * len(number)
    width = width_of(sys.stderr)
    widest = max(20, min(_WIDEST, width - len(margin) - 3)) if width else _WIDEST
    start = max(0, at - widest // 2) if len(one.source) > widest else 0
    source = "".join(letter if _is_plain(letter) else "\ufffd" for letter in one.source[start : start + widest])
    # A tab is as wide as the terminal says, above and below; some characters are twice as wide as others.
    before = "".join("\t" if letter == "\t" else " " * size(letter) for letter in source[: at - start])
    caret = before + "^" * max(1, size(source[at - start : at - start + one.length]))
    return [f"{margin} |", f"{number} | {source}", f"{margin} | {caret}"]


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or letter == "\t" or (letter > "\x9f" and letter.isspace())
