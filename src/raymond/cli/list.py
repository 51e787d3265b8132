"""`raymond list`: the runs of this project."""

import os
import sys
from time import time as now

import click
import msgspec

from raymond import durations, journal, views
from raymond.errors import JournalError
from raymond.project import Project, find


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(as_json: bool) -> int:
    """Every run, the latest first: id, status, age, agents, cost."""
    project = find(os.getcwd())
    rows = [_row(project, id) for id in project.ids()] if project else []
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
        sys.stdout.flush()
    elif not rows:
        print("no run was started here yet: raymond run PATH", file=sys.stderr)
    else:
        width = max(len(str(row["workflow_id"])) for row in rows)
        for row in rows:
            print(
                f"{row['workflow_id']:<{width}}  {row['status']:<10} {row['age']:>8}  {row['agents']:>5}  {row['cost']}"
            )
    return 0


def _row(project: Project, id: str) -> dict[str, object]:
    try:
        run = journal.read(project, id).run
    except JournalError as error:
        return {"workflow_id": id, "status": "unreadable", "age": "", "agents": 0, "cost": str(error)}
    return {
        "workflow_id": id,
        "status": views.status(run),
        "age": durations.show(max(0.0, now() - run.started_at)),
        "agents": len(run.agents),
        "cost": views.money(run),
        "started_at": views.instant(run.started_at),
    }
