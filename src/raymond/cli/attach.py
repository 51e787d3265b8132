"""`raymond attach`: watch a run that another process drives, or answer one that waits for that."""

import click

from raymond.cli import choice, prompt, watch
from raymond.cli.names import RUN
from raymond.control import questions, runs
from raymond.control.handle import RunHandle


@click.command("attach")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
def command(id_: str | None) -> int:
    """Watch run ID as if it ran here, and answer its questions; Ctrl-C leaves it running."""
    run = choice.find(id_, "attach")
    return _answer(run) if _waits_for_us(run) else watch.follow(run)


def _waits_for_us(run: RunHandle) -> bool:
    """Whether nobody drives it, it asks, and a person is here to be asked."""
    if not prompt.can_ask() or runs.look(run.project, run.id).pid:
        return False
    return bool(questions.of_run(run.project, run.id).asked)


def _answer(run: RunHandle) -> int:
    """Ask here, then continue here: as `raymond answer ID --attach`."""
    from raymond.cli import asking, continuing

    done = asking.ask(run)
    if done is None:
        return 3
    return watch.follow(run) if done.is_driven else continuing.go_on(run, attach=True)
