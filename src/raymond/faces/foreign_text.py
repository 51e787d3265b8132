"""Text of others that a person reads or decides on, shown so that nothing in it is hidden and nothing in it acts."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from raymond.faces import table
from raymond.faces.table import fit
from raymond.patterns import regex
from raymond.text import safe, visible

_SEQUENCES = regex(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_CONTROLS = regex(r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_SURROGATES = regex(r"[\ud800-\udfff]")

MARGIN = "  | "
"""Before what a terminal would wrap."""
_LONGEST = 300
_UNSEEN = regex(
    r"[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0e\U000e0100-\U000e01ef]"
    r"|(?<![\u2190-\u2bff\U0001f000-\U0001faff])\ufe0f"
)
"""Marks on the character before them that show nothing, and that other texts may have; one makes an emoji a picture."""
_WORD = r"""(?:[\w./@%+=:,|&>-]|'[^']*'|"'")+"""
_PROSE = "(?!(?:allows|continues|ends|lists|returns|runs|shows|starts|stops|takes|tells|with|would) )"
"""Where a command is over and a sentence about it goes on."""
_QUOTED = regex(r"""(?<![^ (=])'[^']*'(?:"'"'[^']*')*""")
"""What a shell takes as it is."""
_COMMAND = regex(rf"(?:^|: ) *((?:raymond|git) {_WORD}(?: {_PROSE}{_WORD}(?<!,))*)$")
"""At the end of a line of ours, when nothing in it is quoted."""
_VALUE = f"(?: (?!-){_PROSE}{_WORD})?"
_INLINE = regex(
    rf"raymond(?: -C {_WORD})? [a-z]+{_VALUE}{_VALUE}(?: --?[a-z][\w-]*{_VALUE}| [A-Z]+)*|--[a-z-]+ {_WORD}"
)
"""In the middle of one: a command, perhaps with a word too many, or a flag with its value."""
_KEPT_BLANK = "\0"
"""In the place of a blank at which a line is not broken; text that is safe to show has none."""
_PART = regex(rf"(?:(-C|--[a-z][\w-]*|trust|run) (?!-))?({_WORD})")
"""A word of a command, and the flag before it."""
_PLACES = {"--allow-tool": "TOOL", "--goto": "STATE", "--root": "DIR", "-C": "DIR", "trust": "DIR", "run": "PATH"}
"""What a value that has no room is called."""
_TAB = 4
_CUT_MARK = ".."

_MOST_FILES = 20
_MOST_ACTIONS = 20
_WORST_ACTIONS = ("server", "command", "hook")
_MOST_CHANGES = 3
_CHANGE_WORDS = {"changed": "changed", "new": "is new", "gone": "is gone"}


# Text of a step on a terminal: nothing in it moves the cursor, changes colours or turns letters round


def plain(text: str) -> str:
    """`text` without control sequences and control characters; a tab becomes a space."""
    if text.isascii() and text.isprintable():
        return text
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\t", " ")))
    return _SURROGATES.sub("\ufffd", text)


# Text that somebody else wrote and a person decides on: shown so that nothing of it is hidden


