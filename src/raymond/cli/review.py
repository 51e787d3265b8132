"""`raymond review`: what waits for the review of a person."""

import sys

import click
import msgspec

from raymond.cli import choice, reviewing
from raymond.cli import loop_accepting as loops
from raymond.cli.names import RUN
from raymond.control import reviews


@click.command("review")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Show which green checks of run ID do not count yet: what decides them changed; and what a loop has set aside.

    Each with the difference, what the agent said, and what the check printed with and without the change.
    """
    run = choice.find(id_, "review")
    found, items = reviews.of_run(run.project, run.id), loops.items(run)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode([*found, *items]) + b"\n")
        sys.stdout.flush()
    elif not found and not items:
        print(f"nothing of {run.id} waits for a review", file=sys.stderr)
    else:
        shown = [*(reviewing.lines(run, one) for one in found), *(loops.lines(run, one) for one in items)]
        print("\n\n".join(map("\n".join, shown)))
    return 0
