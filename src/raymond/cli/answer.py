"""`raymond answer`: answer an agent's question."""

import sys

import click

from raymond.cli import choice, delivery
from raymond.cli.texts import text
from raymond.errors import UsageError


@click.command("answer")
@click.argument("words", nargs=-1, metavar="[ID] [AGENT] TEXT|@FILE|-", required=True)
@click.option("--question", metavar="N", type=click.IntRange(1), help="The question you mean, if it is still open.")
def command(words: tuple[str, ...], question: int | None) -> int:
    """Answer agent AGENT of run ID; leave AGENT out when only one is asking."""
    if len(words) > 3:
        raise UsageError("too many words", hint='raymond answer ID AGENT "TEXT"')
    *names, answer = words
    found = choice.change(names[0] if names else "")
    agent = names[1] if len(names) > 1 else ""
    said = text(answer, "the answer")
    from raymond.control import steer
    from raymond.faces.lines import Lines

    told = steer.answer(found.project, found.id, agent, said, question=question or 0, face=Lines())
    left = delivery.words(told, found.id)
    print(left or f"answered; to continue: raymond resume {found.id}", file=sys.stderr)
    return 0
