"""`raymond cost`: the ledger of a run, or of all of them."""

import sys

import msgspec

from raymond.cli import choice
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import RUN
from raymond.control import history, runs
from raymond.control.history import Costs
from raymond.errors import UsageError
from raymond.faces import table, words
from raymond.faces.table import Column
from raymond.faces.words import dollars
from raymond.views.cost import WAYS, Sum


@as_command("cost")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@option("--all", "every", is_flag=True, help="All runs of all projects.")
@option("--here", is_flag=True, help="All runs of this project.")
@option("--by", choices=(*WAYS, "run"), help="One line for each (default: state; with --all or --here: run).")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, every: bool, here: bool, by: str | None, as_json: bool) -> int:
    """Show what the turns of run ID cost, failed ones included; ~ marks an estimate."""
    many = "--all" if every else "--here" if here else ""
    if many and id_:
        raise UsageError(f"{many} is for every run, not for one", hint=f"raymond cost {many}")
    if many:
        books = history.books_of_projects(runs.projects_of(every=not here))
    else:
        found = choice.find(id_)
        books = history.books_of_run(found.project, found.id)
    for id, error in books.unreadable.items():
        print(f"{id} is left out: {error}", file=sys.stderr)
    sums = history.costs(books, by or ("run" if many else "state"))
    if as_json:
        sys.stdout.write(msgspec.json.encode(sums).decode() + "\n")
    else:
        print("\n".join(_table(sums)))
    return 0


def _table(found: Costs) -> list[str]:
    rows: list[tuple[str, ...]] = [(found.by.upper(), "TURNS", "COST", "FAILED", "TOKENS IN", "OUT")]
    # A repair loses turns and keeps what they are said to have cost.
    scripted = found.total.scripted_turns > 0 or found.total.scripted_cost_usd > 0
    rows = [(*row, "SCRIPTED*") for row in rows] if scripted else rows
    rows += [
        (
            words.named(name, one.label or ""),
            *_cells(one),
            *([dollars(0.0, one.scripted_cost_usd) if one.scripted_cost_usd else "-"] if scripted else []),
        )
        for name, one in (*found.sums.items(), ("total", found.total))
    ]
    return table.lines([Column(), *[Column(right=True)] * (len(rows[0]) - 1)], rows)


def _cells(one: Sum) -> tuple[str, ...]:
    cost = dollars(one.cost_usd, estimated=one.cost_is_estimated)
    failed = f"{one.failed_turns} {dollars(one.failed_cost_usd)}" if one.failed_turns else "-"
    return str(one.turns), cost, failed, f"{one.tokens_in:,}", f"{one.tokens_out:,}"
