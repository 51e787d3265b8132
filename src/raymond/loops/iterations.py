"""Iterations of the plain loop: the same prompt file for a fresh agent, again and again."""

import difflib
import json
import os
from collections.abc import Callable
from time import time
from typing import Any

from msgspec.structs import asdict

from raymond.faces.words import many
from raymond.loops import checks, documents, finishing, markers, state, turnover, waiting
from raymond.loops.baseline import keeper_of
from raymond.loops.failing import Failure
from raymond.loops.formats.foreign_text import cut
from raymond.loops.formats.state_file import Status
from raymond.loops.inspection import Inspection
from raymond.loops.ledger import (
    FAILED,
    IDLE,
    NO_CHANGE,
    PASSED,
    RED,
    REPLY,
    UNCHECKED,
    Entry,
    Ledger,
    Reported,
    entry_of,
)
from raymond.loops.ledger import read as read_ledger
from raymond.loops.step import Step, tag
from raymond.loops.turnover import wait
from raymond.loops.wishes import STOP
from raymond.loops.work import Work
from raymond.patterns import regex

__all__ = ["aside", "asks", "begin", "collected", "green", "inspected", "over", "plan", "red", "wait", "write_state"]

UNJUDGED = "UNJUDGED"
"""What counts when the judge of the goal fails, or says something else than it was asked for."""
_OUTPUT = 4_000
_PROMISE = regex(r"^[*`_]*<promise>(.*)</promise>[*`_.!]*$")
"""On a line of its own: an agent may also say why it does not promise."""
_DIFF = 4_000


def collected(step: Step) -> Ledger:
    """The ledger with what became of the last iteration."""
    given = json.loads(step.text("gate_result") or "{}")
    if step.visit == 1:
        ledger = Ledger(was_red=given.get("verdict", "passed") != "passed" if step.settings.gate else False)
    else:
        ledger = read_ledger(step.input)
    for outcome in json.loads(step.text("results") or "[]"):
        _take(step, ledger, outcome)
        ledger.open = {}
    waiting.note(step.folder, waiting.of(step.folder, ledger))
    return ledger


def _take(step: Step, ledger: Ledger, outcome: dict[str, str]) -> None:
    name, is_done = outcome["state"], outcome["status"] == "done"
    if outcome["label"] == turnover.CLOSING:
        turnover.take_closing(ledger, outcome)
    elif name in ("PAUSE.py", "ANSWER.py"):
        turnover.answered(ledger, outcome)
    elif name == "GOAL.py":
        _judged(ledger, outcome["result"] if is_done else UNJUDGED)
    else:
        given = json.loads(outcome["result"]) if is_done else _broken(step, ledger, outcome["error"])
        reply = str(given.pop("reply", ""))
        ledger.entries.append(entry_of(given))
        ledger.unjudged = "" if ledger.entries[-1] in ledger.failed else reply
        _finish(step, ledger, reply)


def _broken(step: Step, ledger: Ledger, error: str) -> dict[str, Any]:
    opened = ledger.open
    Work(step, opened).end_stragglers()
    number = int(opened.get("iteration", "1"))
    return asdict(Entry(number=number, key=_key(number), title=opened.get("title", ""), verdict=FAILED, error=error))


def _finish(step: Step, ledger: Ledger, reply: str) -> None:
    """Whether the loop has done what it was asked for: somebody says so, and the check is green."""
    last, settings = ledger.entries[-1], step.settings
    if last in ledger.failed:
        return
    said = [" ".join(one.split()) for line in reply.splitlines() for one in _PROMISE.findall(line.strip())]
    if settings.until and " ".join(settings.until.split()) in said:
        ledger.ended, ledger.why = "done", f'the agent said "{settings.until}"{_and_green(settings.gate)}'
    elif markers.has(reply, markers.ALL_DONE) and not settings.until and not settings.goal:
        ledger.ended, ledger.why = "done", f"the agent said {markers.ALL_DONE}{_and_green(settings.gate)}"
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


