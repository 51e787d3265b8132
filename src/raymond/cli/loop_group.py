"""The commands that every loop has besides its start."""

import click

from raymond.cli import flags, internal_mode, loop_verbs
from raymond.cli.flags import ResumeFlags
from raymond.loops import learning
from raymond.loops.settings import RALPH

DOCS = click.option("--docs", default="docs", metavar="DIR", help="The folder of session logs and records (docs).")


def add_to(group: click.Group, loop: str, workflow: str) -> None:
    """Give the group of a loop these commands; `workflow` is what `eject` copies."""

    @group.command("status")
    @DOCS
    @click.option("--json", "as_json", is_flag=True, help="One JSON document.")
    def status(docs: str, as_json: bool) -> int:
        """Show what the loop is doing, what it did and what is left."""
        return loop_verbs.status(loop, docs, as_json=as_json)

    if loop != RALPH:
        for verb in ("next", "record"):
            group.add_command(internal_mode.command, verb)

    unit = "iteration" if loop == RALPH else "item"

    @group.command("stop", help=f"Let the loop end after the {unit} it is at.")
    @DOCS
    def stop(docs: str) -> int:
        return loop_verbs.stop(loop, docs)

    @group.command("resume")
    @flags.continuing(DOCS, click.option("--yes", is_flag=True, help="Do not ask."))
    def resume(given: ResumeFlags, docs: str, yes: bool) -> int:
        """Continue the loop that was paused or cut off."""
        return loop_verbs.resume_or_say(loop, docs, given, yes=yes)

    @group.command("eject")
    @click.argument("folder", metavar="DIR")
    def eject(folder: str) -> int:
        """Copy the workflow of the loop to DIR, to change it; start --workflow DIR runs it."""
        print(learning.eject(workflow, folder))
        return 0
