"""Home: what a loop has done comes into the person's checkout."""

from raymond.errors import Error, UsageError
from raymond.faces.words import many
from raymond.loops.branch import BASE, TIP, VOUCHED
from raymond.loops.documents import FAILURES, PROGRESS
from raymond.loops.formats import records
from raymond.loops.loop_run import LoopRun
from raymond.system import git
from raymond.workspace import apply as applying
from raymond.workspace import publish
from raymond.workspace import tree as trees
from raymond.workspace.apply import Done


def follow(loop: LoopRun) -> None:
    """Let the checkout that a loop works in have the documents of its tip, unless an item is open."""
    if loop.ledger.open:
        return
    place, branch = loop.place, loop.branch
    with place.alone():
        origin, taken = place.known(), place.harvest()
        if taken.tree == origin.tree:
            trees.follow(place.slot, origin, branch.tip, vouched=branch.tree_of(VOUCHED), taken=taken.left)
            branch.check_out()
    if loop.run.is_over:
        place.drop()


def files(loop: LoopRun) -> Done:
    """Write what the loop changed into the checkout: all of it, or nothing where a file is in the way."""
    branch, documents = loop.branch, loop.checkout
    if not loop.has_branch:
        hint = "it makes no commits, so its work is in the checkout"
        if loop.settings.commits_anything:
            hint = f"git update-ref {branch.reference(TIP)} {' '.join(branch.known(TIP)[:1])} puts it back"
        raise UsageError(f"{loop.id} has no branch", hint=hint)
    united = {documents.inside_path(name): records.united for name in (PROGRESS, FAILURES)}
    return applying.apply(loop.top, loop.id, branch.commit_of(BASE), branch.commit_of(TIP), united)


def apply(loop: LoopRun) -> str:
    """The same at the end of a loop, as one step forward of the branch if that can be; what was done, in words."""
    branch = loop.branch
    head, tip = git.head(loop.top), branch.tip
    if loop.settings.branch == "" or loop.settings.took or not publish.contains(loop.top, tip, head):
        done = files(loop)
        if done.conflicts:
            raise Error(f"{done.conflicts[0]} has changed since", hint=f"raymond apply {loop.id} says more")
        return f"{many(len(done.changed), 'file')} brought into the checkout; nothing is committed"
    publish.ask(loop.top, "merge", "--ff-only", "-q", tip)
    return f"the branch here is at {tip[:12]} now"