def _named_lines(told: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each thing: what it is, and its text."""
    return [f"{name + ':':<11}{laid_open(text)}" for name, text in told]


def _first_few(name: str, most: int, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first few, and how many more there are: too many would push away what stands above them."""
    found = list(texts)
    yield from ((name, text) for text in found[:most])
    if found[most:]:
        yield name, f"[and {len(found) - most} more]"


def laid_open(text: str) -> str:
    """On one line, with nothing hidden by blanks or by length."""
    text = spaced(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [and {len(text) - _LONGEST} characters more]"


def spaced(text: str) -> str:
    """A line with nothing hidden by blanks: runs of them are counted."""
    return re.sub(r" {3,}", lambda blanks: f" [{len(blanks[0])} spaces] ", _seen(text))


def in_margin(text: str, margin: str, width: int = 0, show: Callable[[str], str] | None = None) -> list[str]:
    """All of `text`, every line after `margin`, nothing hidden; wrapped, so that a line of `width` cells holds it.

    A line that the terminal wrapped would continue outside of the margin, where it looks like one of ours.
    """
    margin, room = _room(margin, width)
    lines = map(show or _seen, _lines(text))
    return [f"{margin}{piece}" for line in lines for piece in (_wrapped(line, room) if room else [line])]


def hung(line: str, margin: str, width: int = 0) -> list[str]:
    """A line of ours that quotes others and is safe to show: what `width` cells do not hold follows after `margin`."""
    if not width or table.max_cells(line) <= width:
        return [line]
    end = _end(line, 0, width)
    margin, room = _room(margin, width)
    return [line[:end], *(f"{margin}{piece}" for piece in _wrapped(line[end:], room))]


def fitted(line: str, margin: str, width: int = 0) -> list[str]:
    """The same, with a command at its end on a line of its own, where it can be pasted: it is never cut.

    What others wrote stands in quotes or brackets, so that no command of theirs is at the end. Any other command stays
    in the line, and together where there is room for it.
    """
    if not width or table.max_cells(line) <= width:
        return [line]
    command = _COMMAND.search(_QUOTED.sub(lambda found: "x" * len(found[0]), line))
    if not command:
        kept = _INLINE.sub(lambda found: found[0].replace(" ", _KEPT_BLANK), line)
        return [part.replace(_KEPT_BLANK, " ") for part in hung(kept, margin, width)]
    before = line[: command.start(1)].rstrip()
    blanks = len(line) - len(line.lstrip()) + (2 if before else 0)
    return [*(hung(before, margin, width) if before else []), *_alone(line[command.start(1) :], " " * blanks, width)]


def _alone(command: str, blanks: str, width: int) -> list[str]:
    """A command on a line of its own. The terminal wraps it, unless it would show words of others where ours begin.

    Then it is continued as a shell does: whoever pastes only a part of it runs nothing.
    """
    if "'" not in command or table.max_cells(f"{blanks}{command}") <= width:
        return [f"{blanks}{command}"]
    rows, row = list[str](), ""
    for found in _PART.finditer(command):
        flag, word = found.groups()
        if "'" in word and table.max_cells(f"{blanks}  {found[0]} \\") > width:
            word = _PLACES.get(flag or "", "TEXT")
        part = f"{flag} {word}" if flag else word
        if row and table.max_cells(f"{row} {part} \\") > width:
            rows.append(f"{row} \\")
            row = f"{blanks}  {part}"
        else:
            row = f"{row} {part}" if row else f"{blanks}{part}"
    return [*rows, row]


def told(text: str, margin: str, width: int = 0) -> list[str]:
    """What we say, in lines; only its first one is ours, whatever else is quoted there follows after `margin`."""
    first, *rest = text.split("\n")
    quoted = [line.removeprefix(margin) for line in rest]
    return [*fitted(visible(first), margin, width), *(in_margin("\n".join(quoted), margin, width) if rest else [])]


def said(line: str, stream: TextIO) -> str:
    """A line of ours that quotes others, as `stream` shows it."""
    return "\n".join(hung(visible(line), MARGIN, width_of(stream)))


def spoken(who: str, mark: str, text: str, width: int) -> list[str]:
    """What a step prints, on a terminal: every line after its name, also those that had to be wrapped."""
    return in_margin(text, f"{fit(who, max(1, width // 2 - len(mark) - 2), _CUT_MARK)} {mark} ", width, safe)


def width_of(stream: TextIO) -> int:
    """Cells in a line of a terminal; 0 when `stream` is not one."""
    return _size_of(stream)[0]


def height_of(stream: TextIO) -> int:
    """Lines of a terminal; 0 when `stream` is not one."""
    return _size_of(stream)[1]


def _size_of(stream: TextIO) -> tuple[int, int]:
    try:
        if not stream.isatty():
            return 0, 0
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 0, 0
    return size.columns, size.lines


def _seen(text: str) -> str:
    return _UNSEEN.sub(lambda mark: ascii(mark[0])[1:-1], visible(text))


def _room(margin: str, width: int) -> tuple[str, int]:
    """A margin that fits into `width` cells, and the cells beside it; 0 for any number."""
    if not width:
        return margin, 0
    if 2 * table.max_cells(margin) > width:
        margin = margin.lstrip(" ")
    return margin, max(1, width - table.max_cells(margin))


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r").expandtabs(_TAB) for line in text.split("\n")]


def _wrapped(line: str, room: int) -> list[str]:
    """Pieces that fit; put together they are the line."""
    pieces, start = [], 0
    while start < len(line):
        end = _end(line, start, room)
        pieces.append(line[start:end])
        start = end
    return pieces or [""]


def _end(line: str, start: int, room: int) -> int:
    """Where the piece that begins at `start` ends: after a blank where there is one."""
    end = start + room if line.isascii() else _fitting(line, start, room)
    if end < len(line):
        end = line.rfind(" ", start + 1, end) + 1 or end
    return min(end, len(line))


def _fitting(line: str, start: int, room: int) -> int:
    """Where what begins at `start` has to end to fit into `room` cells; it has a character at least."""
    used = 0
    for at in range(start, len(line)):
        used += table.max_cells_of(line[at])
        if used > room and at > start:
            return at
    return len(line)


# Whether to trust a project: whoever wrote its settings may want to mislead


def trust_lines(tree: str, files: Iterable[str], actions: Iterable[tuple[str, str, str]]) -> list[str]:
    """The project, the files, and what they would have a program do: (file, kind, text)."""
    told = [("project", tree), *_first_few("file", _MOST_FILES, sorted(files))]
    kinds: dict[str, list[str]] = {}
    for file, kind, text in actions:
        kinds.setdefault(kind, []).append(f"{text}  ({file})")
    # What runs by itself stands next to the question.
    for kind in sorted(kinds, key=lambda kind: _WORST_ACTIONS.index(kind) if kind in _WORST_ACTIONS else -1):
        told += _first_few(kind, _MOST_ACTIONS, kinds[kind])
    return _named_lines(told)


def settings_use(names: Sequence[str], is_used: bool, why: str) -> str:
    """Whether settings of a project are used, and why."""
    verb = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names)} here {verb} {'used' if is_used else 'not used'}: {why}"


def changes_since_trusted(changes: Sequence[tuple[str, str]]) -> str:
    """What has changed since a project was trusted, as (file, what)."""
    more = len(changes) - _MOST_CHANGES
    told = [f"{laid_open(path)} {_CHANGE_WORDS[what]}" for path, what in changes[:_MOST_CHANGES]]
    return ", ".join([*told, f"and {more} more"] if more > 0 else told)
