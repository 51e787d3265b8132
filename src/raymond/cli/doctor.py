"""`raymond doctor`: mend what is broken."""

import sys

import click

from raymond import repair
from raymond.cli import choose
from raymond.errors import UsageError


@click.command("doctor")
@click.option("--repair", "id_", metavar="ID", help="Cut a damaged journal at its bad line; a copy is kept.")
def command(id_: str | None) -> int:
    """Mend the journal of a run."""
    if not id_:
        raise UsageError("say what to mend", hint="raymond doctor --repair ID")
    project, id = choose.run(id_, changes=True)
    done = repair.repair(project, id)
    print(f"cut at line {done.line}; the whole journal is kept in {done.copy}", file=sys.stderr)
    print(f"{done.decisions} good decision(s) after it are lost", file=sys.stderr)
    for step in done.steps:
        print(f"  {step} had finished and will run again", file=sys.stderr)
    print(f"next: raymond resume {id}", file=sys.stderr)
    return 0
