"""What follows when the check of an item is green, or when it has none: review, hooks, a person's judgement."""

import os

from raymond.loops import failing, hooks, outcome, trials
from raymond.loops.item_run import ItemRun, Work


def prepare(run: ItemRun, reply: str) -> tuple[str, str]:
    """The state in which an item goes on, and what that is given."""
    gate = run.step.gate
    work = run.look(gate)
    if work.conflicts:
        return "FAILED.py", f"{failing.CONFLICT}{', '.join(work.conflicts)}"
    if work.review:
        return "ASIDE.py", failing.aside_for(work.reason)
    if not run.item.check and not run.item.criteria and not work.changed:
        return "FAILED.py", failing.NOTHING
    tree = run.on_tip(work.tree)
    if tree is None:
        return "FAILED.py", failing.UNFIT
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
    folder = hooks.folder(run.place.top)
    if not folder:
        return "", ""
    given = trials.assignment(run.step)
    message = outcome.message(run, ended)
    tree = run.documents.onto(work.tree)
    found = hooks.run(given, run.place, folder, tree, message)
    if found.rejection:
        # Of another program's agent, nothing is left that could be told.
        return "FAILED.py" if run.settings.internal else "REJECTED.md", f"{failing.REJECTED}{found.rejection}"
    changed = {os.fsdecode(path): new for path, (_, new) in run.repository.changes(tree, found.tree).items()}
    changed = {path: new for path, new in changed.items() if not run.documents.owns(path)}
    if changed:
        run.step.follow(run.documents.onto(run.repository.changed(work.tree, changed)))
        return "RECHECK.py", ""
    return "", found.message
