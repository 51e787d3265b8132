"""Text -> text without secrets, also across chunks.

A text is searched with its JSON escapes undone, however deeply nested, and a match is replaced together with the
escapes it was written with: so a line of JSON stays valid. A value is found wherever it occurs; a shape begins with
fixed characters and may have `LIMIT` characters. The search never looks backwards or into the marks it inserts, so
cleaning a clean text changes nothing. `clean` and `Stream` share one function, `_pass`: a stream is only cut where no
secret that could still grow has begun, and never inside one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct

from raymond.redaction.escapes import Unescaped, core, whole
from raymond.redaction.shapes import (
    BASE64,
    HEADER,
    JWT,
    JWT_MIDDLE,
    JWT_RUN,
    LIMIT,
    PASSWORD,
    PRIVATE_KEY,
    SHAPES,
    Shape,
)
from raymond.redaction.values import is_known, is_named, needles, parts, spelled

_JWT_MIDDLE = re.compile(JWT_MIDDLE)


_LINE = re.compile(rf"[{BASE64}]+")


def _either(literals: Iterable[str]) -> str:
    return "(?:" + "|".join(map(re.escape, sorted(literals, key=len, reverse=True))) + ")"


_BEGINS = {begin for shape in SHAPES for begin in shape.begins}


_HINTS = [
    (re.compile(hint), [shape for shape in SHAPES if shape.hint == hint and shape.stable])
    for hint in dict.fromkeys(shape.hint for shape in SHAPES)
]


@cache
def _form(shape: Shape) -> re.Pattern[str]:
    # Compiled at first use: most runs never need it.
    return re.compile(_either(shape.begins) + shape.body)


@cache
def _likely(shape: Shape) -> re.Pattern[str]:
    return _JWT_MIDDLE if shape.what == JWT else re.compile(_either(shape.begins) + shape.least)


@cache
def _begin() -> re.Pattern[str]:
    """Where a token may begin. Only what passes this is looked at one by one, which takes a thousand times longer."""
    return re.compile("|".join(f"{_either(shape.begins)}{shape.least}" for shape in SHAPES if shape.what != JWT))


@cache
def _tails() -> list[tuple[re.Pattern[str], re.Pattern[str], int]]:
    """For shapes of the same characters: the last other character, their beginnings, and the longest one's length."""
    begins: dict[str, set[str]] = {}
    for shape in SHAPES:
        begins.setdefault(shape.run, set()).update(shape.begins)
    return [
        (re.compile(rf"(?!{run})[\s\S]{run}*+\Z"), re.compile(rf"(?=({_either(these)}))"), max(map(len, these)))
        for run, these in begins.items()
    ]


@cache
def _cut_off() -> re.Pattern[str]:
    """A beginning that is not complete."""
    parts = _either({begin[:size] for begin in _BEGINS for size in range(1, len(begin))})
    return re.compile(rf"{parts}\Z")


_LONGEST = max(map(len, _BEGINS))


_HALF_KEY = re.compile(rf"{HEADER}[A-Z0-9 ]*+(?:-{{0,5}}|(?<=PRIVATE KEY)-----[{BASE64}\s]*+(?:-{{1,5}}|-----EN?)?)\Z")


class Match(Struct, frozen=True):
    """A match in an unescaped text."""

    start: int
    stop: int
    what: str
    """A description for people."""
    mark: str
    """The text that replaces it."""
    begin: int
    """Where the search for it began."""
    named: bool = False
    """Whether it is a value of the environment, whose name says more than a shape does."""


