"""Tables fit their terminal, whatever is in them."""

from raymond.faces import table
from raymond.faces.table import Column, cell_count, fit

COLUMNS = (
    Column(title="ID", least=6),
    Column(title="COST", right=True, rank=2),
    Column(title="WHY", least=8, rank=1, prose=True),
    Column(title="PROJECT", least=8, rank=3),
)
ROWS = [
    ("nightly-review-1f3a9c2e", "$0.12", "claude is closed until ten", "/home/ada/projects/shop"),
    ("b", "$10.00", "", "/home/ada/日本語の店"),
]


def test_a_table_without_a_width_shows_everything_in_columns() -> None:
    assert table.lines(COLUMNS, ROWS) == [
        "ID                         COST  WHY                         PROJECT",
        "nightly-review-1f3a9c2e   $0.12  claude is closed until ten  /home/ada/projects/shop",
        "b                        $10.00                              /home/ada/日本語の店",
    ]


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in range(1, 201):
        lines = table.lines(COLUMNS, ROWS, width)
        assert all(cell_count(line) <= width for line in lines), f"{width} cells"
        assert all(line[:1] in ("n", "…") for line in lines[1:2]), "the id is there"


def test_what_is_least_needed_goes_first() -> None:
    heads = {width: table.lines(COLUMNS, ROWS, width)[0].split() for width in (60, 33, 18, 10)}
    assert heads == {60: ["ID", "COST", "WHY", "PROJECT"], 33: ["ID", "COST", "WHY"], 18: ["ID", "WHY"], 10: ["ID"]}


def test_names_lose_their_middle_and_sentences_their_end() -> None:
    assert fit("nightly-review-1f3a", 9) == "nigh…1f3a"
    assert fit("it was closed", 9, prose=True) == "it was c…"
    assert fit("日本語の店", 6) == "日…店", "half of a letter is not shown"
    assert [fit("abcdef", width, "..") for width in (0, 1, 2, 3, 6)] == ["", ".", "..", "a..", "abcdef"]


def test_a_column_of_which_no_row_has_anything_is_left_out() -> None:
    assert table.lines(COLUMNS, [("a", "", "", "x")]) == ["ID  PROJECT", "a   x"]


def test_nothing_in_a_cell_moves_the_cursor() -> None:
    assert table.lines(COLUMNS, [("a", "1", "\x1b[2J\nb\u202e", "p")])[1] == "a      1  \\x1b[2J\\nb\\u202e  p"
