"""Turnover: from one item of a loop to the next."""

import json
import os
from datetime import UTC, datetime
from time import time

from msgspec import Struct

from raymond.loops import documents, state, waiting
from raymond.loops.baseline import FIRST, Baseline, keeper_of
from raymond.loops.documents import LEARNINGS, LOGS
from raymond.loops.formats import queue, session_log, state_file
from raymond.loops.formats.foreign_text import cut
from raymond.loops.formats.item import Doubt, Item
from raymond.loops.formats.queue import Queue
from raymond.loops.ledger import FAILED, Entry, Ledger, entry_of
from raymond.loops.ledger import read as read_ledger
from raymond.loops.selection import PROPOSED, Selection, select, without_doubtful
from raymond.loops.step import Step, tag
from raymond.loops.wishes import EDITED, LEARNED, STOP, apply_edit, apply_learned

PAUSING, CONTINUE = "Iteration failed. Pausing for review.", "Press enter to continue or Ctrl+C to abort..."
GO_ON, STOP_HERE = "continue", "stop"
"""The answers to that."""
CLOSING = "closing words"
"""The label of the agent that writes about the whole loop."""
_CLOSED = 4_000
ASKED = 300
"""Characters of an error that a person is asked about."""
_CHECKED = (
    "How it is checked: `{check}`. Raymond runs the check itself when you are done; what you say about it does not"
    " count. Files that decide the check must stay as they are. If the item really needs one of them changed, say why"
    " in your last message."
)
_UNCHECKED = "There is no check for this item: it counts when something was changed."
_LEARNED = 20_000
"""Characters of learnings that an agent is told."""


class Looked(Struct, frozen=True):
    """The queue as it is now."""

    log: str
    """The name of the session log that it is in; empty when there is none."""
    queue: Queue
    selection: Selection
    text: str = ""
    """The whole log."""

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What may not mean what its author thinks."""
        return self.queue.doubts


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
    return [tag("fork", "PAUSE.py", {"question": f"{about}\n{CONTINUE}"}), wait(ledger)]


def look(step: Step, ledger: Ledger) -> Looked:
    """The queue of the newest session log, and what of it can be worked on."""
    log = step.documents.newest()
    if not ledger.entries and step.settings.source and os.path.exists(step.documents.path(LOGS, step.settings.source)):
        log = step.settings.source
    text = documents.read(step.documents.path(LOGS, log)) if log else ""
    found = queue.read(text) if log else Queue((), (), None)
    chosen = select(found.items, ledger, step.settings)
    if found.doubts and step.settings.strict:
        chosen = without_doubtful(chosen, text, found.doubts)
    return Looked(log, found, chosen, text)


def ended(step: Step, ledger: Ledger, looked: Looked) -> bool:
    """Whether nothing is left to do, or no more may be done; the ledger says then what remains."""
    ready = looked.selection.ready
    most = step.settings.most
    if not ledger.ended and not ready:
        ledger.ended = "complete"
    elif not ledger.ended and most and ledger.sessions >= most and not _is_again(ledger, ready[0]):
        ledger.ended = "limit"
    if ledger.ended:
        ledger.left = [one.title for one in ready]
        passed = [*looked.selection.blocked, *looked.selection.passed]
        ledger.passed = [(one.item.title, one.reason) for one in passed]
        ledger.passed += [(one.title, PROPOSED) for one in looked.selection.proposed]
    return bool(ledger.ended)


def _is_again(ledger: Ledger, item: Item) -> bool:
    """Whether an item is only tried again, which uses up no session."""
    return ledger.in_a_row(queue.key(item)) > 0


def begin(step: Step, ledger: Ledger, looked: Looked) -> list[str]:
    """The tags that let an agent begin the next item, once everything is noted that will be compared with."""
    if away := elsewhere(step, ledger):
        write_state(step, ledger, "paused", looked)
        return away
    item = looked.selection.ready[0]
    for doubt in queue.doubts_of(item, looked.text, looked.queue.doubts):
        told = f'"{item.title}" in {_shown(step, looked)}: {doubt.message}'
        ledger.noticed += [] if told in ledger.noticed else [told]
    failures = ledger.in_a_row(queue.key(item))
    ledger.sessions += 0 if failures else 1
    slot = str(len(ledger.entries) + 1)
    now = time()
    log = step.documents.path(LOGS, looked.log)
    kept = (os.path.join(step.documents.inside, LOGS, looked.log), documents.content(log))
    base, digest = keeper_of(step, slot).take(f"refs/raymond/{step.id}/base", f"{int(now)} +0000", kept)
    begin_with(step, ledger, base)
    ledger.open = {
        "slot": slot,
        "iteration": str(ledger.sessions),
        "most": str(step.settings.most or "any number"),
        "title": item.title,
        "key": queue.key(item),
        "item": item.raw,
        "details": item.details,
        "check": item.verification.command if item.verification.kind == "command" else "",
        "check_timeout": f"{item.metadata.timeout or step.settings.gate_timeout:g}s",
        "seal": "\n".join(item.metadata.seal),
        "unseal": "\n".join(item.metadata.unseal),
        "on_review": "ASIDE.py" if step.settings.on_review == "set-aside" else "",
        "on_fail": item.metadata.on_fail or "",
        "attempts": "" if item.metadata.retries is None else str(item.metadata.retries + 1),
        "failures": str(failures),
        "proposed": "yes" if item.proposed else "",
        "log": _new_log(step, looked.log),
        "source": looked.log,
        "began": f"{now:.3f}",
        "since": str(step.number),
        "baseline": digest,
        "start": ledger.start,
        "hooks": ledger.hooks,
        "first": ledger.first,
    }
    write_state(step, ledger, "running", looked)
    learned = documents.read(step.documents.path(LEARNINGS))[:_LEARNED].strip()
    more = {
        "checked": _CHECKED.format(check=ledger.open["check"]) if ledger.open["check"] else _UNCHECKED,
        "learnings": f"What earlier sessions learned:\n\n{learned}" if learned else "",
        "source_path": _shown(step, looked),
    }
    pause = f"{step.settings.pause:g}s" if step.settings.pause and ledger.entries else None
    return [tag("fork", "WORK.md", {"after": pause, "label": item.title, **ledger.open, **more}), wait(ledger)]


def begin_with(step: Step, ledger: Ledger, base: Baseline) -> None:
    """Note once how everything stood when the loop began."""
    if not ledger.start:
        ledger.start, ledger.hooks = base.work, base.hooks
        ledger.first = keeper_of(step, FIRST).save(base)
        step.repository.move(f"refs/raymond/{step.id}/start", base.work)


def wait(ledger: Ledger) -> str:
    """The tag that hands on the ledger."""
    return tag("wait", "NEXT.py", {"failures": "ok", "input": ledger.write()})


def _shown(step: Step, looked: Looked) -> str:
    return step.documents.shown(LOGS, looked.log) if looked.log else "none"


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
