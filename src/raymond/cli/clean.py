"""`raymond clean`: remove finished runs."""

import sys

import click

from raymond import durations
from raymond.cli import flags
from raymond.control import clean, config, runs
from raymond.errors import Error
from raymond.faces import errors


@click.command("clean")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--keep", type=flags.Duration(), metavar="TIME", help="Keep runs that ended within this time (30d).")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
def command(ids: tuple[str, ...], keep: float | None, dry_run: bool) -> int:
    """Remove finished runs: the ones you name, or all that ended long ago. Unfinished runs are never touched."""
    project = runs.here()
    kept = config.load(project.tree, flags={"keep": keep})["keep"]
    old = clean.removable(ids, kept)
    worst, gone = 0, 0
    for run in old:
        try:
            if not dry_run:
                clean.remove(run)
        except Error as error:
            print(errors.error(error), file=sys.stderr)
            worst = max(worst, error.exit_code)
            continue
        if run.project != project:
            print(f"project: {run.project.tree}", file=sys.stderr)
        print(run.id)
        gone += 1
    unused = clean.unused(project) if dry_run else clean.remove_unused(project)
    for path in unused:
        print(path)
    word = "would be removed" if dry_run else "removed"
    more = f", and {_count(len(unused), 'thing')} that no run needs" if unused else ""
    rule = "" if ids else f" (keep: {durations.brief(kept)})"
    print(f"{_count(gone, 'run')} {word}{more}{rule}", file=sys.stderr)
    return worst


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
