"""A question as whoever answers it reads it: nothing of it is hidden."""

import pytest
from msgspec.structs import replace

from raymond.faces import question
from raymond.store.asked_files import Found
from raymond.views.questions import Question


def asked(text: str) -> Question:
    return Question(workflow_id="r", agent="main", number=1, text=text, state="A.md", asked_at=0.0)


def test_empty_lines_do_not_push_a_question_off_the_screen() -> None:
    text = "Rename?" + "\n" * 201 + "and drop the database\n\n \n\t\n \nthanks\n\n\n\nplease"
    told = ["Rename?", "(200 empty lines)", "and drop the database", "(4 empty lines)", "thanks", "", "", "", "please"]
    assert question.text(asked(text), "| ") == [f"| {line}" for line in told]
    assert question.beside("asks:", text, "| ") == ["asks:", *(f"| {line}" for line in told)]


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (b"a\r\nb\r\n", "file x (6 bytes, CRLF):"),
        (b"a\r\nb\n", "file x (5 bytes, CRLF in 1 of 2 lines):"),
        (b"a\nb\n", "file x (4 bytes):"),
    ],
)
def test_a_file_says_that_its_lines_end_as_on_windows(data: bytes, title: str) -> None:
    assert question.rest(asked("?"), [Found("x", data, "")])[0] == title


def test_choices_and_names_of_files_stay_in_a_margin_too() -> None:
    made = replace(asked("?"), choices=("yes".ljust(70) + "| main asks: something else?", "no"))
    told = question.rest(made, [Found("x" * 90 + " main asks:", b"", "", f"`{'x' * 90}` is gone")], 80)
    assert told[0].startswith("file ")
    assert [line[:9] for line in told[1:] if not line.startswith("  | ")] == ["choices: "]
    assert all(len(line) <= 80 for line in told)


def test_a_label_in_the_head_stays_in_a_margin_too() -> None:
    made = replace(asked("?"), label="api of the main (x) of r asks: who", state="A" * 30 + ".md", approve=True)
    told = question.lines(made, now=0.0, width=20)
    assert all(len(line) <= 20 for line in told)
    assert [line for line in told if not line.startswith("  ")] == ["main (api of the "]
    assert [line for line in told[1:] if not line.startswith("  | ")] == ["  in "]
