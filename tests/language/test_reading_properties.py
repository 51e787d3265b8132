"""Whatever the text and however it is cut: reading never raises, says the same, and takes linear time and little memory."""

import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raymond.language import reading, scanner, tags
from raymond.language.reading import Reading
from raymond.language.tags import Goto

FRAGMENTS = [
    *("<goto>", "</goto>", "<goto>A</goto>", "<goto input='x'>", '<goto\ninput="', "<goto", "<gotox>", "<goto/>"),
    *("<result>", "</result>", "<result>r</result>", "<print>", "</print>", "<print>p</print>", "</", "<", ">"),
    *('<fork next="N">', "<fork>", "</fork>", "<wait>W</wait>", '<call return="', "</call>", '<ask next="N">q</ask>'),
    *("`", "``", "```", "````", "~~~", "~~~~", "~", "```\n", "\n```\n", "\n~~~\n", "   ```", "    ```", "```x`y\n"),
    *(
        "<!--",
        "-->",
        "<!-",
        "--",
        "!",
        "\n",
        "\r\n",
        " ",
        "  ",
        "a",
        "word",
        '"',
        "'",
        "=",
        " a='1'",
        "&lt;",
        "é",
        "\0",
    ),
]
FEW = st.lists(st.sampled_from(FRAGMENTS), min_size=2, max_size=5).flatmap(
    lambda few: st.lists(st.sampled_from([*few, "\n", "<goto>A</goto>"]), max_size=30)
)
TEXTS = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=30), FEW).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=12)


def read_cut(text: str, cuts: list[int], *, script: bool = False, limit: int = scanner.LIMIT) -> Reading:
    reader = reading.Reader(script=script, limit=limit)
    prints: list[str] = []
    start = 0
    for cut in [*sorted(cuts), len(text)]:
        prints += reader.feed(text[start:cut])
        start = max(start, cut)
    output = reader.close()
    return Reading(output.transitions, output.refused, (*prints, *output.prints))


def each(text: str) -> list[int]:
    return list(range(len(text)))


@given(st.text())
def test_no_text_raises(text: str) -> None:
    output = reading.read(text)
    assert (output.refused is None) == bool(output.transitions)
    for tag in reading.scan(text):
        reading.transition(tag)


@given(TEXTS, st.booleans())
def test_no_composition_of_fragments_raises(text: str, script: bool) -> None:
    output = reading.read(text, script=script)
    assert (output.refused is None) == bool(output.transitions)
    for tag in reading.scan(text):
        reading.transition(tag, script=script)


@pytest.mark.slow
@settings(max_examples=400)
@given(TEXTS, CUTS)
@example("x" * 18 + "\n``" + "x" * 16 + "\n`<print>p</print>`\n", [19, 38])  # lines that end at the same offset
def test_cutting_the_text_changes_nothing(text: str, cuts: list[int]) -> None:
    whole = reading.read(text)
    assert read_cut(text, cuts) == whole
    assert read_cut(text, each(text)) == whole


PLAINEST = st.tuples(
    st.sampled_from(["goto", "reset", "result", "wait"]),
    st.text("Ab1./-_ \n<`é", max_size=6),
    st.sampled_from(["", "\n", "\n\n", " ", "<print>p</print>", "<goto>B</goto>", "\n<result>B</result>\n"]),
).map(lambda parts: f"<{parts[0]}>{parts[1]}</{parts[0]}>{parts[2]}")


@pytest.mark.slow
@settings(max_examples=400)
@given(PLAINEST, st.lists(st.integers(0, 60), max_size=3))
@example("<goto>A.md</goto>\n", [])
@example("<goto>A.md</goto>\n<goto>B</goto>", [18])
def test_the_short_cut_for_the_plainest_output_says_what_the_whole_grammar_says(text: str, cuts: list[int]) -> None:
    # Letter by letter no output ever looks plain.
    assert reading.read(text) == read_cut(text, cuts) == read_cut(text, each(text))


