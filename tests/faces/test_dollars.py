"""Money is the same in every view: the digits it needs, `~` for estimates, `*` for dollars that nobody paid."""

import io

import pytest

from builders import Play
from raymond.faces.lines import Lines
from raymond.faces.listing import cost
from raymond.faces.words import dollars
from raymond.machine.inputs import Spending
from raymond.views.status import RunRow

FILES = {"START.md": "", "REAL.md": "---\nbackend: claude\n---\n"}


@pytest.mark.parametrize(
    ("real", "scripted", "estimated", "shown"),
    [
        (0.0, 0.0, False, "$0.00"),
        (0.0024, 0.0, False, "$0.0024"),
        (0.52, 0.0, True, "~$0.52"),
        (0.1 + 0.2, 0.0, False, "$0.30"),
        (0.00004, 0.0, False, "$0.000040"),
        (0.00996, 0.0, False, "$0.01"),
        (0.0, 0.75, False, "$0.75*"),
        (1e-15, 0.75, True, "$0.75*"),
        (0.5, 0.0024, True, "~$0.50 and $0.0024*"),
    ],
)
def test_an_amount_has_the_digits_it_needs_and_says_what_it_is(
    real: float, scripted: float, estimated: bool, shown: str
) -> None:
    assert dollars(real, scripted, estimated=estimated) == shown


def told(play: Play, at: int) -> list[str]:
    """The ends of the lines of all decisions, the first `at` of which have been there before somebody looked."""
    stream = io.StringIO()
    lines = Lines(stream)
    before = Play(FILES, backend="scripted")
    for decision in play.decisions[1:at]:
        before.commit(decision.events)
    lines.on_decisions(before.run, [])
    for decision in play.decisions[at:]:
        # As when one attaches: the run is ahead of what is told.
        lines.on_decisions(play.run, [decision])
    lines.refresh()
    return [line.partition(" $")[2] for line in stream.getvalue().splitlines() if " total " in line]


def test_a_line_has_the_total_as_of_its_own_decision_and_both_kinds_of_dollars_are_marked() -> None:
    play = Play(FILES, backend="scripted")
    play.say("<goto>REAL</goto>", cost=0.25)
    at = len(play.decisions)
    play.say("<goto>REAL</goto>", cost=0.0024)
    play.fail("crash", spent=Spending(cost=0.5))
    ends = ["0.25* total $0.25*", "0.0024 total $0.0024 and $0.25*", "0.50 total $0.50 and $0.25*"]
    assert told(play, 1) == ends
    assert told(play, at) == ends[1:]


def test_a_list_shows_small_amounts_and_both_kinds() -> None:
    row = RunRow(workflow_id="r", project="/p", status="completed", driven=False, cost_usd=0.0024)
    assert cost(row) == "$0.0024"
    both = RunRow(workflow_id="r", project="/p", status="completed", driven=False, cost_usd=0.5, scripted_cost_usd=0.25)
    assert cost(both) == "$0.50 and $0.25*"
