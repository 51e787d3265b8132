"""`raymond answer`: answer an agent's question."""

import sys

from raymond import amounts
from raymond.cli import asking, texts, values
from raymond.cli.asking import Answered
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import Value
from raymond.control import left_requests
from raymond.control.handle import RunHandle
from raymond.errors import UsageError


@as_command("answer")
@argument("words", many=True, metavar="[ID] [AGENT] [TEXT|@FILE|-]", complete=values.complete_answer)
@option("--file", "file", metavar="FILE", help="Answer with the text in FILE.")
@option("--question", metavar="N", type=Value(amounts.count), help="The question you mean, if it is still open.")
@option("--unseen", is_flag=True, help="Answer although a file of the question cannot be shown.")
@option("--attach", is_flag=True, help="Continue the run here, in the foreground.")
@option("--no-resume", is_flag=True, help="Only record the answer.")
def command(
    words: tuple[str, ...], file: str | None, question: int | None, unseen: bool, attach: bool, no_resume: bool
) -> int:
    """Answer agent AGENT of run ID; without a TEXT, show the question and ask.

    Leave AGENT out when only one is asking. Without ID, choose among the questions of this project, or of all projects
    if this one has no runs; a TEXT needs the ID. A run that no process drives continues in the background.
    """
    if attach and no_resume:
        raise UsageError("--attach continues the run, --no-resume does not", hint="leave one of them out")
    done = _answered(words, file, question or 0, unseen)
    if done is None:
        return 3
    code = _continue(done, attach=attach, no_resume=no_resume)
    if done.open and not attach:
        are = "question is" if done.open == 1 else "questions are"
        print(f"{done.open} {are} still open: raymond answer {done.run.id}", file=sys.stderr)
    return code


def _continue(done: Answered, *, attach: bool, no_resume: bool) -> int:
    """What follows for the run."""
    if no_resume or (done.is_driven and not attach):
        if not done.is_driven:
            print(f"answered; {left_requests.onward(done.run.project, done.run.id)}", file=sys.stderr)
        return 0
    from raymond.cli import attach as attaching
    from raymond.cli import resume

    return attaching.stay_with(done.run) if done.is_driven else resume.continue_run(done.run, attach=attach)


def _answered(words: tuple[str, ...], file: str | None, number: int, unseen: bool) -> Answered | None:
    """What was answered; None when the person left the question open."""
    whom = asking.addressee_of(words, has_text=file is not None)
    given = texts.text(whom.text, "the answer", texts.SENT) if whom.text is not None else None
    if file is not None:
        given = texts.file(file, "the answer", texts.SENT)
    if given is not None and not given.strip():
        raise UsageError("the answer is empty", hint='raymond answer ID AGENT "TEXT"')
    if given is not None and whom.run:
        return asking.send(whom.run, whom.agent, given, number, unseen=unseen)
    chosen = asking.choose(whom, number, given is not None)
    run = RunHandle(chosen.project, chosen.question.workflow_id)
    if given is None:
        return asking.put(run, chosen, unseen=unseen)
    return asking.send(run, chosen.question.agent, given, chosen.question.number, unseen=unseen)
