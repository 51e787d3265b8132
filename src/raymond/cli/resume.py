"""`raymond resume`: take up a run that was stopped, parked or killed."""

import uuid

import click

from raymond import console, launch
from raymond.cli import background, choose
from raymond.cli.run import drive
from raymond.requests import Request


@click.command("resume")
@click.argument("id_", metavar="[ID]", required=False, default="")
@click.option("--restart", is_flag=True, help="End turns that still run instead of following them.")
@click.option("--force", is_flag=True, help="Take the lock although another host has not given it back.")
@click.option("--budget", type=click.FloatRange(0), metavar="USD", help="A new budget.")
@click.option("--max-iterations", type=click.IntRange(1), help="A new limit of steps.")
@click.option("-d", "detach", is_flag=True, help="Run in the background.")
@click.option("--quiet", is_flag=True, help="Only what steps print, and the ending.")
def command(
    id_: str,
    restart: bool,
    force: bool,
    budget: float | None,
    max_iterations: int | None,
    detach: bool,
    quiet: bool,
) -> int:
    """Take up run ID where it was; failed and paused agents try again."""
    project, id = choose.run(id_, changes=True)
    if budget is not None or max_iterations is not None:
        limits = Request(id=str(uuid.uuid4()), kind="limits", budget=budget, max_iterations=max_iterations)
        choose.hand_over(project, id, limits, force=force)
    if detach:
        return background.start(project, id, restart=restart, force=force)
    held = launch.take_up(project, id, console.Lines(quiet=quiet), force=force)
    return drive(held, restart=restart)
