"""Lines on a terminal that is not redrawn: what others said is shown, and sends nothing."""

import io

import pytest

from raymond.drivers import recovery
from raymond.faces.lines import Lines
from raymond.machine.agent import Closed
from raymond.machine.run import Run


def test_a_note_shows_the_control_characters_that_it_quotes() -> None:
    stream = io.StringIO()
    Lines(stream).on_note("closed: \x1b[2J\x1b]0;title\x07done\nmore")
    assert stream.getvalue() == "closed: \\x1b[2J\\x1b]0;title\\x07done\n    | more\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_error_makes_no_line_of_its_own(end: str) -> None:
    run = Run(
        closed={
            "claude": Closed(kind="limit", error=f"limit{end}[2026] run completed", until=100.0, tries=1, since=0.0)
        }
    )
    [note] = recovery.notes(run, 0.0)
    assert note == "claude is unavailable for 1m 40s: limit [2026] run completed"
