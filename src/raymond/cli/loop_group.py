"""The commands that every loop has besides its start."""

import click

from raymond.cli import flags, internal_mode, loop_verbs
from raymond.cli.flags import ResumeFlags
from raymond.cli.help import Command
from raymond.cli.loop_flags import DOCS
from raymond.control import inside
from raymond.loops import person
from raymond.loops.settings import RALPH, STORIES, TASKS

FROM_CHECKOUT = "Take over what you edited in the checkout."


def add_to(group: click.Group, loop: str, workflow: str) -> None:
    """Give the group of a loop these commands; `workflow` is what `eject` copies."""

    @group.command("status")
    @DOCS
    @click.option("--json", "as_json", is_flag=True, help="One JSON document.")
    def status(docs: str, as_json: bool) -> int:
        """Show what the loop is doing, what it did and what is left."""
        return loop_verbs.status(loop, docs, as_json=as_json)

    unit = "iteration" if loop == RALPH else "item"

    @group.command("stop", help=f"Let the loop end after the {unit} it is at.")
    @DOCS
    def stop(docs: str) -> int:
        return loop_verbs.stop(loop, docs, internal_mode.end)

    @group.command("resume", cls=Command)
    @flags.continuing(DOCS, click.option("--yes", is_flag=True, help="Do not ask."))
    def resume(given: ResumeFlags, docs: str, yes: bool) -> int:
        """Continue the loop that was paused or cut off."""
        return loop_verbs.resume_or_say(loop, docs, given, yes=yes)

    if loop in (TASKS, STORIES):

        @group.command("edit")
        @DOCS
        @click.option("--from-checkout", is_flag=True, required=True, help=FROM_CHECKOUT)
        def edit(docs: str, from_checkout: bool) -> int:
            """Let what you edited in the checkout count for the loop that has begun."""
            inside.check_by_hand(f"{loop} edit")
            return person.take_over(loop_verbs.for_person(loop, docs)[1], loop_verbs.tell)

    @group.command("eject")
    @click.argument("folder", metavar="DIR")
    def eject(folder: str) -> int:
        """Copy the workflow of the loop to DIR, to change it; start --workflow DIR runs it."""
        print(person.eject(workflow, folder))
        return 0
