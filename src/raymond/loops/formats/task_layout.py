"""Where the tasks of an implementation spec are, and where the fields of each are."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from raymond.loops.formats import document, near_fields, near_headings
from raymond.loops.formats.document import Mask
from raymond.patterns import regex

KNOWN = ("status", "verified", "verification", "last attempt", "context", "implements", "proposed")
_LEVELS = range(2, 5)
_BLANKS = " \t\xa0\r\n"
_HEADING = regex(r"([0-9]{1,9}(?:\.[0-9]{1,9}){2,19}z{0,19}[a-z]?)([.:]?)(?:\s+|\Z)")
_MEANT = regex(r"[0-9]+\.[0-9]+\.[^\s.:]")
_PROPOSED = regex(r"(?:^|(?<=\s))(\*{1,3}|_{1,3})proposed\1(?=\s|$)", re.IGNORECASE)
_FIELD = regex(
    r"^([ \xa0]{0,3}(?:[-*+][ \t]{1,4})?)(\*\*|__)[ \t]{0,4}([a-z][a-z0-9 \t-]{0,40}?)[ \t]{0,4}"
    r"(?::[ \t]{0,4}\2|\2[ \t]{0,4}:)([^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_BULLET = regex(r"[-*+](?:[ \t\xa0]|$)")
_RULE = regex(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_PLAIN = regex(r"(?:[-*+] [^\s*_-][^\n]*(?:\n|\Z))+")
"""Lines of a list, which are most of the lines of fields."""
_KEYS = {
    "verification": regex(
        r"[-*+]\s+[*_`]*(?:command|expected|timeout|retries|type|criteria|(?:un)?seal)\b", re.IGNORECASE
    ),
    "last attempt": regex(r"[-*+]\s+[*_`]*(?:date|result|attempts|output)\b", re.IGNORECASE),
}
NO_OUTPUT = "none"
_OUTPUT = regex(r"[-*+]\s+[*_`]*output\b", re.IGNORECASE)
_WITHOUT_OUTPUT = regex(rf"[-*+]\s+output: {NO_OUTPUT}\s*\Z")


class Place(Struct, frozen=True):
    """The section of a task."""

    id: str
    title: str
    colon: str
    """What comes after the id: a dot, a colon or nothing."""
    proposed: bool
    level: int
    start: int
    body: int
    """Where the line after the heading begins."""
    end: int


class Field(Struct, frozen=True):
    """A line such as `**Status:** 🔵 Planned`."""

    name: str
    """In small letters."""
    start: int
    style: tuple[str, str, bool]
    """What comes before the name, what makes it bold, and whether the colon is inside of that."""
    colon: int
    """Where the name with all that belongs to it ends."""
    value: int
    stop: int
    """Where the value ends: blanks and a comment may follow."""
    next: int
    """Where the next line begins."""


class Layout:
    """A text, what of it counts, its headings, and its tasks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.mask: Mask = document.mask(text)
        self.headings, _ = document.outline(self.mask.text)
        self.strange: list[tuple[str, int]] = []
        """What is wrong with headings, and where."""
        self.places = self._places()
        self.strange += self._lost()
        self._starts = [heading.start for heading in self.headings]

    def _places(self) -> list[Place]:
        found: list[tuple[document.Heading, re.Match[str], str, bool]] = []
        ends: dict[int, int] = {}
        open_tasks: list[document.Heading] = []
        for heading in self.headings:
            named = self._task(heading)
            # One task is open at most: another one ends it, whatever its level.
            while open_tasks and (named or heading.level <= open_tasks[-1].level):
                ends[open_tasks.pop().start] = heading.start
            if named:
                found.append((heading, *named))
                open_tasks.append(heading)
        end = len(self.text)
        return [
            Place(
                id[1], title, id[2], proposed, one.level, one.start, one.stop, ends.get(one.start, end)
            )
            for one, id, title, proposed in found
        ]  # fmt: skip

    def _lost(self) -> list[tuple[str, int]]:
        """Other headings with fields that would be those of a task."""
        known = {at for _, at in self.strange}
        tasks = [(one.start, one.end) for one in self.places]
        return [one for one in near_headings.lost_tasks(self.mask.text, self.headings, tasks) if one[1] not in known]

    def _task(self, heading: document.Heading) -> tuple[re.Match[str], str, bool] | None:
        if "." not in heading.title:
            return None
        bare = _PROPOSED.sub("", heading.title)
        proposed = bare != heading.title
        title = _unbold(bare.strip())
        id = _HEADING.match(title)
        if not id:
            if _MEANT.match(title):
                token = title.split(maxsplit=1)[0][:40]
                message = f"`{token}` is not the id of a task, such as 1.4.1 or 1.4.1a, so no task begins here"
                self.strange.append((message, heading.start))
            elif heading.level > 1 and (meant := near_headings.task(title)):
                self.strange.append((near_headings.told("task", heading.title, f"### {meant}. Title"), heading.start))
            return None
        if heading.level not in _LEVELS:
            message = f"the heading of a task has two to four `#`, so `{id[1]}` is not one"
            self.strange.append((message, heading.start))
            return None
        return id, " ".join(title[id.end() :].split()), proposed

    def fields(self, place: Place) -> Iterator[Field]:
        """The fields of a task. Those that nobody knows are among them: they end the one before."""
        for found in _FIELD.finditer(self.mask.text, place.body, place.end):
            name = " ".join(found[3].split()).casefold()
            if name not in KNOWN and found[1].strip(_BLANKS) and not meant(name):
                continue
            value = found[4]
            bare = value.lstrip()
            start = found.end() - len(bare) if bare else found.start(4)
            yield Field(
                name,
                found.start(),
                (found[1], found[2], self.mask.text[found.start(4) - 1] != ":"),
                found.start(4),
                start,
                start + len(bare.rstrip()),
                min(found.end() + 1, len(self.text)),
            )

    def limit(self, field: Field, following: Field | None, place: Place) -> int:
        """Where the lines of a field have to end: at the next field, or the next heading."""
        at = bisect_right(self._starts, field.start)
        heading = self._starts[at] if at < len(self._starts) else place.end
        return min(heading, place.end, following.start if following else place.end)

    def stop(self, field: Field, limit: int) -> int:
        """Where the lines of a field end: those of its paragraph, of its list, and of the code in it."""
        lines = _Lines(field.name, has_value=field.stop > field.value)
        text = self.mask.text
        at = stop = field.next
        if field.name != "last attempt" and (plain := _PLAIN.match(text, at, limit)):
            at = stop = plain.end()
            lines.is_listed = True
        while at < limit:
            after = text.find("\n", at, limit) + 1 or limit
            line = text[at:after].rstrip("\r\n")
            if not lines.takes(line):
                break
            if not lines.is_apart:
                stop = after
            if lines.is_over:
                break
            at = after
        return stop


