"""Stay with a run: watch it while another process drives it, and answer it here when it waits for that."""

from raymond.cli import prompt, wait, watch
from raymond.control import questions, runs
from raymond.control.handle import RunHandle


def keep(run: RunHandle) -> int:
    """Watch and answer, until nothing is asked; its exit code.

    After an answer it continues here, as with `raymond answer ID --attach`, unless another process drives it.
    """
    if not _waits_for_us(run):
        seen = watch.until_left(run)
        if seen is None:
            return 0
        if runs.undriven_status(seen) != "waiting" or not _waits_for_us(run):
            return wait.tell(run, seen)
    from raymond.cli import asking, continuing

    done = asking.ask(run)
    if done is None:
        return 3
    return keep(run) if done.is_driven else continuing.go_on(run, attach=True)


def _waits_for_us(run: RunHandle) -> bool:
    """Whether nobody drives it, it asks, and a person is here to be asked."""
    if not prompt.can_ask() or runs.look(run.project, run.id).pid:
        return False
    return bool(questions.of_run(run.project, run.id).asked)
