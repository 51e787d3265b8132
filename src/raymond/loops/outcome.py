"""The outcome of an item: one commit with its work, if it counts, and with the records of how it ended.

`Outcome` says all of it and is in the journal before anything is written; `commit` looks first whether it was done.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import Any

import msgspec
from msgspec import Struct

from raymond.loops import branch, reasons, state
from raymond.loops.branch import TIP, VOUCHED, trailers
from raymond.loops.documents import FAILURES, LOGS, PROGRESS
from raymond.loops.formats import foreign_text, queue, records
from raymond.loops.formats.records import duration
from raymond.loops.item_run import ItemRun, Work, explain
from raymond.loops.ledger import DONE, NO_CHANGE, OWN_CHECK, PASSED, PENDING, PLANNED, UNCHECKED, Entry
from raymond.loops.settings import RALPH, SESSION
from raymond.loops.sources import source_of

RECORDS = "chore(loop): records"
WAITS = "waits for a person"
"""Why an item is blocked that was set aside; then the command that shows it, and the reason."""
_FIX = "Fix: "
_LEAVES = ("skip", "block", "aside")
"""Actions after which the next item begins without its work."""
_DONE = {
    "skip": "Skipped it; {kept}",
    "block": "Marked it as blocked; {kept}",
    "retry": "Put it at the end of the queue, which begins with its work; {kept}",
    "create-fix-task": "Created {fix}, which begins with its work; {kept}",
    "pause": "Paused for a person; {kept}",
    "aside": "Set it aside for a person; {kept}",
}
_STATES = {"pause": "Waiting for a person"}
_MOST_PATHS = 50
_EXCERPT = 4000
"""Characters of an error that are told with an item."""


class Outcome(Struct, kw_only=True, omit_defaults=True):
    """How an item ended, as far as that cannot be read from the branch."""

    verdict: str
    tree: str = ""
    """The work that counts."""
    action: str = ""
    error: str = ""
    attempt: int = 1
    saved: str = ""
    kept: str = ""
    changed: list[str] = []
    notes: list[str] = []
    proposed: list[str] = []
    told: dict[str, str] = {}
    subjects: list[str] = []
    wrote: list[str] = []
    result: str = ""
    """What the check said, in words."""
    vouched: str = ""
    message: str = ""
    """Of the commit, if a hook of the project has seen it."""
    plan: dict[str, str] = {}
    """Documents that are written besides, with their texts: tasks that were planned."""
    reply: str = ""
    """What the agent of the plain loop said."""
    ended: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether its work is committed."""
        return self.verdict in DONE or bool(self.tree)

    def write(self) -> str:
        """As it is handed on."""
        return json.dumps(msgspec.to_builtins(self))  # a path need not be UTF-8


def read(text: str) -> Outcome:
    """The same as it was handed on."""
    return msgspec.convert(json.loads(text), Outcome)


# What it comes to


def done(run: ItemRun, work: Work, gate: Mapping[str, Any], reply: str, *, is_judged: bool = False) -> Outcome:
    """An item that counts."""
    told = {**work.told, **records.sections_of(foreign_text.without_markers(reply))}
    proposed = [*work.proposed, *records.proposals(told.pop(queue.TITLE, ""))]
    verdict = _verdict(run, work, is_judged=is_judged)
    notes = list(work.notes)
    if decisive := gate.get("changes"):
        notes.append(f"{', '.join(decisive)} (this decides the check, which is green also with it as before)")
    return Outcome(
        verdict=verdict,
        tree=work.tree,
        changed=work.changed,
        notes=notes,
        proposed=proposed,
        told=told,
        subjects=work.subjects,
        wrote=list(gate.get("wrote", [])),
        result=_result(run, verdict, gate),
        vouched=str(gate.get("vouched", "")),
        ended=round(time(), 3),
    )


def _verdict(run: ItemRun, work: Work, *, is_judged: bool) -> str:
    if run.item.criteria:
        return PASSED if is_judged else PENDING
    if run.item.is_proposed:
        return OWN_CHECK
    if not work.changed:
        return NO_CHANGE
    return PASSED if run.item.check else UNCHECKED


