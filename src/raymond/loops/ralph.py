"""Iterations of the plain loop: the same prompt file for a fresh agent, again and again."""

import difflib
import json
import os
from time import time
from typing import Any

from msgspec.structs import replace

from raymond.faces.words import many
from raymond.loops import attempt, checks, next_item, outcome, state
from raymond.loops.branch import TIP
from raymond.loops.formats import foreign_text
from raymond.loops.formats.foreign_text import code, cut, error_line
from raymond.loops.item_run import ItemRun, Work
from raymond.loops.ledger import (
    FAILED,
    IDLE,
    NO_CHANGE,
    PASSED,
    RED,
    REPLY,
    REVIEW,
    STUCK,
    UNCHECKED,
    Entry,
    Ledger,
    Opened,
    read_entry,
)
from raymond.loops.ledger import read as read_ledger
from raymond.loops.next_item import PAUSE, STOP, wait, write_state
from raymond.loops.settings import Settings
from raymond.loops.step import Step, document, tag
from raymond.patterns import regex
from raymond.system import files

UNJUDGED = "UNJUDGED"
"""What counts when the judge of the goal fails, or says something else than it was asked for."""
_OUTPUT = 4_000
_PROMISE = regex(r"^[*`_]*<promise>(.*)</promise>[*`_.!]*$")
"""On a line of its own: an agent may also say why it does not promise."""
_DIFF = 4_000


def turn(step: Step) -> list[str]:
    """The tags with which the loop goes on: the next iteration, a question, the closing check, or its end."""
    ledger, settings = collected(step), step.settings
    write_state(step, ledger, "running")
    if settings.goal and ledger.unjudged and not ledger.ended:
        return [tag("fork", "GOAL.py", {"reply": ledger.unjudged, "goal": settings.goal}), wait(ledger)]
    if settings.commits_anything:
        _follow(step)
    if is_over(step, ledger):
        return next_item.ending(step, ledger)
    if asked := question(step, ledger):
        write_state(step, ledger, "paused")
        return next_item.pausing(ledger, f"iteration {len(ledger.entries)}", asked)
    return begin(step, ledger)


def collected(step: Step) -> Ledger:
    """The ledger with what became of the last iteration."""
    if step.visit == 1:
        is_red = step.gate.get("verdict", "passed") != "passed" if step.settings.gate else False
        ledger = Ledger(was_red=is_red)
    else:
        ledger = read_ledger(step.input)
    for one in json.loads(step.text("results") or "[]"):
        _take(step, ledger, one)
        ledger.open = None
    ledger.settle(state.decided(step.folder))
    state.note_waiting(step.folder, ledger, state.waiting_of(ledger))
    return ledger


def _take(step: Step, ledger: Ledger, one: dict[str, str]) -> None:
    name, is_done = one["state"], one["status"] == "done"
    if one["label"] == next_item.CLOSING:
        next_item.take_closing(ledger, one)
    elif name in (PAUSE, "ANSWER.py"):
        next_item.answered(ledger, one)
    elif name == "GOAL.py":
        _judged(ledger, one["result"] if is_done else UNJUDGED)
    else:
        ledger.entries.append(read_entry(one["result"]) if is_done else _broken(step, ledger, one["error"]))
        reply = str(json.loads(one["result"]).get("reply", "")) if is_done else ""
        ledger.unjudged = "" if ledger.entries[-1] in ledger.failed else reply
        _finish(step, ledger, reply)


def _broken(step: Step, ledger: Ledger, error: str) -> Entry:
    """The agent failed for a reason of its own; its work stays in the tree for the next iteration."""
    opened = ledger.open
    number = opened.number if opened else 1
    return Entry(number=number, key=_key(number), title=opened.title if opened else "", verdict=FAILED, error=error)


def _finish(step: Step, ledger: Ledger, reply: str) -> None:
    """Whether the loop has done what it was asked for: an agent says so, and the check is green."""
    last, settings = ledger.entries[-1], step.settings
    if last in ledger.failed:
        return
    said = [" ".join(one.split()) for line in reply.splitlines() for one in _PROMISE.findall(line.strip())]
    if settings.until and " ".join(settings.until.split()) in said:
        ledger.ended, ledger.why = "done", f'the agent said "{settings.until}"{_and_green(settings.gate)}'
    elif foreign_text.has_marker(reply, foreign_text.ALL_DONE_MARKER) and not settings.until and not settings.goal:
        ledger.ended, ledger.why = "done", f"the agent said {foreign_text.ALL_DONE_MARKER}{_and_green(settings.gate)}"
    elif settings.gate and ledger.was_red and not settings.until and not settings.goal:
        ledger.ended, ledger.why = "done", "the check was red at the start and is green now"


