"""From one item of a loop to the next: what became of the last one, which is next, and when the loop ends."""

import json
import os
from datetime import UTC, datetime
from time import time

import msgspec

from raymond.loops import checks, state
from raymond.loops.branch import OWN, TIP
from raymond.loops.documents import LEARNINGS, LOGS, PRD
from raymond.loops.formats import item_ids, queue, records, state_file
from raymond.loops.formats.foreign_text import cut, error_line
from raymond.loops.formats.queue_item import Item
from raymond.loops.item_run import ItemRun, Work
from raymond.loops.ledger import FAILED, PASSED, STUCK, Entry, Ledger, Opened, read_entry
from raymond.loops.ledger import read as read_ledger
from raymond.loops.settings import RALPH, SESSION, STORIES, TASKS, Settings
from raymond.loops.source import Looked
from raymond.loops.sources import source_of
from raymond.loops.step import Step, document, tag

PAUSING, CONTINUE = "Iteration failed. Pausing for review.", "Press enter to continue or Ctrl+C to abort..."
PAUSE = "PAUSE.py"
"""The state that asks whether the loop goes on."""
GIT = "git"
"""The label of the agent that asks about what git was told."""
LEASE, REST = "LEASE.py", "REST.py"
"""The states in which internal mode waits: until an item is done, and until the next one is asked for."""
STOP = "stop"
"""The file in the folder of the loop that asks it to stop after the item it is at."""
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


def opening(step: Step) -> str:
    """Try the checks of the items that are next: the tag with which the loop begins, or ends if one can never be green.

    The first state is given what they have shown.
    """
    ready = look(step, Ledger()).selection.ready
    most = step.settings.most
    every = [(one.commands, _seconds(one, step.settings)) for one in (ready[:most] if most else ready) if one.commands]
    why, shown = checks.run_before_items(step, every)
    if why:
        return tag("result", document(Ledger(ended="refused", why=why).write()))
    return tag("goto", "NEXT.py", {"input": "\n".join(shown)})


def _seconds(item: Item, settings: Settings) -> float:
    return item.metadata.timeout or settings.gate_timeout


def turn(step: Step) -> list[str]:
    """The tags with which the loop goes on: the next item, a question, the closing check, or its end."""
    ledger = collected(step)
    looked = look(step, ledger)
    if step.settings.internal:
        from raymond.loops import internal

        if not ledger.ended and (found := internal.changed(step)):
            write_state(step, ledger, "paused", looked)
            return pausing(ledger, GIT, internal.question(found))
    write_state(step, ledger, "running", looked)
    asked = question(step, ledger)
    if is_over(step, ledger) or (not asked and has_ended(step, ledger, looked)):
        has_ended(step, ledger, looked)
        step.follow()
        return ending(step, ledger)
    if asked or looked.trouble:
        step.follow()
        write_state(step, ledger, "paused", looked)
        given = asked or f"{looked.trouble}\n{CONTINUE}".replace("</", "< /")
        return pausing(ledger, ledger.entries[-1].title if asked else "the queue", given)
    if step.settings.internal and ledger.asked != len(ledger.entries):
        return [tag("fork", REST), wait(ledger)]
    return begin(step, ledger, looked)


def collected(step: Step) -> Ledger:
    """The ledger with what became of the item that an agent was at."""
    ledger = read_ledger("" if step.visit == 1 and not step.text("results") else step.input)
    for outcome in json.loads(step.text("results") or "[]"):
        if outcome["label"] == CLOSING:
            take_closing(ledger, outcome)
        elif outcome["state"] in (PAUSE, REST, "ANSWER.py"):
            asked = ledger.asked
            answered(ledger, outcome)
            if outcome["label"] == GIT:
                from raymond.loops import internal

                internal.seen(step)
                ledger.asked = asked  # that was not about the next item
        elif outcome["status"] == "done":
            ledger.entries.append(read_entry(outcome["result"]))
        else:
            ledger.entries.append(_broken(step, ledger, outcome["error"]))
        ledger.open = None
    ledger.settle(state.decided(step.folder))
    state.note_waiting(step.folder, ledger, state.waiting_of(ledger))
    return ledger


