"""An item of a queue: its first line with tags and title, and the lines under it."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from raymond import durations
from raymond.language.check import Check
from raymond.loops.formats.document import Line
from raymond.patterns import regex

Kind: TypeAlias = Literal["command", "none", "blocked", "task-loop", "manual"]
OnFail: TypeAlias = Literal["retry", "create-fix-task", "skip", "pause"]

KNOWN = ("VERIFY", "NO-VERIFY", "BLOCKED", "PRIORITY", "PROPOSED")
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
_FIELDS = {
    "timeout": "timeout",
    "retry": "retries",
    "on-fail": "on_fail",
    "tasks": "tasks",
    "seal": "seal",
    "may": "may",
}
_LINE = regex(rf"\s+[-*+]\s+(?:\*\*|__)?({'|'.join(_FIELDS)})(?:\*\*|__)?\s*:(.*)", re.IGNORECASE)
_RETRIES = regex(r"[0-9]{1,3}")
_WAYS: tuple[str, ...] = get_args(OnFail)

_LISTS = ("tasks", "seal", "may")
_EXPECTED = {
    "timeout": "a duration such as 120s",
    "retries": "a number of retries",
    "on_fail": f"one of {', '.join(_WAYS)}",
}


class Verification(Struct, frozen=True):
    """How an item is checked."""

    kind: Kind = "none"
    command: str = ""
    reason: str = ""
    """Why it is blocked."""


class Metadata(Struct, frozen=True):
    """What the indented lines under an item set."""

    timeout: float | None = None
    """Seconds."""
    retries: int | None = None
    on_fail: OnFail | None = None
    tasks: tuple[str, ...] = ()
    seal: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


class Item(Struct, frozen=True):
    """Something to be done, and where it is written: `raw` is `text[start:end]`."""

    title: str
    verification: Verification
    priority: int
    """1 comes first."""
    metadata: Metadata
    details: str
    """The text under the title, for the agent."""
    raw: str
    start: int
    end: int
    ticked: bool = False
    proposed: bool = False
    """An agent added it."""
    id: str = ""
    """Of a task or a story."""
    place: str = ""
    """The document that it is in, relative to the folder of documents; empty for a session log."""
    checks: tuple[Check, ...] = ()
    """How it is checked, where one command does not say all of it."""
    criteria: tuple[str, ...] = ()
    """What a person judges it by."""
    tasks: tuple[str, ...] = ()
    """The tasks that are done when it is."""
    group: str = ""
    """The story that it belongs to."""
    is_claimed: bool = False
    """Somebody says that it is done: it is checked before an agent is paid for it."""
    is_plan: bool = False
    """An agent is to say which tasks it takes."""

    @property
    def is_task(self) -> bool:
        """Whether it is a task of a spec, and nothing else."""
        return self.tasks == (self.id,)

    @property
    def commands(self) -> tuple[Check, ...]:
        """The commands that check it."""
        if self.checks or self.verification.kind != "command":
            return self.checks
        return (Check(run=self.verification.command),)


class PlanWarning(Struct, frozen=True):
    """Something in a queue that may not mean what its author thinks."""

    message: str
    line: int
    """Counted from 1."""
    place: str = ""
    """The document, relative to the folder of documents; empty for a session log."""


# The first line


UNCHECKED = Verification()


class Head(Struct):
    """What the first line of an item says."""

    title: str = ""
    verification: Verification = UNCHECKED
    priority: int = 1
    ticked: bool = False
    proposed: bool = False
    warnings: tuple[str, ...] = ()


class _HeadReader:
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
        close = closing_bracket(line, opening.end())
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
            self._warn(f"`{_cut(tag)}` is not a known tag, so it is part of the title")

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
            self._warn("the item has two commands to verify it, and only the first one counts")
        else:
            self.command = command

    def _priority(self, value: str) -> None:
        if value in ("1", "2", "3"):
            self.head.priority = int(value)
        else:
            self._warn(f"`{_cut(value)}` is not a priority from 1 to 3")

    def _wrong(self, message: str) -> None:
        self.is_wrong = True
        self._warn(f"{message}, so the item is not verified")

    def _warn(self, message: str) -> None:
        self.head.warnings += (message,)

    def title(self, rest: str) -> str:
        """The title, of which `rest` is what follows the tags."""
        rest = rest.strip()
        if rest[-1:] in ("*", "_"):
            rest = self._without_emphasis(rest)
        if "[" in rest and _TAG.search(rest) and not self.is_wrong:
            self._warn("tags count only before the title")
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
            self._warn("the item has both VERIFY and NO-VERIFY: it is verified")
        if command.casefold() == "task-loop":
            return Verification("task-loop")
        return Verification("command", command)


def read_head(line: str) -> Head:
    """Read what follows the number or bullet of an item."""
    plain = _PLAINEST.fullmatch(line)
    if plain and line[-1] not in "*_" and not line[-1].isspace():
        _, _, command, priority, title = plain.groups()
        if command is None:
            return Head(title, UNCHECKED, int(priority or 1))
        if command[:9].casefold() != "task-loop" and _is_whole(command):
            return Head(title, Verification("command", command.rstrip()), int(priority or 1))
    return read_whole_head(line)


def read_whole_head(line: str) -> Head:
    """The same for every line there can be."""
    reader = _HeadReader(line)
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
    is_one = opened is not None and closing_bracket(text, opened.end()) == len(text) - 1
    if not is_one or _TAG.search(inner):
        inner = inner.replace("[", "(").replace("]", ")")
    return f"[{inner}]"


def closing_bracket(line: str, start: int) -> int:
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
    if not value.startswith("`"):
        return value
    bare = value.strip("`")
    run = value[: len(value) - len(value.lstrip("`"))]
    # `a` && `b` begins and ends with backticks, too, but they are not around it.
    is_around = value == f"{run}{bare}{run}" and run not in bare
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


# The lines under it


NO_METADATA = Metadata()


def read_metadata(text: str, lines: Iterable[tuple[int, Line]]) -> tuple[Metadata, str, list[tuple[int, str]]]:
    """Metadata, details, and warnings with the number of their line. Details are as they stand in `text`."""
    values: dict[str, Any] = {}
    details: list[str] = []
    warnings: list[tuple[int, str]] = []
    for number, line in lines:
        found = None if line.kind or ":" not in line.text else _LINE.match(line.text)
        if not found:
            details.append(text[line.start : line.stop].rstrip("\r\n"))
        elif warning := _take(values, found[1].lower(), found[2].strip().removeprefix("**").strip()):
            warnings.append((number, warning))
    return (Metadata(**values) if values else NO_METADATA), _dedented(details) if details else "", warnings


def _take(values: dict[str, Any], key: str, text: str) -> str:
    """Note what one line sets; the warning about it, if any."""
    name = _FIELDS[key]
    text = text.strip("`").strip() if name not in _LISTS else text
    value = _READERS[name](text)
    if value is None:
        return f"`{text[:60]}` is not {_EXPECTED[name]}, so the default counts"
    if name in _LISTS:
        values[name] = (*values.get(name, ()), *value)
        return ""
    warning = f"`{key}` is given twice, and only the first one counts" if name in values else ""
    values.setdefault(name, value)
    return warning


def _timeout(text: str) -> float | None:
    return durations.parse(text) or None


def _retries(text: str) -> int | None:
    return int(text) if _RETRIES.fullmatch(text) else None


def _on_fail(text: str) -> str | None:
    return text.lower() if text.lower() in _WAYS else None


def _tasks(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").replace("`", " ").split())


def globs(text: str) -> tuple[str, ...]:
    """Split at commas, but not at those of `*.{js,ts}`."""
    parts = [""]
    depth = 0
    for one in text:
        depth += (one == "{") - (one == "}" and depth > 0)
        if one == "," and not depth:
            parts.append("")
        else:
            parts[-1] += one
    return tuple(bare for glob in parts if (bare := glob.strip().strip("`").strip()))


_READERS: dict[str, Callable[[str], Any]] = {
    "timeout": _timeout,
    "retries": _retries,
    "on_fail": _on_fail,
    "tasks": _tasks,
    "seal": globs,
    "may": globs,
}


def _dedented(lines: list[str]) -> str:
    """The lines without the indentation that all of them have."""
    margin = min((len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines).strip("\n")
