"""What is printed on a terminal hides nothing."""

import io
import os
import sys
import unicodedata

import pytest

from raymond.cli import terminal
from raymond.text import safe, visible


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("", "plain text", "Grüße, 世界, 한국어, \N{WARNING SIGN}\N{VARIATION SELECTOR-16}", "a\\b 'c' \"d\""):
        assert visible(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a 👩\u200d👩\u200d👧\u200d👦 b",
        "🏳\ufe0f\u200d🌈",
        "👩🏽\u200d⚕",
        "می\u200cخواهم",
        "क्\u200dष",
        "श्री\u094d\u200cय",
    ],
)
def test_what_joins_characters_stays_between_them(text: str) -> None:
    assert visible(text) == visible(visible(text)) == text


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_what_joins_nothing_is_written_as_an_escape(joiner: str) -> None:
    """There it would show nothing, and two names that look the same would differ."""
    for before, after in (
        ("a", "b"),
        ("", "👩"),
        ("👩", ""),
        ("👩", "b"),
        ("د", "ر"),
        ("世", "界"),
        ("1", "2"),
        ("-", "-"),
    ):
        assert visible(before + joiner + after) == before + ascii(joiner)[1:-1] + after
    assert visible(f"👩{joiner * 2}👩") == f"👩{ascii(joiner)[1:-1] * 2}👩"


def test_every_blank_but_the_space_is_written_as_an_escape() -> None:
    """A blank that a terminal shows like any other can push text out of sight, or make two names look the same."""
    blanks = [one for one in map(chr, range(sys.maxunicode + 1)) if is_blank(one)]
    assert {"\u2800", "\u3164", "\u115f", "\u1160", "\uffa0", "\u00a0", "\u2003", "\t"} <= {*blanks}
    assert [one for one in blanks if visible(f"a{one}b") != f"a{ascii(one)[1:-1]}b"] == []


def is_blank(one: str) -> bool:
    if unicodedata.category(one) in ("Zs", "Zl", "Zp", "Cc"):
        return one != " "
    return unicodedata.name(one, "").rpartition(" ")[2] in ("FILLER", "BLANK")


def test_text_that_is_read_keeps_its_layout_and_controls_nothing() -> None:
    for text in (
        "two\nlines\n\tindented",
        "Grüße\u00a0世界\u3000\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}",
        "ends\r\nwith",
    ):
        assert safe(text) == text.replace("\r\n", "\n")
    assert safe("\x1b[2J\x07\u202etxt\x9b31m\x7f\rover") == "\\x1b[2J\\x07\\u202etxt\\x9b31m\\x7f\\rover"
    bad = [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in ("Cc", "Cs")]
    bad += [one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.bidirectional(one) in DIRECTING]
    assert [one for one in bad if one not in "\n\t" and safe(one) == one] == []


DIRECTING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def test_a_guarded_stream_sends_no_control_sequence_and_a_drawing_face_may() -> None:
    file = io.BytesIO()
    stream = terminal.Guarded(io.TextIOWrapper(file, encoding="utf-8"))
    print("a\x1b[2Jb", file=stream, flush=True)
    terminal.unguarded(stream).write("\x1b[A")
    terminal.unguarded(stream).flush()
    assert file.getvalue() == b"a\\x1b[2Jb\n\x1b[A"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("buffered", [True, False])
def test_nothing_fails_because_stderr_cannot_be_written(buffered: bool) -> None:
    file = open("/dev/full", "wb", buffering=-1 if buffered else 0)
    stream = terminal.Said(io.TextIOWrapper(file, encoding="utf-8", line_buffering=True, write_through=not buffered))
    print("answered", file=stream)
    print("and continued", file=stream, flush=True)
    stream.flush()
