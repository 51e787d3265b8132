"""`raymond answer`: answer an agent's question."""

import sys
from time import time as now

import click
from msgspec import Struct

from raymond.cli import addressee, delivery, names, prompt, texts
from raymond.cli.addressee import Addressee
from raymond.cli.count import Count
from raymond.control import naming, questions, runs
from raymond.control.handle import RunHandle
from raymond.control.questions import Asked, Found
from raymond.errors import UsageError
from raymond.faces import clock, errors
from raymond.faces import question as faces_of_question
from raymond.faces.foreign_text import width_of
from raymond.text import visible
from raymond.views.questions import Question


@click.command("answer")
@click.argument("words", nargs=-1, metavar="[ID] [AGENT] [TEXT|@FILE|-]", shell_complete=names.answered)
@click.option("--file", "file", metavar="FILE", help="Answer with the text in FILE.")
@click.option("--question", metavar="N", type=Count(), help="The question you mean, if it is still open.")
@click.option("--attach", is_flag=True, help="Continue the run here, in the foreground.")
@click.option("--no-resume", is_flag=True, help="Only record the answer.")
def command(words: tuple[str, ...], file: str | None, question: int | None, attach: bool, no_resume: bool) -> int:
    """Answer agent AGENT of run ID; without a TEXT, show the question and ask.

    Leave AGENT out when only one is asking. Without ID, those that ask in this project are meant; an answer in words
    needs the ID. A run that is not running continues in the background.
    """
    if attach and no_resume:
        raise UsageError("--attach continues the run, --no-resume does not", hint="leave one of them out")
    done = _answered(words, file, question or 0)
    if done is None:
        return 3
    if no_resume or (done.is_driven and not attach):
        if not done.is_driven:
            print(f"answered; to continue: raymond resume {done.run.id}", file=sys.stderr)
        return 0
    from raymond.cli import continuing

    return continuing.follow(done.run) if done.is_driven else continuing.go_on(done.run, attach=attach)


class Answered(Struct, frozen=True):
    """The run whose question was answered."""

    run: RunHandle
    is_driven: bool


def _answered(words: tuple[str, ...], file: str | None, number: int) -> Answered | None:
    """What was answered; None when the person left the question open."""
    whom = addressee.of(words, has_text=file is not None)
    given = texts.text(whom.text, "the answer", texts.SENT) if whom.text is not None else None
    if file is not None:
        given = texts.file(file, "the answer", texts.SENT)
    if given is not None and not given.strip():
        raise UsageError("the answer is empty", hint='raymond answer ID AGENT "TEXT"')
    if given is not None and whom.run:
        return _send(whom.run, whom.agent, given, number)
    chosen = _chosen(whom, number, given is not None)
    run = RunHandle(chosen.project, chosen.question.workflow_id)
    if given is None:
        return _ask(run, chosen)
    return _send(run, chosen.question.agent, given, chosen.question.number)


def _chosen(whom: Addressee, number: int, has_text: bool) -> Asked:
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
        print(f"{place:>3}  {faces_of_question.mention(one.question, now=now())}")
    while True:
        try:
            typed = prompt.ask(f"which one? 1-{len(fitting)} > ").strip()
        except EOFError:
            raise addressee.several(fitting) from None
        if typed.isdecimal() and 1 <= int(typed) <= len(fitting):
            return fitting[int(typed) - 1]
        named = [one for one in fitting if one.question.is_called(typed)]
        if len(named) == 1:
            return named[0]


def _ask(run: RunHandle, chosen: Asked) -> Answered | None:
    """Show the question, and let the person at this terminal answer it."""
    asked = chosen.question
    seen = _show(chosen)
    if not prompt.can_ask():
        sys.stdout.flush()
        what = "there is no answer, and no terminal to type it on"
        raise UsageError(what, hint=f"raymond answer {asked.workflow_id} {asked.agent} TEXT")
    print(visible(f"answer {asked.agent}, or leave the question open with Ctrl-D:"))
    while True:
        try:
            said = prompt.ask("> ")
        except EOFError:
            print(f"\nnot answered; the question stays open: raymond answer {asked.workflow_id}", file=sys.stderr)
            return None
        if not said.strip():
            continue
        try:
            return _send(run, asked.agent, said, asked.number, seen)
        except UsageError as error:
            if not _is_open(run, asked):
                raise
            print(errors.error(error), file=sys.stderr)
            if _digests(questions.files_of(asked)) != seen:
                seen = _show(chosen)


def _show(chosen: Asked) -> dict[str, str]:
    """Print the question with its files; what each of them was: path -> mark."""
    found = questions.files_of(chosen.question)
    where, width = chosen.project.tree, width_of(sys.stdout)
    with clock.of(sys.stdout):
        shown = faces_of_question.lines(chosen.question, found, now=now(), where=where, width=width)
    print("\n".join(shown))
    return _digests(found)


def _digests(found: list[Found]) -> dict[str, str]:
    return {one.path: one.mark for one in found}


def _is_open(run: RunHandle, asked: Question) -> bool:
    """Whether another answer may be taken."""
    return any(one.question.number == asked.number for one in questions.of_run(run.project, run.id).asked)


def _send(run: RunHandle, agent: str, said: str, question: int, seen: dict[str, str] | None = None) -> Answered:
    from raymond.control import steer
    from raymond.faces.lines import Lines

    told = steer.answer(run.project, run.id, agent, said, question=question, seen=seen, face=Lines())
    left = delivery.words(told, run.id)
    if left:
        print(left, file=sys.stderr)
    return Answered(run, is_driven=bool(left))