class Secrets:
    """The secret values of an environment, and the shapes of tokens."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` maps each secret text to its name."""
        self._needles: dict[str, Match] = {}
        marks = {"[secret]"}
        for value, name in (values or {}).items():
            mark = f"[secret {spelled(name)}]"
            marks.add(mark)
            for needle in needles(value):
                self._needles.setdefault(needle, Match(0, len(needle), f"the value of {name}", mark, 0, True))
        self._cores = {needle: core(needle) for needle in self._needles}
        self._marks = re.compile(_either(marks))
        self._sorted = sorted(self._needles.keys() | marks)
        self._in_one_line = not any("\n" in needle or "\\" in needle for needle in self._sorted)
        self._longest = len(max(self._sorted, key=len))
        self._first = re.compile("[" + re.escape("".join({needle[0] for needle in self._sorted})) + "]")

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Secrets":
        """The secrets among the variables of `environment`."""
        values: dict[str, str] = {}
        for name, value in environment.items():
            for part in parts(value) if is_named(name) else ():
                values.setdefault(part, name)
        return cls(values)

    def clean(self, text: str) -> str:
        """`text` with a mark in place of every secret."""
        return self._pass(text, True)[0] if self._suspects(text) else text

    def clean_bytes(self, data: bytes) -> bytes:
        """The same for bytes, whether or not they are text."""
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self.clean(text)
        return data if cleaned is text else cleaned.encode("utf-8", "surrogateescape")

    def find(self, text: str) -> str:
        """A description of the first secret in `text`; empty when there is none."""
        found = self.first(text)
        return found.what if found else ""

    def first(self, text: str) -> Match | None:
        """The first secret in `text`; None when there is none."""
        if not self._suspects(text):
            return None
        return next(_merged(self._found(text, Unescaped(text).plain)), None)

    def passes(self, text: str) -> bool:
        """Whether `text`, in whole lines, has no secret and nothing that further lines could turn into one."""
        return self._in_one_line and not self._suspects(text)

    def stream(self) -> "Stream":
        """Clean a text that arrives in chunks."""
        return Stream(self)

    def _suspects(self, text: str) -> bool:
        return any(part in text for part in set(self._cores.values())) or suspects(text)

    def _pass(self, text: str, final: bool) -> tuple[str, str]:
        """The cleaned beginning of `text`, and the rest that must wait for more text."""
        reading = Unescaped(text if final else text[: whole(text)])
        plain = reading.plain
        found = self._found(text, plain)
        stop = len(plain) if final else self._settled(plain, found)
        pieces: list[str] = []
        at = 0
        for place in _merged(found):
            if place.start < stop:
                pieces += (text[at : reading.source(place.start)], place.mark)
                at = reading.source(place.stop)
        end = len(text) if final else reading.source(stop)
        return "".join(pieces) + text[at:end], text[end:]

    def _settled(self, plain: str, found: list[Match]) -> int:
        """The position before which more text changes nothing."""
        stop = _half(plain)
        for begin in self._first.finditer(plain, max(0, len(plain) - self._longest + 1), stop):
            rest = plain[begin.start() :]
            after = bisect_right(self._sorted, rest)
            if after < len(self._sorted) and self._sorted[after].startswith(rest):
                stop = begin.start()
                break
        closed = [(place.begin, place.stop) for place in found] + [mark.span() for mark in self._marks.finditer(plain)]
        for start, end in sorted(closed, reverse=True):
            if start < stop < end:
                stop = start
        return stop

    def _found(self, text: str, plain: str) -> list[Match]:
        """Every secret in `plain` in order, including overlapping ones, but none that touches a mark."""
        found = list(_shapes(plain)) if suspects(text) else []
        for needle, part in self._cores.items():
            at = plain.find(needle) if part in text else -1
            while at >= 0:
                value = self._needles[needle]
                found.append(Match(at, at + len(needle), value.what, value.mark, at, True))
                at = plain.find(needle, at + 1)
        if not found:
            return []
        marks = [mark.span() for mark in self._marks.finditer(plain)]
        stops = [stop for _, stop in marks]
        kept = []
        for place in sorted(found, key=lambda place: place.start):
            after = bisect_right(stops, place.start)
            if after == len(marks) or marks[after][0] >= place.stop:
                kept.append(place)
        return kept


class Stream:
    """Cleans a text while it arrives: the pieces it returns add up to the whole text, cleaned.

    It holds back an unfinished escape, and the beginning of what may become a secret: at most the longest value or
    `LIMIT` characters, unless secrets overlap.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept = ""

    def feed(self, text: str) -> str:
        """Take more text; returns what can be passed on."""
        if not self._kept and (not text or (text.endswith("\n") and self._secrets.passes(text))):
            return text
        cleaned, self._kept = self._secrets._pass(self._kept + text, False)
        return cleaned

    def close(self) -> str:
        """The text is complete: returns what was held back."""
        if not self._kept:
            return ""
        cleaned, self._kept = self._secrets._pass(self._kept, True)
        return cleaned


def lines(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Line, column, length and kind of every token in a text that a person wrote."""
    if not suspects(text):
        return
    reading = Unescaped(text)
    seen = -1
    for place in _merged(sorted(_shapes(reading.plain), key=lambda place: place.start)):
        if place.begin == seen:
            continue
        # Only the first line of a private key: it is one mistake.
        seen = place.begin
        start = reading.source(place.start)
        line = text.count("\n", 0, start) + 1
        yield line, start - text.rfind("\n", 0, start), reading.source(place.stop) - start, place.what


