"""`raymond answer`: answer what an agent asks."""

import sys
import uuid

import click

from raymond.cli import target
from raymond.cli.flags import text
from raymond.errors import UsageError
from raymond.machine.requests import Request


@click.command("answer")
@click.argument("words", nargs=-1, metavar="[ID] [AGENT] TEXT|@FILE|-", required=True)
def command(words: tuple[str, ...]) -> int:
    """Answer agent AGENT of run ID; the agent may be left out when only one asks."""
    if len(words) > 3:
        raise UsageError("too many words", hint='raymond answer ID AGENT "TEXT"')
    *names, answer = words
    project, id = target.run(names[0] if names else "", changes=True)
    agent = names[1] if len(names) > 1 else ""
    request = Request(id=str(uuid.uuid4()), kind="answer", agent=agent, text=text(answer, "the answer"))
    left = target.hand_over(project, id, request)
    print(left or f"answered; raymond resume {id} goes on", file=sys.stderr)
    return 0
