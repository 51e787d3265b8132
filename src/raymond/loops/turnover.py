"""Turnover: from one item of a loop to the next."""

import json
import os
from datetime import UTC, datetime
from time import time

from raymond.loops import checks, documents, state, waiting
from raymond.loops.baseline import Baseline, keeper_of
from raymond.loops.documents import LEARNINGS, LOGS, PRD
from raymond.loops.formats import queue, session_log, state_file
from raymond.loops.formats.foreign_text import cut
from raymond.loops.formats.item import Item
from raymond.loops.ledger import FAILED, Entry, Ledger, entry_of
from raymond.loops.ledger import read as read_ledger
from raymond.loops.settings import SESSION, STORIES, TASKS, Settings
from raymond.loops.source import Looked
from raymond.loops.sources import source_of
from raymond.loops.step import Step, tag
from raymond.loops.wishes import EDITED, LEARNED, STOP, apply_edit, apply_learned

PAUSING, CONTINUE = "Iteration failed. Pausing for review.", "Press enter to continue or Ctrl+C to abort..."
PAUSE = "PAUSE.py"
"""The state that asks whether the loop goes on."""
GO_ON, STOP_HERE = "continue", "stop"
"""The answers to that."""
CLOSING = "closing words"
"""The label of the agent that writes about the whole loop."""
_CLOSED = 4_000
ASKED = 300
"""Characters of an error that a person is asked about."""
_WORKS_THROUGH = {
    SESSION: "the next steps of a project",
    TASKS: "the tasks of a project's implementation specs",
    STORIES: "the user stories of a project",
}
_CHECKED = (
    "How it is checked: {check}. Raymond runs the check itself when you are done; what you say about it does not"
    " count. Files that decide the check must stay as they are. If the item really needs one of them changed, say why"
    " in your last message."
)
_UNCHECKED = "There is no check for this item: it counts when something was changed."
_LEARNED = 20_000
"""Characters of learnings that an agent is told."""
_CRITERION, _CRITERIA = 2_000, 20_000
"""Characters of one criterion, and of all of them."""


def collected(step: Step) -> Ledger:
    """The ledger with what became of the item that an agent was at."""
    ledger = read_ledger("" if step.visit == 1 and not step.text("results") else step.input)
    for outcome in json.loads(step.text("results") or "[]"):
        if outcome["label"] == CLOSING:
            take_closing(ledger, outcome)
        elif outcome["state"] in ("PAUSE.py", "ANSWER.py"):
            answered(ledger, outcome)
        elif outcome["status"] == "done":
            ledger.entries.append(entry_of(json.loads(outcome["result"])))
        else:
            ledger.entries.append(_broken(step, ledger, outcome["error"]))
        ledger.open = {}
    waiting.note(step.folder, waiting.of(step.folder, ledger))
    apply_edit(step.documents, step.file(EDITED), {one.key for one in ledger.done})
    apply_learned(step.documents, step.file(LEARNED))
    return ledger


def answered(ledger: Ledger, outcome: dict[str, str]) -> None:
    """What a person said about going on."""
    ledger.asked = len(ledger.entries)
    if outcome["status"] != "done":
        ledger.ended, ledger.why = "stopped", "an item failed, and nobody could be asked"
    elif outcome["result"].strip().casefold() in (STOP_HERE, "abort", "n", "no"):
        ledger.ended, ledger.why = "stopped", "a person said so"


def _broken(step: Step, ledger: Ledger, error: str) -> Entry:
    """The agent failed for a reason of its own: what it left is saved, and the tree returns to the base."""
    from raymond.loops import failing
    from raymond.loops.work import Work

    work = Work(step, ledger.open)
    found = work.inspect()
    return failing.end(work, found, verdict=found.verdict or FAILED, error=error, action="skip")


def closing(step: Step, ledger: Ledger) -> list[str]:
    """The tags that let an agent write about the loop, if somebody wants that and none has; empty otherwise."""
    if not step.settings.closing or ledger.closing:
        return []
    done = [f"- {one.title}: {one.verdict}{f' ({cut(one.error, 200)})' if one.error else ''}" for one in ledger.entries]
    record = "\n".join([ledger.text, *done])
    return [
        tag("fork", "CLOSING.md", {"label": CLOSING, "request": step.settings.closing, "record": record}),
        wait(ledger),
    ]


def take_closing(ledger: Ledger, outcome: dict[str, str]) -> None:
    """Keep what it wrote; an agent that failed leaves nothing to say."""
    ledger.closing = outcome["result"].strip()[:_CLOSED] if outcome["status"] == "done" else "(nothing was written)"


def over(step: Step, ledger: Ledger) -> bool:
    """Whether the loop ends here whatever is in the queue."""
    if not ledger.ended and os.path.exists(step.file(STOP)):
        ledger.ended, ledger.why = "stopped", "somebody asked for it"
    if not ledger.ended and step.settings.stop_on_fail and ledger.failed:
        ledger.ended, ledger.why = "stopped", f"`{ledger.failed[-1].title}` failed (--stop-on-fail)"
    return bool(ledger.ended)


