"""Runs in a list: in groups, those that need somebody first."""

from collections.abc import Sequence

from raymond import durations
from raymond.faces import table, words
from raymond.faces.table import Column
from raymond.faces.words import dollars
from raymond.views import status, times
from raymond.views.status import RunRow

_INDENT = "  "
_COLUMNS = (
    Column(title="ID", least=8),
    Column(title="STATUS", rank=2),
    Column(title="AGE", right=True, rank=4),
    Column(title="WORKFLOW", least=8, rank=6),
    Column(title="AT", least=8, rank=7, prose=True),
    Column(title="COST", right=True, rank=3),
    Column(title="WHY", least=17, rank=5, prose=True),
    Column(title="PROJECT", least=12, rank=1),
)


def lines(rows: Sequence[RunRow], now: float, *, projects: bool, width: int = 0, mark: str = "…") -> list[str]:
    """A head, a heading for each group and a line for each run, none of them wider than `width` unless that is 0."""
    ordered = [row for group in status.GROUPS for row in rows if row.group == group]
    cells = [_cells(row, now, projects) for row in ordered]
    room = max(1, width - len(_INDENT)) if width else 0
    head, *told = table.lines(_COLUMNS, cells, room, mark)
    shown, last = [f"{_INDENT}{head}"], ""
    for row, line in zip(ordered, told, strict=True):
        if row.group != last:
            shown.append(table.fit(row.group, width, mark) if width else row.group)
            last = row.group
        shown.append(f"{_INDENT}{line}")
    return [line[:width] if width and width < len(_INDENT) + 1 else line for line in shown]


def _cells(row: RunRow, now: float, projects: bool) -> tuple[str, ...]:
    started = times.moment(row.started_at)
    return (
        row.workflow_id,
        row.status,
        durations.brief(max(0.0, now - started)) if started else "",
        row.workflow,
        row.at,
        cost(row),
        why(row),
        row.project if projects else "",
    )


def cost(row: RunRow) -> str:
    """What a run has cost."""
    return dollars(row.cost_usd, row.scripted_cost_usd, estimated=row.cost_is_estimated)


def why(row: RunRow) -> str:
    """Why a run is where it is; of one that goes on, that it has a question."""
    if row.error:
        return row.error
    asks = f"asks {words.many(row.questions, 'question')}" if row.questions and row.status != "waiting" else ""
    review = f"{row.reviews} to review" if row.reviews else ""
    reason = (row.reason or "").partition("\n")[0]
    return "; ".join(filter(None, (asks, "" if review in reason else review, reason)))
