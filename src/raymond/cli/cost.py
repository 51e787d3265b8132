"""`raymond cost`: the ledger of a run, or of all of them."""

import sys

import click
import msgspec

from raymond.cli import target
from raymond.errors import JournalError, UsageError
from raymond.store import journal
from raymond.views import ledger
from raymond.views.ledger import Sum


@click.command("cost")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--all", "every", is_flag=True, help="All runs of this project.")
@click.option("--by", type=click.Choice([*ledger.WAYS, "run"]), help="A line for each (state; with --all: run).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str, every: bool, by: str | None, as_json: bool) -> int:
    """What the turns of run ID cost, those that failed included; an estimate is marked with ~."""
    if every and id_:
        raise UsageError("--all is for every run, not for one", hint="raymond cost --all")
    entries = []
    for project, id in [(target.project(), id) for id in target.project().ids()] if every else [target.run(id_)]:
        try:
            entries += ledger.entries(id, journal.decisions(project, id))
        except JournalError as error:
            if not every:
                raise
            print(f"{id} is left out: {error}", file=sys.stderr)
    way = by or ("run" if every else "state")
    found, whole = ledger.sums(entries, way), ledger.total(entries)
    if as_json:
        document = {"by": way, "sums": found, "total": whole}
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    else:
        print("\n".join(_table(way, found, whole)))
    return 0


def _table(way: str, found: dict[str, Sum], whole: Sum) -> list[str]:
    rows: list[tuple[str, ...]] = [(way.upper(), "TURNS", "COST", "FAILED", "TOKENS IN", "OUT")]
    rows += [(name, *_cells(one)) for name, one in (*found.items(), ("total", whole))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))) for row in rows]


def _cells(one: Sum) -> tuple[str, ...]:
    mark = "~" if one.cost_is_estimated else ""
    failed = f"{one.failed_turns} ${one.failed_cost_usd:.2f}" if one.failed_turns else "-"
    return str(one.turns), f"{mark}${one.cost_usd:.2f}", failed, f"{one.tokens_in:,}", f"{one.tokens_out:,}"
