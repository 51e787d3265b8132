"""The status of a loop, for people and programs."""

import os
from collections.abc import Iterator
from time import time
from typing import Any, TextIO

from raymond.control import runs
from raymond.faces import words
from raymond.faces.words import many
from raymond.loops import checks, ending, person, report
from raymond.loops.finding import Found
from raymond.loops.formats.foreign_text import cut, error_line, one_line
from raymond.loops.formats.queue_item import Item
from raymond.loops.formats.records import duration
from raymond.loops.ledger import IDLE, PENDING, Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH, UNITS
from raymond.views.status import run_status

_CELLS = 20
_COMMITS = 5
_MOST = 20
"""Items of the queue that are listed."""


def status_of(found: Found) -> str:
    """What the loop does now."""
    loop = found.loop
    if loop is None:
        return found.status
    if loop.run.is_over or found.status == "failed":
        return ending.status_of(loop)
    if loop.is_stopping:
        return "stopping"
    if loop.leased or loop.rests:
        return "running"
    is_paused = loop.run.stop or loop.asking or found.status == "paused"
    return "running" if found.is_driven else "paused" if is_paused else "interrupted"


def document(found: Found) -> dict[str, Any]:
    """All of it for programs."""
    loop = found.loop
    assert loop is not None
    known = ending.document(loop, ending.code_of(loop))
    known |= {"status": status_of(found), "is_running": found.is_driven}
    if found.is_driven:
        known |= {"ended": None, "next": [f"watch it: {report.next_of_loop(loop, is_driven=True)}"]}
    if found.is_driven or known["status"] == runs.INTERRUPTED:
        known["exit_code"] = None
    return known


def text(found: Found, stream: TextIO) -> str:
    """All of it for people; with a bar on a terminal."""
    assert found.loop is not None
    return "\n".join(_lines(found.loop, found, bars=stream.isatty())) + "\n"


def _lines(loop: LoopRun, found: Found, *, bars: bool) -> Iterator[str]:
    ledger = loop.ledger
    ascii_ = os.environ.get("TERM") == "dumb"
    why = words.reason(loop.run) or report.how(loop)
    ended = f": {run_status(loop.run)} ({why})" if loop.run.is_over else ""
    yield f"{loop.loop} {loop.id}{ended}"
    gap = " " if loop.loop == RALPH else ""  # its longest label is longer
    mode = "INTERNAL" if loop.settings.internal else "EXTERNAL"
    yield f"Mode:     {gap}{mode}, {status_of(found).upper()}"
    most = loop.settings.most
    unit = f"{UNITS[loop.loop].capitalize()}:"
    yield f"{unit:<10}{gap if len(unit) < 10 else ' '}{report.used(ledger.sessions, most)}"
    if bars and loop.loop != RALPH:
        most = ledger.whole((one.title for one in loop.selection().ready), most)
    if bars and most:
        yield f"Progress: {gap}{bar(len(ledger.done), most, ascii_)}"
    if ledger.open and not loop.run.is_over:
        opened = ledger.open
        yield f"Current:  {gap}{one_line(opened.title)}"
        yield f"Check:    {gap}{one_line(opened.check) or ('a person' if opened.criteria else 'none')}"
        if opened.log:
            yield f"Log:      {gap}{loop.checkout.shown('session_logs', opened.log)}"
    yield f"Elapsed:  {gap}{duration((time() if found.is_driven else loop.run.now) - loop.run.started_at)}"
    yield f"Cost:     {gap}{report.cost(loop)}"
    commits = [one.commit[:12] for one in ledger.entries if one.commit]
    named = f": {', '.join(commits[-_COMMITS:])}" if commits else ""
    if commits or loop.settings.branch:
        yield f"Commits:  {gap}{len(commits)} on {loop.settings.branch or 'HEAD'}{named}"
    yield f"Agents:   {gap}{loop.settings.way}{f' ({one_line(loop.settings.why)})' if loop.settings.why else ''}"
    if loop.has_branch and (behind := loop.branch.behind()):
        yield f"Behind:   {gap}{loop.settings.branch} lacks {many(behind, 'commit')}: it is checked out, or was moved"
    yield from ("", *map(_item, ledger.entries)) if ledger.entries else ()
    yield from _queue(loop)
    if not loop.run.is_over and loop.has_branch and (edited := person.edited(loop)):
        names = ", ".join(map(loop.checkout.shown, edited))
        takes = f"raymond {loop.loop} edit --from-checkout takes it over"
        yield f"\nedited in the checkout, which does not count: {names}; {takes}"
    yield ""
    if not found.is_driven:
        yield (how := report.how(loop))
        if (asked := report.asked(loop)) and asked not in how:
            yield f"asked:  {cut(asked, 200)}"
    if there := report.place(loop):
        yield f"there:  {there}"
    yield f"next:   {report.next_of_loop(loop, is_driven=found.is_driven)}"


def bar(done: int, most: int, ascii_: bool = False) -> str:
    """How much is done, as a bar of 20 cells."""
    filled = min(_CELLS, round(_CELLS * done / most)) if most else 0
    full, empty = ("#", "-") if ascii_ else ("█", "░")
    return f"{full * filled}{empty * (_CELLS - filled)} {done}/{most}"


def _item(entry: Entry) -> str:
    glyph = "✓" if entry.is_done else "-" if entry.verdict == IDLE else "✗"
    glyph = "?" if entry.verdict == PENDING else glyph
    told = f"  {glyph} {one_line(entry.title)} ({entry.verdict}, {duration(entry.seconds)})"
    return told if not entry.error or entry.is_done else f"{told}\n      {error_line(entry.error, 200)}"


def _queue(loop: LoopRun) -> Iterator[str]:
    if loop.loop == RALPH:
        return
    found = loop.selection()
    if found.ready:
        yield f"\nQueue: {len(found.ready)}"
        yield from (f"  {_tags(one)}{one_line(one.title)}" for one in found.ready[:_MOST])
        if len(found.ready) > _MOST:
            yield f"  and {len(found.ready) - _MOST} more"
    for one in sorted([*found.blocked, *found.set_aside], key=lambda one: (one.item.place, one.item.start)):
        yield f"  [BLOCKED: {one_line(one.reason)}] {one_line(one.item.title)}"
    for one in found.passed_over:
        yield f"  (passed over: {one_line(one.reason)}) {one_line(one.item.title)}"
    for item in found.proposed:
        yield f"  *proposed* {_tags(item)}{one_line(item.title)}"


def _tags(item: Item) -> str:
    told = f"[VERIFY: {one_line(checks.in_a_line(item.commands))}] " if item.commands else "[NO-VERIFY] "
    if item.criteria and not item.commands:
        told = "[MANUAL] "
    return told + (f"[PRIORITY: {item.priority}] " if item.priority != 1 else "")
