"""What a run is doing, in lines: the run, then a table of its agents, then the command to run next."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import time as now

from raymond import durations, pasted
from raymond.faces import question, table, words
from raymond.faces.foreign_text import fitted, hung, in_margin
from raymond.faces.summary import INDENT, MARGIN, after_failure, collected_failure, next_command, one_line
from raymond.faces.table import Column
from raymond.faces.words import with_author_paths
from raymond.machine import prices
from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, RUNNING, SCRIPTED, SLEEPING, WAITING, Agent
from raymond.machine.run import CANCELLED, Run
from raymond.store import transcripts
from raymond.text import visible
from raymond.views.questions import question_of
from raymond.views.status import collected_failures, is_checking, is_judged, told_result, waits_for_review, why_red

SHOWN_AGENTS = 50
"""Agents that are shown unless every one is asked for."""

_AGENT_INDENT = "  "
_AGENT_COLUMNS = (
    Column(least=16),
    Column(least=10),
    Column(),
    Column(right=True, rank=1),
    Column(least=12, rank=2, prose=True),
)
_URGENT = (FAILED, ASKING, PAUSED, RUNNING, READY, SLEEPING, WAITING)


def run_lines(
    run: Run,
    status: str,
    pid: int,
    transcript_folder: str,
    *,
    every: bool = False,
    host: str = "",
    width: int = 0,
    more: Iterable[str] = (),
    then: str = "",
    checks: Mapping[str, tuple[str, int]] = {},
) -> list[str]:
    """A run that process `pid` drives, or nobody (0) unless `host` does; `status` is as seen from outside.

    Questions are wrapped to `width` cells, unless that is 0, and never cut. `more` stands above the next
    command, which is `then` if that is given. `checks` are the command that the gate of an agent runs, and how often
    the agent is told that it is red.
    """
    id, why = run.start.workflow_id, words.reason(run, now(), briefly=True)
    driven = "" if pid else f", {host} may be running it" if host else ", not running"
    spent = f"{words.money(run)} of {prices.show(run.limits.budget)}" if run.limits.budget else words.money(run)
    process = f" in process {pid}" if pid and not run.final_status else ""
    held = f" ({why.removeprefix(f'{status} ')})" if why else ""
    stands = f"{id}: {status}{process}{held}" + (driven if not run.final_status else "")
    last = partial(transcripts.last_line, transcript_folder)
    lines = [
        *hung(visible(stands), INDENT, width),
        *hung(visible(f"  {run.start.name} from {run.start.scope_dir}"), MARGIN, width),
        f"  {words.many(run.iterations, 'step')}, {spent}, {words.lasted(run, now() if pid else 0.0)}",
        *_scripted(run),
        *([f"  {words.failures(run)}"] if run.lost and why != words.failures(run) else []),
        *([f"  {words.leftovers(run.leftovers)}"] if run.leftovers and not pid else []),
        *_agents(run, every, last, checks, width, bool(pid or host)),
        *_failed(run, len(run.outcomes) if every else SHOWN_AGENTS, width),
        *(part for one in words.denied(run) for part in hung(visible(f"denied: {one}"), INDENT, width)),
    ]
    result = told_result(run)
    if result is not None:
        lines += hung(f"result: {one_line(result)}", MARGIN, width)
    return [
        *(visible(line) for line in lines),
        *more,
        *fitted(visible(f"next: {then or _next(run, pid, host)}"), MARGIN, width),
    ]


def _next(run: Run, pid: int, host: str) -> str:
    id, then = run.start.workflow_id, next_command(run, now())
    if pid and not run.final_status:
        then = f"raymond {'answer' if run.statuses.get(ASKING) else 'attach'} {id}"
    if host and not run.final_status:
        then = f"look at it on {host}; if {host} is gone: raymond resume {id} --force"
    return then


def _scripted(run: Run) -> list[str]:
    """That no real program answered, also where that cost nothing."""
    told = [words.program(one) for one in run.programs if one.name in SCRIPTED]
    return [f"  answered by {', '.join(told)}"] if told and run.turns else []


def _failed(run: Run, most: int, width: int) -> list[str]:
    """The agents that failed and that a wait has collected: they are no longer among the agents."""
    failed = collected_failures(run)
    told = [f"  failed: {collected_failure(run, one)}" for one in failed[:most]]
    if len(failed) > most:
        told.append(f"  ... and {len(failed) - most} more failed: raymond status {run.start.workflow_id} --agents")
    return [part for one in told for part in hung(visible(one), MARGIN, width)]


def _agents(
    run: Run,
    every: bool,
    last_line: Callable[[str], str],
    checks: Mapping[str, tuple[str, int]],
    width: int,
    driven: bool,
) -> list[str]:
    shown = most_urgent(run, len(run.agents) if every else SHOWN_AGENTS)
    told = agent_lines(run, shown, driven=driven, now=now(), width=width)
    id, lines = run.start.workflow_id, list[str]()
    for agent, line in zip(shown, told, strict=True):
        # Nothing can be asked of a run that was cancelled.
        beside = _agent_details(run, agent, last_line(agent.id), width) if run.final_status != CANCELLED else []
        lines += [line, *_gate(agent, *checks.get(agent.id, ("", 0)), width), *beside]
    if len(run.agents) > len(shown):
        lines.append(f"  ... and {len(run.agents) - len(shown)} more agents: raymond status {id} --agents")
    return lines


def _gate(agent: Agent, command: str, tries: int, width: int) -> list[str]:
    """The command that its gate runs, and why the last one did not count."""
    told = [f"      checks: {one_line(command)}"] if command else []
    if (why := why_red(agent)) and not waits_for_review(agent):  # which says why by itself
        label = "red:  " if agent.visit.reminded_for == "gate" else "gate: "
        told_so_far = agent.visit.gate_tries
        times = f"{told_so_far} of {words.many(tries, 'time')}" if tries else words.many(told_so_far, "time")
        told.append(f"      {label} {one_line(why)} (the agent was told {times})")
    return [part for one in told for part in hung(visible(one), MARGIN, width)]


def _agent_details(run: Run, agent: Agent, last: str, width: int) -> list[str]:
    """What an agent asks, said last or failed with."""
    id, lines = run.start.workflow_id, list[str]()
    if agent.question:
        person = ", for a person at a terminal" if agent.visit.rest and agent.visit.rest.approve else ""
        note = f"(question {agent.asks}{person})"
        lines += question.beside("      asks: ", agent.question, MARGIN, width, note=note)
        told = (f"      {one}" for one in question.more(question_of(id, agent)))
        lines += [part for one in told for part in hung(one, MARGIN, width)]
        is_late = agent.visit.is_overdue(now())
        then = f"      next:  raymond {f'resume {id}' if is_late else f'answer {id} {agent.id}'}"
        return [*lines, *fitted(then, MARGIN, width)]
    if waits_for_review(agent):
        return _review(run, agent, width)
    if last and not last.rstrip().endswith("</ask>"):
        lines += hung(f"      last:  {one_line(with_author_paths(last, run.start.scope_dir))}", MARGIN, width)
    if agent.visit.stuck:
        why, output = (
            with_author_paths(text, run.start.scope_dir) for text in (words.stuck(agent), agent.visit.output)
        )
        lines += hung(f"      error: {one_line(why)}", MARGIN, width)
        lines += in_margin(output, MARGIN, width) if output else []
        or_else = "--retry, --goto STATE or --result TEXT" if agent.status == "failed" else "--goto STATE or --give-up"
        lines += fitted(visible(f"      next:  {after_failure(run, agent)}"), MARGIN, width)
        lines += fitted(f"      or:    raymond resume {id} --agent {agent.id} with {or_else}", MARGIN, width)
    return lines


def _review(run: Run, agent: Agent, width: int) -> list[str]:
    """Why its work waits for a person, and the commands that show it and decide it."""
    id, name = run.start.workflow_id, pasted.word(agent.id, "AGENT")
    commands = (
        f"      next:  raymond review {id}",
        f"      then:  raymond accept {id} {name}, or raymond reject {id} {name} REASON",
        f"      or:    raymond resume {id} --agent {name} with --goto STATE or --give-up",
    )
    why = with_author_paths(agent.error, run.start.scope_dir)
    lines = hung(visible(f"      review: {one_line(why)}"), MARGIN, width)
    return [*lines, *(part for one in commands for part in fitted(visible(one), MARGIN, width))]


# The table of agents


def most_urgent(run: Run, most: int) -> list[Agent]:
    """The agents to show, at most `most`: those that matter most, in the order in which they were started."""
    agents = list(run.agents.values())
    if len(agents) <= most:
        return agents
    kept = {agent.id for agent in sorted(agents, key=lambda agent: _URGENT.index(agent.status))[:most]}
    return [agent for agent in agents if agent.id in kept]


def agent_lines(run: Run, agents: Sequence[Agent], *, driven: bool, now: float, width: int = 0) -> list[str]:
    """A line for each of `agents`: where it is, what it does, since when, and what it waits for."""
    rows = [_agent_cells(run, agent, driven, now) for agent in agents]
    room = max(1, width - len(_AGENT_INDENT)) if width else 0
    return [f"{_AGENT_INDENT}{line}" for line in table.lines(_AGENT_COLUMNS, rows, room)]


def _agent_cells(run: Run, agent: Agent, driven: bool, now: float) -> tuple[str, ...]:
    status = agent.status if driven or agent.status != RUNNING else "interrupted"
    if run.final_status == CANCELLED:
        return words.who(agent), agent.state, f"was {status}", "", ""
    # What stands still is not counted: only a question waits, whoever drives the run.
    counts = agent.status == ASKING or (driven and agent.status not in (FAILED, PAUSED))
    since = durations.brief(max(0.0, now - words.status_since(agent))) if counts else ""
    return words.who(agent), agent.state, status, since, _status_detail(run, agent)


def _status_detail(run: Run, agent: Agent) -> str:
    until = f"until {words.instant(agent.visit.wake_at)}" if agent.visit.wake_at else ""
    again = f", then attempt {agent.visit.attempt + 1}" if until and agent.visit.failures else ""
    if agent.status == WAITING:
        return " ".join(filter(None, (f"for {words.many(agent.alive, 'agent')}", until)))
    if agent.status == READY and not until:
        return words.waiting_for(run, agent, words.instant)
    if is_checking(agent) or is_judged(agent):
        return "its gate" if is_checking(agent) else "its evaluator"
    return f"{until}{again}"
