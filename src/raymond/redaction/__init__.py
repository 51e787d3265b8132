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

from raymond.redaction import tokens, wraps
from raymond.redaction.escapes import Unescaped, core, whole
from raymond.redaction.patterns import compiled
from raymond.redaction.shapes import LIMIT
from raymond.redaction.tokens import Match
from raymond.redaction.values import encoded, is_named, needles, parts, spelled
from raymond.redaction.wraps import Joined

_WORD = r"\S+"
_MOST_HELD = 4 * LIMIT
"""Characters of overlapping secrets that a stream holds back."""


class Secrets:
    """The secret values of an environment, and the shapes of tokens."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """`values` maps each secret text to its name."""
        self._needles: dict[str, Match] = {}
        self._encoded: set[str] = set()
        """Those that may be broken into lines."""
        marks = {"[secret]"}
        for value, name in (values or {}).items():
            mark = f"[secret {spelled(name)}]"
            marks.add(mark)
            in_base64 = encoded(value)
            self._encoded |= in_base64
            for needle in needles(value) | in_base64:
                self._needles.setdefault(needle, Match(0, len(needle), f"the value of {name}", mark, 0, True))
        self._cores: dict[str, list[str]] = {}
        for needle in self._needles:
            self._cores.setdefault(core(needle), []).append(needle)
        self._mark = tokens.either(marks)
        self._sorted = sorted(self._needles.keys() | marks)
        self._in_one_line = not any("\n" in needle or "\\" in needle for needle in self._sorted)
        self._longest = len(max(self._sorted, key=len))
        self._first = "[" + re.escape("".join({needle[0] for needle in self._sorted})) + "]"

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
        if not self._in_one_line or (self._encoded and wraps.is_open(text)):
            return False
        return not self._suspects(text)

    def stream(self) -> "Stream":
        """Clean a text that arrives in chunks."""
        return Stream(self)

    def _suspects(self, text: str) -> bool:
        return any(map(text.__contains__, self._cores)) or suspects(text) or self._is_wrapped(text)

    def _is_wrapped(self, text: str) -> bool:
        """Whether there may be a value in lines of base64."""
        if not self._encoded or not wraps.may_be_in(text):
            return False
        joined = Joined(Unescaped(text).plain).plain
        return any(needle in joined for needle in self._encoded)

    def _pass(self, text: str, final: bool, before: str = "") -> tuple[str, str]:
        """The cleaned beginning of `text`, and the rest that must wait for more text.

        `before` is the base64 right before `text`, which was passed on already.
        """
        reading = Unescaped(text if final else text[: whole(text)])
        plain = reading.plain
        found = self._found(text, plain, before)
        stop = len(plain) if final else self._settled(plain, found, before)
        pieces: list[str] = []
        at = 0
        for place in _merged(found):
            if place.start < stop:
                pieces += (text[at : reading.source(place.start)], place.mark)
                at = reading.source(place.stop)
        end = len(text) if final else reading.source(stop)
        return "".join(pieces) + text[at:end], text[end:]

    def _settled(self, plain: str, found: list[Match], before: str) -> int:
        """The position before which more text changes nothing."""
        stop = min(tokens.half(plain), self._begun(plain), self._begun_in_lines(plain, before))
        closed = [(place.begin, place.stop) for place in found] + [
            mark.span() for mark in compiled(self._mark).finditer(plain)
        ]
        for start, end in sorted(closed, reverse=True):
            if start < stop < end:
                stop = start
        if stop < len(plain) - _MOST_HELD:
            # They overlap in a chain that may never end: cut it where one of them begins.
            stop = max((start for start, _ in closed if stop < start <= len(plain) - 2 * LIMIT), default=stop)
        return stop

    def _begun(self, plain: str) -> int:
        """Where a value or mark begins that is cut off by the end of `plain`."""
        for begin in compiled(self._first).finditer(plain, max(0, len(plain) - self._longest + 1)):
            rest = plain[begin.start() :]
            after = bisect_right(self._sorted, rest)
            if after < len(self._sorted) and self._sorted[after].startswith(rest):
                return begin.start()
        return len(plain)

    def _begun_in_lines(self, plain: str, before: str) -> int:
        """The same for a value in lines of base64."""
        if not self._encoded:
            return len(plain)
        # Line ends and indentation make it at most three times as long.
        tail = max(0, len(plain) - 3 * self._longest - 100)
        joined = Joined(plain[tail:], "" if tail else before)
        return tail + joined.source(self._begun(joined.plain)) if joined.is_joined else len(plain)

    def _found(self, text: str, plain: str, before: str = "") -> list[Match]:
        """Every secret in `plain` in order, including overlapping ones, but none that touches a mark."""
        found = list(tokens.find(plain, tokens.suspected(text)))
        for part, those in self._cores.items():
            for needle in those if part in text else ():
                found += self._values(needle, plain)
        if self._encoded and wraps.may_be_in(before + text):
            found += self._values_in_lines(plain, before)
        if not found:
            return []
        marks = [mark.span() for mark in compiled(self._mark).finditer(plain)]
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

    def _values_in_lines(self, plain: str, before: str) -> Iterator[Match]:
        """Values whose base64 goes over a line end: a match for each line, so that the text keeps its lines."""
        joined = Joined(plain, before)
        for needle in self._encoded if joined.is_joined else ():
            for place in self._values(needle, joined.plain):
                start, stop = joined.source(place.start), joined.source(place.stop - 1) + 1
                if stop - start > len(needle):
                    for word in compiled(_WORD).finditer(plain, start, stop):
                        yield Match(*word.span(), place.what, place.mark, start, True)


class Stream:
    """Cleans a text while it arrives: the pieces it returns add up to the whole text, cleaned.

    It holds back an unfinished escape, and the beginning of what may become a secret: at most the longest value or
    `LIMIT` characters, and four times as many while secrets overlap. A longer chain of them gets several marks.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept = ""
        self._before = ""
        """The base64 at the end of what was passed on."""

    def feed(self, text: str) -> str:
        """Take more text; returns what can be passed on."""
        if not self._kept and (not text or (text.endswith("\n") and not self._before and self._secrets.passes(text))):
            return text
        text = self._kept + text
        cleaned, self._kept = self._secrets._pass(text, False, self._before)
        passed = self._before + text[: len(text) - len(self._kept)]
        self._before = wraps.line_before(Unescaped(passed[-2 * wraps.LEAST :]).plain)
        return cleaned

    def close(self) -> str:
        """The text is complete: returns what was held back."""
        if not self._kept:
            return ""
        cleaned, self._kept = self._secrets._pass(self._kept, True, self._before)
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
