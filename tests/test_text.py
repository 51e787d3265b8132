"""What is printed on a terminal hides nothing."""

import sys
import unicodedata

from raymond.text import visible


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("", "plain text", "Grüße, 世界, 한국어, \N{WARNING SIGN}\N{VARIATION SELECTOR-16}", "a\\b 'c' \"d\""):
        assert visible(text) == text


def test_every_blank_but_the_space_is_written_as_an_escape() -> None:
    """A blank that a terminal shows like any other can push text out of sight, or make two names look the same."""
    blanks = [one for one in map(chr, range(sys.maxunicode + 1)) if is_blank(one)]
    assert {"\u2800", "\u3164", "\u115f", "\u1160", "\uffa0", "\u00a0", "\u2003", "\t"} <= {*blanks}
    assert [one for one in blanks if visible(f"a{one}b") != f"a{ascii(one)[1:-1]}b"] == []


def is_blank(one: str) -> bool:
    if unicodedata.category(one) in ("Zs", "Zl", "Zp", "Cc"):
        return one != " "
    return unicodedata.name(one, "").rpartition(" ")[2] in ("FILLER", "BLANK")
