"""The runs that a command is about: the one that is meant, or several, one after the other."""

import sys
from collections.abc import Callable, Sequence

from raymond.control import handle, runs
from raymond.control.handle import RunHandle
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.errors import Error
from raymond.faces.foreign_text import said, width_of


def find(id: str | None, verb: str = "") -> RunHandle:
    """The run that `id` names, or that `verb` can act on; a person on a terminal chooses where several can be meant."""
    return _find(id, verb, changes=False)


def change(id: str | None, verb: str = "") -> RunHandle:
    """The same for a command that changes a run; when it is one of another project, that is said."""
    found = _find(id, verb, changes=True)
    if found.project.tree != runs.here().tree:
        print(said(f"project: {found.project.tree}", sys.stderr), file=sys.stderr)
    return found


def _find(id: str | None, verb: str, *, changes: bool) -> RunHandle:
    try:
        return handle.find(id or None, changes=changes, verb=verb)
    except SeveralRuns as several:
        from raymond.cli import prompt

        if not prompt.can_ask_on_stderr():
            raise
        return handle.from_row(prompt.pick_run(several))


def for_each(handles: Sequence[RunHandle], does: Callable[[RunHandle], int]) -> int:
    """Do something with each of several runs, whatever becomes of the others; the worst exit code."""
    if len(handles) == 1:
        return does(handles[0])
    worst = 0
    for run in handles:
        try:
            code = does(run)
        except Error as error:
            from raymond.faces import errors

            print(errors.error(error), file=sys.stderr)
            code = error.exit_code
        worst = max(worst, code)
    return worst


def show(rows: Sequence[RunRow]) -> None:
    """A line for each run: what it is, what it has cost of what it may cost, and where."""
    from raymond.faces import table
    from raymond.faces.table import Column

    columns = (Column(least=8), Column(rank=2), Column(rank=3), Column(least=10, rank=1))
    cells = [(row.workflow_id, row.status, _spending(row), row.project) for row in rows]
    width = width_of(sys.stderr)
    print("\n".join(table.lines(columns, cells, width, table.cut_mark(sys.stderr))), file=sys.stderr)


def _spending(row: RunRow) -> str:
    from raymond.faces import listing
    from raymond.faces.words import dollars

    spent = listing.cost(row)
    return f"{spent} of {dollars(row.budget_usd)}" if row.budget_usd else f"{spent}, no budget"