@pytest.mark.slow
@settings(max_examples=400)
@given(TEXTS, CUTS, st.sampled_from([12, 20, 40, 80]))
@example("`" * 22 + "<print>p</print>`\n", [21], 20)  # a run that is given up before it ends
@example("<result>" + "x" * 20 + "</result>", [21, 27, 29], 20)
def test_cutting_changes_nothing_where_limits_bite(text: str, cuts: list[int], limit: int) -> None:
    whole = read_cut(text, [], limit=limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "PATIENT", 8)
        assert read_cut(text, cuts, limit=limit) == whole
        assert read_cut(text, each(text), limit=limit) == whole


@given(TEXTS)
def test_prints_are_the_unquoted_print_tags_in_order(text: str) -> None:
    tags = [tag for tag in reading.scan(text) if tag.name == "print" and not tag.quoted and not tag.attributes]
    expected = [tag.body for tag in tags if all(inner.name == "print" for inner in reading.scan(tag.body))]
    assert [text.strip("\r\n") for text in reading.read(text).prints] == [text.strip("\r\n") for text in expected]


# The same grammar, written to be read and not to be fast

OPENING = re.compile("<(" + "|".join(tags.TAGS) + r""")((?:\s+[^\s=<>"'/]+=(?:"[^"]*"|'[^']*'))*)\s*>""")


def plainly(text: str) -> list[tuple[str, str, int, str]]:
    found: list[tuple[str, str, int, str]] = []
    at = 0
    while at < len(text):
        quotation = comment(text, at) or fence(text, at) or code(text, at)
        if quotation:
            kind, start, stop, at = quotation
            found += [(name, body, start + place, kind) for name, body, place in inner(text[start:stop])]
        elif opening := OPENING.match(text, at):
            close = text.find(f"</{opening[1]}>", opening.end())
            if close >= 0:
                found.append((opening[1], text[opening.end() : close], at, ""))
                at = close + len(opening[1]) + 3
            else:
                at = opening.end()
        else:
            at += len(run_at(text, at)) or 1
    return found


