"""Repair a damaged journal: keep a copy, cut it at the bad line, and report what was lost."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from time import strftime, time

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from raymond import __version__, amounts
from raymond.errors import JournalError, OtherFormat, UsageError
from raymond.machine.agent import READY, RUNNING, SCRIPTED, Agent, Outcome
from raymond.machine.events import (
    ZERO,
    Decision,
    Event,
    JournalCut,
    LimitsChanged,
    RunResumed,
    RunStarted,
    RunStopped,
    StepEnded,
    StepFinished,
    StepInterrupted,
    StepStarted,
    is_entry,
)
from raymond.machine.evolve import apply, fold
from raymond.machine.limits import Limits, limits_of
from raymond.machine.run import CANCELLED, Run, pool_of
from raymond.machine.step_changes import unpaid
from raymond.store import blobs, journal, lock
from raymond.store.lock import Lock
from raymond.store.run_folder import RunFolder
from raymond.store.transcripts import lines_from
from raymond.system import files

# What was lost


class LostStep(Struct, frozen=True):
    """A step whose end, or all of which, was lost."""

    number: int
    agent: str
    state: str = ""
    """Empty when nothing tells."""
    is_kept: bool = False
    """It began before the cut: its reply may still be found."""
    finished: bool = False


def lost_steps(run: Run, lost: Iterable[Decision], transcripts: str) -> list[LostStep]:
    """The steps of `run` that were running at the cut, and those that began after it."""
    running = [agent for agent in run.agents.values() if agent.status == RUNNING]
    found = {agent.step: LostStep(agent.step, agent.id, agent.state, is_kept=True) for agent in running}
    states = {agent.id: agent.state for agent in run.agents.values() if agent.status == READY}
    for event in _events(lost):
        if is_entry(event):
            states[event.agent] = event.state
        elif isinstance(event, StepStarted):
            found.setdefault(event.step, LostStep(event.step, event.agent, states.get(event.agent, "")))
        elif isinstance(event, StepEnded):
            begun = found.get(event.step) or LostStep(event.step, event.agent, states.get(event.agent, ""))
            state = begun.state if begun.is_kept else _recorded_state(transcripts, event) or begun.state
            found[event.step] = replace(begun, state=state, finished=isinstance(event, StepFinished))
    return sorted(found.values(), key=lambda step: step.number)


def _recorded_state(transcripts: str, event: StepEnded) -> str:
    """The state of a step, as the transcript of its agent has it; empty when it has none."""
    if event.offset < 0 or "/" in event.agent:
        return ""  # nobody has folded the event: it may name any file
    try:
        record = msgspec.json.decode(next(lines_from(transcripts, event.agent, event.offset)), type=_RecordedState)
    except (StopIteration, OSError, msgspec.DecodeError, RecursionError):
        return ""
    return record.state if record.step == event.step else ""


class _RecordedState(Struct):
    step: int
    state: str


class LostCost(Struct):
    """What lost steps have cost."""

    cost: float
    """All that was not counted before."""
    scripted: float
    """What of it scripted replies are said to have cost."""
    paid: dict[int, float]
    """What the steps have cost that were running at the cut, and that end a second time."""


def lost_cost(run: Run, lost: Iterable[Decision]) -> LostCost:
    """What the steps have cost that ended after the cut of `run`, or that earlier repairs had lost.

    What no turn can have cost is not believed.
    """
    cost, scripted, paid, again = 0.0, 0.0, dict(run.paid), dict(run.paid)
    default = run.begun.backend if run.begun else ""
    backends = {agent.id: pool_of(run, agent.state) for agent in run.agents.values() if agent.state.endswith(".md")}
    running = {agent.step for agent in run.agents.values() if agent.status == RUNNING}
    for event in _events(lost):
        if isinstance(event, JournalCut):
            if amounts.is_cost(event.cost):
                cost += event.cost
                scripted += min(max(event.scripted, 0.0), event.cost)
            known = {step: amount for step, amount in event.paid.items() if amounts.is_cost(amount)}
            paid |= known
            again |= {step: amount for step, amount in known.items() if step in running}
        elif isinstance(event, StepEnded) and amounts.is_cost(event.cost):
            cost += unpaid(paid, event)
            scripted += unpaid(paid, event) if (backends.get(event.agent) or default) in SCRIPTED else 0.0
            paid.pop(event.step, None)
            if event.step in running:
                again[event.step] = max(event.cost, again.get(event.step, 0.0))
        if isinstance(event, StepStarted):
            backends[event.agent] = event.backend
        if isinstance(event, StepEnded | StepStarted):
            running.discard(event.step)  # the next one that ends is another turn
    cost, scripted = round(min(cost, amounts.MOST), 6), round(min(scripted, amounts.MOST), 6)
    return LostCost(cost, min(scripted, cost), {step: amount for step, amount in again.items() if amount})


def standing_changes(lost: Iterable[Decision]) -> list[LimitsChanged | RunStopped]:
    """What people decided and nothing has taken back: limits and rights, and that the run stops."""
    changed: list[LimitsChanged] = []
    stop: RunStopped | None = None
    for event in _events(lost):
        if isinstance(event, LimitsChanged):
            changed.append(event)
        elif isinstance(event, RunStopped | RunResumed):
            stop = event if isinstance(event, RunStopped) else None
    return [*([_combined(changed)] if changed else []), *([stop] if stop else [])]


def _combined(changed: list[LimitsChanged]) -> LimitsChanged:
    """One change instead of several."""
    limits = Limits()
    for one in changed:
        limits = limits_of(one).over(limits)
    return LimitsChanged(
        **asdict(limits),
        allowed_tools=list(dict.fromkeys(tool for one in changed for tool in one.allowed_tools)),
        roots=list(dict.fromkeys(root for one in changed for root in one.roots)),
    )


def _events(lost: Iterable[Decision]) -> Iterator[Event]:
    return (event for decision in lost for event in decision.events)


# The repair


class Repair(Struct):
    """What a repair did."""

    copy: str
    line: int
    decisions: int
    """Good decisions after the bad line, which are lost with it."""
    cost: float
    """Dollars that the lost steps have cost; they stay spent."""
    scripted: float
    """What of them scripted replies are said to have cost."""
    steps: list[LostStep]
    """The steps among them, and those whose end may have been there; they run again unless the run is over."""
    standing: list[LimitsChanged | RunStopped]
    """What people decided in them: the new journal says it again."""
    is_over: bool
    """Nothing is left to resume."""


def repair(folder: RunFolder) -> Repair:
    """Cut the journal of a run at its first bad line."""
    held = lock.take(folder, has_flag=False)
    try:
        number = _first_bad(folder)
        _check_needed(folder, number)
        data = journal.content(folder)
        lines = data.split(b"\n")
        kept, lost = _split_at(folder, lines, number)
        copy = f"{folder.journal}.{strftime('%Y%m%dT%H%M%S')}.damaged"
        _keep(folder, copy, data)
        whole = b"".join(line + b"\n" for line in lines[: number - 1])
        run = fold(kept)
        bill, steps = lost_cost(run, lost), lost_steps(run, lost, folder.transcripts)
        cut = _cut(run, lost, lines[number - 1 :], bill)
        _replace(folder, held, whole + journal.line(folder, cut))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder.snapshot)
    finally:
        held.release()
    apply(run, cut)
    good = len(journal.whole(lines[number:]))
    return Repair(copy, number, good, bill.cost, bill.scripted, steps, standing_changes(lost), is_over=run.is_over)


def _keep(folder: RunFolder, copy: str, data: bytes) -> None:
    """Keep a copy of the journal, or its file itself when that is too long to be read."""
    if os.path.getsize(folder.journal) > len(data):
        os.link(folder.journal, copy)
    else:
        files.replace(copy, data, durable=True)


def _replace(folder: RunFolder, held: Lock, data: bytes) -> None:
    """Put `data` in place of the journal; the new file is locked before it has the name, so nobody can come between."""
    aside = f"{folder.journal}.{os.urandom(4).hex()}.tmp"
    fd = os.open(aside, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        files.write_all(fd, data)
        files.sync(fd)
        held.replace(fd, lambda: os.replace(aside, folder.journal))
        files.sync_folder(folder.path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise files.trouble(folder.journal, error, run=folder.id) from None


def _first_bad(folder: RunFolder) -> int:
    try:
        journal.check(folder)
    except OtherFormat:
        raise
    except JournalError as error:
        if error.line > 2:
            return error.line
        raise
    hint = f"`raymond resume {folder.id}` continues the run"
    raise UsageError(f"the journal of {folder.id} is not damaged", hint=hint)


def _check_needed(folder: RunFolder, number: int) -> None:
    """Refuse to cut a run that is whole: one with a snapshot does not need the lines before it."""
    try:
        run = journal.read(folder).run
        whole = blobs.whole(folder.blobs)
        for outcome in (one for agent in run.agents.values() for one in _awaited(run, agent)):
            whole(outcome)
    except JournalError:
        return
    message = f"line {number} of {folder.journal} is damaged, but a snapshot was taken after it: the run is whole"
    raise UsageError(message, hint=f"`raymond resume {folder.id}` continues it; only its history cannot be shown")


def _awaited(run: Run, agent: Agent) -> Iterator[Outcome]:
    """The outcomes that the agent has collected, or can still collect."""
    yield from agent.visit.results or ()
    yield from (run.outcomes[name] for name in agent.children or () if name in run.outcomes)


def _cut(run: Run, lost: list[Decision], lines: list[bytes], bill: LostCost) -> Decision:
    """The decision that follows those kept: no number of the lost ones comes a second time, and a stop remains one."""
    for event in (event for decision in lost for event in decision.events):
        # An earlier repair may have left out numbers.
        if isinstance(event, JournalCut):
            run.steps, run.questions = max(run.steps, event.steps), max(run.questions, event.questions)
    # Lines may be missing altogether; the numbers of those that are left tell how many.
    decisions = max([len(lost), *(decision.seq - run.seq for decision in lost)])
    unreadable = sum(map(len, lines)) - sum(map(len, journal.whole(lines)))
    numbers = journal.lost_after(run, decisions, unreadable)
    cut = replace(numbers, cost=bill.cost or ZERO, scripted=bill.scripted or ZERO, paid=bill.paid)
    said: list[Event] = [cut, *standing_changes(lost)]
    stops = [run.stop, *(event for event in said if isinstance(event, RunStopped))]
    if any(stop and stop.kind == CANCELLED for stop in stops):
        # Nobody will resume it, and find out how they ended.
        running = [agent for agent in run.agents.values() if agent.status == RUNNING]
        said += [StepInterrupted(agent=agent.id, step=agent.step) for agent in running]
    return Decision(seq=run.seq + 1, time=round(time(), 3), events=said)


def _split_at(folder: RunFolder, lines: list[bytes], number: int) -> tuple[list[Decision], list[Decision]]:
    """The good decisions before line `number` and from there on; refused when another version wrote any of them."""
    try:
        kept = list(journal.salvage(folder, lines[1 : number - 1]))
        lost = list(journal.salvage(folder, lines[number - 1 :]))
    except ValueError as error:
        raise _other_version(folder, str(error)) from None
    for decision in (*kept, *lost):
        for event in decision.events:
            if isinstance(event, RunStarted | RunResumed) and _version_parts(event.version) > _version_parts(
                __version__
            ):
                raise _other_version(folder, event.version)
    return kept, lost


def _other_version(folder: RunFolder, what: str) -> OtherFormat:
    hint = "repair it with the version that wrote it; nothing was changed"
    message = f"{folder.journal} was written by another version of Raymond ({what})"
    return OtherFormat(message, path=folder.journal, hint=hint)


def _version_parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
