"""What people are told about runs, in words: events, reasons, amounts, times, the author's files.

Times are on a person's own clock on a terminal, and UTC in files, pipes and documents. What is shown is put together
far from where it is written: the writer says for which stream with `times_for`, and all words inside follow.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from raymond import durations, pasted
from raymond.faces.foreign_text import plain
from raymond.machine import prices
from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, RUNNING, SCRIPTED, SCRIPTS, Agent, backend_of
from raymond.machine.agent import named as named
from raymond.machine.budget import affordable
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentHeld,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    AgentReturned,
    AgentStarted,
    AgentWoke,
    AskEnded,
    AskStarted,
    BackendClosed,
    BackendOpened,
    ClockSet,
    Decision,
    EvaluatorEnded,
    Event,
    GateEnded,
    JournalCut,
    LeftoversEnded,
    Program,
    ProgramAdded,
    RequestTaken,
    ReviewEnded,
    RunEnded,
    RunMoved,
    RunResumed,
    RunStarted,
    RunStopped,
    SealEnded,
    StepEnded,
    StepFailed,
    StepInterrupted,
    StepRefused,
    TreeMade,
    WaitEnded,
    WaitStarted,
    WorkflowChanged,
    WorkSaved,
)
from raymond.machine.run import CANCELLED, Run
from raymond.machine.step_events import TO_REVIEW
from raymond.patterns import regex
from raymond.store.home import UNPACKED
from raymond.views import times
from raymond.views.status import is_answered, run_status, told_result, waits_for_review

_local = False

_ROUNDING = 1e-9
"""Less than this is what additions leave over."""

_COPY_FOLDER = regex(rf"(?:/[^\s/:'\"]+)+/{UNPACKED}/[0-9a-f]{{64}}/")
"""The folder of one workflow among those that are unpacked."""
PRINTED_FIELDS = ("out", "err", "note", "error")
"""What of a transcript is shown with the author's files; agents were sent the names of their copies, and say them."""

_KIND_OF_SENDER = {"step": " of a step", "unknown": " of an unknown process"}
_RECEIVED = {"answer": "answer received", "limits": "new limits received"}
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 15: "SIGTERM"}
NOT_DRIVEN = "interrupted: no process drives the run"
"""Of a step that has not ended, and whose driver is gone."""
GONE = "its transcript is gone"
"""Of a step that was recorded, when the record cannot be read any more."""


# Times


@contextlib.contextmanager
def times_for(stream: TextIO | None) -> Iterator[None]:
    """Within it, times are shown as fits `stream`; None is a terminal that somebody draws on."""
    global _local
    before, _local = _local, stream is None or stream.isatty()
    try:
        yield
    finally:
        _local = before


def instant(at: float) -> str | None:
    """A time with its seconds; on a terminal with the day only where it is not today. None for no time."""
    if not _local or not at:
        return times.instant(at)
    then, today = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


# Amounts


def dollars(real: float, scripted: float = 0.0, *, estimated: bool = False) -> str:
    """What was paid, `~` if that is an estimate, and what scripted replies are said to have cost, which `*` marks."""
    paid = f"{'~' if estimated else ''}{prices.show(max(real, 0.0))}"
    if scripted < _ROUNDING:
        return paid
    return f"{paid} and {prices.show(scripted)}*" if real >= _ROUNDING else f"{prices.show(scripted)}*"


def step_cost(event: StepEnded, backend: str) -> str:
    """What a step of `backend` has cost; empty for a free one."""
    if not event.cost:
        return ""
    is_scripted = backend in SCRIPTED
    real, invented = (0.0, event.cost) if is_scripted else (event.cost, 0.0)
    return dollars(real, invented, estimated=event.estimated and not is_scripted)


# The author's files


def with_author_paths(text: str, folder: str) -> str:
    """`text` with the files of the workflow in `folder` as one would type them here, instead of their copies."""
    if UNPACKED not in text or not folder:
        return text
    near = min(os.path.relpath(folder), folder, key=len)
    return _COPY_FOLDER.sub(lambda _: "" if near == "." else f"{near}/", text)


# Runs and events


