"""How a run ended: a few lines for people, the result or one JSON document for programs; the command to run next."""

import sys
from collections.abc import Sequence

import msgspec

from raymond.faces import cells, clock, documents, question, words
from raymond.faces.authored import authored
from raymond.faces.foreign_text import fitted, hung, in_margin, laid_open, width_of
from raymond.faces.next_commands import next_command, other_commands
from raymond.machine.agent import SCRIPTED, Agent
from raymond.machine.outcome import Outcome, Whole
from raymond.machine.run import Run
from raymond.text import safe, visible
from raymond.views.questions import question_of
from raymond.views.status import collected_failures, exit_code, failed_agents, told_result

INDENT, MARGIN = "        ", "        | "
"""Before what a line has no room for, and before lines of others."""
_SHOWN = 5
"""Agents that failed, or that ask, which the ending tells of."""


def tell(
    run: Run,
    status: str,
    *,
    as_json: Whole | None = None,
    signal: int = 0,
    left: Sequence[str] = (),
    then: str = "",
) -> int:
    """Tell how a run that nobody drives any more ended, and return the exit code; `status` is as seen from outside.

    `as_json` reads long results, which a JSON document has in full. `left`: what was asked of it and nobody has heard;
    `then`: the command to run next, if that makes it another one.
    """
    from raymond.faces.lines import Lines  # `status` shares words with this, and needs none of it

    # Where both are seen together, the result follows by itself.
    is_shown = as_json is None and bool(run.final_status) and sys.stderr.isatty() and sys.stdout.isatty()
    with clock.of(sys.stderr):
        text = ending(run, status, width_of(sys.stderr), with_result=not is_shown, left=left, then=then)
    Lines().put(f"{text}\n")
    if as_json:
        sys.stdout.write(msgspec.json.encode(documents.outcome(run, status, as_json)).decode() + "\n")
    else:
        result = told_result(run)
        if result is not None and run.final_status:
            # A program gets the result as it is.
            text = "\n".join(_result(result, width_of(sys.stdout))) if sys.stdout.isatty() else result
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()
    return exit_code(run, signal)


def ending(
    run: Run, status: str, width: int = 0, *, with_result: bool = True, left: Sequence[str] = (), then: str = ""
) -> str:
    """How, why if it did not simply complete, cost, result, failed agents or whole questions, the next command."""
    id, why = run.start.workflow_id, _why(run, status)
    told = (
        f"{status}: {id} after {words.lasted(run)}",
        *([f"why:    {why}"] if why else []),
        f"cost:   {words.money(run)} in {words.many(run.iterations, 'step')}",
        *([f"note:   {words.estimate(run.start, run.programs)}"] if run.estimated else []),
        *_outcome(run, width, with_result=with_result),
        *_collected(run, width),
        *([f"work:   refs/raymond/{id}/tip"] if run.saved else []),
        *_scripted(run),
        *(f"denied: {one}" for one in words.denied(run)),
        *(f"left:   {one}" for one in left),
    )
    other = [] if then else other_commands(run)
    commands = (f"next:   {then or next_command(run)}", *(f"or:     {one}" for one in other))
    lines = [one for line in told for one in hung(visible(line), INDENT, width)]
    return "\n".join([*lines, *(one for line in commands for one in fitted(visible(line), MARGIN, width))])


def _result(result: str, width: int) -> list[str]:
    """All of it on a terminal, below lines of ours: beside its name when it is one short line, else inside a margin."""
    text = result.removesuffix("\n")
    lines = in_margin(text, "result: ", 0, safe)
    if len(lines) == 1 and cells.most(lines[0]) <= width:
        return lines
    return ["result:", *in_margin(text, MARGIN, width, safe)]


def _why(run: Run, status: str) -> str:
    why = words.reason(run)
    if why:
        return why
    if status == "failed":
        return words.failures(run)
    ends = {"completed": "", "interrupted": "the process that ran it is gone"}
    return ends.get(status, "no agent can continue")


def _outcome(run: Run, width: int, *, with_result: bool) -> list[str]:
    failed = failed_agents(run)
    asking = [agent for agent in run.agents.values() if agent.status == "asking" and not run.is_over]
    questions = _questions(asking, run.start.workflow_id, width)
    if failed:
        told = [line for agent in failed[:_SHOWN] for line in _failed(agent, run.start.scope_dir, width)]
        return [*told, *_more(run, len(failed) - _SHOWN), *questions]
    if questions:
        return questions
    result = told_result(run)
    if result is None:
        return ["result: none" if run.is_over else "result: none yet"]
    return hung(f"result: {one_line(result)}", MARGIN, width) if with_result else []


def _failed(agent: Agent, folder: str, width: int) -> list[str]:
    why, output = (authored(text, folder) for text in (words.stuck(agent), agent.visit.output))
    told = f"failed: {words.who(agent)} in {agent.state}: {one_line(why)}"
    printed = in_margin(output, MARGIN, width) if output else []
    return [*hung(visible(told), MARGIN, width), *printed]


def _scripted(run: Run) -> list[str]:
    """That no real program answered, or not always: a person who forgot the replies must not take them for one."""
    told = [words.program(one) for one in run.programs if one.name in SCRIPTED]
    mark = "; * is not billed" if run.scripted else ""
    if not told or not run.scripted_turns:
        return []
    part = "in part " if run.scripted_turns < run.turns else ""
    return [f"note:   answered {part}by {', '.join(told)}{mark}"]


def _collected(run: Run, width: int) -> list[str]:
    """The agents that failed and that a wait has collected, if the run has failed because of them."""
    if not run.unhandled:
        return [f"note:   {words.failures(run)}"] if run.lost else []
    failed = collected_failures(run)
    told = [f"failed: {collected(run, one)}" for one in failed[:_SHOWN]]
    return [*(part for one in told for part in hung(visible(one), MARGIN, width)), *_more(run, len(failed) - _SHOWN)]


def collected(run: Run, failed: Outcome) -> str:
    """An agent that has failed and that a wait has collected, where and why."""
    handled = "" if failed.agent in run.faults else " (handled)"
    why = one_line(authored(failed.error, run.start.scope_dir))
    return f"{words.named(failed.agent, failed.label)} in {failed.state}{handled}: {why}"


def _more(run: Run, count: int) -> list[str]:
    more = f"failed: {words.many(count, 'more agent')}: raymond status {run.start.workflow_id} --agents"
    return [more] if count > 0 else []


def _questions(asking: list[Agent], id: str, width: int) -> list[str]:
    """The first few, whole: a question that is cut would be answered all the same."""
    shown = [_question(agent, id, width) for agent in asking[:_SHOWN]]
    left = len(asking) - _SHOWN
    more = [f"asks:   {words.many(left, 'more agent')}: raymond status {id}"] if left > 0 else []
    return [*(line for lines in shown for line in lines), *more]


def _question(agent: Agent, id: str, width: int) -> list[str]:
    told = question.beside(f"asks:   {words.who(agent)}:", agent.question, MARGIN, width)
    return [*told, *(f"        {one}" for one in question.more(question_of(id, agent)))]


def one_line(text: str) -> str:
    """The first line of `text`, not too much of it, and nothing in it that is hidden."""
    first, _, rest = text.strip().partition("\n")
    shown = laid_open(first[:160])
    return f"{shown} ..." if rest or len(first) > 160 else shown