def _result(run: ItemRun, verdict: str, gate: Mapping[str, Any]) -> str:
    if verdict == PENDING:
        return "skipped (it waits for a person's judgement)"
    if not run.item.check:
        return "PASSED (a person says so)" if verdict == PASSED else "skipped (the item has no check)"
    flaky = ", flaky: it was red at first" if gate.get("flaky") else ""
    own = f", {gate['reason']}" if str(gate.get("reason", "")).startswith("own tests") else ""
    change = ", without any change" if verdict == NO_CHANGE else ""
    return f"PASSED in {duration(gate.get('seconds', 0.0))}{flaky}{own}{change}"


def failed(
    run: ItemRun, work: Work, *, verdict: str, error: str, action: str, attempt: int = 1, reply: str = ""
) -> Outcome:
    """An item that does not count; its work is saved first."""
    saved, kept = run.save(work.tree, attempt)
    told = {**work.told, **records.sections_of(foreign_text.without_markers(reply))}
    proposed = [*work.proposed, *records.proposals(told.pop(queue.TITLE, ""))]
    return Outcome(
        verdict=verdict,
        action=action,
        error=reasons.cleaned(error),
        attempt=attempt,
        saved=saved,
        kept=kept,
        changed=work.changed,
        notes=work.notes,
        proposed=proposed,
        told=told,
        ended=round(time(), 3),
    )


# The commit


def commit(run: ItemRun, outcome: Outcome) -> Entry:
    """Make the commit of an item, unless it is there; how the item ended."""
    branch = run.branch
    with branch.alone():
        made = branch.made_for(run.mark, run.item.base)
        if not made:
            tip = branch.tip
            if outcome.tree and run.on_tip(outcome.tree) != outcome.tree:
                raise Moved  # what would be committed is not what was checked
            tree = outcome.tree or branch.tree_of(TIP)
            _write_records(run, outcome)
            whole = run.documents.onto(tree)
            made = branch.commit(whole, outcome.message or message(run, outcome), tip)
        if outcome.vouched:
            branch.vouch(VOUCHED, outcome.vouched)
    entry = entry_of(run, outcome)
    entry = msgspec.structs.replace(entry, commit=made if outcome.counts else "")
    state.note(run.step.documents.state(run.settings.loop), run.step.id, run.settings, entry)
    return entry


class Moved(Exception):
    """The branch has moved on since the work was checked, and does not fit any more."""


def _write_records(run: ItemRun, outcome: Outcome) -> None:
    """Write everything that people read about an item into the documents of the branch."""
    if run.settings.loop == RALPH:
        return
    run.documents.preload([PROGRESS, os.path.join(LOGS, run.item.source or run.documents.newest())])
    source = source_of(run.documents, run.settings)
    for name, text in outcome.plan.items():
        run.documents.write(text, name)
    if outcome.counts:
        entry = entry_of(run, outcome)
        source.done(run, entry)
        if outcome.verdict == PLANNED:
            ended, said = outcome.result, f"**{run.item.title}**\n\n{outcome.result}"
            blocks = [one.raw for one in run.queue_before()]
            result = "skipped (a plan)"
        else:
            ended = f"Done. Verification: {outcome.result}."
            said = f"**{run.item.title}**\n\n{outcome.told.get('Summary', '')[:2000]}"
            blocks = [one.raw for one in run.queue_before() if queue.key(one) != run.item.key]
            result = outcome.result
        _write_log(run, outcome, [*blocks, *run.new(outcome.proposed)], ended)
        _write_progress(run, outcome, said, result)
        return
    reason = outcome.error.strip() or outcome.verdict
    made = source.failed(
        run, verdict=outcome.verdict, action=outcome.action, error=outcome.error, attempt=outcome.attempt
    )
    fix = made or f'item "{_fix_title(run.item.title)}"'
    kept = f"its changes are kept in {outcome.saved}" if outcome.saved else "it had changed nothing"
    what = _DONE[outcome.action].format(kept=kept, fix=fix)
    entry_text = records.Failure(
        run.item.number,
        _when(outcome),
        run.item.title,
        run.item.check or "none",
        outcome.error,
        what,
        _STATES.get(outcome.action, "Continuing to next item"),
    )
    _record(run, FAILURES, records.failure_entry(entry_text), records.FAILURES)
    said = f"{outcome.verdict.upper()}: {foreign_text.error_line(reason, 300)}"
    _write_progress(run, outcome, f"**{run.item.title}**\n\nNot done. {what}.", said)
    ended = f"Not done ({outcome.verdict}): {foreign_text.error_line(reason, 500)}\n\n{what}."
    _write_log(run, outcome, _queue(run, outcome, reason), ended)


