"""How a run ended, for people or as JSON; and the command to run next, which repeats no failure for money."""

import math
import sys
from collections.abc import Iterable, Sequence

import msgspec

from raymond import durations, pasted
from raymond.faces import documents, table, words
from raymond.faces.foreign_text import fitted, hung, in_margin, laid_open, width_of
from raymond.faces.words import with_author_paths
from raymond.machine import handled_failure
from raymond.machine.agent import FAILED, PAUSED, SCRIPTED, Agent, Outcome, Whole
from raymond.machine.run import Run, pool_of
from raymond.text import safe, visible
from raymond.views.questions import question_of
from raymond.views.status import collected_failures, exit_code, failed_agents, run_status, told_result, waits_for_review

INDENT, MARGIN = "        ", "        | "
"""Before what a line has no room for, and before lines of others."""
_SHOWN_AGENTS = 5
"""Agents that failed, or that ask, which the ending tells of."""

_TO_BE_CHANGED = ("script", "unreadable", "visits", "cap", "refusal", "context")
"""Failures that come again, and may cost again, unless the state changes."""
_TOO_SHORT = {"silent": "timeout", "time": "max_time"}
"""Failures that come again unless the state gets more time, and the key of its policy that gives it."""


def tell_ending(
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
    with words.times_for(sys.stderr):
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
        *_collected_failures(run, width),
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
    if len(lines) == 1 and table.max_cells(lines[0]) <= width:
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
        told = [line for agent in failed[:_SHOWN_AGENTS] for line in _failed(agent, run.start.scope_dir, width)]
        return [*told, *_more_failed(run, len(failed) - _SHOWN_AGENTS), *questions]
    if questions:
        return questions
    result = told_result(run)
    if result is None:
        return ["result: none" if run.is_over else "result: none yet"]
    return hung(f"result: {one_line(result)}", MARGIN, width) if with_result else []


def _failed(agent: Agent, folder: str, width: int) -> list[str]:
    why, output = (with_author_paths(text, folder) for text in (words.stuck(agent), agent.visit.output))
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


def _collected_failures(run: Run, width: int) -> list[str]:
    """The agents that failed and that a wait has collected, if the run has failed because of them."""
    if not run.unhandled:
        return [f"note:   {words.failures(run)}"] if run.lost else []
    failed = collected_failures(run)
    told = [f"failed: {collected_failure(run, one)}" for one in failed[:_SHOWN_AGENTS]]
    return [
        *(part for one in told for part in hung(visible(one), MARGIN, width)),
        *_more_failed(run, len(failed) - _SHOWN_AGENTS),
    ]


def collected_failure(run: Run, failed: Outcome) -> str:
    """An agent that has failed and that a wait has collected, where and why."""
    handled = "" if failed.agent in run.faults else " (handled)"
    why = one_line(with_author_paths(failed.error, run.start.scope_dir))
    return f"{words.named(failed.agent, failed.label)} in {failed.state}{handled}: {why}"


def _more_failed(run: Run, count: int) -> list[str]:
    more = f"failed: {words.many(count, 'more agent')}: raymond status {run.start.workflow_id} --agents"
    return [more] if count > 0 else []


def _questions(asking: list[Agent], id: str, width: int) -> list[str]:
    """The first few, whole: a question that is cut would be answered all the same."""
    shown = [_question(agent, id, width) for agent in asking[:_SHOWN_AGENTS]]
    left = len(asking) - _SHOWN_AGENTS
    more = [f"asks:   {words.many(left, 'more agent')}: raymond status {id}"] if left > 0 else []
    return [*(line for lines in shown for line in lines), *more]


def _question(agent: Agent, id: str, width: int) -> list[str]:
    from raymond.faces import question  # most runs ask nothing

    told = question.beside(f"asks:   {words.who(agent)}:", agent.question, MARGIN, width)
    return [*told, *(f"        {one}" for one in question.more(question_of(id, agent)))]


def one_line(text: str) -> str:
    """The first line of `text`, not too much of it, and nothing in it that is hidden."""
    first, _, rest = text.strip().partition("\n")
    shown = laid_open(first[:160])
    return f"{shown} ..." if rest or len(first) > 160 else shown


# The command to run next


def next_command(run: Run, now: float = 0.0) -> str:
    """The command to run next; with `now`, a question whose time is over is not to be answered."""
    id, status = run.start.workflow_id, run_status(run)
    if run.is_over:
        return f"raymond {'apply' if run.saved else 'logs'} {id}"
    asking = [agent for agent in run.agents.values() if agent.status == "asking"]
    if status == "waiting" and not all(agent.visit.is_overdue(now) for agent in asking):
        return f"raymond answer {id}"
    if any(waits_for_review(agent) for agent in run.agents.values()):
        return f"raymond review {id}"
    paused = any(agent.status == "paused" for agent in run.agents.values())
    if status == "paused" and paused and run.denied:
        return f"raymond resume {id} {_allow_flags(run, run.denied)}".rstrip()
    if status != "failed" and limit_flag(run):
        return f"raymond resume {id}{limit_flag(run)}"
    return _after_failures(run, failed_agents(run))


def instead_of_resume(run: Run) -> str:
    """What to do about a run that failed and cannot be resumed; empty when there is nothing to do."""
    return handled_failure.advice_if_handled(run) if run.final_status == FAILED else ""


def other_commands(run: Run) -> list[str]:
    """What else makes progress: what a step depends on may have changed outside of the workflow."""
    failed = failed_agents(run)
    if run.is_over or run.stop or len(failed) != 1 or failed[0].visit.detour:
        return []
    if _failure_kind(failed[0]) not in ("script", *_TOO_SHORT):
        return []
    its = f"raymond resume {run.start.workflow_id} --agent {failed[0].id}"
    elsewhere = [f"{its} {_goto_flag(run.start.entry)}"] if failed[0].state != run.start.entry else []
    return [f"{its} --retry", *elsewhere]


def after_failure(run: Run, agent: Agent) -> str:
    """What lets an agent continue that has failed, or is paused, so that it does not fail the same way again."""
    id = run.start.workflow_id
    if waits_for_review(agent):
        return f"raymond review {id}"
    if agent.status == FAILED and _failure_kind(agent) == "script" and agent.visit.detour:
        return _out_of_detour(id, agent.id, *agent.visit.detour)
    at_fault = _file_at_fault(run, agent) if agent.status == FAILED else ""
    if at_fault:
        longer, file = _TOO_SHORT.get(_failure_kind(agent)), pasted.name(at_fault)
        if longer:
            either = f"{longer} or tool_timeout" if longer == "timeout" and at_fault.endswith(".md") else longer
            return f"set a longer {either} in {file}, then: raymond resume {id} --latest{limit_flag(run)}"
        return f"change {file}, then: raymond resume {id} --latest{limit_flag(run)}"
    denied = agent.visit.stuck.tools if agent.visit.stuck and agent.status == PAUSED else ()
    return f"raymond resume {id} --agent {agent.id} --retry {_allow_flags(run, denied)}".rstrip() + limit_flag(run)


def _allow_flags(run: Run, denied: Iterable[str]) -> str:
    """The flags that allow tools which the run may not use yet: without them, they are denied again."""
    return " ".join(pasted.flag("--allow-tool", one, "TOOL") for one in denied if one not in run.rights.allowed)


def _file_at_fault(run: Run, agent: Agent) -> str:
    """The file that has to change before the agent can get on; empty when none has to."""
    kind = _failure_kind(agent)
    if kind == "setup" and pool_of(run, agent.state) in SCRIPTED:
        return "replies.yaml"
    if kind == "gate" and agent.visit.pending:
        return agent.state  # its check could not start
    return agent.state if kind in (*_TO_BE_CHANGED, *_TOO_SHORT) else ""


def _after_failures(run: Run, failed: list[Agent]) -> str:
    id = run.start.workflow_id
    kinds = [_failure_kind(agent) for agent in failed]
    if any(kind in ("asked", "approval") for kind in kinds):
        return f"raymond resume {id} --on-ask wait{limit_flag(run)}"
    if "session" in kinds:
        return f"raymond resume {id} --fresh{limit_flag(run)}"
    for agent in failed:
        if _file_at_fault(run, agent):
            return after_failure(run, agent)
    return f"raymond resume {id}{limit_flag(run)}"


def _out_of_detour(id: str, agent: str, source: str, used_up: str) -> str:
    """Out of the state that a loop without an end leads to: it fails on purpose, and would fail again."""
    then = f"raymond resume {id} --latest --agent {agent} {_goto_flag(source)}"
    return f"raise max_visits in {pasted.name(used_up)}, then: {then}"


def _goto_flag(state: str) -> str:
    return pasted.flag("--goto", state, "STATE")


def _failure_kind(agent: Agent) -> str:
    return agent.visit.stuck.kind if agent.visit.stuck else ""


def limit_flag(run: Run) -> str:
    """The flag that raises the limit which was reached: to twice as much, and to more than is used up."""
    if not run.stop or run.stop.kind != "limit":
        return ""
    limit, amount = run.stop.limit, run.stop.amount
    match limit:
        case "budget":
            return f" --budget {_dollars_for_flag(2 * amount if run.cost < 1.5 * amount else 2 * run.cost)}"
        case "iterations":
            return f" --max-iterations {max(2 * round(amount), run.iterations + 1)}"
        case "turns" | "unpriced":
            return f" --max-turns {max(2 * round(amount), run.turns + 1)}"
        case "time":
            driven = run.driven + max(0.0, run.driven_until - run.resumed_at)
            more = 2 * amount if driven < 1.5 * amount else math.ceil(2 * driven)
            return f" --max-time {durations.written(max(more, 1.0))}"
        case "wait":
            return " --now"
        case _:
            return ""


def _dollars_for_flag(amount: float) -> str:
    """Dollars for a flag: rounded up to cents, or to whole dollars where there are many."""
    places = 0 if amount >= 10 else 2
    up = math.ceil(round(amount * 10**places, 6)) / 10**places
    return f"{up:.2f}".rstrip("0").rstrip(".") if places else f"{up:.0f}"
