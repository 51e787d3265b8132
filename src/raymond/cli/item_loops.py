"""`raymond continuous-session`, `task-loop` and `story-loop`: loops over items, each in a fresh session."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from raymond import pasted
from raymond.cli import flags, loop_commands, loop_start, loop_verbs
from raymond.cli.by_click import HELP_NAMES, Group
from raymond.cli.command import argument, option
from raymond.cli.flags import StartFlags
from raymond.cli.loop_start import Start
from raymond.control import inside
from raymond.errors import UsageError
from raymond.loops import person, starting
from raymond.loops.settings import SESSION, STORIES, TASKS


def _items(loop: str, opens: str) -> Callable[[Callable[[], None]], Group]:
    """The group of a loop over items, with its start; `opens` is how a person gets at them."""

    def decorate(about: Callable[[], None]) -> Group:
        group = click.group(loop, cls=Group, context_settings=HELP_NAMES, no_args_is_help=False)(about)

        @group.define("start", grouped=True)
        @flags.looping(loop_start.own_flags(loop))
        def start(given: StartFlags, **own: Any) -> int:
            """Start the loop, or resume the one that was cut off here."""
            return Start(loop, given, own, opens)()

        return group

    return decorate


@_items(SESSION, "raymond continuous-session edit opens the queue")
def continuous_session() -> None:
    """Work through the `## Next Steps` of the newest session log: one item per fresh session, each one checked, then
    committed.
    """


@_items(TASKS, "the tasks are in docs/implementation")
def task_loop() -> None:
    """Work through the tasks in docs/implementation/N-AREA/N.M-TOPIC.md that nobody has verified: one per fresh
    session, each one checked, then committed and marked in its spec.
    """


@_items(STORIES, "the stories are in docs/prd.md")
def story_loop() -> None:
    """Work through the stories in docs/prd.md that do not pass: each one is checked, then committed, and
    docs/prd-status.json says so.
    """


@continuous_session.define("edit")
@loop_start.DOCS
@option("--from-checkout", is_flag=True, help=loop_commands.FROM_CHECKOUT)
def edit_queue(docs: str, from_checkout: bool) -> int:
    """Open the queue in your editor; also while an agent works, and then it counts for the next item."""
    inside.check_by_hand("continuous-session edit")
    checkout, loop = loop_verbs.for_person(SESSION, docs)
    if from_checkout:
        return person.take_over(loop, loop_verbs.tell)
    return person.edit(checkout, loop, _open_editor, loop_verbs.tell)


def _open_editor(path: str) -> None:
    try:
        click.edit(filename=path)
    except (click.ClickException, ValueError) as error:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or str(error).partition(":")[0]
        is_here = path.startswith(f"{os.getcwd()}/")
        file = f", or edit {pasted.name(os.path.relpath(path))}" if is_here else ", or try again when no agent works"
        what = f"the editor {pasted.name(editor)} failed, or is not installed"
        raise UsageError(what, hint=f"set EDITOR or VISUAL{file}") from None


@continuous_session.define("learn")
@argument("text")
@loop_start.DOCS
def learn(text: str, docs: str) -> int:
    """Tell every later session TEXT, through docs/critical-learnings.md."""
    inside.check_by_hand("continuous-session learn")
    if not text.strip():
        raise UsageError("there is nothing to learn", hint="raymond continuous-session learn 'The API needs a retry'")
    checkout, loop = loop_verbs.for_person(SESSION, docs)
    print(person.learn(checkout, loop, text))
    return 0


for _group in (continuous_session, task_loop, story_loop):
    loop_commands.add_to(_group, _group.name or "", starting.WORKFLOW)
    loop_commands.add_internal_mode(_group, _group.name or "")
story_loop.commands.pop("status")


@story_loop.define("status")
@loop_start.DOCS
@option("--json", "as_json", is_flag=True, help="One JSON document.")
@option("--metrics", is_flag=True, help="Show how far the stories are, and how fast.")
def story_status(docs: str, as_json: bool, metrics: bool) -> int:
    """Show what the loop is doing, what it did and what is left."""
    if not metrics:
        return loop_verbs.status(STORIES, docs, as_json=as_json)
    from raymond.loops import metrics as story_metrics

    checkout, loop = loop_verbs.for_person(STORIES, docs)
    documents = loop.documents if loop else checkout
    if as_json:
        print(json.dumps(story_metrics.story_document(documents)))
    else:
        sys.stdout.write(story_metrics.story_text(documents))
    return 0
