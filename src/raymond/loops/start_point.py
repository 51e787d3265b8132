"""Where a loop begins: the checkout as it stands, on top of what an earlier loop made and is not merged yet."""

import os
from collections.abc import Mapping
from time import time

from msgspec import Struct

from raymond.errors import UsageError
from raymond.loops import reasons
from raymond.loops.branch import BASE, OWN, TIP, VOUCHED, Branch
from raymond.loops.formats import records
from raymond.system import git
from raymond.workspace import carried, publish, tree
from raymond.workspace.repository import Repository

PLAN = "docs(loop): the plan"
TAKEN = "chore(loop): uncommitted changes taken along"
_MERGED = "chore(loop): merge what was committed since"


class StartPoint(Struct, frozen=True):
    """What a loop begins with; only objects of it exist until it is published."""

    checkout: str
    """The commit of the checkout as it stands, or as much of it as counts."""
    start: str
    """The commit that the first item begins with."""
    vouched: str
    """The trees with what decides checks: as it counts, and as a person left it."""
    own: str
    taken: list[str] = []
    """Files that are not committed and were taken along."""
    left_out: list[str] = []
    """Files that look as if they had a secret in them."""
    builds_on: str = ""
    """The loop whose branch it continues."""

    def publish(self, branch: Branch) -> None:
        """Write the references of a loop that begins."""
        repository, top, head = branch.repository, branch.top, git.head(branch.top)
        known = repository.tree_of(self.start)
        text = "raymond: what decides checks\n"
        commits = [
            self.start if one == known else repository.commit(one, [self.start], text, time())
            for one in (self.vouched, self.own)
        ]
        publish.send(repository, top, [self.checkout, self.start, *commits], [head])
        named = {BASE: self.checkout, VOUCHED: commits[0], OWN: commits[1], TIP: self.start}
        for what, commit in named.items():
            publish.ask(top, "update-ref", "--no-deref", branch.reference(what), commit)


class Earlier(Struct, frozen=True):
    """The branch of a loop that has ended."""

    id: str
    name: str
    """Where a person finds its tip."""
    tip: str
    base: str
    vouched: str
    own: str
    records: tuple[str, ...]
    """Its documents in which entries are only added."""


def find(
    repository: Repository,
    top: str,
    kept: list[str],
    *,
    carry: list[str],
    takes_all: bool,
    since: str = "",
    earlier: Earlier | None = None,
) -> StartPoint:
    """Work out where a loop begins; `kept` are its documents, which are always taken as they stand in the checkout.

    `takes_all`: other files that are not committed are taken along too. `since` is the commit that was asked for.
    """
    head = git.head(top)
    if since and since != head:
        start = repository.tree_of(since)
        return StartPoint(since, since, start, start)
    tree.take_index(repository, top, head)
    found = carried.survey(repository, top, carry)
    old = repository.tree_of(head)
    new = tree.snapshot(repository, top, found)
    changes = repository.changes(old, new)
    left_out = sorted(reasons.secret_files(repository, changes))
    new = repository.changed(new, {path: changes[os.fsencode(path)][0] for path in left_out})
    documents = repository.changes(old, new, kept)
    plan = repository.changed(old, {os.fsdecode(path): entry for path, (_, entry) in documents.items()})
    if not takes_all:
        new = plan
    start = head
    for one, message in ((plan, PLAN), (new, TAKEN)):
        if one != repository.tree_of(start):
            start = repository.commit(one, [start], f"{message}\n", time())
    taken = sorted(os.fsdecode(path) for path in repository.changes(old, new) if path not in documents)
    point = StartPoint(start, start, new, new, taken, left_out)
    return _on_top(repository, top, point, earlier) if earlier and not since else point


def _on_top(repository: Repository, top: str, point: StartPoint, earlier: Earlier) -> StartPoint:
    """The same on top of an earlier loop, unless the checkout has all of that."""
    head = git.head(top)
    mine = repository.tree_of(point.start)
    theirs = repository.tree_of(earlier.tip)
    # What that loop took along is the same change on both sides, and no conflict.
    parents = [head] if publish.contains(top, head, earlier.base) else [head, earlier.base]
    person = repository.commit(mine, parents, "the checkout\n", 0)
    merged, conflicts = repository.merged(earlier.tip, person)
    if conflicts:
        merged = _united(repository, earlier, person, merged, conflicts)
    if merged == mine:
        return point
    start = earlier.tip
    if merged != theirs:
        above = [earlier.tip] if publish.contains(top, earlier.tip, head) else [earlier.tip, head]
        start = repository.commit(merged, above, f"{_MERGED if len(above) > 1 else PLAN}\n", time())
    vouched, own = (_inherited(repository, merged, theirs, one) for one in (earlier.vouched, earlier.own))
    return StartPoint(point.checkout, start, vouched, own, point.taken, point.left_out, earlier.id)


def _united(repository: Repository, earlier: Earlier, person: str, merged: str, conflicts: list[str]) -> str:
    """A merge in which both sides have only added entries to records."""
    if others := [path for path in conflicts if path not in earlier.records]:
        what = f"{earlier.id} is not merged, and conflicts with your checkout in {others[0]}"
        hint = (
            f"commit or stash your changes, git merge {earlier.name} and resolve it, or start without it: --from HEAD"
        )
        raise UsageError(what, hint=hint)
    sides: list[Mapping[bytes, bytes]] = [repository.entries(one) for one in (earlier.tip, person)]
    lines = {}
    for path in conflicts:
        entries = [one[os.fsencode(path)] for one in sides if os.fsencode(path) in one]  # a person may remove it
        texts = [repository.ask("cat-file", "blob", one.split()[1].decode()).decode() for one in entries]
        lines[path] = repository.put(entries[0].split()[0], records.united(*texts[:1], *texts[-1:]).encode())
    return repository.changed(merged, lines)


def _inherited(repository: Repository, merged: str, tip: str, vouched: str) -> str:
    """What decides checks as it counted for the earlier loop, but where the person changed it since."""
    differing = repository.changes(tip, vouched)
    since = repository.changes(tip, merged)
    lines = {os.fsdecode(path): new for path, (_, new) in differing.items() if path not in since}
    return repository.changed(merged, lines)
