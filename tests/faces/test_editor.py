"""Keys, the line editor, and how a draft is laid out."""

import pytest
from rich.cells import cell_len

from raymond.faces.editor import (
    LONGEST_ANSWER,
    SEQUENCE_SECONDS,
    Draft,
    Editor,
    Entry,
    Key,
    Keys,
    Typed,
    clusters,
    lay_out,
)

LEFT, RIGHT, UP, DOWN, HOME, END = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F"
FAMILY = "👨\u200d👩\u200d👧"


def edited(typed: str) -> Editor:
    editor = Editor()
    for key in Keys().feed(typed.encode(), 0.0):
        editor.press(key)
    return editor


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("yess\x7f", "yes"),
        (f"ac{LEFT}b", "abc"),
        (f"bc{HOME}a{END}d", "abcd"),
        ("bc\x01a\x05d", "abcd"),
        ("bc\x1bOHa\x1b[4~d", "abcd"),
        (f"one two{LEFT}{LEFT}\x15", "wo"),
        (f"one two{HOME}\x0b", ""),
        ("one two  \x17", "one "),
        (f"one two{LEFT}\x17", "one o"),
        (f"abc{LEFT}{LEFT}\x1b[3~", "ac"),
        (f"{LEFT}{RIGHT}\x7f\x1b[3~\x17\x15\x0b{UP}{DOWN}a", "a"),
        ("世界\x7f", "世"),
        ("cafe\u0301\x7f", "caf"),
        (f"a{FAMILY}\x7f", "a"),
        ("a🇩🇪🇫🇷\x7f", "a🇩🇪"),
        ("👍🏽\x7f", ""),
        (f"a{FAMILY}b{LEFT}{LEFT}\x1b[3~", "ab"),
        ("one two\x1b[1;5D\x1b[1;5DX\x1b[1;5CY", "XoneY two"),
        ("\x1b[200~one\r\ntwo\rthree\x1b[201~", "one\ntwo\nthree"),
        (f"\x1b[200~one\ntwo\x1b[201~{UP}X{DOWN}Y{HOME}Z", "oneX\nZtwoY"),
        (f"\x1b[200~one\ntwo\x1b[201~{HOME}\x15{LEFT}\x0b", "one\ntwo"),
        ("\x1b[200~\x1b[2Jbell\x07\x9b\x1b[201~", "[2Jbell"),
        ("a\x1b[99;99zb\x1bxc\x00\x07d\x9b", "abcd"),
        ("a\nb\nc", "a\nb\nc"),
    ],
)
def test_keys_edit_a_text(typed: str, text: str) -> None:
    assert edited(typed).text == text


def test_what_is_typed_may_come_in_any_pieces() -> None:
    typed = f"aé世{LEFT}\x1b[200~x\ny\x1b[201~\x7fz{HOME}!\n".encode()
    whole = Keys().feed(typed, 0.0)
    keys = Keys()
    assert [key for at in range(len(typed)) for key in keys.feed(typed[at : at + 1], 0.0)] == whole
    assert whole[-1] == Key("enter")


def test_the_key_escape_swallows_nothing_that_is_typed_later() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b", 1.0) == []
    assert keys.feed(b"no", 2.0 + SEQUENCE_SECONDS) == [Key("text", "n"), Key("text", "o")]
    assert keys.feed(b"\x1b", 3.0) == []
    assert keys.feed(b"[D", 3.0) == [Key("left")]


def test_several_enters_at_the_end_are_one() -> None:
    assert Keys().feed(b"y\r\r\n\n", 0.0) == [Key("text", "y"), Key("enter")]


def test_characters_are_counted_as_people_do() -> None:
    text = f"e\u0301{FAMILY}🇩🇪世\n\u0301"
    assert clusters(text) == ["e\u0301", FAMILY, "🇩🇪", "世", "\n", "\u0301"]
    assert "".join(clusters(text)) == text