def reason(run: Run, now: float = 0.0, *, briefly: bool = False) -> str | None:
    """Why a run does not continue; with `now`, for how much longer. `briefly`: what is to be reviewed stands below."""
    if run.stop and run.final_status in ("", CANCELLED):
        return stop(run.stop)
    for backend, closed in run.closed.items():
        left = f", in {durations.brief(closed.until - now)}" if now and closed.until > now else ""
        until = f" until {instant(closed.until)}{left}" if closed.until else ""
        if closed.kind == "machine":
            if run.final_status:
                continue
            return f"{crowd(backend, closed.most)}{until}: {closed.error}"
        return f"{backend} is unavailable{until}: {closed.error}"
    if run.final_status == "failed" and run.started > 1:
        return failures(run)
    if run.final_status == "completed" and run.start.loop:
        return told_result(run)
    if run.final_status == "completed" and run.red:
        states = list(dict.fromkeys(run.red.values()))
        return f"the gate{'s' if states[1:] else ''} of {', '.join(states)} stayed red"
    if is_answered(run):
        return f"{_decided(run)}not continued yet"
    if run_status(run) == "waiting" and run.statuses.get(ASKING):
        return _asked(run)
    if run_status(run) == "paused" and run.statuses.get(PAUSED):
        first = next(agent for agent in run.agents.values() if agent.status == PAUSED)
        why = "waits for a review" if briefly and waits_for_review(first) else stuck(first)
        return f"{many(run.statuses[PAUSED], 'agent')} paused, {who(first)}: {why}"
    return None


def _asked(run: Run) -> str:
    """That it waits for answers; a loop that has paused says why in the first line of its question."""
    asking = [agent for agent in run.agents.values() if agent.status == ASKING]
    for agent in asking if run.start.loop else ():
        if "question" in (agent.variables or ()):
            return agent.question.partition("\n")[0]
    return f"{many(len(asking), 'agent')} {'waits' if len(asking) == 1 else 'wait'} for an answer"


def why(run: Run) -> str | None:
    """The same in one line that stands alone: of a single failure, what went wrong."""
    failed = [agent for agent in run.agents.values() if agent.status == FAILED]
    if run.final_status == "failed" and len(failed) == 1 and failed[0].visit.stuck:
        return f"{failed[0].state}: {failed[0].visit.stuck.error.strip().partition(chr(10))[0]}"
    return reason(run)


def _decided(run: Run) -> str:
    """What a person has decided about a change, if nothing has followed from it yet."""
    visits = [agent.visit for agent in run.agents.values() if agent.status == READY]
    if any(visit.accepted and visit.pending for visit in visits):
        return "accepted, "
    return "rejected, " if any(visit.reminded_for == "review" and not visit.review for visit in visits) else ""


def crowd(pool: str, most: int) -> str:
    """How many steps of a pool run while the machine has no room for more."""
    return f"{pool}: at most {most} at once" if most else f"{pool}: none starts"


def stop(event: RunStopped) -> str:
    """Why a run stopped."""
    match event.kind:
        case "limit":
            return _limit(event)
        case "signal":
            return f"stopped by {_SIGNALS.get(event.signal, f'signal {event.signal}')}"
        case "stop":
            return f"stopped {'at once ' if event.at_once else ''}on request{_KIND_OF_SENDER.get(event.by, '')}"
        case "cancelled":
            return f"cancelled on request{_KIND_OF_SENDER.get(event.by, '')}"
        case _:
            return "paused with Ctrl-C"


def _limit(event: RunStopped) -> str:
    match event.limit:
        case "budget":
            return f"the budget of {prices.show(event.amount)} is spent"
        case "iterations":
            return f"max_iterations ({event.amount:.0f}) was reached"
        case "turns":
            return f"max_turns ({event.amount:.0f}) was reached"
        case "unpriced":
            return f"stopped after {event.amount:.0f} turns of unknown cost (set --max-turns to allow more)"
        case "time":
            return f"max_time ({durations.show(event.amount)}) was reached"
        case _:
            closed, most = durations.brief(event.wait), durations.brief(event.amount)
            return f"{event.backend} is unavailable for {closed} (usage limit), longer than max_wait ({most})"


def stuck(agent: Agent) -> str:
    """Why an agent failed or is paused; empty when it is neither."""
    why = agent.visit.stuck
    if why is None:
        return ""
    return _pause(why.kind, why.error, why.tools, why.backend) if agent.status == PAUSED else why.error


def _pause(kind: str, error: str, tools: Iterable[str], backend: str) -> str:
    match kind:
        case "denied":
            return f"denied tools it needs: {', '.join(tools)}"
        case "review":
            return f"waits for a review: {error}"
        case "overload":
            return f"{backend} was overloaded for too long: {error}"
        case "person":
            return "paused by a person"
        case "step":
            return "paused by a step"
        case "unknown":
            return "paused by an unknown process"
        case _:
            return error