def answered(ledger: Ledger, outcome: dict[str, str]) -> None:
    """What a person said about going on."""
    ledger.asked = len(ledger.entries)
    if outcome["status"] != "done":
        ledger.ended, ledger.why = "stopped", "an item failed and no terminal was attached"
    elif outcome["result"].strip().casefold() in ("stop", "abort", "n", "no"):
        ledger.ended, ledger.why = "stopped", "by a person"


def _broken(step: Step, ledger: Ledger, error: str) -> Entry:
    """The agent failed for a reason of its own: what it left is saved, and the loop goes on."""
    from raymond.loops import outcome

    run = ItemRun(step, ledger.open)
    work = Work(tree=run.take())
    return outcome.commit(run, outcome.failed(run, work, verdict=FAILED, error=error, action="skip"))


def ending(step: Step, ledger: Ledger) -> list[str]:
    """The tags at the end: words of an agent, if a person wants them, and the closing check."""
    if step.settings.closing and not ledger.closing:
        done = [
            f"- {one.title}: {one.verdict}{f' ({cut(one.error, 200)})' if one.error else ''}" for one in ledger.entries
        ]
        record = "\n".join([ledger.text, *done])
        given = {"label": CLOSING, "request": step.settings.closing, "record": record}
        return [tag("fork", "CLOSING.md", given), wait(ledger)]
    if _closing_checks(ledger):
        return [tag("goto", "CLOSE.py", {"input": ledger.write()})]
    return [tag("result", document(ledger.write()))]


def take_closing(ledger: Ledger, outcome: dict[str, str]) -> None:
    """Keep what it wrote; an agent that failed leaves nothing to say."""
    ledger.closing = outcome["result"].strip()[:_CLOSED] if outcome["status"] == "done" else "(nothing was written)"


def _closing_checks(ledger: Ledger) -> list[checks.Checks]:
    """The checks with which items counted."""
    passed = [one for one in ledger.done if one.verdict == PASSED and one.check and one.commit]
    return list(dict.fromkeys((checks.read_checks(one.checks or one.check), one.timeout) for one in passed))


def close(step: Step) -> Ledger:
    """Run each check once more on the tip; the loop has failed if one is red by what the person vouches for."""
    ledger = read_ledger(step.input)
    may = sorted({one for entry in ledger.done for one in entry.may})
    base, tip = step.branch.tree_of(OWN), step.branch.tree_of(TIP)
    found = checks.run_after_items(step, _closing_checks(ledger), may, base, tip)
    if found:
        reason = f"the closing check is red by the files that you vouch for: {found.reason}"
        ledger.noticed.append(f"the loop had ended: {ledger.text}")
        ledger.ended, ledger.why = "red", reason
    return ledger


def is_over(step: Step, ledger: Ledger) -> bool:
    """Whether the loop ends here whatever is in the queue."""
    if not ledger.ended and os.path.exists(step.file(STOP)):
        ledger.ended, ledger.why = "stopped", "on request"
    if not ledger.ended and 0 < step.settings.deadline <= time():
        ledger.ended, ledger.why = "exhausted", "the time is used up"
    if not ledger.ended and step.settings.stop_on_fail and ledger.failed:
        ledger.ended, ledger.why = "stopped", f"`{ledger.failed[-1].title}` failed (--stop-on-fail)"
    if not ledger.ended and (last := ledger.repeated(FAILED)) and not any(one.saved for one in last):
        why = error_line(last[-1].error, ASKED)
        ledger.ended, ledger.why = "stuck", f"{STUCK} items in a row changed nothing and failed the same way: {why}"
    return bool(ledger.ended)


def question(step: Step, ledger: Ledger) -> str:
    """The question for a person before the loop goes on; empty when there is none."""
    last = ledger.entries[-1] if ledger.entries else None
    if last is None or last.is_done or ledger.asked == len(ledger.entries):
        return ""
    if last.action != "pause" and not step.settings.pause_on_fail:
        return ""
    why = error_line(last.error, ASKED)
    return asking(f"{last.title}{f': {why}' if why else ''}")


