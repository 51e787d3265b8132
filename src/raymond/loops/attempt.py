"""What follows an attempt at an item: a review, hooks, a judgement, another attempt, or its end."""

import json
import os
from collections.abc import Mapping, Sequence
from time import time

from msgspec import Struct

from raymond.loops import checks, outcome, spec_files
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import foreign_text, records, task_edit, task_spec
from raymond.loops.formats.task_spec import Task
from raymond.loops.item_run import ItemRun, Work
from raymond.loops.ledger import FAILED, GAVE_UP, PLANNED, REVIEW, TIMED_OUT

NOTHING_CHANGED = "nothing was changed, and the item has no check that could show it was done before"
NO_PLAN = "the plan of the agent cannot be used: "
STAYS = "\n\nIts changes are still in the working tree."
CONFLICT = "it has the marks of a conflict that is not resolved: "
UNFIT = "it does not fit what was committed since it began"
BROKEN = "the agent that worked on it did not end: "
"""Of another program's agent: what RETURNED.py and FAILED.py are given then, with the reason."""
REFUSED = "a person says that it is not done: "
"""What FAILED.py is given then, with the reason."""
REJECTED = "a hook of the project rejected this work:\n"
"""What REJECTED.md is given, before what the hook printed."""
_HOOKS = "the hooks of the project change this work every time"
_LINES = 40

NONE = "the agent named no task of the form that it was asked for"
UNCLEAR = "the tasks that the agent named cannot be written down as it meant them: one of them is not plain text"
_MOST = 50
"""Tasks of a story; whoever names more has not understood what one is, or the story is several."""
_FOLDER = "stories"
"""What the folder of the area is called that these tasks are in, after its number."""
_PLANNING = " (plan its tasks)"


# It does not count


def action_of(run: ItemRun, failure: "Failure") -> str:
    """What follows from an item that used up its attempts."""
    if failure.has_conflict:
        return "pause"  # only a person knows which side is right
    if run.item.failures + 1 >= run.settings.max_failures:
        return "block" if run.settings.on_repeat == "block" else "pause"
    on_fail = run.item.on_fail or run.settings.on_fail
    return "retry" if on_fail == "create-fix-task" and not outcome.can_be_repaired(run) else on_fail


def aside_for(reason: str) -> str:
    """What ASIDE.py is given with a reason that no gate has."""
    return json.dumps(reason)


def set_aside(run: ItemRun) -> outcome.Outcome:
    """An item that waits for a person: a review of its gate asks for that, or what is in it."""
    step, gate = run.step, run.step.gate
    work = run.look(gate)
    given = json.loads(step.input) if step.input.startswith('"') else ""
    told = (step.text("error"), *gate.get("changes", []))
    reason = given or work.reason or "; ".join(one for one in told if one)
    attempt = max(1, step.visit)
    return outcome.failed(run, work, verdict=REVIEW, error=reason, action="aside", attempt=attempt)


def begin_again(run: ItemRun) -> str:
    """Where another attempt begins: one that plans changes nothing, so there is nothing to go on from."""
    run.save(run.take(), run.step.visit)
    if run.item.is_plan:
        run.step.follow()
    return "PLAN.md" if run.item.is_plan else run.settings.worker


def end_item(run: ItemRun, failure: "Failure") -> outcome.Outcome:
    """An item that has used up its attempts."""
    work = run.look()
    reply = run.step.input if failure.verdict == GAVE_UP else ""
    action = action_of(run, failure)
    attempt = run.step.visit
    return outcome.failed(
        run, work, verdict=failure.verdict, error=failure.text, action=action, attempt=attempt, reply=reply
    )


class Failure(Struct, frozen=True):
    """Why a visit did not count."""

    verdict: str
    reason: str
    output: str = ""
    """The end of what the check printed."""
    is_red: bool = False
    """Whether its check said so."""
    has_conflict: bool = False
    """Whether it left the marks of a conflict."""

    @property
    def may_retry(self) -> bool:
        """Whether another session may do better: an agent that says it cannot is believed."""
        return self.verdict != GAVE_UP

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.reason}\n{self.output}".strip()


def read_failure(reply: str, error: str, output: str, gate: Mapping[str, object]) -> Failure:
    """What a visit that failed was told about it."""
    if error:
        verdict = TIMED_OUT if gate.get("verdict") == TIMED_OUT else FAILED
        has_conflict = "marks of a conflict" in str(gate.get("reason", ""))
        is_red = gate.get("verdict") in (FAILED, TIMED_OUT)
        return Failure(verdict, error, output, is_red=is_red, has_conflict=has_conflict)
    if reply.startswith((REFUSED, NO_PLAN, BROKEN)):
        return Failure(FAILED, reply)
    if reply.startswith(CONFLICT):
        return Failure(FAILED, reply, has_conflict=True)
    if foreign_text.has_marker(reply, foreign_text.FAILED_MARKER):
        return Failure(GAVE_UP, f"the agent said that it cannot do this: {foreign_text.without_markers(reply).strip()}")
    if reply in (NOTHING_CHANGED, UNFIT):
        return Failure(FAILED, reply)
    if reply.startswith(REJECTED):
        return Failure(FAILED, REJECTED.strip(" :\n"), output=reply.removeprefix(REJECTED))
    return Failure(FAILED, _HOOKS)


