"""`raymond clean`: remove finished runs."""

import sys

from raymond import durations
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import RUN, Value
from raymond.control import clean, config, runs
from raymond.control.handle import RunHandle
from raymond.control.settings import duration
from raymond.errors import Error, UsageError
from raymond.faces import errors
from raymond.faces.foreign_text import said


@as_command("clean")
@argument("ids", metavar="[ID]...", type=RUN, many=True)
@option("--keep", type=Value(duration), metavar="TIME", help="Keep runs that ended within this time (30d).")
@option("--all", "every", is_flag=True, help="The same in all projects.")
@option("--here", is_flag=True, help="In this project only; the default.")
@option(
    "--force",
    is_flag=True,
    help="Runs you name that are not finished: cancel them first; remove the only copy of files, too.",
)
@option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
def command(ids: tuple[str, ...], keep: float | None, every: bool, here: bool, force: bool, dry_run: bool) -> int:
    """Remove finished runs, failed ones too: those you name, or all that ended long ago. Others are never touched."""
    if ids and (every or here):
        raise UsageError(f"{'--all' if every else '--here'} is for every run, not for one", hint="raymond clean --all")
    if force and not ids:
        raise UsageError("--force needs the id of a run", hint="raymond clean --force ID")
    home = runs.here()
    kept = config.load(home.tree, flags={"keep": keep})["keep"]
    projects = runs.projects_of(every=every and not here)
    chosen: list[RunHandle | Error] = [*clean.named(ids, force=force)]
    if not ids:
        old = [run for project in projects for run in clean.old(project, kept)]
        chosen = [run for run in old if not _waits(run)]
    gone = [_clean(run, home.tree, force=force, dry_run=dry_run) for run in chosen]
    found = dict.fromkeys(path for project in projects for path in clean.unused(project, dry_run=dry_run))
    unused = [_tell(path) for path in found]
    word = "would be removed" if dry_run else "removed"
    more = f", and {_count(unused.count(0), 'thing')} that no run needs" if 0 in unused else ""
    rule = "" if ids else f" (keep: {durations.brief(kept)})"
    if not gone or 0 in gone or more:
        print(f"{_count(gone.count(0), 'run')} {word}{more}{rule}", file=sys.stderr)
    return max((0, *gone, *unused))


def _waits(run: RunHandle) -> Error | None:
    """Why a loop stays unless somebody forces it; most runs need nothing of what loops import."""
    if not run.start.loop:
        return None
    from raymond.cli import review

    return review.why_kept(run)


def _clean(run: RunHandle | Error, here: str, *, force: bool, dry_run: bool) -> int:
    """Remove one run; the exit code that follows from it."""
    if isinstance(run, Error):
        return _tell(run)
    try:
        if not force and (error := _waits(run)):
            return _tell(error)
        if force and not dry_run:
            clean.cancel(run)
        if not dry_run:
            clean.remove(run, force=force)
    except Error as error:
        return _tell(error)
    if run.project.tree != here:
        print(said(f"project: {run.project.tree}", sys.stderr), file=sys.stderr)
    return _tell(run.id)


def _tell(what: str | Error) -> int:
    """Name what went, or say why something did not; the exit code that follows from it."""
    if isinstance(what, Error):
        print(errors.error(what), file=sys.stderr)
        return what.exit_code
    print(said(what, sys.stdout))
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
