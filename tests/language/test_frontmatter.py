"""YAML as authors write it: types, places, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.errors import Diagnostic
from raymond.language import frontmatter


def wrong(text: str) -> Diagnostic:
    document = frontmatter.load(text, file="X.md")
    assert document.values == {}
    [found] = document.diagnostics
    assert (found.id, found.file, found.severity) == ("bad-frontmatter", "X.md", "error")
    return found


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("2026-01-17", "2026-01-17"),
        ("010", 10),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("-3", -3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("", None),
        ("~", None),
        ("null", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("10m", "10m"),
        ("[a, 2]", ["a", 2]),
        ("{b: 2}", {"b": 2}),
        ("=", "="),
        ("٣", "٣"),
    ],
)
def test_a_value_is_what_an_author_means(written: str, value: object) -> None:
    document = frontmatter.load(f"key: {written}", file="X.md")
    assert (document.values, document.diagnostics) == ({"key": value}, [])
    assert type(document.values["key"]) is type(value)


def test_a_key_is_always_text() -> None:
    assert frontmatter.load("true: a\n1: b\n<<: c", file="X.md").values == {"true": "a", "1": "b", "<<": "c"}


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "~"])
def test_nothing_is_an_empty_mapping(text: str) -> None:
    document = frontmatter.load(text, file="X.md")
    assert (document.values, document.diagnostics) == ({}, [])


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        ("a:\n\t- b", "YAML cannot be indented with tabs", (2, 1, 1, "\t- b"), "use spaces"),
        ("a: b\n\tc: d", "YAML cannot be indented with tabs", (2, 1, 1, "\tc: d"), "use spaces"),
        ("a: &x 1\nb: *x", "anchors and aliases are not supported", (1, 4, 4, "a: &x 1"), "write the value itself"),
        ("a: &x [*x]", "anchors and aliases are not supported", (1, 4, 7, "a: &x [*x]"), "write the value itself"),
        ("- a", "expected keys with values", (1, 1, 1, "- a"), "write lines like `model: opus`"),
        ("text", "expected keys with values", (1, 1, 4, "text"), "write lines like `model: opus`"),
        ("? [a]\n: b", "a key must be text", (1, 3, 3, "? [a]"), ""),
        ("a: \x01", "the character U+0001 is not allowed in YAML", (1, 4, 1, "a: \x01"), "remove it"),
        (
            "a: !!python/name:os.system x",
            "the type `tag:yaml.org,2002:python/name:os.system` is not supported",
            (1, 4, 25, "a: !!python/name:os.system x"),
            "remove the `!`",
        ),
        ("a: !!int x", "the type `tag:yaml.org,2002:int` is not supported", (1, 4, 7, "a: !!int x"), "remove the `!`"),
        (
            "a: !!set {x}",
            "the type `tag:yaml.org,2002:set` is not supported",
            (1, 4, 9, "a: !!set {x}"),
            "remove the `!`",
        ),
        ("a: ! b c", "YAML drops a `!` at the beginning of a value", (1, 4, 5, "a: ! b c"), "put the value in quotes"),
        ("a: !x [b]", "the type `!x` is not supported", (1, 4, 6, "a: !x [b]"), "remove the `!`"),
        (
            "a: b: c",
            "YAML: mapping values are not allowed in this context",
            (1, 5, 1, "a: b: c"),
            "put a value that contains `: ` in quotes",
        ),
        (
            "a: @b",
            "YAML: while scanning for the next token: found character that cannot start any token",
            (1, 4, 1, "a: @b"),
            "put the value in quotes",
        ),
        (
            "a: {b: c",
            "YAML: while parsing a flow mapping: did not find expected ',' or '}'",
            (1, 4, 1, "a: {b: c"),
            "close the quote or the bracket that begins here",
        ),
        ("a: " + "[" * 30 + "]" * 30, "nested too deeply", (1, 23, 22, "a: " + "[" * 30 + "]" * 30), ""),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(
    text: str, message: str, place: tuple[int, int, int, str], hint: str
) -> None:
    found = wrong(text)
    assert (found.message, found.hint) == (message, hint)
    assert (found.line, found.column, found.length, found.source) == place


@pytest.mark.parametrize(
    ("text", "name", "place", "first"),
    [
        ("a: 1\nb: 2\na: 3", "a", (3, 1, 1, "a: 3"), 1),
        ("a:\n  x: 1\n  x: 2\nb: 2", "x", (3, 3, 1, "  x: 2"), 2),
    ],
)
def test_a_key_given_twice_is_refused_and_the_rest_is_read(
    text: str, name: str, place: tuple[int, int, int, str], first: int
) -> None:
    document = frontmatter.load(text, file="X.md")
    [found] = document.diagnostics
    assert (found.id, found.message) == ("bad-frontmatter", f"`{name}` is given twice")
    assert found.hint == f"the first one is in line {first}"
    assert (found.line, found.column, found.length, found.source) == place
    assert document.values["b"] == 2


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000, "? " * 50_000, "a: " + "{b: " * 50_000])
def test_nesting_that_would_end_the_process_is_refused(text: str) -> None:
    assert wrong(text).message == "nested too deeply"


def test_a_long_line_is_no_nesting() -> None:
    assert frontmatter.load("a: " + "x" * 5000, file="X.md").values == {"a": "x" * 5000}


def test_every_key_and_value_has_a_place() -> None:
    document = frontmatter.load("a: 1\nb:\n  - c: two words\n", file="X.md")
    assert document.keys["b", 0, "c"] == frontmatter.Mark("X.md", 3, 5, "  - c: two words", 1)
    assert document.marks["b", 0, "c"] == frontmatter.Mark("X.md", 3, 8, "  - c: two words", 9)
    assert document.marks["b",].line == 3


def test_a_value_over_several_lines_is_marked_in_its_first() -> None:
    document = frontmatter.load("a: [b,\n  c]\n", file="X.md")
    assert document.marks["a",] == frontmatter.Mark("X.md", 1, 4, "a: [b,", 3)


def test_a_refusal_without_a_place_names_the_file() -> None:
    document = frontmatter.Document("X.md")
    document.refuse(("a",), "bad-value", "no", "yes")
    assert document.diagnostics == [Diagnostic(id="bad-value", message="no", file="X.md", hint="yes")]


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("modle", ["model", "effort"], "did you mean `model`?"),
        ("MODEL", ["model"], "did you mean `model`?"),
        ("zzz", ["model"], ""),
        ("revew", {"REVIEW": "REVIEW.md"}, "did you mean `REVIEW.md`?"),
    ],
)
def test_a_suggestion_is_a_close_name(word: str, known: list[str], said: str) -> None:
    assert frontmatter.suggest(word, known) == said


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@` \n\t,?~1", max_size=60))
def test_no_text_raises(text: str) -> None:
    document = frontmatter.load(text, file="X.md")
    for found in document.diagnostics:
        assert found.line >= 1
        assert found.column >= 1
        assert found.length >= 1
