"""Text of a step on a terminal: nothing in it moves the cursor, changes colours or turns letters round."""

from raymond.patterns import regex

_SEQUENCES = regex(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_CONTROLS = regex(r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_SURROGATES = regex(r"[\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` without control sequences and control characters; a tab becomes a space."""
    if text.isascii() and text.isprintable():
        return text
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\t", " ")))
    return _SURROGATES.sub("\ufffd", text)