def asking(about: str) -> str:
    """What a person is asked, the reason first, as the body of a tag: nothing in it can be taken for the end of one."""
    return f"{about}\n{PAUSING}\n{CONTINUE}".replace("</", "< /")


def pausing(ledger: Ledger, label: str, asked: str) -> list[str]:
    """The tags with which the loop waits until a person lets it go on."""
    return [tag("fork", PAUSE, {"label": label, "question": asked}), wait(ledger)]


def look(step: Step, ledger: Ledger) -> Looked:
    """What there is to do, and what of it can be worked on."""
    return source_of(step.documents, step.settings).look(ledger)


def has_ended(step: Step, ledger: Ledger, looked: Looked) -> bool:
    """Whether nothing is left to do, or no more may be done; the ledger says then what remains."""
    ready = looked.selection.ready
    if looked.trouble and not ledger.ended:
        return False  # what is left cannot be known
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
    """The tags that let an agent begin the next item, in a tree with the tip."""
    item, source = _next(step, ledger, looked), source_of(step.documents, step.settings)
    assert item is not None, "the loop has ended otherwise"
    for warning in source.warnings_of(looked, item):
        where = step.documents.shown(warning.place) if warning.place else _shown(step, looked)
        told = f'"{item.title}" in {where}: {warning.message}'
        ledger.noticed += [] if told in ledger.noticed else [told]
    is_again, failures = _is_again(ledger, item), _failures(ledger, item)
    ledger.sessions += 0 if is_again else 1
    settings, now = step.settings, time()
    pause = settings.pause if ledger.entries else 0.0
    _prepare_tree(step, ledger, item)
    ledger.open = msgspec.structs.replace(
        _opened(item, settings),
        slot=str(len(ledger.entries) + 1),
        number=ledger.sessions,
        base=step.branch.tip,
        began=round(now + pause, 3),
        since=step.number,
        failures=failures,
        log=_log(step, ledger, looked.log),
        source=looked.log,
    )
    write_state(step, ledger, "running", looked)
    given = {
        "after": f"{pause:g}s" if pause else None,
        "label": item.title,
        "item": ledger.open.write(),
        "again": "yes" if ledger.in_a_row(queue.key(item)) else "",
        **_told(step, ledger.open, item, looked),
    }
    return [tag("fork", _first_state(item, settings), given), wait(ledger)]


def _prepare_tree(step: Step, ledger: Ledger, item: Item) -> None:
    """Let the tree hold the tip, with the work that an earlier session left for this item, if it fits."""
    names = {queue.key(item)}
    if item.is_task:
        names = {one.key for one in ledger.entries if item_ids.repaired(one.key) == item_ids.repaired(item.id)}
    before = [one for one in ledger.entries if one.key in names or _repairs(item, one)]
    last = before[-1] if before else None
    if last is None or not last.kept or last.action not in ("retry", "pause", "create-fix-task"):
        step.follow()
        return
    branch = step.branch
    tree = branch.merged(branch.repository.tree_of(last.kept), last.base)
    if not tree:
        ledger.noticed.append(
            f"{last.saved} conflicts with what was committed since, so {item.title} begins without it"
        )
    step.follow(step.documents_at(branch.tip).onto(tree) if tree else "")


def _repairs(item: Item, entry: Entry) -> bool:
    """Whether an item of a queue was made to repair another."""
    return entry.action == "create-fix-task" and item.title == f"Fix: {entry.title}"


def _first_state(item: Item, settings: Settings) -> str:
    """Where the agent of an item begins: what is said to be done is checked before anybody is paid for it."""
    if item.is_plan:
        return "PLAN.md"
    return "CHECK.py" if item.is_claimed else settings.worker


