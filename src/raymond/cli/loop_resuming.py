"""Make a loop ready to go on, whichever command resumes it."""

import contextlib
import os
import sys
from collections.abc import Iterator

from raymond.cli import loop_questions
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.faces.foreign_text import said
from raymond.loops import resuming, starting
from raymond.loops.loop_run import LoopRun


def prepare(run: RunHandle, *, asks: bool = True) -> None:
    """Refuse where another loop is in the way; let a person say what becomes of an interrupted session.

    Nothing is done about a run that another process drives, that has ended, or whose directory is gone: whoever takes
    its lock says so.
    """
    folded = None if runs.is_driven(run.project.run(run.id)) else run.read()
    if folded is None or folded.is_over or not os.path.isdir(folded.start.cwd):
        return
    loop = LoopRun(run.project, folded)
    starting.check_alone(run.project, loop.checkout, loop.settings, loop.id)
    resuming.check(loop)
    resuming.save(loop, loop_questions.asker() if asks else None, _tell)


@contextlib.contextmanager
def prepared(run: RunHandle) -> Iterator[None]:
    """The same for one of several that are resumed in the background: the checkout is left to the next one then."""
    try:
        prepare(run, asks=False)
        yield
    finally:
        starting.let_go()


def _tell(text: str) -> None:
    print(said(text, sys.stderr), file=sys.stderr)