def who(agent: Agent) -> str:
    """An agent as people read it: its name, and its label if it has one."""
    return named(agent.id, agent.label)


def many(count: int, what: str) -> str:
    """`count` things, in words."""
    return f"{count:,} {what if count == 1 else plural(what)}"


def plural(what: str) -> str:
    """Several things."""
    if what.endswith("y") and what[-2:-1] not in "aeiou":
        return f"{what[:-1]}ies"
    return f"{what}es" if what.endswith("s") else f"{what}s"


def leftovers(count: int) -> str:
    """What was ended when the driver left."""
    return f"{many(count, 'process')} that steps had left running {'was' if count == 1 else 'were'} ended"


def pausing(run: Run) -> str:
    """What the first Ctrl-C waits for, and what a second one loses."""
    names = [who(agent) for agent in run.agents.values() if agent.status == RUNNING]
    if not names:
        return "paused: nothing is running"
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"pausing after {many(len(names), 'running step')} ({shown}); no new steps will start\n"
        "press Ctrl-C again to stop now: unfinished steps will rerun, and cost again, when you resume"
    )


def cost_of(decisions: Iterable[Decision]) -> float:
    """What the steps that ended in these decisions cost."""
    return sum(event.cost for decision in decisions for event in decision.events if isinstance(event, StepEnded))


def denied(run: Run) -> list[str]:
    """The tools that were denied, how often, and the flag that would allow each."""
    since = {tool: count for tool, count in run.denied.items() if tool not in run.rights.allowed}
    most = sorted(since.items(), key=lambda pair: (-pair[1], pair[0]))
    flags = ((pasted.flag("--allow-tool", tool, "TOOL"), tool, count) for tool, count in most[:5])
    return [f"{tool} {many(count, 'time')} ({flag} would allow it)" for flag, tool, count in flags]


def money(run: Run) -> str:
    """The run's cost as people read it."""
    return dollars(run.billed, run.scripted, estimated=run.estimated)


def line(event: Event, state: str = "", label: str = "") -> str | None:
    """`event` in one line, with the `state` its agent leaves and its label; None when it says nothing to a person."""
    told = _agent_line(event, named(getattr(event, "agent", ""), label), f" {state}" if state else "")
    return told or _run_line(event)  # far more is told of agents


def workplace(workspace: str) -> str:
    """Where agents work."""
    return "in a copy" if workspace == "copy" else workspace


def _run_line(event: Event) -> str | None:
    match event:
        case RunStarted():
            begun = f"run {event.workflow_id} started {workplace(event.workspace)}: {event.name} at {event.entry}"
            return f"{begun}{_programs(event.programs)}{_budget(event)}"
        case RunResumed():
            return f"run resumed{_programs(event.programs)}"
        case ProgramAdded():
            return f"{program(event.program)} answers from now on, too"
        case JournalCut():
            return f"the end of the journal was lost; steps are counted from {event.steps + 1}"
        case ClockSet():
            by = durations.show(abs(event.seconds))
            set_to = f"back by {by}" if event.seconds < 0 else f"forward by {by}, or this machine slept"
            return f"the clock was set {set_to}"
        case RunMoved():
            return f"run continues in {event.cwd}"
        case WorkflowChanged():
            return f"run continues with today's files ({event.source[:16]})"
        case RunStopped():
            return f"stopping: {stop(event)}"
        case RunEnded():
            return f"run {event.status}"
        case LeftoversEnded():
            return leftovers(event.count)
        case TreeMade():
            extra = " and what was not committed" if event.commit != event.head else ""
            return f"the workspace begins with {event.head[:12]}{extra}"
        case WorkSaved():
            return f"the work is saved as {event.commit[:12]}"
        case BackendClosed():
            until = f" until {instant(event.until)}" if event.until else ""
            if event.kind == "machine":
                return f"{crowd(event.backend, event.most)}{until}: {event.error}"
            return f"{event.backend} is unavailable{until} ({event.kind}): {event.error}"
        case BackendOpened():
            if event.backend == SCRIPTS:
                return "one more script is tried" if event.probing else "all scripts start again"
            return f"{event.backend} is tried again" if event.probing else f"{event.backend} answers again"
        case RequestTaken():
            what = event.kind.replace("_", " ")
            return f"{what} refused: {event.problem}" if event.problem else _RECEIVED.get(what, f"{what} requested")
        case _:
            return None


