"""`raymond continuous-session`: work through the next steps of a project, each in a fresh session."""

import os
from typing import Any

import click

from raymond import pasted
from raymond.cli import flags, internal_mode, loop_flags, loop_group, loop_verbs
from raymond.cli.flags import StartFlags
from raymond.cli.help import NAMES, Command
from raymond.cli.loop_start import Start
from raymond.control import inside
from raymond.errors import UsageError
from raymond.loops import person, starting
from raymond.loops.settings import SESSION


@click.group("continuous-session", context_settings=NAMES, no_args_is_help=False)
def command() -> None:
    """Work through the `## Next Steps` of the newest session log: one item per fresh session, each one checked, then
    committed.
    """


@command.command("start", cls=Command)
@flags.looping(loop_flags.own(SESSION))
def start(given: StartFlags, **own: Any) -> int:
    """Start the loop, or resume the one that was cut off here."""
    return Start(SESSION, given, own, "raymond continuous-session edit opens the queue")()


@command.command("edit")
@loop_flags.DOCS
@click.option("--from-checkout", is_flag=True, help=loop_group.FROM_CHECKOUT)
def edit(docs: str, from_checkout: bool) -> int:
    """Open the queue in your editor; also while an agent works, and then it counts for the next item."""
    inside.check_by_hand("continuous-session edit")
    checkout, loop = loop_verbs.for_person(SESSION, docs)
    if from_checkout:
        return person.take_over(loop, loop_verbs.tell)
    return person.edit(checkout, loop, _edit, loop_verbs.tell)


def _edit(path: str) -> None:
    try:
        click.edit(filename=path)
    except (click.ClickException, ValueError) as error:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or str(error).partition(":")[0]
        is_here = path.startswith(f"{os.getcwd()}/")
        file = f", or edit {pasted.name(os.path.relpath(path))}" if is_here else ", or try again when no agent works"
        what = f"the editor {pasted.name(editor)} failed, or is not installed"
        raise UsageError(what, hint=f"set EDITOR or VISUAL{file}") from None


@command.command("learn")
@click.argument("text")
@loop_flags.DOCS
def learn(text: str, docs: str) -> int:
    """Tell every later session TEXT, through docs/critical-learnings.md."""
    inside.check_by_hand("continuous-session learn")
    if not text.strip():
        raise UsageError("there is nothing to learn", hint="raymond continuous-session learn 'The API needs a retry'")
    checkout, loop = loop_verbs.for_person(SESSION, docs)
    print(person.learn(checkout, loop, text))
    return 0


loop_group.add_to(command, SESSION, starting.WORKFLOW)
internal_mode.add_to(command, SESSION)