def test_a_draft_shows_the_lines_around_the_cursor_and_nothing_hidden() -> None:
    assert lay_out(edited("abc"), 10, 5) == Draft(["> abc"], 0, 5)
    assert lay_out(edited(f"abc{LEFT}"), 10, 5) == Draft(["> abc"], 0, 4)
    assert lay_out(edited("abcdefgh"), 10, 5) == Draft(["> abcdefg", "  h"], 1, 3)
    assert lay_out(edited("世界世界"), 10, 5) == Draft(["> 世界世", "  界"], 1, 4)
    assert lay_out(edited("a\nb\nc\nd\n\x7fe"), 10, 2) == Draft(["  c", "  de"], 1, 4)
    assert lay_out(edited(f"a\nb\nc{UP}{UP}"), 10, 2) == Draft(["> a", "  b"], 0, 3)
    assert lay_out(edited("a\u202eb"), 20, 2).lines == ["> a\\u202eb"]
    assert lay_out(edited(f"a{FAMILY}b\nمی\u200cخواهم"), 20, 2).lines == [f"> a{FAMILY}b", "  می\u200cخواهم"]
    assert lay_out(edited(f"a{FAMILY}b"), 8, 3) == Draft(["> a👨\u200d👩\u200d", "  👧b"], 1, 5), "wider than a line"


@pytest.mark.parametrize("width", range(1, 12))
def test_a_draft_fits_into_any_terminal(width: int) -> None:
    made = lay_out(edited("word 世界 another\u0301 \nline"), width, 3)
    assert 1 <= len(made.lines) <= 3
    assert 0 <= made.row < len(made.lines)
    assert 0 <= made.column < max(2, width)
    if width > 3:
        assert all(cell_len(line) < width for line in made.lines)


# --- what counts as an answer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_paste_that_began_before_the_question_is_dropped_whole() -> None:
    entry = Entry(Clock())
    entry.take(b"\x1b[200~ye", is_asked=False)
    entry.begin(b"s\n")
    assert entry.take(b"yes\n\x1b[201~", is_asked=True) is Typed.NOTHING
    assert entry.draft(20, 2).lines == ["> "]


def test_a_line_begun_long_before_the_question_locks_nothing() -> None:
    clock = Clock()
    entry = Entry(clock)
    entry.take(b"half", is_asked=False)
    clock.now += 60
    entry.begin(b"")
    assert not entry.is_locked
    assert entry.take(b"yes\n", is_asked=True) == "yes"


def test_ctrl_d_leaves_a_question_open_only_where_nothing_is_typed() -> None:
    entry = Entry(Clock())
    entry.begin(b"")
    assert entry.take(b"ab\x1b[D\x04", is_asked=True) is Typed.NOTHING
    assert entry.draft(20, 2).lines == ["> a"]
    assert entry.take(b"\x7f\x04", is_asked=True) is Typed.LEAVE


@pytest.mark.slow
def test_an_answer_has_a_largest_size_however_it_comes() -> None:
    entry = Entry(Clock())
    entry.begin(b"")
    half = LONGEST_ANSWER // 2
    assert entry.take(b"x" * half, is_asked=True) is Typed.NOTHING
    for piece in (b"\x1b[200~", b"y" * half, b"z\x1b[20", b"1~"):
        said = entry.take(piece, is_asked=True)
    assert said is Typed.TOO_LONG
    assert entry.take(b"\n", is_asked=True) == "x" * half, "what was typed before is still there"
    entry.begin(b"")
    assert entry.take(b"x" * (LONGEST_ANSWER + 1), is_asked=True) is Typed.TOO_LONG
    assert entry.take(b"yes\n", is_asked=True) is Typed.NOTHING, "the rest of what came is dropped"
    assert entry.take(b"no\n", is_asked=True) == "no"


def test_a_paste_of_any_size_is_held_in_bounded_memory() -> None:
    keys = Keys()
    keys.feed(b"\x1b[200~", 0.0)
    for _ in range(40):
        assert keys.feed(b"x" * 65536, 0.0) == []
    [key] = keys.feed(b"\x1b[201~", 0.0)
    assert LONGEST_ANSWER < len(key.text) < 40 * 65536
