"""The first line of an item: its tags, and its title."""

import re

from msgspec import Struct

from raymond.loops.formats.item import Verification
from raymond.patterns import regex

KNOWN = ("VERIFY", "NO-VERIFY", "BLOCKED", "PRIORITY", "PROPOSED")
UNCHECKED = Verification()
# The plainest lines, which are most of them, are read at once; tests hold this to what the reader below says.
_PLAINEST = regex(
    r"(?:(\*\*)?\[VERIFY: (`?)([^\s\[\]`*_][^\[\]`]*)\2\](?(1)\*\*)[ \t]+)?"
    r"(?:\[PRIORITY: ([123])\][ \t]+)?([^\s\[*_][^\[]*)"
)
_SHOWN = 60
_BOX = regex(r"\s*\[([ xX])\](?=\s|$)\s*")
_PROPOSED = regex(r"(\*{1,3}|_{1,2})proposed\1(?=\s|$)\s*", re.IGNORECASE)
_LAST = regex(r"(?:^|\s)(\*{1,3}|_{1,2})proposed\1$", re.IGNORECASE)
_OPENING = regex(r"(\*\*|__)?\[\s*")
_BLANKS = regex(r"\s+")
_BRACKET = regex(r"[\[\]]")
_QUOTED = regex(r"(?:\*\*)?\s*verify\s*:\s*(`+)", re.IGNORECASE)
_TAG = regex(rf"\[[\s*_]*(?:{'|'.join(KNOWN)})[\s*_]*[:\]]", re.IGNORECASE)


class Head(Struct):
    """What the first line of an item says."""

    title: str = ""
    verification: Verification = UNCHECKED
    priority: int = 1
    ticked: bool = False
    proposed: bool = False
    doubts: tuple[str, ...] = ()


class _Reader:
    """Goes through the tags before a title; what does not belong to the title is noted here."""

    def __init__(self, line: str) -> None:
        self.line = line.strip()
        self.head = Head()
        self.kept: list[str] = []
        """Tags that nobody knows: part of the title."""
        self.command: str | None = None
        self.reason: str | None = None
        self.bold = ""
        """Emphasis that began before a tag and ends somewhere in the title."""
        self.is_free = False
        self.is_wrong = False

    def tags(self) -> int:
        """Read the tags; where the title begins."""
        line, at = self.line, 0
        if box := _BOX.match(line):
            self.head.ticked = box[1] != " "
            at = box.end()
        while line[at : at + 1] in ("[", "*", "_"):
            if proposed := _PROPOSED.match(line, at):
                self.head.proposed = True
                at = proposed.end()
                continue
            stop = self._tag(at)
            if stop == at:
                break
            blanks = _BLANKS.match(line, stop)
            at = blanks.end() if blanks else stop
        return at

    def _tag(self, at: int) -> int:
        """Read the tag at `at`; where it ends, or `at` when the title begins there."""
        line = self.line
        opening = _OPENING.match(line, at)
        if not opening:
            return at
        close = closing(line, opening.end())
        inner = line[opening.end() : close if close >= 0 else None]
        name, value = _parts(inner)
        word = name.split(" ")[0]
        if close < 0:
            self._unclosed(word, line[at:])
            return at
        stop = close + 1
        if word not in KNOWN and line[stop : stop + 1] in ("(", "["):
            return at  # a link
        if opening[1]:
            if line.startswith(opening[1], stop):
                stop += len(opening[1])
            else:
                self.bold = opening[1]
        if name in KNOWN:
            self._known(name, value, inner)
        elif word == "BLOCKED":
            self._known(word, inner.strip("*_ ")[len(word) :], inner)
        else:
            self._unknown(word, line[at:stop])
        return stop

    def _unclosed(self, word: str, rest: str) -> None:
        if word in KNOWN:
            self._wrong(f"the tag `{_cut(rest)}` is not closed")

    def _unknown(self, word: str, tag: str) -> None:
        self.kept.append(tag)
        if word == "VERIFY":
            self._wrong(f"`{_cut(tag)}` needs a colon after the name of the tag")
        else:
            self._doubt(f"`{_cut(tag)}` is not a known tag, so it is part of the title")

    def _known(self, name: str, value: str, inner: str) -> None:
        value = value.strip()
        if value and _TAG.search(value):
            self._wrong(f"a tag inside of the tag `[{_cut(inner)}]`")
        elif name == "VERIFY":
            self._verify(value)
        elif name == "PRIORITY":
            self._priority(value)
        elif name == "BLOCKED":
            self.reason = value if self.reason is None else self.reason
        elif name == "PROPOSED":
            self.head.proposed = True
        else:
            self.is_free = True

    def _verify(self, value: str) -> None:
        command = unquoted(value)
        if not command:
            self._wrong("`[VERIFY]` names no command")
        elif not _is_whole(command):
            self._wrong(f"a quote in `[VERIFY: {_cut(command)}]` is not closed; put the command in backticks")
        elif self.command is not None:
            self._doubt("the item has two commands to verify it, and only the first one counts")
        else:
            self.command = command

    def _priority(self, value: str) -> None:
        if value in ("1", "2", "3"):
            self.head.priority = int(value)
        else:
            self._doubt(f"`{_cut(value)}` is not a priority from 1 to 3")

    def _wrong(self, message: str) -> None:
        self.is_wrong = True
        self._doubt(f"{message}, so the item is not verified")

    def _doubt(self, message: str) -> None:
        self.head.doubts += (message,)

    def title(self, rest: str) -> str:
        """The title, of which `rest` is what follows the tags."""
        rest = rest.strip()
        if rest[-1:] in ("*", "_"):
            rest = self._without_emphasis(rest)
        if "[" in rest and _TAG.search(rest) and not self.is_wrong:
            self._doubt("tags count only before the title")
        return " ".join([*self.kept, rest]).strip() if self.kept else rest

    def _without_emphasis(self, rest: str) -> str:
        if last := _LAST.search(rest):
            self.head.proposed = True
            rest = rest[: last.start()].rstrip()
        for mark in ("**", "__"):
            if self.bold == mark and rest.endswith(mark) and rest.count(mark) % 2:
                rest = rest.removesuffix(mark).rstrip()
            elif rest.startswith(mark) and rest.endswith(mark) and rest.count(mark) == 2:
                rest = rest[2:-2].strip()
        return rest

    def verification(self) -> Verification:
        """What its tags say together: blocked before all, and unverified when one of them is wrong."""
        command = "" if self.command is None or self.is_wrong else self.command
        if self.reason is not None:
            return Verification("blocked", command, self.reason)
        if not command:
            return UNCHECKED
        if self.is_free:
            self._doubt("the item has both VERIFY and NO-VERIFY: it is verified")
        if command.casefold() == "task-loop":
            return Verification("task-loop")
        return Verification("command", command)


