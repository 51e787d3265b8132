"""`raymond inbox`: the questions that wait for an answer, in all projects."""

import sys
from time import time as now

import click
import msgspec

from raymond.control import questions
from raymond.control.questions import Asked
from raymond.faces import documents, question
from raymond.faces.foreign_text import fitted, hung, said, width_of
from raymond.text import visible


@click.command("inbox")
@click.option("--here", is_flag=True, help="Only those of this project.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(here: bool, as_json: bool) -> int:
    """List the open questions of all your projects, oldest first, each with the command that answers it."""
    found = questions.of_runs(every=not here)
    for id, error in found.unreadable.items():
        print(said(f"{id} cannot be read: {error}", sys.stderr), file=sys.stderr)
    if as_json:
        listed = [documents.question(one.question, one.project.tree, questions.way(one)) for one in found.asked]
        sys.stdout.buffer.write(msgspec.json.encode(listed) + b"\n")
        sys.stdout.flush()
    elif not found.asked:
        print("no agent is waiting for an answer", file=sys.stderr)
    else:
        print("\n\n".join("\n".join(_lines(one)) for one in found.asked))
    return 0


def _lines(asked: Asked) -> list[str]:
    where, width = asked.project.tree, width_of(sys.stdout)
    shown = question.lines(asked.question, now=now(), where=where, width=width)
    files = [f"file: {one}" for one in question.named_files(asked.question)]
    named = [part for one in files for part in hung(visible(one), question.MARGIN, width)]
    return [*shown, *named, *fitted(visible(f"answer: {questions.way(asked)}"), question.MARGIN, width)]
