"""`raymond attach`: watch a run that another process drives, or answer one that waits for that."""

from raymond.cli import choice, prompt, wait
from raymond.cli.command import argument, as_command
from raymond.cli.values import RUN
from raymond.control import questions, runs
from raymond.control.handle import RunHandle


@as_command("attach")
@argument("id_", metavar="[ID]", type=RUN, required=False)
def command(id_: str | None) -> int:
    """Watch run ID as if it ran here, and answer its questions; Ctrl-C leaves it running."""
    return stay_with(choice.find(id_, "attach"))


def stay_with(run: RunHandle) -> int:
    """Watch and answer, until nothing is asked; its exit code.

    After an answer it continues here, as with `raymond answer ID --attach`, unless another process drives it.
    """
    if not _waits_for_us(run):
        seen = wait.watch_until_left(run)
        if seen is None:
            return 0
        if runs.undriven_status(seen) != "waiting" or not _waits_for_us(run):
            return wait.tell_end(run, seen)
    from raymond.cli import asking, resume

    done = asking.ask(run)
    if done is None:
        return 3
    return stay_with(run) if done.is_driven else resume.continue_run(run, attach=True)


def _waits_for_us(run: RunHandle) -> bool:
    """Whether nobody drives it, it asks, and a person is here to be asked."""
    if not prompt.can_ask() or runs.look(run.project, run.id).pid:
        return False
    return bool(questions.of_run(run.project, run.id).asked)
