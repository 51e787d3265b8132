"""Text that is safe to print on a terminal, and text that can be stored."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

_BLANKS = frozenset(
    "\u115f\u1160\u2800\u303f\u3164\ua8f9\uffa0\U00010af6\U0001144e\U00011945\U00013441\U00013442\U00016fe4\U0001d159"
)
"""Fillers and other characters that count as printable and show nothing."""
JOINERS = "\u200c\u200d"
_APART = "\u200c"
_VIRAMA = 9
"""The combining class of the mark that takes the vowel from a consonant of Indic scripts."""
_JOINING = frozenset("بتثجحخسشصضطظعغفقكلمنهيئپچکگی")
"""Arabic letters that change their shape when the next one does not join them."""
_LAYOUT = {ord("\n"): None, ord("\t"): None}
_UNSAFE = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\U000e0000-\\U000e007f"
)
"""Control characters, those that change the direction of text or show nothing, and halves of surrogate pairs."""
_unsafe: "re.Pattern[str] | None" = None


def digits(value: float) -> str:
    """A number as people write it: all of its digits, and no exponent."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def visible(text: str) -> str:
    """`text` with control and other unprintable characters, and blanks that are not spaces, written as escapes.

    What joins characters stays where it does.
    """
    if text.isprintable() and (text.isascii() or _BLANKS.isdisjoint(text)):
        return text
    return "".join(letters(text))


def letters(text: str) -> list[str]:
    """Each character as it is shown: as it is, or as an escape."""
    return [
        one if (one.isprintable() and one not in _BLANKS) or _joins(text, at) else ascii(one)[1:-1]
        for at, one in enumerate(text)
    ]


def _joins(text: str, at: int) -> bool:
    """Whether the character at `at` shapes its neighbours, as in a family of emoji or in a Persian word.

    Anywhere else it shows nothing, and two names that look the same would differ.
    """
    if text[at] not in JOINERS or not 0 < at < len(text) - 1:
        return False
    from unicodedata import combining

    before, after = text[at - 1], text[at + 1]
    if combining(before) == _VIRAMA:
        return after.isalpha()
    if text[at] == _APART:
        return before in _JOINING and "\u0620" <= after <= "\u06d3"
    return _is_emoji(after) and (_is_emoji(before) or (before == "\ufe0f" and at > 1 and _is_emoji(text[at - 2])))


def _is_emoji(letter: str) -> bool:
    return "\U0001f000" <= letter <= "\U0001faff" or "\u2190" <= letter <= "\u2bff"


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


def has_conflict(content: bytes) -> bool:
    """Whether a text has conflict markers, as git leaves them."""
    lines = b"\n" + content
    return b"\n<<<<<<< " in lines and b"\n>>>>>>> " in lines
