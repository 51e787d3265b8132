"""`raymond list`: the runs of this project, or of all of them."""

import os
import sys
from time import time as now
from typing import Any

import click
import msgspec

from raymond import durations
from raymond.errors import JournalError
from raymond.store import journal, lock, project
from raymond.store.project import Project
from raymond.views import documents, times


@click.command("list")
@click.option("--all", "every", is_flag=True, help="The runs of every project of yours.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(every: bool, as_json: bool) -> int:
    """Every run, the latest first: id, status, age, agents, cost, project."""
    here = project.find(os.getcwd())
    projects = project.known() if every else []
    if here and here.root not in [one.root for one in projects]:
        projects.insert(0, here)
    rows = [row(one, id) for one in projects for id in one.ids()]
    rows.sort(key=lambda one: one["started_at"] or "", reverse=True)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
        sys.stdout.flush()
    elif not rows:
        print("no run was started here yet: raymond run PATH", file=sys.stderr)
    else:
        print("\n".join(_table(rows, every)))
    return 0


def row(home: Project, id: str) -> dict[str, Any]:
    """A run in a line: of its state file while that says what the journal says, else of the journal."""
    driven = lock.holder(home.beside(id, "lock")) is not None
    try:
        found, trouble = _kept(home, id) or documents.document(journal.read(home, id).run), None
    except JournalError as error:
        found, trouble = {"status": "unreadable"}, str(error)
    status = found["status"]
    return {
        "workflow_id": id,
        "project": os.path.dirname(home.root),
        "status": "abandoned" if status == "running" and not driven else status,
        "driven": driven,
        "agents": 1 + sum(found["fork_counters"].values()) if not trouble else 0,
        "cost_usd": found.get("total_cost_usd", 0.0),
        "cost_is_estimated": found.get("cost_is_estimated", False),
        "started_at": found.get("started_at"),
        "updated_at": found.get("updated_at"),
        "error": trouble,
    }


def _kept(home: Project, id: str) -> dict[str, Any] | None:
    try:
        with open(home.beside(id, "json"), "rb") as file:
            found = msgspec.json.decode(file.read(), type=dict[str, Any])
        return found if found.get("journal_bytes") == os.stat(home.journal(id)).st_size else None
    except (OSError, msgspec.DecodeError):
        return None


def _table(rows: list[dict[str, Any]], every: bool) -> list[str]:
    wide = max(len(row["workflow_id"]) for row in rows)
    lines = [f"{'ID':<{wide}}  {'STATUS':<10}  {'AGE':>8}  {'AGENTS':>6}  {'COST':>8}" + ("  PROJECT" if every else "")]
    for row in rows:
        started = times.moment(row["started_at"])
        age = durations.brief(max(0.0, now() - started)) if started else ""
        cost = f"{'~' if row.get('cost_is_estimated') else ''}${row['cost_usd']:.2f}"
        more = f"  {row['project']}" if every else ""
        more += f"  {row['error']}" if row["error"] else ""
        lines.append(
            f"{row['workflow_id']:<{wide}}  {row['status']:<10}  {age:>8}  {row['agents']:>6}  {cost:>8}{more}"
        )
    return lines
