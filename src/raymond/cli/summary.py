"""`raymond summary`: what a run came to, or all runs of a night."""

import json
import os
import sys
from time import time

import msgspec

from raymond import durations, pasted
from raymond.cli import choice
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import RUN
from raymond.control import history, runs
from raymond.errors import Error, UsageError
from raymond.faces import listing, words
from raymond.faces.foreign_text import MARGIN, hung, width_of
from raymond.faces.words import dollars, instant
from raymond.loops import report
from raymond.loops.report import Failure, Report
from raymond.text import visible
from raymond.views import status, times

_INDENT = "          "
_ITEMS = 5
"""Things of one kind that are told of a run."""


@as_command("summary")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@option("--since", metavar="TIME", help="All runs of all projects in which something happened since.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, since: str | None, as_json: bool) -> int:
    """Tell what run ID came to: done, failed and why, how often an agent was wrong about that, what waits for you."""
    if id_ and since is not None:
        raise UsageError("--since is for every run, not for one", hint=f"raymond summary {pasted.word(id_, 'ID')}")
    begin = 0.0 if since is None else history.moment(since, time())
    rows = [row for row in runs.rows(every=True) if _moment(row) >= begin] if since is not None else [_row(id_)]
    found = [_report(row) for row in rows] if since is not None else [report.report_of(rows[0])]
    if as_json:
        print(json.dumps(msgspec.to_builtins(found[0] if since is None else found)))  # a title need not be UTF-8
        sys.stdout.flush()
        return 0
    if since is not None:
        print("\n".join([_head(rows, begin), *(line for group in status.GROUPS for line in _group(group, found))]))
    else:
        print("\n".join(line for one in found for line in (report.whole_report(one.run).splitlines() or _told(one))))
    return 0


def _row(id_: str | None) -> runs.RunRow:
    found = choice.find(id_)
    return runs.row(found.project, found.id)


def _moment(row: runs.RunRow) -> float:
    return times.moment(row.updated_at or row.started_at)


def _report(row: runs.RunRow) -> Report:
    """The report of one of several; of one that cannot be told, why."""
    try:
        return report.report_of(row)
    except Error as error:
        why = [] if row.error else [Failure("cannot be told", str(error))]
        return Report(run=row, failed=why, next=[error.hint] if error.hint else [])


def _head(rows: list[runs.RunRow], begin: float) -> str:
    money = dollars(
        sum(row.cost_usd for row in rows),
        sum(row.scripted_cost_usd for row in rows),
        estimated=any(row.cost_is_estimated for row in rows),
    )
    projects = words.many(len({row.project for row in rows}), "project")
    return f"since {instant(begin)}: {words.many(len(rows), 'run')} in {projects}, {money}"


def _group(group: str, found: list[Report]) -> list[str]:
    shown = [one for one in found if one.run.group == group]
    return ["", group, *(line for one in shown for line in _told(one))] if shown else []


def _told(one: Report) -> list[str]:
    """A run in a few lines."""
    row, width = one.run, width_of(sys.stdout)
    where = os.path.relpath(row.project) if row.project.startswith(os.getcwd()) else row.project
    started, ended = times.moment(row.started_at), time() if row.driven else times.moment(row.updated_at)
    head = f"  {row.workflow_id} ({', '.join(filter(None, (row.workflow, where)))}): {row.status}"
    why = listing.why(row)
    lines = hung(visible(f"{head}{f', {why}' if why else ''}"), MARGIN, width)
    if started:
        lines.append(f"    {listing.cost(row)} in {durations.brief(max(0.0, ended - started))}")
    for label, items in (
        ("done", one.done),
        ("failed", [f"{failure.title} ({failure.why})" for failure in one.failed]),
    ):
        lines += [
            part for item in items[:_ITEMS] for part in hung(visible(f"    {label + ':':<7} {item}"), _INDENT, width)
        ]
        lines += [f"    {label + ':':<7} and {len(items) - _ITEMS} more"] if items[_ITEMS:] else []
    if one.claimed_while_red:
        times_ = words.many(one.claimed_while_red, "time")
        lines.append(f"    wrong:  the agent said {times_} that it was done while the check was red")
    for item in one.next:
        lines += hung(visible(f"    next:   {item}"), _INDENT, width)
    return lines