class _Lines:
    """Decides which lines belong to a field."""

    def __init__(self, name: str, *, has_value: bool) -> None:
        self.keys = _KEYS.get(name)
        self.ends_with_output = name == "last attempt"
        self.has_value = has_value
        self.is_apart = False
        """Whether empty lines came last."""
        self.is_listed = self.is_after_code = self.is_output = self.is_over = False

    def takes(self, line: str) -> bool:
        bare = line.strip(_BLANKS)
        if not bare:
            self.is_apart = True
            return True
        is_taken = self._holds(line, bare)
        self.is_apart = False
        self.is_after_code = bare[0] == document.CLOSING
        # Whatever follows the output was not written with it.
        is_last = self.is_after_code or _WITHOUT_OUTPUT.match(line) is not None
        self.is_over = self.ends_with_output and self.is_output and is_last
        return is_taken

    def _holds(self, line: str, bare: str) -> bool:
        if bare[0] in (document.INSIDE, document.CLOSING):
            return True
        if line[0] in _BLANKS:
            return not self.is_apart or self.is_listed
        if bare[0] == document.OPENING:
            return not self.is_apart
        if _RULE.match(line):
            return False
        if not _BULLET.match(line):
            return not (self.is_apart or self.is_after_code)
        is_key = self.keys is not None and self.keys.match(line) is not None
        is_first = not self.is_listed and not self.has_value
        is_held = not self.is_apart or is_first or is_key
        self.is_listed = True
        self.is_output = _OUTPUT.match(line) is not None
        return is_held


def meant(name: str) -> str:
    """The field of a task that an unknown name is probably meant to be; empty when there is none."""
    return near_fields.meant(name, KNOWN)


def _unbold(title: str) -> str:
    for mark in ("**", "__"):
        if len(title) > 4 and title.startswith(mark) and title.endswith(mark) and title.count(mark) == 2:
            return title[2:-2].strip()
    return title
