"""One command for many runs: they are shown first, and a person agrees."""

import sys
from collections.abc import Callable, Sequence

from raymond.cli import picker
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.errors import Error, UsageError
from raymond.faces import errors, listing, table, words
from raymond.faces.foreign_text import width_of
from raymond.faces.table import Column
from raymond.faces.words import dollars

_COLUMNS = (Column(least=8), Column(rank=2), Column(rank=3), Column(least=10, rank=1))


def each(handles: Sequence[RunHandle], does: Callable[[RunHandle], int]) -> int:
    """Do something with each of several runs, whatever becomes of the others; the worst exit code."""
    if len(handles) == 1:
        return does(handles[0])
    worst = 0
    for handle in handles:
        try:
            code = does(handle)
        except Error as error:
            print(errors.error(error), file=sys.stderr)
            code = error.exit_code
        worst = max(worst, code)
    return worst


def show(rows: Sequence[RunRow]) -> None:
    """A line for each run: what it is, what it has cost of what it may cost, and where."""
    cells = [(row.workflow_id, row.status, _spending(row), row.project) for row in rows]
    width = width_of(sys.stderr)
    print("\n".join(table.lines(_COLUMNS, cells, width, table.cut_mark(sys.stderr))), file=sys.stderr)


def _spending(row: RunRow) -> str:
    spent = listing.cost(row)
    return f"{spent} of {dollars(row.budget_usd)}" if row.budget_usd else f"{spent}, no budget"


def agrees(verb: str, count: int, *, yes: bool, alone: bool) -> bool:
    """Whether to go ahead; `alone` says whether to do so where nobody can be asked."""
    if yes:
        return True
    if picker.can_ask():
        return picker.agrees(f"{verb} {words.many(count, 'run')}?")
    if alone:
        return True
    raise UsageError(f"cannot ask whether to {verb} them without a terminal", hint="add --yes if you mean all of these")