def over(step: Step, ledger: Ledger) -> bool:
    """Whether there is no further iteration."""
    settings = step.settings
    if not ledger.ended and os.path.exists(step.file(STOP)):
        ledger.ended, ledger.why = "stopped", "somebody asked for it"
    if not ledger.ended and settings.most and ledger.sessions >= settings.most:
        waited = settings.until or settings.goal or (settings.gate and ledger.was_red)
        ledger.ended = "exhausted" if waited else "limit"
        ledger.why = f"{many(settings.most, 'iteration')} did not do it" if waited else ""
    return bool(ledger.ended)


def asks(step: Step, ledger: Ledger) -> str:
    """The question for a person before the loop goes on; empty when there is none."""
    is_there = bool(_prompt(step).strip())
    ledger.why = "" if is_there else f"the prompt {step.settings.prompt} is gone or empty: write it, then continue"
    if not is_there:
        return turnover.question(ledger.why)
    if not ledger.entries or ledger.asked == len(ledger.entries) or ledger.entries[-1] not in ledger.failed:
        return ""
    recent = ledger.entries[-step.settings.max_failures :]
    is_stuck = len(recent) == step.settings.max_failures and all(one.verdict == FAILED for one in recent)
    if not is_stuck and not step.settings.pause_on_fail and ledger.entries[-1].action != "pause":
        return ""
    return turnover.question(cut(ledger.entries[-1].error, turnover.ASKED))


def begin(step: Step, ledger: Ledger) -> list[str]:
    """The tags that let a fresh agent begin."""
    if away := turnover.elsewhere(step, ledger):
        write_state(step, ledger, "paused")
        return away
    settings = step.settings
    ledger.sessions += 1
    slot, now = str(len(ledger.entries) + 1), time()
    pause = settings.pause if ledger.entries else 0.0
    text = _prompt(step)
    changed = _difference(ledger, text)
    digest = footprint = ""
    if settings.commit == "never":
        footprint = step.repository.footprint() if step.is_repository else ""
    else:
        base, digest = keeper_of(step, slot).take(f"refs/raymond/{step.id}/base", f"{int(now)} +0000")
        turnover.begin_with(step, ledger, base)
    ledger.open = {
        "slot": slot,
        "iteration": str(ledger.sessions),
        "most": str(settings.most or "any number"),
        "title": _title(text),
        "key": _key(ledger.sessions),
        "check": checks.command(settings.gate),
        "check_timeout": f"{settings.gate_timeout:g}s",
        "on_review": "ASIDE.py" if settings.on_review == "set-aside" and settings.commit != "never" else "",
        "began": f"{now + pause:.3f}",
        "since": str(step.number),
        "baseline": digest,
        "footprint": footprint,
        "start": ledger.start,
    }
    write_state(step, ledger, "running")
    ledger.prompt = text
    more = {"prompt": text, "footer": _footer(step, ledger), "changed": changed}
    label = f"iteration {ledger.sessions}"
    return [
        tag("fork", "WORK.md", {"after": f"{pause:g}s" if pause else None, "label": label, **ledger.open, **more}),
        wait(ledger),
    ]


def _prompt(step: Step) -> str:
    """The prompt as it is now; a person may have made it a link. Empty when there is none."""
    path = os.path.realpath(os.path.join(step.cwd, step.settings.prompt))
    return step.settings.pin or documents.read(path)


def _title(text: str) -> str:
    first = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "an empty prompt")
    return cut(first, 100)


def _difference(ledger: Ledger, text: str) -> str:
    """How the prompt differs from that of the iteration before; empty when it does not."""
    if not ledger.prompt or ledger.prompt == text:
        return ""
    lines = difflib.unified_diff(ledger.prompt.splitlines(), text.splitlines(), "before", "now", n=1, lineterm="")
    return "\n".join(lines)[:_DIFF]