def suspects(text: str) -> bool:
    """Whether there may be a shape in `text`: quick, and a no is always right."""
    return any(
        hint.search(text) and (not shapes or any(_likely(shape).search(text) for shape in shapes))
        for hint, shapes in _HINTS
    )


def _half(plain: str) -> int:
    """Where a shape begins that could continue after the end of `plain`."""
    earliest = max(0, len(plain) - LIMIT + 1)
    key = _HALF_KEY.search(plain, earliest)
    # No other shape contains a space or a quotation mark, except the space after `Bearer`.
    edge = max(plain.rfind(mark, earliest) for mark in ' \n"') - len("Bearer")
    first = max(earliest, edge)
    part = _cut_off().search(plain, max(first, len(plain) - _LONGEST))
    half = min(found.start() if found else len(plain) for found in (key, part))
    return min((half, *_growing(plain, first)))


def _growing(plain: str, first: int) -> Iterator[int]:
    """Where tokens begin, from `first` on, that more text could complete; private keys span many lines."""
    for other, begins, longest in _tails():
        before = other.search(plain, first)
        run = before.start() + 1 if before else first
        for begin in begins.finditer(plain, max(first, run - longest)):
            if begin.end(1) >= run:
                yield begin.start()
                break


class _Jwts:
    """Where JWTs begin."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._middle = _JWT_MIDDLE.search(plain)

    def first(self, at: int) -> int:
        """The first one from `at` on; behind the end when there is none. Call it with growing positions."""
        while middle := self._middle:
            stop = middle.start()
            lowest = max(at, middle.end() + 17 - LIMIT)
            run = lowest + len(self._plain[lowest:stop].rstrip(JWT_RUN))
            begin = self._plain.find("eyJ", run, max(run, stop - 8))
            if begin >= 0:
                return begin
            self._middle = _JWT_MIDDLE.search(self._plain, middle.end())
        return len(self._plain)


def _shapes(plain: str) -> Iterator[Match]:
    at = 0
    jwts = _Jwts(plain)
    begin = _begin().search(plain)
    while True:
        if begin and begin.start() < at:
            begin = _begin().search(plain, at)
        start = min(jwts.first(at), begin.start() if begin else len(plain))
        if start == len(plain):
            return
        at = start + 1
        for shape in SHAPES:
            form = _form(shape)
            token = form.match(plain, start, start + LIMIT)
            if not token or (shape.what == PASSWORD and is_known(token[1])):
                continue
            if not form.groups:
                at = token.end()
            yield from _places(shape, token)
            break


def _places(shape: Shape, token: re.Match[str]) -> Iterator[Match]:
    what = f"something that looks like {shape.what}"
    start, stop = token.span(token.re.groups)
    # The lines of a key are replaced one by one, so that the text keeps its lines.
    spans = (
        (line.span() for line in _LINE.finditer(token.string, start, stop))
        if shape.what == PRIVATE_KEY
        else [(start, stop)]
    )
    for span in spans:
        yield Match(*span, what, "[secret]", token.start())


def _merged(found: Iterable[Match]) -> Iterator[Match]:
    """Overlapping matches as one: from the first start to the last stop, described as the longest."""
    cluster: list[Match] = []
    stop = 0
    for place in found:
        if cluster and place.start >= stop:
            yield _union(cluster, stop)
            cluster = []
        cluster.append(place)
        stop = max(stop, place.stop)
    if cluster:
        yield _union(cluster, stop)


def _union(cluster: list[Match], stop: int) -> Match:
    longest = max(cluster, key=lambda place: (place.named, place.stop - place.start))
    return Match(cluster[0].start, stop, longest.what, longest.mark, longest.begin, longest.named)