def estimate(start: RunStarted, programs: Iterable[Program]) -> str:
    """What `~` before an amount means."""
    from raymond.backends.registry import PROGRAMS

    own = [one.name for one in programs if one.name not in (*PROGRAMS, *SCRIPTED)]
    if not own:
        return "~ is an estimate: the program did not say what it cost"
    counted = f"~ counts a turn of {', '.join(own)} as {dollars(start.unknown_turn_cost)}"
    return f"{counted}: set `cost` in {', '.join(f'[backends.{name}]' for name in own)}"


def program(one: Program) -> str:
    """What answers prompts: its version, and who pays."""
    if one.name in SCRIPTED:
        return f"scripted replies ({one.payer})"
    version = f"{one.name} {one.version}" if one.version else one.name
    paid = f"paid by {one.payer}" if one.payer else "nobody is logged in"
    return f"{version} ({paid}{f', at {one.host}' if one.host else ''})"


def _programs(found: Iterable[Program]) -> str:
    return "".join(f", {'answered by ' if one.name in SCRIPTED else ''}{program(one)}" for one in found)


def _budget(event: RunStarted) -> str:
    return f", {f'budget {prices.show(event.budget)}' if event.budget else 'no budget'} ({event.budget_from})"


def _agent_line(event: Event, agent: str, left: str) -> str | None:
    match event:
        case AgentMoved() | AgentCalled() | AgentReturned() | WaitEnded() | AskEnded():
            until = _until(event.wake_at) if isinstance(event, AgentMoved) else ""
            return f"{agent}{left} -> {event.state} {moved(event)}{until}"
        case AgentStarted():
            by = f" forked by {event.parent}" if event.parent else ""
            return f"{agent} starts at {event.state}{by}{_until(event.wake_at)}"
        case AgentHeld():
            return f"{agent} waits for {event.pool}"
        case AgentWoke():
            return f"{agent} wakes"
        case WaitStarted():
            return f"{agent} waits for its forks, then {event.state}"
        case AskStarted():
            return f"{agent} asks: {event.question}"
        case AgentEnded():
            return f"{agent} done"
        case AgentFailed():
            return f"{agent} failed ({event.kind}): {event.error}"
        case AgentPaused():
            return f"{agent} paused: {_pause(event.kind, event.reason, event.tools, event.backend)}"
        case AgentRetried():
            return f"{agent} tries again"
        case _:
            return _step_line(event, agent)


def gate(event: GateEnded) -> str:
    """What a gate found, and what follows from it."""
    took = durations.brief(event.seconds)
    if event.verdict == "passed":
        flaky = ", flaky: it was red the first time" if event.flaky else ""
        also = f"; {_changed(event)}" if event.changes else f"; {event.reason}" if event.reason else ""
        also += "; regression only: it was green before, and no test was added" if event.as_before else ""
        also += f"; changed while it ran: {_some(event.wrote)}" if event.wrote else ""
        return f"gate passed ({took}{flaky}){also}"
    if event.verdict == "could not start":
        return f"gate could not start: {event.reason}"
    if event.verdict in TO_REVIEW:
        asked = "; the agent is asked why" if event.told else ""
        return f"gate does not count ({event.verdict}, {took}): {event.reason}{asked}"
    before = ", as before the work" if event.as_before else ""
    return f"gate is red ({took}{before}): {event.reason}{'; the agent is told' if event.told else ''}"


def _changed(event: GateEnded) -> str:
    """What decides the check, and changed without changing its result, or by the leave of a person."""
    with_them = event.reason or ("also as sealed" if event.twin else "accepted")
    return f"{with_them}: {_some(event.changes)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def evaluator(event: EvaluatorEnded) -> str:
    """What an evaluator said, and what follows from it."""
    if event.again:
        return f"evaluator is asked again: {event.reason}"
    if not event.decided:
        return f"evaluator decided nothing: {event.reason}"
    why = f" ({event.reason})" if event.reason else ""
    said = f"says {event.verdict}" if event.verdict else f"gave no verdict{why}, the default counts"
    then = f"keeps {event.requested}" if event.kept else f"{event.actual} instead of {event.requested}"
    return f"evaluator {said}: {then}"


