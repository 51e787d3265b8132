"""Repair a damaged journal: keep a copy, cut it at the bad line, and report what was lost."""

import contextlib
import os
from collections.abc import Iterator
from time import strftime, time

from msgspec import Struct
from msgspec.structs import replace

from raymond import __version__
from raymond.errors import JournalError, OtherFormat, UsageError
from raymond.machine.agent import RUNNING, Agent
from raymond.machine.events import (
    ZERO,
    Decision,
    Event,
    JournalCut,
    LimitsChanged,
    RunResumed,
    RunStarted,
    RunStopped,
    StepInterrupted,
)
from raymond.machine.evolve import apply, fold
from raymond.machine.outcome import Outcome
from raymond.machine.run import CANCELLED, Run
from raymond.store import blobs, journal, journal_file, lock, losses
from raymond.store.lock import Lock
from raymond.store.losses import Bill, LostStep
from raymond.store.run_folder import RunFolder
from raymond.system import files


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
        data = journal_file.content(folder)
        lines = data.split(b"\n")
        kept, lost = _parted(folder, lines, number)
        copy = f"{folder.journal}.{strftime('%Y%m%dT%H%M%S')}.damaged"
        _keep(folder, copy, data)
        whole = b"".join(line + b"\n" for line in lines[: number - 1])
        run = fold(kept)
        bill, steps = losses.bill(run, lost), losses.steps(run, lost, folder.transcripts)
        cut = _cut(run, lost, lines[number - 1 :], bill)
        _replace(folder, held, whole + journal.line(folder, cut))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder.snapshot)
    finally:
        held.release()
    apply(run, cut)
    good = len(journal.whole(lines[number:]))
    return Repair(copy, number, good, bill.cost, bill.scripted, steps, losses.standing(lost), is_over=run.is_over)


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


def _cut(run: Run, lost: list[Decision], lines: list[bytes], bill: Bill) -> Decision:
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
    said: list[Event] = [cut, *losses.standing(lost)]
    stops = [run.stop, *(event for event in said if isinstance(event, RunStopped))]
    if any(stop and stop.kind == CANCELLED for stop in stops):
        # Nobody will resume it, and find out how they ended.
        running = [agent for agent in run.agents.values() if agent.status == RUNNING]
        said += [StepInterrupted(agent=agent.id, step=agent.step) for agent in running]
    return Decision(seq=run.seq + 1, time=round(time(), 3), events=said)


def _parted(folder: RunFolder, lines: list[bytes], number: int) -> tuple[list[Decision], list[Decision]]:
    """The good decisions before line `number` and from there on; refused when another version wrote any of them."""
    try:
        kept = list(journal.salvage(folder, lines[1 : number - 1]))
        lost = list(journal.salvage(folder, lines[number - 1 :]))
    except ValueError as error:
        raise _other(folder, str(error)) from None
    for decision in (*kept, *lost):
        for event in decision.events:
            if isinstance(event, RunStarted | RunResumed) and _parts(event.version) > _parts(__version__):
                raise _other(folder, event.version)
    return kept, lost


def _other(folder: RunFolder, what: str) -> OtherFormat:
    hint = "repair it with the version that wrote it; nothing was changed"
    message = f"{folder.journal} was written by another version of Raymond ({what})"
    return OtherFormat(message, path=folder.journal, hint=hint)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