def unverified(error: str, output: str) -> str:
    """What an agent is told about an item that is marked as done, and whose check is red."""
    from raymond.machine.prompts import neutral

    shown = neutral("\n".join(output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    return f"It is marked as done, but its check says otherwise: {neutral(error)}{printed}"


def explain_to_next(failure: Failure, *, is_plan: bool = False) -> str:
    """What the next attempt is told about the one before."""
    from raymond.machine.prompts import neutral  # most items need one attempt

    shown = neutral("\n".join(failure.output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    reason = f"An earlier session tried this item, and it did not count: {neutral(failure.reason)}"
    return f"{reason}{printed}" + ("" if is_plan else STAYS)


# Its check is green, or it has none


def prepare(run: ItemRun, reply: str) -> tuple[str, str]:
    """The state in which an item goes on, and what that is given."""
    gate = run.step.gate
    work = run.look(gate)
    if work.conflicts:
        return "FAILED.py", f"{CONFLICT}{', '.join(work.conflicts)}"
    if work.review:
        return "ASIDE.py", aside_for(work.reason)
    if not run.item.check and not run.item.criteria and not work.changed:
        return "FAILED.py", NOTHING_CHANGED
    tree = run.on_tip(work.tree)
    if tree is None:
        return "FAILED.py", UNFIT
    if tree != work.tree:
        run.step.follow(run.documents.onto(tree))
        return "RECHECK.py", reply
    state, message = hooked(run, work, outcome.done(run, work, gate, reply))
    if state:
        return state, message or reply
    is_judged = False
    if run.item.criteria and run.settings.asks:
        from raymond.loops import judging

        is_judged = judging.is_judged(run, work)
        if not is_judged:
            return "MANUAL.py", reply
    ended = outcome.done(run, work, gate, reply, is_judged=is_judged)
    ended.message, ended.reply = message, reply
    return "COMMIT.py", ended.write()


def hooked(run: ItemRun, work: Work, ended: outcome.Outcome) -> tuple[str, str]:
    """Let the hooks of the project see the commit: where the item goes on because of them, and the message."""
    folder = checks.hook_folder(run.place.top)
    if not folder:
        return "", ""
    given = checks.assignment(run.step)
    message = outcome.message(run, ended)
    tree = run.documents.onto(work.tree)
    found = checks.run_hooks(given, run.place, folder, tree, message)
    if found.rejection:
        # Of another program's agent, nothing is left that could be told.
        return "FAILED.py" if run.settings.internal else "REJECTED.md", f"{REJECTED}{found.rejection}"
    changed = {os.fsdecode(path): new for path, (_, new) in run.repository.changes(tree, found.tree).items()}
    changed = {path: new for path, new in changed.items() if not run.documents.owns(path)}
    if changed:
        run.step.follow(run.documents.onto(run.repository.changed(work.tree, changed)))
        return "RECHECK.py", ""
    return "", found.message


# It planned tasks


def proposed_tasks(reply: str) -> list[Task]:
    """The tasks in the message of an agent."""
    return [one for one in task_spec.read(foreign_text.without_markers(reply)).tasks if one.title]


def prepare_plan(run: ItemRun, reply: str) -> tuple[str, str]:
    """The state in which a plan goes on, and what that is given."""
    tasks = proposed_tasks(reply)
    if not tasks:
        return "FAILED.py", f"{NO_PLAN}{NONE}"
    if len(tasks) > _MOST:
        what = f"the agent named {len(tasks)} tasks, and a story has {_MOST} at most: split it"
        return "FAILED.py", f"{NO_PLAN}{what}"
    work = run.look()
    notes = list(work.notes)
    if work.changed:  # it was asked to change nothing
        name, _ = run.save(work.tree, run.step.visit)
        notes.append(f"changed files while it planned, which do not count; they are kept in {name}")
    item, documents = run.item, run.documents
    title = f"Tasks of {item.title.removesuffix(_PLANNING)}"
    number, place = _place(documents, title, item.group, tasks)
    text = task_edit.planned(number, title, item.group, tasks)
    if not task_edit.is_as_planned(text, number, item.group, tasks):
        return "FAILED.py", f"{NO_PLAN}{UNCLEAR}"
    ids = ", ".join(f"{number}.{at}" for at in range(1, len(tasks) + 1))
    told = records.sections_of(foreign_text.without_markers(reply))
    ended = outcome.Outcome(
        verdict=PLANNED,
        notes=notes,
        told={"Summary": told.get("Summary", "")[:2000]},
        result=f"Proposed {ids} in {documents.shown(place)}.",
        plan={place: text},
        ended=round(time(), 3),
    )
    return "COMMIT.py", ended.write()


def _place(found: Documents, title: str, story: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """The number of a new group, and its spec; after a kill, the one that was written before it."""
    name = f"{story.lower()}.md"
    known = spec_files.read_files(found)
    for one in known:
        number = f"{one.area}.{one.group}"
        if one.name == f"{number}-{name}" and one.text == task_edit.planned(number, title, story, tasks):
            return number, one.shown
    areas = spec_files.areas(found)
    ids = [tuple(map(int, task_spec.group(task.id).split("."))) for spec in known for task in spec.tasks]
    area = next((number for folder, number in sorted(areas.items()) if folder == f"{number}-{_FOLDER}"), 0)
    area = area or 1 + max([0, *areas.values(), *(id[0] for id in ids)])
    used = [*(one.group for one in known if one.area == area), *(id[1] for id in ids if id[0] == area)]
    group = 1 + max(used, default=0)
    folder = f"{area}-{_FOLDER}"
    there = found.names(SPECS, folder)
    while f"{area}.{group}-{name}" in there:
        group += 1  # something that is not read as a spec
    return f"{area}.{group}", os.path.join(SPECS, folder, f"{area}.{group}-{name}")
