"""Text of agents and programs, made fit to be part of a document that is read again.

Whatever it says, it cannot begin a section, leave a fence or a comment open, or forge a mark of ours.
"""

import re
from collections.abc import Collection

from raymond.loops.formats import document
from raymond.loops.formats.document import Document
from raymond.patterns import regex
from raymond.text import safe, visible

_FORGED = regex(r"<!--(?=\s*raymond\b)", re.IGNORECASE)
_ECHO = regex(r"make(?:\[\d+\])?: \*\*\* .* Error \d+")
_DEEPEST = 6
_LAST = 3
"""Lines at the end of an output that say how it ended."""


def one_line(text: str) -> str:
    """`text` in one line, its control characters written as escapes."""
    return visible(" ".join(text.split()))


def cut(text: str, most: int) -> str:
    """`text` in one line of at most `most` characters: what is left out is after a word, and marked."""
    line = one_line(text)
    if len(line) <= most:
        return line
    kept = line[: most - 3]
    whole = kept.rpartition(" ")[0] if line[len(kept)] != " " else kept
    return f"{(whole if len(whole) > most // 2 else kept).rstrip()}..."


def error_line(text: str, most: int) -> str:
    """An error in one line: what is wrong, which is its first line, and the last lines of the output below it."""
    first, _, output = text.strip().partition("\n")
    lines = _telling(output)
    told, last = one_line(first), list[str]()
    for line in reversed(lines[-_LAST:]):
        if len(told) + sum(map(len, last)) + len(line) + 3 * len(last) > most:
            break
        last.insert(0, line)
    return cut(f"{told}: {' / '.join(last)}" if last else told, most)


def last_line(output: str, most: int) -> str:
    """The last line of an output that says something: test runners sum up there."""
    lines = _telling(output)
    return cut(lines[-1].strip("=- "), most) if lines else ""


def _telling(output: str) -> list[str]:
    """The lines that say more than that something failed; what `make` adds at the end says no more than that."""
    lines = [line for line in map(one_line, output.splitlines()) if line.strip("=-_*~# .")]
    while lines[1:] and _ECHO.fullmatch(lines[-1]):
        lines.pop()
    return lines


def inline(text: str) -> str:
    """`text` as a part of a line of ours."""
    return one_line(text).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def code(text: str) -> str:
    """`text` as inline code, whatever backticks it has."""
    text = unmarked(one_line(text))
    run = "`"
    while run in text:
        run += "`"
    space = " " if text[:1] in ("", "`") or text.endswith("`") else ""
    return f"{run}{space}{text}{space}{run}"


def unmarked(text: str) -> str:
    """`text` without marks of ours: they count only when we wrote them."""
    return _FORGED.sub("&lt;!--", text)


def fenced(text: str) -> str:
    """`text` as a block of code."""
    return document.fence(unmarked(safe(_unix(text))))


def prose(text: str, level: int, reserved: Collection[str] = ()) -> str:
    """Paragraphs of markdown, whose headings are at `level` or below.

    A heading with a `reserved` title becomes plain text: the first one with a title counts, and it has to be ours.
    """
    text = safe(_unix(text.removeprefix(document.BYTE_ORDER_MARK))).strip("\n")
    text = _lowered(text, min(level, _DEEPEST), {document.plain(title) for title in reserved})
    return text + Document(text).closing()


def _unix(text: str) -> str:
    # A lone "\r" ends a line for whoever renders the text, and would hide a heading from us.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lowered(text: str, level: int, reserved: set[str]) -> str:
    parts: list[str] = []
    at = 0
    for heading in Document(text, comments=False).headings:
        parts += [text[at : heading.marks], _prefix(heading, level, reserved)]
        at = heading.marks
    lowered = "".join([*parts, text[at:]])
    return _uncommented(lowered) if "<!--" in lowered else lowered


def _prefix(heading: document.Heading, level: int, reserved: set[str]) -> str:
    if document.plain(heading.title) in reserved:
        return "\\"
    return "#" * max(0, level - heading.level)


def _uncommented(text: str) -> str:
    """`text` whose comments are shown: one that is never closed would hide what follows it. Code stays as it is."""
    parts: list[str] = []
    at = 0
    for block in Document(text, comments=False).fences:
        parts += [text[at : block.start].replace("<!--", "&lt;!--"), unmarked(text[block.start : block.stop])]
        at = block.stop
    return "".join([*parts, text[at:].replace("<!--", "&lt;!--")])


COMPLETE_MARKER, FAILED_MARKER, ALL_DONE_MARKER = "ITERATION_COMPLETE", "ITERATION_FAILED", "LOOP_COMPLETE"
_MARKERS = (COMPLETE_MARKER, FAILED_MARKER, ALL_DONE_MARKER)


def has_marker(text: str, marker: str) -> bool:
    """Whether a message has the marker."""
    return any(_bare_line(line) == marker for line in text.splitlines())


def claims_done(text: str) -> bool:
    """Whether a message says that the work is done."""
    promised = any("</promise>" in line.partition("<promise>")[2] for line in text.splitlines())
    return promised or has_marker(text, COMPLETE_MARKER) or has_marker(text, ALL_DONE_MARKER)


def without_markers(text: str) -> str:
    """A message without any of them."""
    return "\n".join(line for line in text.splitlines() if _bare_line(line) not in _MARKERS)


def _bare_line(line: str) -> str:
    return line.strip().strip("*`_ ")
