"""Text that is safe to print on a terminal, and text that can be stored."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

_BLANKS = frozenset(
    "\u115f\u1160\u2800\u303f\u3164\ua8f9\uffa0\U00010af6\U0001144e\U00011945\U00013441\U00013442\U00016fe4\U0001d159"
)
"""Fillers and other characters that count as printable and show nothing."""
_LAYOUT = {ord("\n"): None, ord("\t"): None}
_UNSAFE = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\U000e0000-\\U000e007f"
)
"""Control characters, those that change the direction of text or show nothing, and halves of surrogate pairs."""
_unsafe: "re.Pattern[str] | None" = None


def visible(text: str) -> str:
    """`text` with control and other unprintable characters, and blanks that are not spaces, written as escapes."""
    if text.isprintable() and (text.isascii() or _BLANKS.isdisjoint(text)):
        return text
    return "".join(one if one.isprintable() and one not in _BLANKS else ascii(one)[1:-1] for one in text)


def safe(text: str) -> str:
    """Lines of others as a terminal may get them: what moves, colours, hides or turns text round is written as escapes.

    Line breaks and tabs stay, and so do blanks of all kinds: this is for text that is read, `visible` for names.
    """
    if text.isprintable() or text.translate(_LAYOUT).isprintable():
        return text
    import re

    global _unsafe
    _unsafe = _unsafe or re.compile(f"[{_UNSAFE}]")
    return _unsafe.sub(lambda one: ascii(one[0])[1:-1], text.replace("\r\n", "\n"))


def is_text(path: str) -> bool:
    """Whether `path` is UTF-8: Python keeps other bytes as halves of surrogate pairs, which cannot be journaled."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
