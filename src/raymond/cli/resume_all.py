"""`raymond resume --all`: what was interrupted, in the background."""

import os
import sys

from msgspec.structs import replace

from raymond.cli import background, foreground, many, picker
from raymond.cli.background import NotStarted
from raymond.cli.flags import ResumeFlags, ShowFlags
from raymond.control import drive, handle, naming, runs
from raymond.control.drive import LeftOut, Resumption
from raymond.control.handle import RunHandle
from raymond.control.runs import RunRow
from raymond.errors import Error
from raymond.faces import errors
from raymond.faces.foreign_text import said
from raymond.text import visible


def resume(given: ResumeFlags, how: Resumption) -> int:
    """Show the runs that were interrupted and their budgets, ask if somebody is here, and resume them.

    Where nobody is, as under cron, they are resumed: what a person stopped is not among them.
    """
    how = replace(how, by_itself=True)
    rows, worst = _interrupted(here=given.here)
    if rows and not given.show.quiet:
        many.show(rows)
    if not rows and not given.show.quiet and picker.can_ask():
        print("nothing to resume", file=sys.stderr)
    if given.dry_run:
        for row in rows:
            print(row.workflow_id)
        return worst
    if rows and not many.agrees("resume", len(rows), yes=given.yes, alone=True):
        print("nothing was resumed", file=sys.stderr)
        return 1
    for row in rows:
        run = handle.from_row(row)
        run.trusts_now = given.run["trust_project"]
        worst = max(worst, _resume(run, given.show, how))
    return worst


def _resume(run: RunHandle, show: ShowFlags, how: Resumption) -> int:
    """Resume one of them; what somebody else has resumed, stopped or ended since it was listed is no failure."""
    try:
        failed = _launch(run, show, how)
    except Error as error:
        failed = NotStarted(error.exit_code, errors.error(error))
    if failed is None:
        background.announce(run, show)
    elif failed.is_driven:
        print(f"{run.id} is running already", file=sys.stderr)
    elif failed.is_left:
        print(visible(failed.trouble), file=sys.stderr)
    else:
        print(f"{run.id} was not resumed\n{failed.trouble}", file=sys.stderr)
        return failed.code
    return 0


def _launch(run: RunHandle, show: ShowFlags, how: Resumption) -> NotStarted | None:
    show = foreground.as_before(run, show)
    if not run.start.loop:
        return background.launch(run, show, how)
    from raymond.cli import loop_resuming

    with loop_resuming.prepared(run):
        return background.launch(run, show, how)


def _interrupted(*, here: bool) -> tuple[list[RunRow], int]:
    """The runs to resume, and the exit code that follows from those that cannot be read."""
    rows: list[RunRow] = []
    worst = 0
    if here and not runs.here().ids():
        print(errors.error(naming.nothing_in(runs.here())).removeprefix("error: "), file=sys.stderr)
    for root, why in runs.unreadable(every=not here).items():
        worst = max(worst, _tell(Error(f"{root}: {why}", hint="the runs of this project were not looked at")))
    for project in runs.projects_of(every=not here):
        for found in drive.resumable(project):
            if isinstance(found, Error):
                worst = max(worst, _tell(found))
            elif isinstance(found, LeftOut):
                print(said(f"{found.id} is left out: {found.why}; {found.then}", sys.stderr), file=sys.stderr)
            elif not here and not os.path.isdir(project.tree):
                print(said(f"{found} is left out: {project.tree} is gone", sys.stderr), file=sys.stderr)
            else:
                rows.append(runs.row(project, found))
    return rows, worst


def _tell(error: Error) -> int:
    print(errors.error(error), file=sys.stderr)
    return error.exit_code
