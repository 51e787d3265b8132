"""Continue a run that was answered: in the background, here, or not at all."""

import sys

from raymond.cli import background, foreground
from raymond.cli.flags import ShowFlags
from raymond.control import continuing, runs, steer
from raymond.control.drive import Resumption
from raymond.control.handle import RunHandle
from raymond.errors import Error
from raymond.faces import errors

_HOW = Resumption(retries=False)
"""Somebody has said what they want of one agent: those that failed or are paused stay so."""
KEPT = 5
"""The exit code when the answer is kept and the run does not continue."""


def go_on(run: RunHandle, *, attach: bool) -> int:
    """Continue a run that no process drives; with `attach`, here."""
    if not attach and continuing.by_step():
        print(f"answered; to continue: raymond resume {run.id}", file=sys.stderr)
        return 0
    try:
        steer.check_resume(run.project, run.start)
        reason = continuing.why_not(run.project, run.id)
        if reason:
            return _kept(run, f"{reason}, so it was not continued")
        if attach:
            return foreground.drive(run, ShowFlags(), _HOW)
    except Error as error:
        return _kept(run, errors.error(error))
    failed = background.launch(run, ShowFlags(), _HOW)
    if failed and not runs.look(run.project, run.id).pid:
        return _kept(run, failed.trouble)
    print(f"answered; {run.id} continues in the background: raymond attach {run.id}", file=sys.stderr)
    return 0


def follow(run: RunHandle) -> int:
    """Watch a run that another process drives."""
    from raymond.cli import attach

    return attach.follow(run)


def _kept(run: RunHandle, why: str) -> int:
    print(f"{why}\nthe answer is kept, nothing was started; to continue: raymond resume {run.id}", file=sys.stderr)
    return KEPT