def _opened(item: Item, settings: Settings) -> Opened:
    return Opened(
        slot="",
        number=0,
        title=item.title,
        key=queue.key(item),
        raw=item.raw,
        details=item.details,
        check=checks.in_a_line(item.commands),
        checks=checks.as_gate(item.commands),
        timeout=_seconds(item, settings),
        may=list(item.metadata.may),
        on_fail=item.metadata.on_fail or "",
        attempts=0 if item.metadata.retries is None else item.metadata.retries + 1,
        is_proposed=item.proposed,
        is_plan=item.is_plan,
        place=item.place,
        tasks=item.tasks,
        group=item.group,
        criteria=_criteria(item),
    )


def _criteria(item: Item) -> list[str]:
    """What a person judges it by, each in a line, as much of it as can be handed on."""
    found: list[str] = []
    for one in item.criteria:
        line = cut(one, _CRITERION) if len(one) > _CRITERION else " ".join(one.split())
        if sum(map(len, found)) + len(line) > _CRITERIA:
            return [*found, f"and {len(item.criteria) - len(found):,} more, which stand in {item.place}"]
        found.append(line)
    return found


def _told(step: Step, opened: Opened, item: Item, looked: Looked) -> dict[str, str]:
    """What an agent is told, and what its gate needs."""
    settings = step.settings
    learned = step.documents.read(LEARNINGS)[:_LEARNED].strip()
    checked = _CHECKED.format(check=checks.explain(item.commands)) if item.commands else _UNCHECKED
    if opened.criteria:
        judged = "\n".join(f"- {one}" for one in opened.criteria)
        checked = f"{checked if item.commands else ''}\n\nA person judges it by this:\n\n{judged}".strip()
    return {
        "title": item.title,
        "details": item.details,
        "checks": opened.checks,
        "check_timeout": f"{opened.timeout:g}s",
        "seal": "\n".join(item.metadata.seal),
        "may": "\n".join(opened.may),
        "on_review": "ASIDE.py" if settings.on_review == "set-aside" else "",
        "checked": checked,
        "learnings": f"What earlier sessions learned:\n\n{learned}" if learned else "",
        "opening": _opening(step, opened),
        "where": _where(step, item, looked),
        "source_path": _shown(step, looked),
    }


def _opening(step: Step, opened: Opened) -> str:
    """What an agent is told first."""
    settings = step.settings
    count = f"{settings.unit} {opened.number}{f' of {most}' if (most := settings.most) else ''}"
    if settings.internal:
        from raymond.loops import internal

        return internal.opening(step, settings, count)
    what = _WORKS_THROUGH[settings.loop]
    return f"You are in an autonomous loop that works through {what}, one item per session; this is {count}."


def _where(step: Step, item: Item, looked: Looked) -> str:
    """Where an agent can read more."""
    if step.settings.loop == SESSION:
        if step.settings.internal:
            return "Paths in these lines are relative to that folder."  # which has that log
        return f"The session log before this one, with the rest of the queue, is {_shown(step, looked)}."
    told = [f"This stands in {step.documents.shown(item.place)}." if item.place else ""]
    if item.group and item.group != queue.key(item):
        told.append(f"It is part of the story {item.group}, which stands in {step.documents.shown(PRD)}.")
    told.append(f"What was done before is in {_shown(step, looked)}." if looked.log else "")
    return " ".join(filter(None, told))


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
    """The name of the next session log: the newest, also where the clock that named the last one was ahead of ours."""
    newest = records.newest_log([newest, *step.documents.logs()]) or ""
    when = datetime.now(UTC).astimezone()
    stamp = records.log_began(newest).astimezone() if newest else when
    return records.log_name(max(when, stamp), set(step.documents.logs()))


def write_state(step: Step, ledger: Ledger, status: state_file.Status, looked: Looked | None = None) -> None:
    """Write the state file; that of the plain loop only where there is a folder for it."""
    if step.settings.loop == RALPH and not os.path.isdir(step.checkout.folder):
        return
    snapshot = tuple(one.title for one in looked.selection.ready) if looked else ()
    path = step.checkout.state(step.settings.loop)
    state.write(path, step.id, step.settings, ledger, status, snapshot, pid=os.getppid())
