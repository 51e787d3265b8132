"""`raymond review`: what waits for the review of a person."""

import sys

import click
import msgspec

from raymond.cli import choice, reviewing
from raymond.cli.names import RUN


@click.command("review")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Show which green checks of run ID do not count yet: what decides them changed; and what a loop has set aside.

    Each with the difference, what the agent said, and what the check printed with and without the change. On a terminal
    it asks about each: y accepts, n rejects and asks why, d shows the difference, Enter leaves it for later.
    """
    run = choice.find(id_, "review")
    found = reviewing.cases(run)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode([one.found for one in found]) + b"\n")
        sys.stdout.flush()
    elif not found:
        print(f"nothing of {run.id} waits for a review", file=sys.stderr)
    elif reviewing.can_decide(found):
        return reviewing.decide(found)
    else:
        print("\n\n".join("\n".join([*one.lines(), *one.ways()]) for one in found))
    return 0
