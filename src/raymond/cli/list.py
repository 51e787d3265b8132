"""`raymond list`: the runs of this project, or of all of them."""

import sys
from time import time as now

import click
import msgspec

from raymond import durations
from raymond.cli import choice
from raymond.control import runs
from raymond.control.runs import RunRow
from raymond.text import visible
from raymond.views import times


@click.command("list")
@click.option("--all", "every", is_flag=True, help="List the runs of all your projects.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(every: bool, as_json: bool) -> int:
    """List every run, latest first: id, status, age, agents, cost, project."""
    choice.mention_earlier()
    rows = runs.rows(every=every)
    if not rows and not every and not as_json:
        rows, every = runs.rows(every=True), True
        if rows:
            print("no run has been started here yet; these are the runs of all your projects", file=sys.stderr)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
        sys.stdout.flush()
    elif not rows:
        from raymond.faces import errors

        print(errors.error(runs.nothing_in(runs.here())).removeprefix("error: "), file=sys.stderr)
    else:
        print("\n".join(_table(rows, every)))
    return 0


def _table(rows: list[RunRow], every: bool) -> list[str]:
    wide = max(len(row.workflow_id) for row in rows)
    head = f"{'ID':<{wide}}  {'STATUS':<11}  {'AGE':>8}  {'AGENTS':>6}  {'COST':>8}" + ("  PROJECT" if every else "")
    return [head, *(_line(row, wide, every) for row in rows)]


def _line(row: RunRow, wide: int, every: bool) -> str:
    started = times.moment(row.started_at)
    age = durations.brief(max(0.0, now() - started)) if started else ""
    cost = f"{'~' if row.cost_is_estimated else ''}${row.cost_usd:.2f}"
    more = (f"  {visible(row.project)}" if every else "") + (f"  {visible(row.error)}" if row.error else "")
    if row.agents_failed:
        more += f"  {row.agents_failed} of {row.agents} agents failed"
    return f"{row.workflow_id:<{wide}}  {row.status:<11}  {age:>8}  {row.agents:>6}  {cost:>8}{more}"
