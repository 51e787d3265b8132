"""Put the question of an agent to the person at this terminal, and send the answer."""

import sys
from time import time as now
from typing import TextIO

from msgspec import Struct

from raymond.cli import addressee, delivery, prompt
from raymond.cli.addressee import Addressee
from raymond.control import naming, questions, runs
from raymond.control.handle import RunHandle
from raymond.control.questions import Asked, Found
from raymond.errors import UsageError
from raymond.faces import errors, words
from raymond.faces import question as faces_of_question
from raymond.faces.foreign_text import height_of, hung, width_of
from raymond.faces.words import named
from raymond.text import visible
from raymond.views.questions import Question


class Answered(Struct, frozen=True):
    """The run whose question was answered."""

    run: RunHandle
    is_driven: bool
    open: int = 0
    """How many questions of the run wait for an answer still."""


def ask(run: RunHandle) -> Answered | None:
    """Show a question of the run and ask; None when the person left it open."""
    return put(run, chosen(Addressee(run), 0, False))


def chosen(whom: Addressee, number: int, has_text: bool) -> Asked:
    """The question that is meant."""
    found = addressee.asked(whom)
    fitting = [one for one in found.asked if number in (0, one.question.number)]
    if not fitting:
        if not whom.run and not runs.here().ids():
            naming.named(changes=True, verb="answer")  # raises: says where there are runs
        raise addressee.none(whom)
    if len(fitting) == 1:
        if has_text and not whom.run and found.unreadable:
            raise addressee.perhaps_others(fitting[0], found)
        return fitting[0]
    if has_text or not prompt.can_ask():
        raise addressee.several(fitting)
    for place, one in enumerate(fitting, 1):
        print("\n".join(_fitted(f"{place:>3}  {faces_of_question.mention(one.question, now=now())}", sys.stdout)))
    while True:
        try:
            typed = prompt.ask(f"which one? 1-{len(fitting)} > ").strip()
        except EOFError:
            raise addressee.several(fitting) from None
        if typed.isdecimal() and 1 <= int(typed) <= len(fitting):
            return fitting[int(typed) - 1]
        called = [one for one in fitting if one.question.is_called(typed)]
        if len(called) == 1:
            return called[0]


def put(run: RunHandle, chosen: Asked, *, unseen: bool = False) -> Answered | None:
    """Show the question, and let the person at this terminal answer it."""
    asked = chosen.question
    seen = _show(chosen)
    if not prompt.can_ask():
        sys.stdout.flush()
        what = "there is no answer, and no terminal to type it on"
        raise UsageError(what, hint=_elsewhere(asked, unseen))
    print("\n".join(_how(asked)))
    while True:
        try:
            said = prompt.ask("> ")
        except EOFError:
            print(f"\nnot answered; the question stays open: raymond answer {asked.workflow_id}", file=sys.stderr)
            return None
        if not said.strip():
            continue
        try:
            return send(run, asked.agent, said, asked.number, seen=seen, unseen=unseen)
        except UsageError as error:
            if not _is_open(run, asked):
                raise
            print(errors.error(error), file=sys.stderr)
            if _digests(questions.files_of(asked)) != seen:
                seen = _show(chosen)


def _elsewhere(asked: Question, unseen: bool) -> str:
    """How to answer where there is no terminal, if that is possible."""
    from raymond.control import request

    changed = questions.changed(asked)
    if changed:
        return f"{', '.join(changed)} changed since it asked: {request.seen_first(asked.workflow_id)}"
    way = f"raymond answer {asked.workflow_id} {asked.agent} TEXT"
    return f"{way} --unseen" if unseen else way


def _show(chosen: Asked) -> dict[str, str]:
    """Print the question with its files; what each of them was: path -> mark."""
    found = questions.files_of(chosen.question)
    where, width, height = chosen.project.tree, width_of(sys.stdout), height_of(sys.stdout)
    with words.times_for(sys.stdout):
        shown = faces_of_question.lines(chosen.question, found, now=now(), where=where, width=width)
        if 0 < height <= len(shown) + len(_how(chosen.question)):  # and there is the prompt
            shown += faces_of_question.reminder(chosen.question, len(shown), questions.way(chosen), width)
    print("\n".join(shown))
    return _digests(found)


def _how(asked: Question) -> list[str]:
    """What is said above the prompt."""
    return _fitted(f"answer {named(asked.agent, asked.label)}, or leave the question open with Ctrl-D:", sys.stdout)


def _fitted(text: str, stream: TextIO) -> list[str]:
    """A line of ours that names others: what the terminal would wrap stays in the margin."""
    margin, width = faces_of_question.MARGIN, width_of(stream)
    return hung(visible(text), margin, width)


def _digests(found: list[Found]) -> dict[str, str]:
    return {one.path: one.mark for one in found}


def _is_open(run: RunHandle, asked: Question) -> bool:
    """Whether another answer may be taken."""
    return any(one.question.number == asked.number for one in questions.of_run(run.project, run.id).asked)


def send(
    run: RunHandle, agent: str, said: str, question: int, *, seen: dict[str, str] | None = None, unseen: bool = False
) -> Answered:
    """Send an answer; `seen` is what was shown of the files, if this terminal shows the question."""
    from raymond.control import request
    from raymond.faces.lines import Lines

    told = request.answer(run.project, run.id, agent, said, question=question, seen=seen, unseen=unseen, face=Lines())
    asked = questions.of_run(run.project, run.id).asked
    who = agent or (asked[0].question.agent if len(asked) == 1 else "")
    left = delivery.words(told, run.id, who, is_shown=seen is not None)
    if left:
        print(left, file=sys.stderr)
    return Answered(run, is_driven=bool(left), open=len(asked))
