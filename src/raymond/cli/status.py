"""`raymond status`: what a run is doing."""

import sys

import click

from raymond.cli import choice
from raymond.control import handle, runs
from raymond.faces import documents
from raymond.faces.overview import SHOWN, overview


@click.command("status")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--all", "every", is_flag=True, help=f"Show every agent, not only {SHOWN}.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str, every: bool, as_json: bool) -> int:
    """Show run ID: every agent, its state, its last line, and the command to run next."""
    choice.mention_earlier()
    found = handle.find(id_)
    seen = runs.look(found.project, found.id)
    if as_json:
        whole = runs.whole(found.project, found.id)
        sys.stdout.buffer.write(documents.state_file(seen.run, status=seen.status, whole=whole))
        sys.stdout.flush()
    else:
        print("\n".join(overview(seen.run, seen.status, seen.pid, found.transcripts, every=every)))
    return 0