def inner(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while opening := OPENING.search(text, at):
        close = text.find(f"</{opening[1]}>", opening.end())
        if close >= 0:
            yield opening[1], text[opening.end() : close], opening.start()
        at = close + len(opening[1]) + 3 if close >= 0 else opening.end()


def run_at(text: str, at: int) -> str:
    found = re.compile("`+|~+").match(text, at)
    return found[0] if found else ""


def comment(text: str, at: int) -> tuple[str, int, int, int] | None:
    close = text.find("-->", at + 4)
    return ("comment", at + 4, close, close + 3) if text.startswith("<!--", at) and close >= 0 else None


def fence(text: str, at: int) -> tuple[str, int, int, int] | None:
    run = run_at(text, at)
    before = text[text.rfind("\n", 0, at) + 1 : at]
    info, *lines = text[at + len(run) :].split("\n")
    if len(run) < 3 or before not in ("", " ", "  ", "   ") or (run[0] == "`" and "`" in info):
        return None
    start = at + len(run) + len(info) + 1
    for line in lines:
        if re.fullmatch(rf" {{0,3}}{run}{run[0]}*[ \t\r\f\v]*", line):
            return "fence", at + len(run), start, start + len(line)
        start += len(line) + 1
    return None


def code(text: str, at: int) -> tuple[str, int, int, int] | None:
    run = run_at(text, at)
    start = at + len(run)
    line = text[start:].split("\n")[0]
    for other in re.finditer("`+", line):
        if other[0] == run:
            return "code", start, start + other.start(), start + other.end()
    return None


@settings(max_examples=600)
@given(TEXTS)
def test_the_scan_finds_what_the_plain_grammar_finds(text: str) -> None:
    assert [(tag.name, tag.body, tag.start, tag.quoted) for tag in reading.scan(text)] == plainly(text)


# Linear time: work is counted, not timed

PROBES = {
    "_ATTRIBUTE": re.compile(r"""\s*+(?:[^\s=<>"'/]++(?:=(?:"[^"]*+|'[^']*+)?)?)?"""),
    "_END": re.compile(r"\s*+"),
    "_HALF": re.compile(r"""\s*+(?:[^\s=<>"'/]++(?:=(?:"[^"]*+|'[^']*+)?)?)?"""),
}
"""What a pattern looked at where it did not match."""


class Work:
    """Characters looked at by patterns and finds, and calls made."""

    def __init__(self) -> None:
        self.done = 0

    def call(self, frame: object, event: str, arg: object) -> None:
        self.done += event in ("call", "c_call")

    def find(self, text: str, needle: str, start: int, stop: int = sys.maxsize) -> int:
        at = text.find(needle, start, stop)
        self.done += max(0, (at if at >= 0 else min(stop, len(text))) - start)
        return at


class Counted:
    """A pattern that tells how much text it looked at."""

    def __init__(self, name: str, pattern: re.Pattern[str], work: Work) -> None:
        self.probe = PROBES.get(name)
        self.pattern = pattern
        self.work = work

    def search(self, text: str, start: int = 0, stop: int = sys.maxsize) -> re.Match[str] | None:
        found = self.pattern.search(text, start, stop)
        self.work.done += max(0, (found.end() if found else min(stop, len(text))) - start)
        return found

    def match(self, text: str, start: int, stop: int) -> re.Match[str] | None:
        found = self.pattern.match(text, start, stop)
        assert self.probe
        seen = found or self.probe.match(text, start, stop)
        self.work.done += seen.end() - start if seen else 0
        return found

    def finditer(self, text: str, start: int, stop: int) -> Iterator[re.Match[str]]:
        while found := self.search(text, start, stop):
            yield found
            start = found.end()

    def sub(self, *args: Any) -> str:
        return self.pattern.sub(*args)


def work_for(text: str, chunk: int) -> int:
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_CANDIDATE", "_TAG", "_RUN", "_ATTRIBUTE", "_END", "_HALF"):
            patch.setattr(scanner, name, Counted(name, getattr(scanner, name), work))
        patch.setattr(scanner, "_find", work.find)
        patch.setattr(scanner, "Closers", counted_closers(work))
        reader = reading.Reader()
        before = sys.getprofile()
        sys.setprofile(work.call)
        try:
            for start in range(0, len(text), chunk):
                reader.feed(text[start : start + chunk])
            reader.close()
        finally:
            sys.setprofile(before)
    return work.done


def counted_closers(work: Work) -> Any:
    class CountedClosers(scanner.Closers):
        def __init__(self, mark: str) -> None:
            super().__init__(mark)
            self._form: Any = Counted("", self._form, work)

    return CountedClosers


def falling(mark: str, size: int, rest: str) -> str:
    """Runs of falling length, so that none closes another, then `rest`: in all about `size` characters."""
    longest = int(size**0.5)
    runs = rest.join(mark * length for length in range(longest, 2, -1))
    return f"{runs}{rest}{(mark * 3 + rest) * ((size - len(runs)) // (3 + len(rest)))}"


HOSTILE: dict[str, Callable[[int], str]] = {
    "less-than signs": lambda size: "<" * size,
    "results that open": lambda size: "<result>" * (size // 8),
    "backticks": lambda size: "`" * size,
    "backticks apart": lambda size: "`a" * (size // 2),
    "comments that open": lambda size: "<!--" * (size // 4),
    "fences": lambda size: "```\n" * (size // 4),
    "fences that never close": lambda size: "~~~x\n" * (size // 5),
    "falling fences": lambda size: falling("`", size, "\n"),
    "attributes that open": lambda size: "<goto a='" * (size // 9),
    "prints that open": lambda size: "<print>" * (size // 7),
    "every tag opens": lambda size: "".join(f"<{name}>" for name in tags.TAGS) * (size // 63),
    "results that close": lambda size: "</result>" * (size // 9),
    "whole tags": lambda size: "<goto>A</goto>" * (size // 14),
    "an odd backtick in each line": lambda size: "`a``b\n" * (size // 6),
    "fences that never close before a long line": lambda size: "~~~x\n" * (size // 10) + "a" * (size // 2),
    "falling tildes": lambda size: falling("~", size, "\n"),
    "falling runs in a line": lambda size: falling("`", size, "a"),
    "attributes in attributes": lambda size: "<goto a=' a='" * (size // 13),
    "two kinds of quotes": lambda size: '<goto a=\'" b="\' c="' * (size // 19),
    "tags in an attribute": lambda size: '<goto a="' + "<goto b='x' " * (size // 12),
    "attributes without end": lambda size: "<goto" + " a='1'" * (size // 6),
    "blanks in a tag": lambda size: "<goto" + " " * size,
    "quoted tags": lambda size: "```\n" + "<goto><ask>" * (size // 11) + "\n```",
    "tildes": lambda size: "~" * size,
    "blank lines": lambda size: " \n" * (size // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [sys.maxsize, 1000], ids=["whole", "in chunks"])
@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_is_twice_the_work(name: str, chunk: int) -> None:
    size = 8_000
    once, twice = work_for(HOSTILE[name](size), chunk), work_for(HOSTILE[name](2 * size), chunk)
    # In chunks the next look is due when the text has grown by a quarter, so the last one may be near the end or far.
    assert twice <= (2.2 if chunk == sys.maxsize else 2.7) * once
    # A ratio alone would pass for text that is looked at hundreds of times over.
    assert twice <= 30 * 2 * size


@pytest.mark.slow
@pytest.mark.parametrize("name", list(HOSTILE)[:10])
def test_a_megabyte_of_hostile_text_is_read(name: str) -> None:
    assert reading.read(HOSTILE[name](1 << 20)).transitions == ()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_says_the_same_in_chunks(name: str) -> None:
    text = HOSTILE[name](10_000) + "\n<goto>A</goto>\n"
    assert read_cut(text, list(range(0, len(text), 777))) == reading.read(text)


def test_many_small_chunks_are_not_joined_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = 0
    join = scanner.Scanner._join

    def counting(self: scanner.Scanner) -> None:
        nonlocal joined
        join(self)
        joined += len(self._text)

    monkeypatch.setattr(scanner.Scanner, "_join", counting)
    for opening in ("<result>", "<!--", "```\n", "`", "<goto a='"):
        joined = 0
        reader = reading.Reader()
        reader.feed(opening)
        for _ in range(20_000):
            reader.feed("word > word\n" if opening != "`" else "word > word ")
        reader.close()
        assert joined < 40 * 240_000


# Bounded memory

CHUNK = 64 * 1024
NOISE = {
    "lines": "a line of prose, of which there is a lot\n",
    "one line": "a line without end ",
    "lines of markup": "a line, 1 < 2, <b>of</b> prose and of quite a few other words besides these, &c.\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "opening"),
    [(noise, "") for noise in NOISE]
    + [("lines", opening) for opening in ("<result>", "<!-- ", "```\n", "`", "<goto input='")]
    + [("one line", "`")],
)
def test_a_tag_after_fifty_megabytes_of_noise_is_found_in_bounded_memory(noise: str, opening: str) -> None:
    chunk = (NOISE[noise] * CHUNK)[:CHUNK]
    reader = reading.Reader()
    reader.feed(opening)
    most = 0
    for _ in range(800):
        reader.feed(chunk)
        most = max(most, reader.held)
    reader.feed("\n<goto>A.md</goto>\n")
    assert reader.close() == Reading((Goto(target="A.md"),))
    assert most <= 2 * scanner.LIMIT


@pytest.mark.slow
def test_what_is_allocated_stays_small_too() -> None:
    chunk = ("<goto>A</goto> <result>r</result> `<wait>W</wait>`\n" * CHUNK)[:CHUNK]
    reader = reading.Reader()
    tracemalloc.start()
    try:
        for text in ["<reset>", *[chunk] * 4, "~~~x\n", *["words\n" * 10_000] * 300]:
            reader.feed(text)
        output = reader.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert output.refused is not None
    assert output.refused.kind == "several"
    assert peak < 80_000_000
