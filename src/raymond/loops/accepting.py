"""Items that a loop has set aside: look at one, and let it count or send it back."""

from collections.abc import Callable
from time import time

from msgspec import Struct

from raymond.control import gate
from raymond.errors import UsageError
from raymond.language.check import Check
from raymond.language.policy import Policy
from raymond.loops import commit_message, documents, failing
from raymond.loops.documents import LOGS
from raymond.loops.formats import queue
from raymond.loops.ledger import REVIEW, TAMPERED, Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.repository import Repository
from raymond.verifier.assignment import Found, Told

_DECIDED = "decided"
"""The file in the folder of the loop with the items that a person has decided about."""


class Outcome(Struct, frozen=True):
    """What became of an item that a person has accepted."""

    commit: str = ""
    branch: str = ""
    """Where it is when it does not fit what was committed since."""
    red: str = ""
    """Why its check is not green with what was committed since."""


def waiting(loop: LoopRun) -> list[Entry]:
    """The items that were set aside and are still there."""
    found = [one for one in loop.ledger.failed if one.verdict in (REVIEW, TAMPERED) and one.kept]
    return [one for one in found if loop.repository.reference(one.saved) and one.key not in decided(loop)]


def decided(loop: LoopRun) -> dict[str, str]:
    """The items that a person has decided about, and how."""
    lines = (line.partition("\t") for line in documents.read(loop.file(_DECIDED)).splitlines())
    return {key: how for key, _, how in lines}


def _decide(loop: LoopRun, entry: Entry, how: str) -> None:
    documents.write(loop.file(_DECIDED), documents.read(loop.file(_DECIDED)) + f"{entry.key}\t{how}\n")


def chosen(loop: LoopRun, name: str | None) -> Entry:
    """The item that is meant by a number or a title; the only one when nobody says."""
    found = waiting(loop)
    fitting = [one for one in found if name in (None, str(one.number), one.title, one.agent)]
    if len(fitting) == 1:
        return fitting[0]
    numbers = ", ".join(f"{one.number} ({one.title})" for one in found)
    if not found:
        raise UsageError(f"nothing of {loop.id} was set aside", hint=f"raymond {loop.loop} status shows what it did")
    what = (
        f"several items of {loop.id} were set aside" if name is None else f"no item `{name}` of {loop.id} was set aside"
    )
    raise UsageError(what, hint=f"name one: {numbers}")


def difference(loop: LoopRun, entry: Entry) -> str:
    """Everything that its agent changed, as a diff, without the documents of the loop."""
    repository = loop.repository
    changed = [one.path for one in repository.changes(entry.base, entry.kept) if not loop.documents.owns(one.path)]
    return repository.diff(entry.base, entry.kept, changed) if changed else ""


def accept(loop: LoopRun, entry: Entry, tell: Callable[[Told], None]) -> Outcome:
    """Apply what was saved to today's HEAD, run the check with it, commit it."""
    repository, head = loop.repository, loop.repository.head()
    if left := [path for path in repository.dirt() if not loop.documents.owns(path)]:
        raise UsageError(f"the tree has changes that are not committed: {left[0]}", hint="commit or stash them first")
    date = f"{int(time())} +0000"
    subject = commit_message.subject(entry.title)
    alone = repository.commit(_work_of(loop, entry), [entry.base], f"{subject}\n\nset aside by {loop.id}\n", date)
    tree = repository.merged(head, alone)
    if not tree:
        branch = f"raymond/{loop.id}-{entry.number}"
        repository.move(f"refs/heads/{branch}", alone)
        return Outcome(branch=branch)
    changed = [one.path for one in repository.changes(head, tree)]
    repository.bring_back(tree, changed)
    found = _checked(entry, loop, tell)
    if found and found.verdict != "passed":
        repository.bring_back(head, changed)
        return Outcome(red=found.reason)
    _forget(loop, entry, None)
    trailers = [f"Raymond-Run: {loop.id}", f"Raymond-Item: {loop.id}/{entry.agent}-accepted"]
    facts = [
        f"Set aside as {entry.verdict}, accepted by a person",
        f"Check: {entry.check or 'none'}",
        f"Log: {entry.log}",
    ]
    own = [path for path in repository.dirt() if loop.documents.owns(path)]
    message = commit_message.message(entry.title, facts, (), trailers)
    made = repository.commit(repository.tree([*changed, *own]), [head], message, date, sign=repository.signs)
    branch = repository.branch()
    repository.move(f"refs/heads/{branch}" if branch else "HEAD", made, head, "raymond: accepted")
    repository.refresh()
    _decide(loop, entry, f"accepted, commit {made[:12]}")
    return Outcome(commit=made)


def _work_of(loop: LoopRun, entry: Entry) -> str:
    """The tree of the base with nothing but the work of the agent in it."""
    repository: Repository = loop.repository
    own = [one.path for one in repository.changes(entry.base, entry.kept) if loop.documents.owns(one.path)]
    return repository.mixed(entry.kept, entry.base, own)


def _checked(entry: Entry, loop: LoopRun, tell: Callable[[Told], None]) -> Found | None:
    if not entry.check:
        return None
    policy = Policy(gate=(Check(run=entry.check),), gate_timeout=loop.settings.gate_timeout)
    return gate.try_policy(policy, tell, with_twin=False)


def reject(loop: LoopRun, entry: Entry, reason: str) -> str:
    """Put the item back into the queue; what its agent did stays saved. What was done, in words."""
    _forget(loop, entry, reason)
    _decide(loop, entry, "rejected")
    return f"{entry.title} is in the queue again; what its agent did is kept in {entry.saved}"


def _forget(loop: LoopRun, entry: Entry, again: str | None) -> None:
    """Let the item wait for nobody any more: it is done, or with a reason to be done `again`."""
    name = loop.documents.newest()
    path = loop.documents.path(LOGS, name)
    text = documents.read(path)
    for item in queue.read(text).items:
        if queue.key(item) == entry.key and item.verification.kind == "blocked":
            block = "" if again is None else _unblocked(item.raw, again)
            text = text[: item.start] + block + text[item.end :]
            documents.write(path, text)
            return


def _unblocked(raw: str, reason: str) -> str:
    told = f"   It was rejected: {' '.join(reason.split())}\n" if reason.strip() else ""
    block = queue.unmarked(raw, f"[BLOCKED: {failing.WAITS}")
    return f"{block}{told}" if block.endswith("\n") else f"{block}\n{told}"