def _and_green(gate: str) -> str:
    return ", and the check is green" if gate else ""


def _judged(ledger: Ledger, verdict: str) -> None:
    ledger.unjudged = ""
    if verdict.strip() == UNJUDGED:
        ledger.noticed.append(f"after iteration {ledger.sessions}, the judge of the goal gave no verdict")
    elif verdict.strip() == "DONE":
        ledger.ended, ledger.why = "done", "a model judges that the goal is met"
    elif verdict.strip() == "IMPOSSIBLE":
        ledger.ended, ledger.why = "impossible", "a model judges that the goal cannot be met"


def is_over(step: Step, ledger: Ledger) -> bool:
    """Whether there is no further iteration."""
    settings = step.settings
    if not ledger.ended and os.path.exists(step.file(STOP)):
        ledger.ended, ledger.why = "stopped", "on request"
    if not ledger.ended and is_stuck(step, ledger):
        ledger.ended = "stuck"
        ledger.why = f"{code(settings.gate)} is red with the same output, and {STUCK} iterations changed nothing"
    if not ledger.ended and settings.most and ledger.sessions >= settings.most:
        waited = settings.until or settings.goal or (settings.gate and ledger.was_red)
        ledger.ended = "exhausted" if waited else "limit"
        ledger.why = f"not finished after {many(settings.most, 'iteration')}" if waited else ""
    return bool(ledger.ended)


def is_stuck(step: Step, ledger: Ledger) -> bool:
    """Whether the last iterations changed nothing, and the check said the same of it each time."""
    last = ledger.repeated(RED)
    if not last or not all(one.left for one in last):
        return False
    before = ledger.entries[-STUCK - 1] if len(ledger.entries) > STUCK else None
    tree = before.left if before and before.left else step.branch.tree_of(TIP)
    return {one.left for one in last} == {tree}


def question(step: Step, ledger: Ledger) -> str:
    """The question for a person before the loop goes on; empty when there is none."""
    is_there = bool(_prompt(step).strip())
    ledger.why = "" if is_there else f"the prompt {step.settings.prompt} is gone or empty: write it, then continue"
    if not is_there:
        return next_item.asking(ledger.why)
    if not ledger.entries or ledger.asked == len(ledger.entries) or ledger.entries[-1] not in ledger.failed:
        return ""
    recent = ledger.entries[-step.settings.max_failures :]
    is_stuck = len(recent) == step.settings.max_failures and all(one.verdict == FAILED for one in recent)
    if not is_stuck and not step.settings.pause_on_fail and ledger.entries[-1].action != "pause":
        return ""
    return next_item.asking(error_line(ledger.entries[-1].error, next_item.ASKED))


def begin(step: Step, ledger: Ledger) -> list[str]:
    """The tags that let a fresh agent begin. What red iterations have left is still in the tree."""
    settings = step.settings
    ledger.sessions += 1
    now, pause = time(), settings.pause if ledger.entries else 0.0
    text = _prompt(step)
    changed = _difference(ledger, text)
    ledger.open = Opened(
        slot=str(len(ledger.entries) + 1),
        number=ledger.sessions,
        title=_title(text),
        key=_key(ledger.sessions),
        base=step.branch.tip if settings.commits_anything else "",
        began=round(now + pause, 3),
        since=step.number,
        check=settings.gate,
        checks=checks.gate_of(settings.gates),
        timeout=settings.gate_timeout,
    )
    write_state(step, ledger, "running")
    ledger.prompt = text
    given = {
        "after": f"{pause:g}s" if pause else None,
        "label": f"iteration {ledger.sessions}",
        "item": ledger.open.write(),
        "changed": changed,
        "prompt": text,
        "footer": footer(settings, ledger),
        "checks": ledger.open.checks,
        "check_timeout": f"{settings.gate_timeout:g}s",
        "on_review": "ASIDE.py" if settings.on_review == "set-aside" and settings.commits_anything else "",
    }
    return [tag("fork", "WORK.md", given), wait(ledger)]


def _follow(step: Step) -> None:
    """Let the tree begin with the tip, and keep what is there on top of it."""
    branch, place = step.branch, step.place
    origin = place.known()
    tip = branch.tip
    if origin.commit == tip:
        return
    with place.alone():
        tree = place.harvest().tree
    there = branch.merged(tree, origin.commit) if tree != origin.tree else ""
    step.follow(there if tree != branch.tree_of("tip") else "")


def _prompt(step: Step) -> str:
    """The prompt as it is now; a person may have made it a link. Empty when there is none."""
    path = os.path.realpath(os.path.join(step.cwd, step.settings.prompt))
    try:
        return step.settings.pin or files.contents(path).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _title(text: str) -> str:
    first = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "an empty prompt")
    return cut(first, 100)