def _footer(step: Step, ledger: Ledger) -> str:
    """What every iteration is told besides the prompt: where it stands, and how to say that all is done."""
    settings = step.settings
    most = f" of {settings.most}" if settings.most else ""
    told = [
        f"(This is iteration {ledger.sessions}{most}: this prompt is sent again and again, each time to a fresh memory."
    ]
    if settings.gate:
        told.append(f"After it, `{settings.gate}` is run; nothing counts unless it is green.")
    if settings.until:
        told.append(f"When everything is done, and only then, write <promise>{settings.until}</promise>.")
    elif not settings.goal:
        told.append(f"When nothing is left to do, write {markers.ALL_DONE} on a line of its own.")
    last = ledger.entries[-1] if ledger.entries else None
    if last and not last.is_done and last.error:
        from raymond.machine.prompts import neutral

        told.append(f"The iteration before this one did not count: {neutral(last.error)[:_OUTPUT]}")
    return " ".join(told) + ")"


def write_state(step: Step, ledger: Ledger, status: Status) -> None:
    """Write the state file, where there is a folder for it."""
    if os.path.isdir(step.documents.folder):
        path = step.documents.state(step.settings.loop)
        state.write(path, step.id, step.settings, ledger, status, (), pid=os.getppid())


# How an iteration ends


def _key(number: int) -> str:
    return f"iteration {number}"


def inspected(work: Work, is_checked: Callable[[], bool] = lambda: True) -> Inspection:
    """What the agent did besides its work; nothing is looked at where nothing is committed."""
    return work.inspect(is_checked) if work.settings.commit != "never" else Inspection()


def green(work: Work, reply: str) -> Reported:
    """An iteration that is not committed."""
    work.end_stragglers()
    is_same = bool(work.footprint) and work.step.repository.footprint() == work.footprint
    return Reported(work.entry(_verdict(work, is_same=is_same), Inspection()), reply)


def _verdict(work: Work, *, is_same: bool) -> str:
    """How an iteration ends that no check has held back; `is_same`: it changed nothing."""
    if work.check:
        return NO_CHANGE if is_same else PASSED
    return IDLE if is_same else UNCHECKED


def red(work: Work, found: Inspection, failure: Failure) -> Entry:
    """An iteration that does not count; its changes stay in the tree."""
    work.end_stragglers()
    verdict = RED if failure.is_red else failure.verdict
    return work.entry(verdict, found, error=work.excerpt(failure.text))


def aside(work: Work, found: Inspection, verdict: str, reason: str) -> Entry:
    """An iteration that a person has to look at; the tree is as it was before it."""
    saved = kept = ""
    if work.settings.commit != "never":
        saved, kept = work.save(found, 1)
        work.go_back(found)
    return work.entry(verdict, found, error=work.excerpt(reason), action="aside", saved=saved, kept=kept)


def plan(
    work: Work, found: Inspection, gate: dict[str, Any], reply: str, failure: Failure | None = None
) -> dict[str, Any] | finishing.Hooks:
    """What the commit will be, or how the hook for messages ended instead."""
    is_same = not found.changed and not found.commits
    verdict = _verdict(work, is_same=is_same) if failure is None else RED
    error = work.excerpt(failure.text) if failure else ""
    entry = work.entry(verdict, found, wrote=tuple(gate.get("wrote", [])), error=error)
    given = finishing.committed(work, found, gate, entry, f"chore(ralph): iteration {work.number}", _said(reply))
    if isinstance(given, finishing.Hooks):
        return given
    given["reply"] = reply[-REPLY:]
    if not found.commits and given.get("tree") == work.step.repository.reference("HEAD^{tree}"):
        del given["tree"]  # there is nothing to commit
    return given


def _said(reply: str) -> str:
    return cut(markers.without(reply).strip().partition("\n\n")[0], 300)
