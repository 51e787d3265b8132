"""`raymond clean`: remove finished runs."""

import sys

import click

from raymond import durations
from raymond.cli import flags
from raymond.control import clean, config, runs


@click.command("clean")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--keep", type=flags.Duration(), metavar="TIME", help="Keep runs that ended within this time (30d).")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
def command(ids: tuple[str, ...], keep: float | None, dry_run: bool) -> int:
    """Remove finished runs: the ones you name, or all that ended long ago. Unfinished runs are never touched."""
    project = runs.here()
    kept = config.load(project.root, flags={"keep": keep})["keep"]
    old = clean.removable(project, ids, kept)
    for id in old if dry_run else clean.remove(project, old):
        print(id)
    freed = 0 if dry_run else clean.remove_unused(project)
    word = "would be removed" if dry_run else "removed"
    more = f", and {_count(freed, 'unused snapshot')}" if freed else ""
    rule = "" if ids else f" (keep: {durations.brief(kept)})"
    print(f"{_count(len(old), 'run')} {word}{more}{rule}", file=sys.stderr)
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