def _difference(ledger: Ledger, text: str) -> str:
    """How the prompt differs from that of the iteration before; empty when it does not."""
    if not ledger.prompt or ledger.prompt == text:
        return ""
    lines = difflib.unified_diff(ledger.prompt.splitlines(), text.splitlines(), "before", "now", n=1, lineterm="")
    return "\n".join(lines)[:_DIFF]


def footer(settings: Settings, ledger: Ledger) -> str:
    """What every iteration is told besides the prompt: where it stands, and how to say that all is done."""
    most = f" of {settings.most}" if settings.most else ""
    told = [f"(This is iteration {ledger.sessions}{most}. You have no memory of earlier iterations."]
    if settings.gate:
        told.append(f"After it, `{settings.gate}` is run; nothing counts unless it is green.")
    if settings.until:
        told.append(f"When everything is done, and only then, write <promise>{settings.until}</promise>.")
    elif not settings.goal:
        told.append(f"When nothing is left to do, write {foreign_text.ALL_DONE_MARKER} on a line of its own.")
    last = ledger.entries[-1] if ledger.entries else None
    if last and not last.is_done and last.error:
        from raymond.machine.prompts import neutral

        told.append(f"The iteration before this one did not count: {neutral(last.error)[:_OUTPUT]}")
    return " ".join(told) + ")"


# How an iteration ends


def _key(number: int) -> str:
    return f"iteration {number}"


def prepare(run: ItemRun, reply: str) -> str:
    """The tag with which an iteration goes on that no check has held back."""
    gate = run.step.gate
    if not run.settings.commits_anything:
        verdict = PASSED if run.item.check else UNCHECKED
        return _result(run, outcome.Outcome(verdict=verdict, ended=time()), reply)
    work = run.look(gate)
    if work.conflicts:
        return tag("goto", "RED.py", {"input": f"{attempt.CONFLICT}{', '.join(work.conflicts)}"})
    if work.review:
        return tag("goto", "ASIDE.py", {"input": attempt.aside_for(work.reason)})
    verdict = _verdict(run, work)
    ended = _outcome(work, gate, verdict, reply)
    if not work.changed:
        return _result(run, ended, reply)
    state, given = attempt.hooked(run, work, ended)
    if state:
        return tag("goto", state, {"input": given or reply})
    ended.tree, ended.message = work.tree, given
    return tag("goto", "COMMIT.py", {"input": ended.write()})


def _outcome(work: Work, gate: dict[str, Any], verdict: str, reply: str) -> outcome.Outcome:
    said = cut(foreign_text.without_markers(reply).strip().partition("\n\n")[0], 300)
    return outcome.Outcome(
        verdict=verdict,
        notes=work.notes,
        told={"said": said} if said else {},
        subjects=work.subjects,
        wrote=list(gate.get("wrote", [])),
        vouched=str(gate.get("vouched", "")),
        reply=reply[-REPLY:],
        ended=round(time(), 3),
    )


def _result(run: ItemRun, ended: outcome.Outcome, reply: str) -> str:
    return tag("result", document(outcome.entry_of(run, ended).write(reply)))


def _verdict(run: ItemRun, work: Work) -> str:
    """How an iteration ends that no check has held back."""
    if run.item.check:
        return PASSED if work.changed else NO_CHANGE
    return UNCHECKED if work.changed else IDLE


def red(run: ItemRun) -> str:
    """The tag with which an iteration ends that is not green: its changes stay in the tree, or are committed anyway."""
    step = run.step
    failure = attempt.read_failure(step.input, step.text("error"), step.text("gate"), step.gate)
    verdict = RED if failure.is_red else failure.verdict
    ended = outcome.Outcome(verdict=verdict, error=failure.text, ended=round(time(), 3))
    if not run.settings.commits_anything:
        run.step.end_stragglers(run.item.since)
    elif run.settings.commit == "always":
        work = run.look()
        if work.review:
            return tag("goto", "ASIDE.py", {"input": attempt.aside_for(work.reason)})
        if work.changed:
            ended.tree, ended.subjects = work.tree, work.subjects
            return tag("goto", "COMMIT.py", {"input": ended.write()})
    left = run.take() if run.settings.commits_anything and not ended.tree else ""
    return tag("result", document(replace(outcome.entry_of(run, ended), left=left).write()))


def aside(run: ItemRun) -> Entry:
    """An iteration that a person has to look at; the next one begins with the tip."""
    ended = attempt.set_aside(run)
    ended.verdict = REVIEW
    if run.settings.commits_anything:
        run.step.follow()
    return outcome.entry_of(run, ended)
