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

from raymond.redaction import tokens
from raymond.redaction.escapes import Unescaped, core, whole
from raymond.redaction.tokens import Match
from raymond.redaction.values import encoded, is_named, needles, parts, spelled


class Secrets:
    """The secret values of an environment, and the shapes of tokens."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` maps each secret text to its name."""
        self._needles: dict[str, Match] = {}
        marks = {"[secret]"}
        for value, name in (values or {}).items():
            mark = f"[secret {spelled(name)}]"
            marks.add(mark)
            for needle in needles(value) | encoded(value):
                self._needles.setdefault(needle, Match(0, len(needle), f"the value of {name}", mark, 0, True))
        self._cores: dict[str, list[str]] = {}
        for needle in self._needles:
            self._cores.setdefault(core(needle), []).append(needle)
        self._marks = re.compile(tokens.either(marks))
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
        return any(part in text for part in self._cores) or suspects(text)

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
        stop = min(tokens.half(plain), self._begun(plain))
        closed = [(place.begin, place.stop) for place in found] + [mark.span() for mark in self._marks.finditer(plain)]
        for start, end in sorted(closed, reverse=True):
            if start < stop < end:
                stop = start
        return stop

    def _begun(self, plain: str) -> int:
        """Where a value or mark begins that is cut off by the end of `plain`."""
        for begin in self._first.finditer(plain, max(0, len(plain) - self._longest + 1)):
            rest = plain[begin.start() :]
            after = bisect_right(self._sorted, rest)
            if after < len(self._sorted) and self._sorted[after].startswith(rest):
                return begin.start()
        return len(plain)

    def _found(self, text: str, plain: str) -> list[Match]:
        """Every secret in `plain` in order, including overlapping ones, but none that touches a mark."""
        found = list(tokens.find(plain, tokens.suspected(text)))
        for part, those in self._cores.items():
            for needle in those if part in text else ():
                found += self._values(needle, plain)
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

    def _values(self, needle: str, plain: str) -> Iterator[Match]:
        value = self._needles[needle]
        at = plain.find(needle)
        while at >= 0:
            yield Match(at, at + len(needle), value.what, value.mark, at, True)
            at = plain.find(needle, at + 1)


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


def suspects(text: str) -> bool:
    """Whether there may be a token in `text`: quick, and a no is always right."""
    return bool(tokens.suspected(text))


def lines(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Line, column, length and kind of every token in a text that a person wrote."""
    reading = Unescaped(text)
    seen = -1
    for place in _merged(sorted(tokens.find(reading.plain, tokens.suspected(text)), key=lambda place: place.start)):
        if place.begin == seen:
            continue
        # Only the first line of a private key: it is one mistake.
        seen = place.begin
        start = reading.source(place.start)
        line = text.count("\n", 0, start) + 1
        yield line, start - text.rfind("\n", 0, start), reading.source(place.stop) - start, place.what


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
    if len(cluster) == 1:
        return cluster[0]
    longest = max(cluster, key=lambda place: (place.named, place.stop - place.start))
    return Match(cluster[0].start, stop, longest.what, longest.mark, longest.begin, longest.named)
