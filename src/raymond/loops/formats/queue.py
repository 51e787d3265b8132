"""The queue of a session log: the items under `## Next Steps`."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from raymond.loops.formats import queue_item
from raymond.loops.formats.document import Document, Line, Section, adapted, columns, newline
from raymond.loops.formats.queue_item import Item, PlanWarning
from raymond.patterns import regex

TITLE = "Next Steps"
NOTHING = "_None._"
_NOTHINGS = ("", "none", "nothing", "n/a")
_SHORT = 16
"""Characters within which that is said."""
_BULLET = regex(r"([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+|$)", re.MULTILINE)


class Queue(Struct, frozen=True):
    """The items of a text in their order, and what is odd about them."""

    items: tuple[Item, ...]
    warnings: tuple[PlanWarning, ...]
    section: tuple[int, int] | None
    """Where the body of the section is, or None when there is none."""


class _Block:
    """The lines of one item."""

    __slots__ = ("bullet", "first", "indent", "number", "rest", "skipped", "stop")

    def __init__(self, number: int, line: Line, bullet: re.Match[str]) -> None:
        self.number = number
        self.first = line
        self.bullet = bullet
        self.indent = columns(bullet[1])
        self.rest: list[tuple[int, Line]] = []
        self.skipped: list[tuple[int, Line]] = []
        """Empty lines, which belong to the item if more of it follows."""
        self.stop = line.stop

    def take(self, number: int, line: Line) -> None:
        self.rest += self.skipped
        self.skipped = []
        self.rest.append((number, line))
        self.stop = line.stop

    def holds(self, line: Line) -> bool:
        """Whether a line that begins no item is part of this one.

        Text that is not indented is, as long as no empty line comes before it: an author broke a long line.
        """
        if line.kind == "heading":
            return False
        if not self.indent and line.text[0] in " \t":
            return True
        return columns(line.text) > self.indent or not (self.skipped or _is_break(line.text))


class _Splitter:
    """Goes through the lines of a section once, and finds the items in it."""

    def __init__(self, document: Document, section: Section) -> None:
        self.document = document
        self.section = section
        self.number = document.number(section.body) - 1
        self.block: _Block | None = None
        self.stray = 0
        """The first line with text that belongs to no item."""

    def blocks(self) -> Iterator[_Block]:
        """Each item, as soon as the next one begins."""
        for line in self.document.lines(self.section.body, self.section.end):
            self.number += 1
            before = self.block
            self._line(line)
            if before and before is not self.block:
                yield before
        if self.block:
            yield self.block

    def _line(self, line: Line) -> None:
        if line.kind == "fenced":
            self._inside(line)
        elif not line.text or line.text.isspace():
            if self.block:
                self.block.skipped.append((self.number, line))
        elif (bullet := self._bullet(line)) is not None:
            self.block = _Block(self.number, line, bullet)
        elif self.block and self.block.holds(line):
            self.block.take(self.number, line)
        else:
            self._outside(line)

    def _bullet(self, line: Line) -> re.Match[str] | None:
        """The bullet of an item; one that is indented deeper than the item before it belongs to that."""
        if self.block and not self.block.indent and line.text[0] in " \t":
            return None
        bullet = None if line.kind else _BULLET.match(line.text)
        if not bullet or (self.block and bullet[1] and columns(bullet[1]) > self.block.indent):
            return None
        return None if _is_break(line.text) else bullet

    def _inside(self, line: Line) -> None:
        if self.block:
            self.block.take(self.number, line)

    def _outside(self, line: Line) -> None:
        self.block = None
        if line.kind != "heading" and not is_nothing(line.text):
            self.stray = self.stray or self.number


def read(text: str) -> Queue:
    """The queue of a session log. Never raises: a text without the section has an empty queue."""
    document = Document(text)
    section = document.section(TITLE)
    start, end = (section.body, section.end) if section else (0, len(text))
    warnings = [PlanWarning(told, document.number(at)) for at, told in document.unclosed if start <= at < end]
    if section is None:
        return Queue((), tuple(warnings), None)
    if is_nothing(document.counted[start:end]):
        return Queue((), tuple(warnings), (start, end))
    splitter = _Splitter(document, section)
    items = [item for block in splitter.blocks() if (item := _item(text, block, warnings))]
    warnings += _twice(document, items)
    if splitter.stray and not items:
        warnings.append(
            PlanWarning(f"there is text under `{TITLE}`, but no item begins with a number or `-`", splitter.stray)
        )
    return Queue(tuple(items), tuple(sorted(warnings, key=lambda warning: warning.line)), (start, end))


def _twice(document: Document, items: Iterable[Item]) -> Iterator[PlanWarning]:
    lines: dict[str, int] = {}
    for item in items:
        line = document.number(item.start)
        first = lines.setdefault(" ".join(item.title.split()).casefold(), line)
        if first != line:
            yield PlanWarning(f"the item in line {first} has the same title, so this one is not taken", line)


def _item(text: str, block: _Block, warnings: list[PlanWarning]) -> Item | None:
    """The item of a block, or None when it has no title."""
    # Raw: a command may have the signs of a comment in it, and a reason that opens one must not hide the title.
    head = queue_item.read_head(text[block.first.start + block.bullet.end() : block.first.stop].rstrip("\r\n"))
    metadata, details = queue_item.NO_METADATA, ""
    found = head.warnings
    if block.rest:
        metadata, details, wrong = queue_item.read_metadata(text, block.rest)
        warnings += [PlanWarning(message, number) for number, message in wrong]
    if not head.title:
        found += ("an item without a title is left out",)
    elif head.verification.kind == "task-loop" and not metadata.tasks:
        found += ("`[VERIFY: task-loop]` names no tasks: add a line `- Tasks: 1.4.1`",)
    if found:
        warnings += [PlanWarning(message, block.number) for message in found]
    if is_nothing(head.title):
        return None
    start, end = block.first.start, block.stop
    return Item(
        head.title,
        head.verification,
        head.priority,
        metadata,
        details,
        text[start:end],
        start,
        end,
        head.ticked,
        head.proposed,
    )


def ordered(items: Iterable[Item]) -> list[Item]:
    """The items by priority; those with the same one stay in their order."""
    return sorted(items, key=lambda item: item.priority)


def runnable(items: Iterable[Item]) -> list[Item]:
    """The items that can be worked on: not blocked, not done, and not only proposed."""
    return [one for one in items if not (one.ticked or one.proposed or one.verification.kind == "blocked")]


def warnings_of(item: Item, text: str, warnings: Iterable[PlanWarning]) -> list[PlanWarning]:
    """The warnings about one item of the text that it was read from."""
    first = text.count("\n", 0, item.start) + 1
    last = first + item.raw.rstrip("\n").count("\n")
    return [one for one in warnings if first <= one.line <= last]


def key(item: Item) -> str:
    """What makes two items the same: their id, or their title, whatever its case and blanks."""
    return item.id or key_of(item.title)


@lru_cache(1 << 15)
def key_of(title: str) -> str:
    """The key of an item with this title, as a journal can hold it: UTF-8, and without what looks like a secret."""
    from raymond import redaction

    name = " ".join(title.split()).casefold().encode("utf-8", "backslashreplace").decode()
    return redaction.Secrets({}).clean(name) if redaction.suspects(name) else name


def is_nothing(text: str) -> bool:
    """Whether a text says in a word that there is nothing: `None`, `- nothing`, `_None._`, `-`."""
    bare = text.strip()
    return len(bare) <= _SHORT and bare.strip("-*+_. \t").casefold() in _NOTHINGS


# Changes: whatever is not named stays byte for byte


def without(text: str, item: Item) -> str:
    """`text` without an item that was read from it; a text in which it is somewhere else stays as it is."""
    return text[: item.start] + text[item.end :] if text[item.start : item.end] == item.raw else text


def added(text: str, *blocks: str) -> str:
    """`text` with raw items at the end of its queue; a text without one gets the section at its end."""
    ending = newline(text)
    new = "".join(_block(block, ending) for block in blocks)
    document = Document(text)
    section = document.section(TITLE)
    if section is None:
        return f"{text}{document.gap()}## {TITLE}{ending}{ending}{new}"
    at, before = _end(text, section, ending)
    return text[:at] + before + new + text[at:]


def _end(text: str, section: Section, ending: str) -> tuple[int, str]:
    """Where the last line with text in the section ends, and what has to stand before another item there."""
    body = text[section.body : section.end]
    filled = len(body.rstrip())
    if not filled:
        # One empty line stays between the heading and the item.
        begun = "" if text[: section.body].endswith("\n") else ending
        gap = body.startswith(ending)
        return section.body + len(ending) * gap, begun if gap else begun + ending
    at = text.find("\n", section.body + filled, section.end) + 1 or section.end
    return at, Document(text[:at]).closing()


def marked(block: str, tag: str) -> str:
    """A raw item with a tag such as `[BLOCKED: reason]` or `*proposed*` before its others."""
    tag = queue_item.tag(tag)
    line, newline, rest = block.partition("\n")
    bullet = _BULLET.match(line)
    if not bullet:
        return f"- {tag} {block.lstrip()}"
    at = bullet.end() + queue_item.box_end(line[bullet.end() :])
    if line.startswith((f"{tag} ", f"{tag}\t"), at) or line[at:] == tag:
        return block
    space = "" if line[:at].endswith((" ", "\t")) else " "
    return f"{line[:at]}{space}{tag} {line[at:]}{newline}{rest}"


def unmarked(block: str, begins: str) -> str:
    """A raw item without its first tag that begins like this."""
    line, newline, rest = block.partition("\n")
    at = line.find(begins)
    stop = queue_item.closing_bracket(line, at + 1) if at >= 0 else -1
    if stop < 0:
        return block
    return f"{line[:at]}{line[stop + 1 :].lstrip()}{newline}{rest}"


def rewritten(text: str, blocks: Iterable[str]) -> str:
    """`text` whose queue has these raw items instead of its own; other text between them stays."""
    blocks = tuple(blocks)
    queue = read(text)
    ending = newline(text)
    if not queue.items or queue.section is None:
        return _filled(text, queue.section, blocks)
    first, last = queue.items[0], queue.items[-1]
    between = [text[one.end : other.start] for one, other in zip(queue.items, queue.items[1:], strict=False)]
    new = "".join(_block(block, ending) for block in blocks)
    kept = "".join(gap for gap in between if gap.strip())
    if not (new or kept or text[queue.section[0] : first.start].strip() or text[last.end : queue.section[1]].strip()):
        new = NOTHING + ending
    return text[: first.start] + new + kept + text[last.end :]


def _filled(text: str, section: tuple[int, int] | None, blocks: tuple[str, ...]) -> str:
    """`text`, whose queue is empty, with these items; a word that says that it is empty goes."""
    if blocks and section and (word := text[slice(*section)].strip()) and is_nothing(word):
        at = text.index(word, section[0])
        stop = text.find("\n", at + len(word)) + 1 or len(text)
        text = text[:at] + text[stop:]
    return added(text, *blocks) if blocks else text


def listed(blocks: Iterable[str]) -> str:
    """Raw items one after the other, as they stand in a queue."""
    return "".join(_block(block, "\n") for block in blocks)


def _block(block: str, ending: str) -> str:
    """A raw item as it can stand in any queue: not indented, its fence closed, its last line ended."""
    block = adapted(block, "\n").strip("\n").lstrip(" \t")
    block = block if _BULLET.match(block) else f"- {block}"
    return adapted(block + Document(block).closing(), ending)


# Lines


def _is_break(line: str) -> bool:
    """Whether a line is a rule across the page: `---` or `* * *`."""
    if line[-1] not in "-*_ \t":
        return False
    bare = line.replace(" ", "").replace("\t", "")
    return len(bare) > 2 and bare[0] in "-*_" and not bare.strip(bare[0])


# An edit of it by a person


def with_edit(before: str, after: str, now: str, done: Collection[str] = ()) -> str:
    """The log `now` with what a person changed between `before` and `after`; items in `done` are not added again."""
    old, new, there = _items(before), _items(after), _items(now)
    added = {key for key in new if key not in old and key not in done}
    stays = {key for key in there if key in new or key not in old}
    blocks = {key: there[key].raw for key in stays}
    for key in added | {key for key in stays & new.keys() if key in old and new[key].raw != old[key].raw}:
        blocks[key] = _both(new[key], there.get(key))
    kept = [key for key in new if key in old]
    is_moved = kept != [key for key in old if key in new]
    order = _woven(list(new), list(there), blocks) if is_moved else _woven(list(there), list(new), blocks)
    return rewritten(now, [blocks[key] for key in order])


def _items(text: str) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for one in read(text).items:
        found.setdefault(key(one), one)
    return found


def _both(typed: Item, there: Item | None) -> str:
    """An item as a person wrote it, blocked if it has been blocked meanwhile."""
    if there is None or there.verification.kind != "blocked" or typed.verification.kind == "blocked":
        return typed.raw
    return marked(typed.raw, f"[BLOCKED: {there.verification.reason}]")


def _woven(first: list[str], second: list[str], wanted: Collection[str]) -> list[str]:
    """The wanted keys in the order of the first list; one that is only in the second stands beside its neighbours."""
    found = [key for key in first if key in wanted]
    known = set(found)
    for at, key in enumerate(second):
        if key in known or key not in wanted:
            continue
        before = next((one for one in reversed(second[:at]) if one in known), None)
        after = next((one for one in second[at:] if one in known), None)
        if before or not at:
            found.insert(found.index(before) + 1 if before else 0, key)
        else:  # those before it are gone
            found.insert(found.index(after) if after else len(found), key)
        known.add(key)
    return found