def asks(step: Step, ledger: Ledger) -> str:
    """The question for a person before the loop goes on; empty when there is none."""
    last = ledger.entries[-1] if ledger.entries else None
    if last is None or last.is_done or ledger.asked == len(ledger.entries):
        return ""
    if last.action != "pause" and not step.settings.pause_on_fail:
        return ""
    why = cut(last.error, ASKED)
    return question(f"{last.title}{f': {why}' if why else ''}")


def question(about: str) -> str:
    """What a person is asked, as the body of a tag: nothing in it can be taken for the end of one."""
    return f"{PAUSING}\n{about}\n{CONTINUE}".replace("</", "< /")


def elsewhere(step: Step, ledger: Ledger) -> list[str]:
    """The tags that let a person switch back, if another branch than the loop's is checked out; empty otherwise."""
    wanted = step.settings.branch
    here = step.repository.branch() if wanted else ""
    if here == wanted:
        return []
    about = f"The loop works on {wanted}, and {here or 'no branch'} is checked out: git switch {wanted} first."
    return _asked(ledger, about)


def _asked(ledger: Ledger, about: str) -> list[str]:
    """The tags that let a person repair something before the loop goes on."""
    return [tag("fork", PAUSE, {"question": f"{about}\n{CONTINUE}".replace("</", "< /")}), wait(ledger)]


def look(step: Step, ledger: Ledger) -> Looked:
    """What there is to do, and what of it can be worked on."""
    return source_of(step.documents, step.settings).look(ledger)


def ended(step: Step, ledger: Ledger, looked: Looked) -> bool:
    """Whether nothing is left to do, or no more may be done; the ledger says then what remains."""
    ready = looked.selection.ready
    if looked.trouble and not ledger.ended:
        return False  # nobody knows what is left
    if not ledger.ended and not ready:
        ledger.ended = "complete"
    elif not ledger.ended and _next(step, ledger, looked) is None:
        ledger.ended = "limit"
    if ledger.ended:
        ledger.note_left([one.title for one in ready], looked.selection.not_taken())
    return bool(ledger.ended)


def _next(step: Step, ledger: Ledger, looked: Looked) -> Item | None:
    """The item that is next: when no more may begin, one that has."""
    ready, most = looked.selection.ready, step.settings.most
    if not most or ledger.sessions < most:
        return ready[0]
    keys, groups = {one.key for one in ledger.entries}, ledger.groups()
    begun = (one for one in ready if queue.key(one) in keys or one.group in groups)
    return next((one for one in begun if _is_again(ledger, one)), None)


def _is_again(ledger: Ledger, item: Item) -> bool:
    """Whether an item is only tried again, or part of a story that was begun, which uses up no session."""
    return ledger.in_a_row(queue.key(item)) > 0 or item.group in ledger.groups()


def _failures(ledger: Ledger, item: Item) -> int:
    """How often an item has failed in a row; a task that repairs another goes on with the failures of that one."""
    return ledger.of_repairs(item.id) if item.is_task else ledger.in_a_row(queue.key(item))


def begin(step: Step, ledger: Ledger, looked: Looked) -> list[str]:
    """The tags that let an agent begin the next item, once everything is noted that will be compared with."""
    if away := elsewhere(step, ledger):
        write_state(step, ledger, "paused", looked)
        return away
    if looked.trouble:
        write_state(step, ledger, "paused", looked)
        return _asked(ledger, looked.trouble)
    item, source = _next(step, ledger, looked), source_of(step.documents, step.settings)
    assert item is not None, "the loop has ended otherwise"
    for doubt in source.doubts_of(looked, item):
        where = step.documents.shown(doubt.place) if doubt.place else _shown(step, looked)
        told = f'"{item.title}" in {where}: {doubt.message}'
        ledger.noticed += [] if told in ledger.noticed else [told]
    is_again, failures = _is_again(ledger, item), _failures(ledger, item)
    ledger.sessions += 0 if is_again else 1
    slot, now = str(len(ledger.entries) + 1), time()
    pause = step.settings.pause if ledger.entries else 0.0
    base, digest = keeper_of(step, slot).take(f"refs/raymond/{step.id}/base", f"{int(now)} +0000")
    begin_with(step, ledger, base)
    ledger.open = {
        "slot": slot,
        "iteration": str(ledger.sessions),
        "most": str(step.settings.most or "any number"),
        "began": f"{now + pause:.3f}",
        "since": str(step.number),
        "baseline": digest,
        "start": ledger.start,
        "failures": str(failures),
        "again": "yes" if ledger.in_a_row(queue.key(item)) else "",
        "log": _log(step, ledger, looked.log),
        "source": looked.log,
        **_described(item, step.settings),
    }
    write_state(step, ledger, "running", looked)
    given = {
        "after": f"{pause:g}s" if pause else None,
        "label": item.title,
        **ledger.open,
        **_told(step, item, looked, ledger.sessions),
    }
    return [tag("fork", first_state(item, step.settings), given), wait(ledger)]


