"""Text that is safe to print on a terminal, and text that can be stored."""

_BLANKS = frozenset(
    "\u115f\u1160\u2800\u303f\u3164\ua8f9\uffa0\U00010af6\U0001144e\U00011945\U00013441\U00013442\U00016fe4\U0001d159"
)
"""Fillers and other characters that count as printable and show nothing."""


def visible(text: str) -> str:
    """`text` with control and other unprintable characters, and blanks that are not spaces, written as escapes."""
    if text.isprintable() and (text.isascii() or _BLANKS.isdisjoint(text)):
        return text
    return "".join(one if one.isprintable() and one not in _BLANKS else ascii(one)[1:-1] for one in text)


def is_text(path: str) -> bool:
    """Whether `path` is UTF-8: Python keeps other bytes as halves of surrogate pairs, which cannot be journaled."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