def _step_line(event: Event, agent: str) -> str | None:
    match event:
        case StepRefused():
            if event.capped:
                return f"{agent} reached its share of the budget"
            if event.blocked:
                return f"{agent} was denied tools it needs: {', '.join(event.denied)}"
            return f"{agent} is asked again: {event.reason}"
        case StepFailed():
            again = f"; tries again at {instant(event.retry_at)}" if event.retry_at else ""
            what = "evaluator" if event.phase == "evaluate" else f"step {event.step}"
            return f"{agent} {what} failed ({event.kind}): {event.error}{again}"
        case StepInterrupted():
            return f"{agent} step {event.step} interrupted{f': {event.cause}' if event.cause else ''}"
        case GateEnded():
            return f"{agent} {gate(event)}"
        case SealEnded():
            return None if event.seal else f"{agent} cannot begin: {event.reason}"
        case ReviewEnded():
            reason = f": {event.reason}" if event.reason else ""
            return f"{agent}: its change {'was accepted' if event.accepted else 'was rejected'}{reason}"
        case EvaluatorEnded():
            return f"{agent} {evaluator(event)}"
        case _:
            return None


def moved(event: AgentMoved | AgentCalled | AgentReturned | WaitEnded | AskEnded, by: str = "") -> str:
    """Why an agent moved to a state. `by` names who answered, if anybody did."""
    match event:
        case AgentMoved():
            how = event.tag
        case AgentCalled():
            return f"({event.tag}, then {event.then})"
        case AgentReturned():
            how = "result"
        case WaitEnded():
            how = "wait, timed out" if event.timed_out else "wait"
        case AskEnded():
            how = "nobody answered" if event.timed_out else f"answered{by}"
    return f"({how}){f' instead of {event.instead_of}, whose visits are used up' if event.instead_of else ''}"


def ended(event: StepEnded) -> str:
    """How a step ended, in a word, and why."""
    match event:
        case StepFailed():
            return f"failed ({event.kind}: {' '.join(event.error.split())})"
        case SealEnded():
            return "sealed" if event.seal else f"not sealed ({event.reason})"
        case GateEnded():
            found = "is red" if event.verdict in ("failed", "timed out") else event.verdict
            why = f" ({event.reason})" if event.reason else " (flaky)" if event.flaky else ""
            return f"gate {found}{why}"
        case StepRefused() if not event.capped and not event.blocked:
            return f"rejected ({' '.join(event.reason.split())})"
        case EvaluatorEnded():
            return "judged" if event.decided else f"judged nothing ({' '.join(event.reason.split())})"
        case _:
            return type(event).__name__.removeprefix("Step").lower()


def _until(wake_at: float) -> str:
    return f", sleeps until {instant(wake_at)}" if wake_at else ""


def failures(run: Run) -> str:
    """How many agents failed, whoever has collected that; empty when none did."""
    count = run.lost + run.failed_count
    if not count:
        return ""
    of = f"{count} of {many(run.started, 'agent')}" if run.started > 1 else many(count, "agent")
    handled = run.lost - run.unhandled
    told = "the workflow handled that" if handled == count else f"the workflow handled {handled} of them"
    return f"{of} failed; {told}" if handled else f"{of} failed"


def lasted(run: Run, now: float = 0.0) -> str:
    """How long the run took, up to its last decision or to `now`."""
    return durations.show(max(0.0, (now or run.now) - run.started_at))


# What keeps an agent from continuing, in a few words


def waiting_for(run: Run, agent: Agent, moment: Callable[[float], str | None]) -> str:
    """What keeps an agent that could start from starting; `moment` writes a time."""
    pool = agent.pool
    closed = run.closed.get(pool) or run.closed.get(backend_of(pool))
    if run.stop or run.final_status:
        return ""
    if closed and closed.kind != "machine":
        return f"for {plain(pool)}" + (f" until {moment(closed.until)}" if closed.until else "")
    most = run.start.max_scripts_at_once if pool == SCRIPTS else run.start.max_turns_at_once
    busy = sum(count for name, count in run.running.items() if backend_of(name) == backend_of(pool))
    if busy >= most:
        return f"for a place ({busy} of {most} running)"
    return "for money that running turns may need" if pool != SCRIPTS and affordable(run) <= 0 else ""


def status_since(agent: Agent) -> float:
    """Since when it does what it does: a step or a question may have had to wait after the agent entered its state."""
    rest = agent.visit.rest
    if agent.status == "running" and agent.began:
        return agent.began
    return rest.asked_at if agent.status == "asking" and rest and rest.asked_at else agent.visit.since
