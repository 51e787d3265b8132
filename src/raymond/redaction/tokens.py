"""Where tokens stand in a text, by their shapes."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from msgspec import Struct

from raymond.redaction.patterns import compiled
from raymond.redaction.shapes import BASE64, HEADER, JWT, JWT_MIDDLE, JWT_RUN, LIMIT, PRIVATE_KEY, SHAPES, Shape

_FULL_LINE = rf"[{BASE64}]{{40,}}"


# In the last lines of a key, which may be short, a number alone is the number of the line.
_LAST_LINE = rf"(?<![{BASE64}])(?!\d{{1,6}}[^{BASE64}])[{BASE64}]+"


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


def either(literals: Iterable[str], any_case: bool = False) -> str:
    """A pattern for any of the texts, the longest first."""
    spelled = (_any_case(one) if any_case else re.escape(one) for one in sorted(literals, key=len, reverse=True))
    return f"(?:{'|'.join(spelled)})"


def _any_case(text: str) -> str:
    # Not the flag of `re`, for which `s` is also the long s, which no hint looks for.
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else re.escape(one) for one in text)


def _begins(shape: Shape) -> str:
    return either(shape.begins, bool(shape.any_case))


_IN_ANY_CASE = [shape for shape in SHAPES if shape.any_case]

_SMALL = [begin for shape in _IN_ANY_CASE for begin in shape.begins]

_ESCAPED = [(shape.escaped, shape) for shape in SHAPES if shape.escaped]

_BY_HINT = {
    hint: [shape for shape in SHAPES if shape.hint == hint and not shape.any_case]
    for hint in dict.fromkeys(shape.hint for shape in SHAPES if not shape.any_case)
}

_BEGINS = [hint.begin for hint in _BY_HINT]

_LONGEST = max(len(begin) for shape in SHAPES for begin in shape.begins)


@cache
def _form(shape: Shape) -> re.Pattern[str]:
    return compiled(_begins(shape) + shape.body)


@cache
def _begin(shape: Shape) -> re.Pattern[str]:
    """Where a token may begin. Only what passes this is looked at one by one, which takes a thousand times longer."""
    return compiled(JWT_MIDDLE if shape.what == JWT else _begins(shape) + shape.least)


class _Tail(Struct, frozen=True):
    """How shapes of the same characters may be cut off by the end of a text."""

    run: str
    begins: re.Pattern[str]
    longest: int
    """Characters in the longest beginning."""

    @classmethod
    def of(cls, run: str, shapes: list[Shape]) -> "_Tail":
        begins = "|".join(map(_begins, shapes))
        return cls(run, re.compile(begins), max(len(begin) for shape in shapes for begin in shape.begins))

    def growing(self, plain: str, first: int) -> int:
        """Where the first one begins, from `first` on, that more text could complete; else the end of `plain`."""
        run = _run(self.run, plain, first)
        begin = self.begins.search(plain, max(first, run - self.longest))
        while begin and begin.end() < run:
            begin = self.begins.search(plain, begin.start() + 1)
        return begin.start() if begin else len(plain)


@cache
def _tails() -> list[_Tail]:
    by_run: dict[str, list[Shape]] = {}
    for shape in SHAPES:
        by_run.setdefault(shape.run, []).append(shape)
    return [_Tail.of(run, shapes) for run, shapes in by_run.items()]


def _run(run: str, plain: str, first: int) -> int:
    """Where the characters of `run` begin that `plain` ends with, not before `first`."""
    # Nearly always it is short.
    for size in (64, LIMIT):
        before = compiled(rf"(?!{run})[\s\S]{run}*+\Z").search(plain, max(first, len(plain) - size))
        if before:
            return before.start() + 1
    return first


@cache
def _parts(any_case: bool) -> frozenset[str]:
    """Beginnings that are not complete."""
    begins = (begin for shape in SHAPES if bool(shape.any_case) == any_case for begin in shape.begins)
    return frozenset(begin[:size] for begin in begins for size in range(1, len(begin)))


def _cut_off(plain: str, first: int) -> int:
    """Where a beginning begins, from `first` on, that is not complete; else the end of `plain`."""
    for size in range(min(_LONGEST, len(plain) - first), 0, -1):
        end = plain[-size:]
        if end in _parts(False) or end.lower() in _parts(True):
            return len(plain) - size
    return len(plain)


_HALF_KEY = (
    rf"{HEADER}[A-Z0-9 ]*+(?:-{{0,5}}"
    rf"|(?<=PRIVATE KEY|E KEY BLOCK)-----(?:[^\-]++|-{{1,4}}+(?!-))*+(?:-{{5,9}}+(?:EN?)?)?)\Z"
)


def suspected(text: str) -> list[Shape]:
    """The shapes that `text` may have: quick, and what is left out is not there."""
    found = []
    if any(map(text.__contains__, _BEGINS)):
        for hint, shapes in _BY_HINT.items():
            if hint.is_in(text):
                found += [shape for shape in shapes if not shape.stable or _begin(shape).search(text)]
    if "\\" in text:
        found += [shape for hint, shape in _ESCAPED if shape not in found and hint.is_in(text)]
    small = text.lower()
    if any(map(small.__contains__, _SMALL)):
        found += [shape for shape in _IN_ANY_CASE if compiled(_begins(shape) + shape.any_case).search(text)]
    return found


def half(plain: str) -> int:
    """Where a shape begins that could continue after the end of `plain`."""
    earliest = max(0, len(plain) - LIMIT + 1)
    key = compiled(_HALF_KEY).search(plain, earliest)
    # No other shape contains a space or a quotation mark, except the space after `Bearer`.
    edge = max(plain.rfind(mark, earliest) for mark in ' \n"') - len("Bearer")
    first = max(earliest, edge)
    begun = min(key.start() if key else len(plain), _cut_off(plain, first))
    return min(begun, *(tail.growing(plain, first) for tail in _tails()))


def find(plain: str, shapes: Iterable[Shape]) -> Iterator[Match]:
    """Every token of these shapes in an unescaped text."""
    for shape in shapes:
        form, first = _form(shape), _first(shape, plain)
        start = first(0)
        while start < len(plain):
            token = form.match(plain, start, start + LIMIT)
            if token and (shape.check is None or shape.check(token[1])):
                yield from _places(shape, token)
                start = first(token.end())
            else:
                start = first(start + 1)


def _first(shape: Shape, plain: str) -> Callable[[int], int]:
    """Tells where the first token may begin from a position on; behind the end when there is none."""
    if shape.what == JWT:
        return _Jwts(plain).first
    search, end = _begin(shape).search, len(plain)

    def first(at: int) -> int:
        begin = search(plain, at)
        return begin.start() if begin else end

    return first


class _Jwts:
    """Where JWTs begin."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._middle = compiled(JWT_MIDDLE).search(plain)

    def first(self, at: int) -> int:
        """The first one from `at` on; behind the end when there is none. Call it with growing positions."""
        while middle := self._middle:
            stop = middle.start()
            lowest = max(at, middle.end() + 17 - LIMIT)
            run = lowest + len(self._plain[lowest:stop].rstrip(JWT_RUN))
            begin = self._plain.find("eyJ", run, max(run, stop - 8))
            if begin >= 0:
                return begin
            self._middle = compiled(JWT_MIDDLE).search(self._plain, middle.end())
        return len(self._plain)


def _places(shape: Shape, token: re.Match[str]) -> Iterator[Match]:
    what = f"something that looks like {shape.what}"
    for start, stop in _lines(token) if shape.what == PRIVATE_KEY else [token.span(token.re.groups)]:
        yield Match(start, stop, what, "[secret]", token.start())


def _lines(key: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The lines of a private key: they are replaced one by one, so that the text keeps its lines."""
    for line, group in ((_FULL_LINE, 1), (_LAST_LINE, 2)):
        yield from (one.span() for one in compiled(line).finditer(key.string, *key.span(group)))