def first_state(item: Item, settings: Settings) -> str:
    """Where the agent of an item begins: what somebody calls done is checked before anybody is paid for it."""
    if item.is_plan:
        return "PLAN.md"
    return "CHECK.py" if item.is_claimed else "WORK.md"


def _described(item: Item, settings: Settings) -> dict[str, str]:
    """An item as the variables of its fork."""
    timeout = item.metadata.timeout or settings.gate_timeout
    return {
        "title": item.title,
        "key": queue.key(item),
        "item": item.raw,
        "details": item.details,
        "check": checks.told(item.commands),
        "checks": checks.written(item.commands),
        "check_timeout": f"{timeout:g}s",
        "seal": "\n".join(item.metadata.seal),
        "may": "\n".join(item.metadata.may),
        "on_review": "ASIDE.py" if settings.on_review == "set-aside" else "",
        "on_fail": item.metadata.on_fail or "",
        "attempts": "" if item.metadata.retries is None else str(item.metadata.retries + 1),
        "proposed": "yes" if item.proposed else "",
        "plan": "yes" if item.is_plan else "",
        "place": item.place,
        "tasks": " ".join(item.tasks),
        "group": item.group,
        "criteria": "\n".join(_criteria(item)),
    }


def _criteria(item: Item) -> list[str]:
    """What a person judges it by, each in a line, as much of it as can be handed on."""
    found: list[str] = []
    for one in item.criteria:
        line = cut(one, _CRITERION) if len(one) > _CRITERION else " ".join(one.split())
        if sum(map(len, found)) + len(line) > _CRITERIA:
            return [*found, f"and {len(item.criteria) - len(found):,} more, which stand in {item.place}"]
        found.append(line)
    return found


def _told(step: Step, item: Item, looked: Looked, number: int) -> dict[str, str]:
    """What an agent is told besides its item."""
    learned = documents.read(step.documents.path(LEARNINGS))[:_LEARNED].strip()
    checked = _CHECKED.format(check=checks.explained(item.commands)) if item.commands else _UNCHECKED
    if item.criteria:
        judged = "\n".join(f"- {one}" for one in _criteria(item))
        checked = f"{checked if item.commands else ''}\n\nA person judges it by this:\n\n{judged}".strip()
    return {
        "works_through": _WORKS_THROUGH[step.settings.loop],
        "checked": checked,
        "learnings": f"What earlier sessions learned:\n\n{learned}" if learned else "",
        "count": f"{step.settings.unit} {number}{f' of {most}' if (most := step.settings.most) else ''}",
        "where": _where(step, item, looked),
        "source_path": _shown(step, looked),
    }


def _where(step: Step, item: Item, looked: Looked) -> str:
    """Where an agent can read more."""
    if step.settings.loop == SESSION:
        return f"The session log before this one, with the rest of the queue, is {_shown(step, looked)}."
    told = [f"This stands in {step.documents.shown(item.place)}." if item.place else ""]
    if item.group and item.group != queue.key(item):
        told.append(f"It is part of the story {item.group}, which stands in {step.documents.shown(PRD)}.")
    told.append(f"What was done before is in {_shown(step, looked)}." if looked.log else "")
    return " ".join(filter(None, told))


def begin_with(step: Step, ledger: Ledger, base: Baseline) -> None:
    """Note once how everything stood when the loop began."""
    if not ledger.start:
        ledger.start = base.work
        step.repository.move(f"refs/raymond/{step.id}/start", base.work)


def wait(ledger: Ledger) -> str:
    """The tag that hands on the ledger."""
    return tag("wait", "NEXT.py", {"failures": "ok", "input": ledger.write()})


def _shown(step: Step, looked: Looked) -> str:
    return step.documents.shown(LOGS, looked.log) if looked.log else "none"


def _log(step: Step, ledger: Ledger, newest: str) -> str:
    """The session log that the next item writes: its own, or the one of all tasks."""
    if step.settings.loop == SESSION or step.settings.log_per_task:
        return _new_log(step, newest)
    ledger.log = ledger.log or _new_log(step, newest)
    return ledger.log


def _new_log(step: Step, newest: str) -> str:
    """The name of the next session log: the newest, also where somebody's clock was ahead of ours."""
    newest = session_log.newest([newest, *step.documents.logs()]) or ""
    when = datetime.now(UTC).astimezone()
    stamp = datetime.strptime(newest[:13], "%Y%m%d_%H%M").astimezone() if newest else when
    return session_log.name(max(when, stamp), set(step.documents.logs()))


def write_state(step: Step, ledger: Ledger, status: state_file.Status, looked: Looked) -> None:
    """Write the state file, as it is while the loop runs."""
    snapshot = tuple(one.title for one in looked.selection.ready)
    path = step.documents.state(step.settings.loop)
    state.write(path, step.id, step.settings, ledger, status, snapshot, pid=os.getppid())