def _write_log(run: ItemRun, outcome: Outcome, blocks: list[str], ended: str) -> None:
    """Write the session log; `blocks` is the queue that is left, which stays as a person wrote it."""
    areas = "\n".join(f"- {foreign_text.code(path)}" for path in outcome.changed[:_MOST_PATHS])
    notes = "\n".join(f"- Raymond noticed that {explain(note)}" for note in outcome.notes)
    sections = {"Session Goals": f"{run.item.title}\n\n{run.item.details}", "Code Areas Touched": areas, **outcome.told}
    sections["Summary"] = "\n\n".join(one for one in (ended, sections.get("Summary", ""), notes) if one)
    sections = {heading: reasons.cleaned(text) for heading, text in sections.items()}
    log = records.SessionLog(reasons.cleaned(run.item.title), sections, tuple(blocks))
    if run.settings.loop != SESSION and not run.settings.log_per_task:
        before = run.documents.read(LOGS, run.item.log)
        log = records.joined_log(before, log, f"{run.settings.loop} {run.step.id}")
    run.documents.write(records.log_text(log), LOGS, run.item.log)


def _write_progress(run: ItemRun, outcome: Outcome, said: str, result: str) -> None:
    entry = records.Progress(
        when=_when(outcome),
        session=run.item.number,
        sessions=run.settings.most,
        done=said,
        command=run.item.check,
        result=result,
        log=os.path.join(LOGS, run.item.log),
        loop=run.settings.loop.replace("-", " ").title(),
    )
    _record(run, PROGRESS, records.progress_entry(entry), records.PROGRESS)


def _record(run: ItemRun, name: str, entry: str, heading: str) -> None:
    before = run.documents.read(name)
    run.documents.write(records.with_entry(before, run.mark, reasons.cleaned(entry), heading), name)


def _queue(run: ItemRun, outcome: Outcome, reason: str) -> list[str]:
    """The queue that is left when the item did not count."""
    before, proposed, why = run.queue_before(), run.new(outcome.proposed), foreign_text.error_line(reason, 120)
    if run.settings.loop != SESSION:
        return [*(one.raw for one in before), *proposed]
    key, action = run.item.key, outcome.action
    own = [one for one in before if queue.key(one) == key]
    others = [one.raw for one in before if queue.key(one) != key]
    block = own[0].raw if own else run.item.raw
    if action == "retry":
        return [*others, block, *proposed]
    if action == "block":
        times = run.item.failures + 1
        block = queue.marked(block, f"[BLOCKED: failed {times} times in a row: {why}]")
    elif action == "aside":
        shows = f"raymond review {run.step.id}"
        block = queue.marked(block, f"[BLOCKED: {WAITS} ({shows}): {why}]")
    elif action == "create-fix-task":
        block = _fix(run, block, reason)
    at = next((index for index, one in enumerate(before) if queue.key(one) == key), 0)
    return [*others[:at], block, *others[at:], *proposed]


def can_be_repaired(run: ItemRun) -> bool:
    """Whether an item can be made that repairs this one: another task of a spec, or what replaces it in the queue.

    An item of the queue that repairs another is tried again instead; so is a story, of which only a person writes more.
    """
    if run.settings.loop == SESSION:
        return not run.item.title.startswith(_FIX)
    return run.item.tasks == (run.item.key,)


