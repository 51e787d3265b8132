"""Comments of a markdown text: what is in them is not read."""

import re

from raymond.patterns import regex

# As in `sections`, only lines that can open something are looked at.
_OPENING = regex(r"^(?:\A\ufeff)?(?: {0,3}(`{3,}|~{3,})([^\n]*)|[ \t]*<!--)", re.MULTILINE)
_CHARACTER = regex(r"[^\r\n]")


def masked(text: str) -> tuple[str, int]:
    """`text` with blanks in the place of its comments, and where one begins that is never closed, or -1.

    A comment begins a line, outside of code; every offset stays what it is.
    """
    if "<!--" not in text:
        return text, -1
    parts: list[str] = []
    at, fence, unclosed = 0, "", -1
    for found in _OPENING.finditer(text):
        if found.start() < at:
            continue
        if fence:
            if found[1] and found[1].startswith(fence) and not found[2].strip(" \t\r"):
                fence = ""
        elif found[1]:
            fence = found[1] if found[1][0] == "~" or "`" not in found[2] else ""
        else:
            start = found.end() - len("<!--")
            stop = text.find("-->", found.end())
            unclosed, end = (start, len(text)) if stop < 0 else (-1, stop + len("-->"))
            parts += [text[at:start], _CHARACTER.sub(" ", text[start:end])]
            at = end
    return "".join([*parts, text[at:]]), unclosed


def without(line: str) -> str:
    """A line without the comments in it."""
    parts: list[str] = []
    at = 0
    while (start := line.find("<!--", at)) >= 0 and (stop := line.find("-->", start)) >= 0:
        parts.append(line[at:start])
        at = stop + len("-->")
    return "".join([*parts, line[at:]])
