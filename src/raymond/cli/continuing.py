"""Continue a run that was answered: in the background, here, or not at all."""

import sys

from raymond.cli import background, foreground
from raymond.cli.flags import ShowFlags
from raymond.control import drive, left_requests, request
from raymond.control.drive import Resumption
from raymond.control.handle import RunHandle
from raymond.errors import Error, NotContinued, RunBusy
from raymond.faces import errors
from raymond.faces.summary import next_command

_HOW = Resumption(retries=False, by_itself=True)
"""Somebody has said what they want of one agent: those that failed or are paused stay so."""
KEPT = 5
"""The exit code when the answer is kept and the run does not continue."""


def go_on(run: RunHandle, *, attach: bool, verb: str = "answered") -> int:
    """Continue a run that no process drives; with `attach`, here. `verb` says what somebody has just done."""
    if not attach and drive.asked_by_step():
        print(f"{verb}; {left_requests.onward(run.project, run.id)}", file=sys.stderr)
        return 0
    try:
        request.check_resume(run.project, run.start)
        if run.start.loop:
            from raymond.cli import loop_resuming

            loop_resuming.prepare(run, asks=False)
        return _here(run) if attach else _in_background(run, verb)
    except NotContinued as left:
        return _kept(run, str(left), verb, is_told=bool(left.again))
    except Error as error:
        return _kept(run, errors.error(error), verb, is_told=bool(error.again))


def _here(run: RunHandle) -> int:
    try:
        return foreground.drive(run, foreground.as_before(run, ShowFlags()), _HOW)
    except RunBusy as busy:
        if not busy.drives:
            raise
        from raymond.cli import watch

        return watch.follow(run)  # somebody has resumed it since, and has read the answer


def _in_background(run: RunHandle, verb: str) -> int:
    failed = background.launch(run, foreground.as_before(run, ShowFlags()), _HOW)
    if failed and not failed.is_driven:
        return _kept(run, failed.trouble, verb, is_told=failed.is_told)
    print(f"{verb}; {run.id} continues in the background: raymond attach {run.id}", file=sys.stderr)
    return 0


def _kept(run: RunHandle, why: str, verb: str, *, is_told: bool = False) -> int:
    """Say why the run does not continue, unless another process has driven it to its end meanwhile.

    `is_told`: the reason ends in the command that continues it, or ends it.
    """
    now = run.read()
    if now.is_over:
        print(f"{verb}; {run.id} has ended: raymond logs {run.id}", file=sys.stderr)
        return 0
    kept = "the answer is kept" if verb == "answered" else f"it is {verb}"
    then = "" if is_told else f"; to continue: {next_command(now)}"
    print(f"{why}\n{kept}, nothing was started{then}", file=sys.stderr)
    return KEPT
