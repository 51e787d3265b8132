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
    """Show which green checks of run ID do not count yet: what decides them changed.

    Each with the difference, what the agent said, and what the check printed with and without the change.
    """
    run = choice.find(id_, "review")
    found = reviews.of_run(run.project, run.id)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        sys.stdout.flush()
    elif not found and (loop := loops.aside(run.id)):
        print("\n".join(loops.lines(loop)).rstrip())
    elif not found:
        print(f"nothing of {run.id} waits for a review", file=sys.stderr)
    else:
        print("\n\n".join("\n".join(reviewing.lines(run, one)) for one in found))
    return 0
