"""`raymond list`: the runs of this project, or of all of them."""

import os
import sys
from collections.abc import Sequence
from time import time as now

import msgspec

from raymond import amounts, pasted
from raymond.cli import values
from raymond.cli.command import as_command, option
from raymond.cli.values import Value
from raymond.control import naming, runs
from raymond.control.runs import RunRow
from raymond.errors import UsageError
from raymond.views import times
from raymond.views.status import DONE, NEEDS_YOU, STATUSES

_DONE = 10
"""Runs that are done and are listed without `--limit`."""


@as_command("list")
@option("--all", "every", is_flag=True, help="The runs of all your projects.")
@option("--here", is_flag=True, help="Only the runs of this project.")
@option("--status", "statuses", many=True, choices=STATUSES, help="Only runs with this status.")
@option("--project", metavar="DIR|NAME", complete=values.complete_project, help="Only the runs of this project.")
@option("--since", metavar="TIME", help="Only runs in which something happened since: 10m, 14:30, 2026-01-15.")
@option("--limit", type=Value(amounts.count), metavar="N", help="Only N: those that need you, then the latest.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(
    every: bool,
    here: bool,
    statuses: tuple[str, ...],
    project: str | None,
    since: str | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """List runs, those that need you first, each with its status and why; outside of a project, those of all."""
    if sum((every, here, project is not None)) > 1:
        raise UsageError("--all, --here and --project do not go together", hint="raymond list --all")
    rows = _rows(every=every or project is not None)
    if not rows and not (every or here or as_json):
        rows, every = _rows(every=True), True
        if rows and not (statuses or since):
            print("no run has been started here yet; these are the runs of all your projects", file=sys.stderr)
    is_empty = not rows
    rows = _chosen(rows, statuses, project, since)
    shown = _first(rows, limit) if limit else rows if as_json else _folded(rows)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
        sys.stdout.flush()
    elif is_empty:
        from raymond.faces import errors

        print(errors.error(naming.nothing_in(runs.here())).removeprefix("error: "), file=sys.stderr)
    elif not shown:
        print("no run is like that", file=sys.stderr)
    else:
        _show(shown, with_projects=every or project is not None, left=len(rows) - len(shown))
    return 0


def _rows(*, every: bool) -> list[RunRow]:
    """The runs, and a row for each project whose runs cannot be listed."""
    closed = runs.unreadable(every=every).items()
    hidden = [
        RunRow(workflow_id="", project=root, status="unreadable", driven=False, error=f"{root}: {why}")
        for root, why in closed
    ]
    return [*hidden, *runs.rows(every=every)]


def _chosen(rows: list[RunRow], statuses: Sequence[str], project: str | None, since: str | None) -> list[RunRow]:
    if project is not None:
        rows = _of_project(rows, project)
    if since is not None:
        from raymond.control import history

        begin = history.moment(since, now())
        rows = [row for row in rows if times.moment(row.updated_at or row.started_at) >= begin]
    return [row for row in rows if not statuses or row.status in statuses]


def _first(rows: list[RunRow], most: int) -> list[RunRow]:
    """As many, in their order: those that need somebody are not left out for one that is done."""
    places = sorted(range(len(rows)), key=lambda place: rows[place].group != NEEDS_YOU)[:most]
    return [rows[place] for place in sorted(places)]


def _folded(rows: list[RunRow]) -> list[RunRow]:
    """Those of the runs that are done which ended last, and all others."""
    left_out = {id(row) for row in [row for row in rows if row.group == DONE][_DONE:]}
    return [row for row in rows if id(row) not in left_out]


def _of_project(rows: list[RunRow], given: str) -> list[RunRow]:
    """The runs of the project at a path, or with this name."""
    if not given:
        raise UsageError("--project needs a directory or the name of one", hint="raymond list --all shows all projects")
    path = os.path.realpath(given)
    found = [row for row in rows if path == row.project or given == os.path.basename(row.project)]
    if found or path == runs.here().tree:
        return found
    names = sorted({os.path.basename(row.project) for row in rows})
    some = ", ".join(map(pasted.name, names[:10])) + (", ..." if len(names) > 10 else "")
    raise UsageError(f"there are no runs of a project `{given}`", hint=f"there are runs of: {some}" if names else "")


def _show(rows: list[RunRow], *, with_projects: bool, left: int) -> None:
    from raymond.faces import listing, table
    from raymond.faces.foreign_text import width_of

    width, mark = width_of(sys.stdout), table.cut_mark(sys.stdout)
    print("\n".join(listing.lines(rows, now(), projects=with_projects, width=width, mark=mark)))
    if left:
        print(f"... and {left} more: raymond list --limit {len(rows) + left}", file=sys.stderr)
