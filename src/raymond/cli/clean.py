"""`raymond clean`: remove finished runs."""

import sys

import click

from raymond import durations
from raymond.cli import flags
from raymond.cli.names import RUN
from raymond.control import clean, config, runs
from raymond.control.handle import RunHandle
from raymond.errors import Error
from raymond.faces import errors


@click.command("clean")
@click.argument("ids", metavar="[ID]...", type=RUN, nargs=-1)
@click.option("--keep", type=flags.Duration(), metavar="TIME", help="Keep runs that ended within this time (30d).")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
def command(ids: tuple[str, ...], keep: float | None, dry_run: bool) -> int:
    """Remove finished runs, failed ones too: those you name, or all that ended long ago. Others are never touched."""
    project = runs.here()
    kept = config.load(project.tree, flags={"keep": keep})["keep"]
    gone = [_clean(run, project.tree, dry_run) for run in clean.removable(ids, kept)]
    unused = [_tell(path) for path in clean.unused(project, dry_run=dry_run)]
    word = "would be removed" if dry_run else "removed"
    more = f", and {_count(unused.count(0), 'thing')} that no run needs" if 0 in unused else ""
    rule = "" if ids else f" (keep: {durations.brief(kept)})"
    if not gone or 0 in gone or more:
        print(f"{_count(gone.count(0), 'run')} {word}{more}{rule}", file=sys.stderr)
    return max((0, *gone, *unused))


def _clean(run: RunHandle | Error, here: str, dry_run: bool) -> int:
    """Remove one run; the exit code that follows from it."""
    if isinstance(run, Error):
        return _tell(run)
    try:
        if not dry_run:
            clean.remove(run)
    except Error as error:
        return _tell(error)
    if run.project.tree != here:
        print(f"project: {run.project.tree}", file=sys.stderr)
    return _tell(run.id)


def _tell(what: str | Error) -> int:
    """Name what went, or say why something did not; the exit code that follows from it."""
    if isinstance(what, Error):
        print(errors.error(what), file=sys.stderr)
        return what.exit_code
    print(what)
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