def read(line: str) -> Head:
    """Read what follows the number or bullet of an item."""
    plain = _PLAINEST.fullmatch(line)
    if plain and line[-1] not in "*_" and not line[-1].isspace():
        _, _, command, priority, title = plain.groups()
        if command is None:
            return Head(title, UNCHECKED, int(priority or 1))
        if command[:9].casefold() != "task-loop" and _is_whole(command):
            return Head(title, Verification("command", command.rstrip()), int(priority or 1))
    return read_fully(line)


def read_fully(line: str) -> Head:
    """The same for every line there can be."""
    reader = _Reader(line)
    at = reader.tags()
    head = reader.head
    head.title = reader.title(reader.line[at:])
    head.verification = reader.verification()
    return head


def box_end(line: str) -> int:
    """Where the tags of a line begin: after its checkbox."""
    box = _BOX.match(line)
    return box.end() if box else 0


def tag(text: str) -> str:
    """A tag in one line that is read as one tag: where its brackets would end it early, they become parentheses."""
    text = " ".join(text.split())
    if not text.startswith("["):
        return text
    inner = text[1:].removesuffix("]")
    opened = _OPENING.match(text)
    is_one = opened is not None and closing(text, opened.end()) == len(text) - 1
    if not is_one or _TAG.search(inner):
        inner = inner.replace("[", "(").replace("]", ")")
    return f"[{inner}]"


def closing(line: str, start: int) -> int:
    """Where the bracket closes whose inside begins at `start`; -1 when it does not."""
    quoted = _QUOTED.match(line, start) if "`" in line else None
    if quoted:
        run = quoted[1]
        end = re.compile(rf"(?<!`){run}(?!`)\s*(?:\*\*)?\s*\]").search(line, quoted.end())
        if end:
            return end.end() - 1
    first = line.find("]", start)
    if first < 0 or line.find("[", start, first) < 0:
        return first
    depth = 1
    for bracket in _BRACKET.finditer(line, start):
        depth += 1 if bracket[0] == "[" else -1
        if not depth:
            return bracket.start()
    return -1


def unquoted(value: str) -> str:
    """`value` without the backticks around it."""
    bare = value.strip("`")
    run = value[: len(value) - len(value.lstrip("`"))]
    # `a` && `b` begins and ends with backticks, too, but they are not around it.
    is_around = value == f"{run}{bare}{run}" and run not in bare if run else False
    return bare.strip() if is_around or not bare else value


def _parts(inner: str) -> tuple[str, str]:
    """Name and value of a tag."""
    mark = inner[:2] if inner[:2] in ("**", "__") else ""
    if mark and inner.count(mark) == 2:
        inner = inner.rstrip().removesuffix(mark)
    name, _, value = inner.removeprefix(mark).partition(":")
    return _name(name), value.removeprefix(mark) if mark else value


def _name(name: str) -> str:
    return " ".join(name.strip(" \t*_").upper().split())


def _is_whole(command: str) -> bool:
    """Whether every quote of a command is closed: a bracket in quotes ends a tag too early."""
    if "'" not in command and '"' not in command:
        return True
    quote = ""
    escaped = False
    for one in command:
        if escaped:
            escaped = False
        elif one == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
    return not quote


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
