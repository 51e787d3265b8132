"""Errors as people read them: what, where, and the way out."""

from collections.abc import Sequence

from raymond.errors import Diagnostic, Error, WorkflowError
from raymond.text import visible

_WIDEST = 200
"""Characters of a line that are shown around an error."""


def error(problem: Error) -> str:
    """An error as people read it: what, where, and the way out."""
    if isinstance(problem, WorkflowError):
        return "\n".join(diagnostic(one) for one in problem.diagnostics)
    lines = [f"error: {problem}", *([f"hint: {problem.hint}"] if problem.hint else [])]
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))


def diagnostic(one: Diagnostic) -> str:
    """One finding with its line and a caret under the place."""
    code = f" [{one.id}]" if one.severity == "warning" else ""
    lines = [visible(f"{one.severity}: {one.message}{code}")]
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
    start = max(0, at - _WIDEST // 2) if len(one.source) > _WIDEST else 0
    source = "".join(letter if _is_plain(letter) else "\ufffd" for letter in one.source[start : start + _WIDEST])
    # A tab is as wide as the terminal says, above and below; some characters are twice as wide as others.
    before = "".join("\t" if letter == "\t" else " " * size(letter) for letter in source[: at - start])
    caret = before + "^" * max(1, size(source[at - start : at - start + one.length]))
    return [f"{margin} |", f"{number} | {source}", f"{margin} | {caret}"]


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or letter == "\t" or (letter > "\x9f" and letter.isspace())
