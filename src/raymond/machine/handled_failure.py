"""A failure that the workflow has handled: a wait has collected it, so that nobody is left who could try again."""

from raymond import pasted
from raymond.machine.agent import FAILED
from raymond.machine.run import Run


def advice_if_handled(run: Run, agent: str = "") -> str:
    """What to do about the failure of `agent`, or of whoever failed; empty when none of them was collected."""
    failed = [one.agent for one in run.outcomes.values() if one.status == FAILED and agent in ("", one.agent)]
    if not failed:
        return ""
    return f"the workflow has already handled the failure of {failed[0]}; to start anew: {run_again_command(run)}"


def run_again_command(run: Run) -> str:
    """The command that starts the workflow of `run` once more."""
    from raymond.language.workflow import ENTRIES, bare  # what only shows runs needs no workflow

    start = run.start
    path = start.scope_dir if bare(start.entry) in ENTRIES else f"{start.scope_dir}/{start.entry}"
    return f"raymond run {pasted.word(path, 'PATH')}"
