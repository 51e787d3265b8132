"""After a restart: what becomes of the steps that the driver before us had started."""

import os
from collections.abc import Iterable

from raymond import durations
from raymond.machine.inputs import Ending, Interruption
from raymond.machine.run import Run, is_lost
from raymond.steps.step import Step
from raymond.store.leftovers import Leftovers


def adopt(steps: Iterable[Step], *, restart: bool) -> list[Step]:
    """The steps that still run; the others have reported how they ended. With `restart`, no step is left running."""
    return [step for step in steps if step.adopt(restart=restart)]


def clear(run: Run, endings: Iterable[tuple[Step, Ending]], adopted: Iterable[Step], left: Leftovers) -> None:
    """Leave nothing running of steps that were cut off, or that the journal has lost: they run again.

    What finished steps left running stays for those that follow.
    """
    cut = [step for step, ending in endings if isinstance(ending, Interruption)]
    numbers = {step.number for step in cut}
    left.end(lambda step: step in numbers or is_lost(run, step))
    # What the driver had no time to note was new when it died: most likely one of these has started it, unless it is
    # older than they are.
    since = min((run.agents[step.agent].visit.since for step in cut), default=float("inf"))
    left.end_unknown(since, [step.pid for step in adopted])


def put_back(seals: str) -> list[str]:
    """Give an agent its files back where a check was killed that had the sealed ones in their place."""
    if not os.path.exists(os.path.join(seals, "swap")):
        return []
    from raymond.verifier import swap

    try:
        files = swap.recover(seals)
    except (OSError, ValueError) as error:
        return [f"a check was cut off, and the agent's files could not be put back from {seals}/swap.files: {error}"]
    return [f"a check was cut off: {', '.join(files)} is as the agent left it again"] if files else []


def notes(run: Run, now: float) -> list[str]:
    """What a person who resumes the run should know: the backends it has to wait for."""
    if run.stop:
        return []
    return [
        f"{backend} is unavailable for {durations.brief(closed.until - now)}: {' '.join(closed.error.splitlines())}"
        for backend, closed in run.closed.items()
        if closed.until > now
    ]
