"""After a restart: what becomes of the steps that the driver before us had started."""

from collections.abc import Iterable

from raymond.machine.run import Run
from raymond.steps.step import Step
from raymond.system.marks import Marks
from raymond.views.times import instant


def adopt(steps: Iterable[Step], marks: Marks, *, restart: bool) -> list[Step]:
    """The steps that still run; the others have reported how they ended, and nothing else of the run is left running.

    With `restart`, no step is left running.
    """
    running = [step for step in steps if step.adopt(restart=restart)]
    marks.end(spare=[step.number for step in running])
    return running


def notes(run: Run, now: float) -> list[str]:
    """What a person who resumes the run should know: the backends it has to wait for."""
    if run.stop:
        return []
    return [
        f"{backend} is closed until {instant(closed.until)}: {' '.join(closed.error.splitlines())}"
        for backend, closed in run.closed.items()
        if closed.until > now
    ]
