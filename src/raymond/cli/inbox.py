"""`raymond inbox`: the questions that wait for an answer, in all projects."""

import sys
from time import time as now

import msgspec

from raymond import pasted
from raymond.cli.command import as_command, option
from raymond.control import questions
from raymond.control.questions import Asked, Reviews
from raymond.faces import documents, question
from raymond.faces.foreign_text import fitted, hung, said, width_of
from raymond.text import visible

_FEW = 3
"""Choices for each of which the command is shown."""


@as_command("inbox")
@option("--here", is_flag=True, help="Only those of this project.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(here: bool, as_json: bool) -> int:
    """List the open questions of all your projects, oldest first, each with the command that answers it.

    Then the runs with work that waits for a review.
    """
    found = questions.of_runs(every=not here)
    for id, error in found.unreadable.items():
        print(said(f"{id} cannot be read: {error}", sys.stderr), file=sys.stderr)
    if as_json:
        listed = [documents.question(one.question, one.project.tree, questions.way(one)) for one in found.asked]
        sys.stdout.buffer.write(msgspec.json.encode(listed) + b"\n")
        sys.stdout.flush()
    elif not found.asked and not found.reviews:
        print("no agent is waiting for an answer", file=sys.stderr)
    else:
        reviews = "\n".join(part for one in found.reviews for part in _review(one))
        print("\n\n".join([*("\n".join(_lines(one)) for one in found.asked), *([reviews] if reviews else [])]))
    return 0


def _review(found: Reviews) -> list[str]:
    return fitted(
        visible(f"{found.count} to review: {questions.way_to_review(found)}"), question.MARGIN, width_of(sys.stdout)
    )


def _lines(asked: Asked) -> list[str]:
    where, width = asked.project.tree, width_of(sys.stdout)
    shown = question.lines(asked.question, now=now(), where=where, width=width)
    files = [f"file: {one}" for one in question.named_files(asked.question)]
    named = [part for one in files for part in hung(visible(one), question.MARGIN, width)]
    ways = [visible(f"{label} {way}") for label, way in _ways(asked)]
    return [*shown, *named, *(part for one in ways for part in fitted(one, question.MARGIN, width))]


def _ways(asked: Asked) -> list[tuple[str, str]]:
    """The command that answers it; where few answers are taken, one for each."""
    way, one = questions.way(asked), asked.question
    if not 0 < len(one.choices) <= _FEW or one.approve or one.files:
        return [("answer:", way)]
    return [
        ("or:    " if at else "answer:", f"{way} {pasted.word(text, 'TEXT')}") for at, text in enumerate(one.choices)
    ]
