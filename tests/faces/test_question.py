"""A question as whoever answers it reads it: nothing of it is hidden."""

import pytest

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
