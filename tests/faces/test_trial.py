"""A gate that is tried: all that its commands print is shown, however it comes."""

from io import StringIO

import pytest

from raymond.faces.lines import CheckLines
from raymond.verifier.assignment import Began, Ended, Printed


@pytest.mark.parametrize("pieces", [["\n\na\n\nb"], ["\n", "\na\n", "\n", "b"], ["\n\n", "a", "\n\nb"]])
def test_blank_lines_stay_wherever_the_output_is_cut(pieces: list[str]) -> None:
    shown = StringIO()
    trial = CheckLines(shown)
    trial.tell(Began("x"))
    for piece in pieces:
        trial.tell(Printed(piece))
    trial.tell(Ended(0, 0.0))
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert lines == ["$ x", "  |", "  |", "  | a", "  |", "  | b", "  exit code 0 after 0s"]
