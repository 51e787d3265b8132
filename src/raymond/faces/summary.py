"""How a run ended: a few lines for people, the result or one JSON document for programs; the command to run next."""

import sys

import msgspec

from raymond.faces import clock, documents, question, words
from raymond.faces.foreign_text import in_margin, width_of
from raymond.faces.next_commands import next_command, other_commands
from raymond.machine.agent import SCRIPTED, Agent
from raymond.machine.outcome import Whole
from raymond.machine.run import Run
from raymond.text import safe, visible
from raymond.views.questions import question_of
from raymond.views.status import exit_code, failed_agents, main_result


def tell(run: Run, status: str, *, as_json: Whole | None = None, signal: int = 0) -> int:
    """Tell how a run that nobody drives any more ended, and return the exit code; `status` is as seen from outside.

    `as_json` reads long results, which a JSON document has in full.
    """
    from raymond.faces.lines import Lines  # `status` shares words with this, and needs none of it

    # Where both are seen together, the result follows by itself.
    is_shown = as_json is None and bool(run.final_status) and sys.stderr.isatty() and sys.stdout.isatty()
    with clock.of(sys.stderr):
        text = ending(run, status, width_of(sys.stderr), with_result=not is_shown)
    Lines().on_note(text)
    if as_json:
        sys.stdout.write(msgspec.json.encode(documents.outcome(run, status, as_json)).decode() + "\n")
    else:
        result = main_result(run)
        if result is not None and run.final_status:
            # A program gets the result as it is.
            text = safe(result) if sys.stdout.isatty() else result
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()
    return exit_code(run, signal)


def ending(run: Run, status: str, width: int = 0, *, with_result: bool = True) -> str:
    """How, why if it did not simply complete, cost, result, failed agents or whole questions, the next command."""
    id, why = run.start.workflow_id, _why(run, status)
    return "\n".join(
        visible(line)
        for line in (
            f"{status}: {id} after {words.lasted(run)}",
            *([f"why:    {why}"] if why else []),
            f"cost:   {words.money(run)} in {words.many(run.iterations, 'step')}",
            *_outcome(run, width, with_result=with_result),
            *_collected(run),
            *_scripted(run),
            *(f"denied: {one}" for one in words.denied(run)),
            f"next:   {next_command(run)}",
            *(f"or:     {other}" for other in other_commands(run)),
        )
    )


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
    if failed:
        return [line for agent in failed[:5] for line in _failed(agent, width)]
    asking = [agent for agent in run.agents.values() if agent.status == "asking" and not run.is_over]
    if asking:
        return _questions(asking, run.start.workflow_id, width)
    result = main_result(run)
    if result is None:
        return ["result: none" if run.is_over else "result: none yet"]
    return [f"result: {one_line(result)}"] if with_result else []


def _failed(agent: Agent, width: int) -> list[str]:
    told = f"failed: {words.who(agent)} in {agent.state}: {one_line(words.stuck(agent))}"
    printed = in_margin(agent.visit.output, "        | ", width) if agent.visit.output else []
    return [told, *printed]


def _scripted(run: Run) -> list[str]:
    """That no real program answered, or not always: a person who forgot the replies must not take them for one."""
    told = [words.program(one) for one in run.programs if one.name in SCRIPTED]
    mark = "; * is not billed" if run.scripted else ""
    if not told or not run.scripted_turns:
        return []
    part = "in part " if run.scripted_turns < run.turns else ""
    return [f"note:   answered {part}by {', '.join(told)}{mark}"]


def _collected(run: Run) -> list[str]:
    """The agents that failed and that a wait has collected, if the run has failed because of them."""
    if not run.unhandled:
        return [f"note:   {words.failures(run)}"] if run.lost else []
    failed = [one for one in run.outcomes.values() if one.status == "failed"][:5]
    return [f"failed: {words.named(one.agent, one.label)} in {one.state}: {one_line(one.error)}" for one in failed]


def _questions(asking: list[Agent], id: str, width: int) -> list[str]:
    """The first few, whole: a question that is cut would be answered all the same."""
    shown = [_question(agent, id, width) for agent in asking[:5]]
    more = [f"asks:   {words.many(len(asking) - 5, 'more agent')}: raymond status {id}"] if len(asking) > 5 else []
    return [*(line for lines in shown for line in lines), *more]


def _question(agent: Agent, id: str, width: int) -> list[str]:
    told = question.beside(f"asks:   {words.who(agent)}:", agent.question, "        | ", width)
    return [*told, *(f"        {one}" for one in question.more(question_of(id, agent)))]


def one_line(text: str) -> str:
    """The first line of `text`, not too much of it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first[:160]} ..." if rest or len(first) > 160 else first