def _fix_title(title: str) -> str:
    return title if title.startswith(_FIX) else f"{_FIX}{title}"


def _fix(run: ItemRun, block: str, reason: str) -> str:
    """An item that replaces one that failed: the same tags and metadata, and what is known about the failure."""
    title, check = run.item.title, run.item.check
    first, _, rest = block.partition("\n")
    at = first.find(title)
    made = f"- {f'[VERIFY: `{check}`] ' if check else ''}{_fix_title(title)}"
    first = f"{first[:at]}{_fix_title(title)}{first[at + len(title) :]}" if at >= 0 else made
    log = run.step.documents.shown(LOGS, run.item.log)
    told = [f"It failed: {foreign_text.error_line(reason, 300)}", f"Session log: {log}"]
    kept = filter(None, [rest.replace("\r\n", "\n").rstrip("\n")])
    return "\n".join([first, *kept, *(f"   {foreign_text.inline(line)}" for line in told)]) + "\n"


def message(run: ItemRun, outcome: Outcome) -> str:
    """The message of its commit."""
    item, most = run.item, f"/{run.settings.most}" if run.settings.most else ""
    facts = [f"{run.settings.loop} {item.number}{most}"]
    if not outcome.counts:
        subject = f"{RECORDS}\n\n{facts[0]}: {foreign_text.one_line(item.title)} ({outcome.verdict})\n\n"
        return subject + "\n".join(trailers(run.step.id, run.mark)) + "\n"
    facts.append(f"Check: {item.check} ({outcome.result or outcome.verdict})" if item.check else "Check: none")
    facts += [f"Log: {run.step.documents.shown(LOGS, item.log)}"] if item.log else []
    facts += [f"The agent said: {outcome.told['said']}"] if outcome.told.get("said") else []
    facts += [f"The agent committed: {foreign_text.one_line(one)}" for one in outcome.subjects]
    facts += [f"Noticed: {foreign_text.one_line(explain(note))}" for note in outcome.notes]
    if run.settings.loop == RALPH:
        title = branch.headline(f"{item.key} {item.title}", item.key)
    elif outcome.verdict == PLANNED:
        title = f"docs: propose tasks ({item.group})"
    else:
        title = branch.headline(item.title, item.key if item.place else "")
    return branch.message(title, facts, outcome.wrote, trailers(run.step.id, run.mark))


def entry_of(run: ItemRun, outcome: Outcome) -> Entry:
    """How it ended, for the ledger."""
    item, settings = run.item, run.settings
    return Entry(
        number=item.number,
        key=item.key,
        title=item.title if item.log else f"Iteration {item.number}: {item.title}",
        verdict=outcome.verdict,
        check=item.check,
        timeout=item.timeout if item.timeout != settings.gate_timeout else 0.0,
        log=run.step.documents.shown(LOGS, item.log) if item.log else "",
        began=item.began,
        seconds=round(max(0.0, outcome.ended - item.began), 3) if item.began else 0.0,
        error=_excerpt(outcome.error),
        action=outcome.action,
        saved=outcome.saved,
        kept=outcome.kept,
        attempts=outcome.attempt,
        notes=tuple(outcome.notes),
        wrote=tuple(outcome.wrote),
        agent=run.step.agent,
        base=item.base,
        checks=item.checks if item.checks != item.check else "",
        place=item.place,
        tasks=item.tasks,
        group=item.group,
        slot=item.slot,
        may=tuple(item.may),
    )


def _excerpt(text: str) -> str:
    """What is wrong, which is its first line, and the end of the output, short enough to be told."""
    first, _, rest = text.strip().partition("\n")
    if len(first) + len(rest) < _EXCERPT:
        return text.strip()
    first = foreign_text.cut(first, _EXCERPT // 2)
    end = rest[-(_EXCERPT - len(first)) :].split(None, 1)
    return f"{first}\n... {end[-1]}" if end else first


def _when(outcome: Outcome) -> datetime:
    return datetime.fromtimestamp(outcome.ended, UTC).astimezone()
