"""`raymond start`: the same as `run`."""

from typing import Any

import click

from raymond.cli import flags, run


@click.command("start")
@flags.starting
def command(path: str, **given: Any) -> int:
    """Start the workflow in PATH; the same as `raymond run`."""
    return run.start(path, given)
