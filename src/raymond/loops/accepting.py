"""Items that a loop has set aside: look at one, and let it count or send it back."""

import contextlib
import os
from collections.abc import Callable
from time import time

from msgspec import Struct

from raymond.control import gate
from raymond.errors import Error, UsageError
from raymond.language.policy import Policy
from raymond.loops import application, checks, commit_message, documents, settling
from raymond.loops import waiting as waiting_items
from raymond.loops.application import Application
from raymond.loops.git_calls import GitError
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.repository import Repository
from raymond.verifier.assignment import Found, Printed, Told

_PRINTED = 4000
"""Characters of what a hook printed that are told."""


class Outcome(Struct, frozen=True):
    """What became of an item that a person has accepted."""

    commit: str = ""
    branch: str = ""
    """Where it is when it does not fit what was committed since."""
    red: str = ""
    """Why its check is not green with what was committed since."""


def waiting(loop: LoopRun) -> list[Entry]:
    """The items that were set aside and are still there; lists of runs tell the same from then on."""
    folder = loop.project.run(loop.id)
    found = [one for one in waiting_items.of(folder, loop.ledger) if loop.repository.reference(one.saved)]
    waiting_items.note(folder, found)
    return found


def decided(loop: LoopRun) -> dict[str, str]:
    """The items that a person has decided about, and how."""
    return waiting_items.decided(loop.project.run(loop.id))


def _decide(loop: LoopRun, key: str, how: str) -> None:
    waiting_items.decide(loop.project.run(loop.id), key, how, loop.ledger)


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


def accept(loop: LoopRun, entry: Entry, tell: Callable[[Told], None]) -> Outcome:
    """Apply what was saved to today's HEAD, run the check with it, commit it."""
    repository = loop.repository
    if made := _recovered(loop, entry):
        return Outcome(commit=made)
    if left := [path for path in repository.dirt() if not loop.documents.owns(path)]:
        raise UsageError(f"the tree has changes that are not committed: {left[0]}", hint="commit or stash them first")
    now = int(time())
    date = f"{now} +0000"
    subject = commit_message.subject(_headline(entry))
    alone = repository.commit(_work_of(loop, entry), [entry.base], f"{subject}\n\nset aside by {loop.id}\n", date)
    tree = repository.merged(repository.head(), alone)
    if not tree:
        branch = f"raymond/{loop.id}-{entry.number}"
        repository.move(f"refs/heads/{branch}", alone)
        return Outcome(branch=branch)
    with Application(loop, entry, tree) as applied:
        found = _checked(entry, loop, tell)
        if found and found.verdict != "passed":
            return Outcome(red=found.reason)
        applied.check_unchanged("its check")
        made = _committed(loop, entry, applied, now, tell)
    _conclude(loop, entry, made)
    with contextlib.suppress(GitError, OSError):  # the commit is made: what follows it undoes nothing
        repository.hook(repository.hooks_folder(), "post-commit")
    return Outcome(commit=made)


def _recovered(loop: LoopRun, entry: Entry) -> str:
    """Finish or take back what an accept that was killed has left; the commit, if it had made that of this item."""
    note = application.left(loop)
    if note is None:
        return ""
    if note.commit and loop.repository.descends(loop.repository.head(), note.commit):
        _conclude(loop, _entry(loop, note.key) or entry, note.commit)
        return note.commit if note.key == entry.key else ""
    application.clear(loop, note)
    return ""


def _committed(loop: LoopRun, entry: Entry, applied: Application, now: int, tell: Callable[[Told], None]) -> str:
    """Commit what was shown, and that the item has left the queue; nothing else that is on the disk."""
    repository = loop.repository
    tree = applied.tree
    for place, edited in settling.settled(loop, entry, lambda place: _stored(loop, applied.tree, place), now).items():
        tree = repository.with_file(tree, _named(loop, place), edited)
    trailers = [f"Raymond-Run: {loop.id}", f"Raymond-Item: {loop.id}/{entry.agent}-accepted"]
    facts = [
        f"Set aside as {entry.verdict}, accepted by a person",
        f"Check: {entry.check or 'none'}",
        f"Log: {entry.log}",
    ]
    message = _hooked(loop, tree, commit_message.message(_headline(entry), facts, (), trailers), tell)
    applied.check_unchanged("the hooks of the project")
    made = repository.commit(tree, [applied.head], message, f"{now} +0000", sign=repository.signs)
    applied.publish(made)
    return made


def _hooked(loop: LoopRun, tree: str, message: str, tell: Callable[[Told], None]) -> str:
    """The message, once the hooks of the project have seen the commit; refused if one rejects it."""
    repository, path = loop.repository, loop.file("COMMIT_EDITMSG")
    repository.stage(tree)
    documents.write(path, message)
    for name, args in (("pre-commit", ()), ("commit-msg", (path,))):
        code, printed = repository.hook(repository.hooks_folder(), name, *args)
        if code:
            tell(Printed(f"{printed[-_PRINTED:]}\n"))
            what = f"not committed, because the hook {name} rejects it"
            raise Error(what, hint="the tree is as before; what the hook printed is above")
    return documents.read(path)


def _headline(entry: Entry) -> str:
    return commit_message.headline(entry.title, entry.key)


def _entry(loop: LoopRun, key: str) -> Entry | None:
    return next((one for one in reversed(loop.ledger.entries) if one.key == key), None)


def _named(loop: LoopRun, place: str) -> str:
    """A document as git names it."""
    return os.path.normpath(os.path.join(loop.documents.inside, place))


def _stored(loop: LoopRun, tree: str, place: str) -> str:
    return (loop.repository.file(tree, _named(loop, place)) or b"").decode("utf-8", "surrogateescape")


def _conclude(loop: LoopRun, entry: Entry, made: str) -> None:
    """Write down everywhere that an item is committed."""
    _forget(loop, entry, loop.repository.date(made), None)
    loop.repository.refresh()
    _decide(loop, entry.key, f"{waiting_items.ACCEPTED}{made[:12]}")
    application.done(loop)


def _work_of(loop: LoopRun, entry: Entry) -> str:
    """The tree of the base with nothing but the work of the agent in it."""
    repository: Repository = loop.repository
    own = [one.path for one in repository.changes(entry.base, entry.kept) if loop.documents.owns(one.path)]
    return repository.mixed(entry.kept, entry.base, own)


def _checked(entry: Entry, loop: LoopRun, tell: Callable[[Told], None]) -> Found | None:
    if not entry.check:
        return None
    policy = Policy(
        gate=checks.read(entry.checks or entry.check), gate_timeout=entry.timeout or loop.settings.gate_timeout
    )
    with contextlib.chdir(loop.documents.cwd):
        return gate.try_policy(policy, tell, with_twin=False)


def reject(loop: LoopRun, entry: Entry, reason: str) -> str:
    """Put the item back into the queue; what its agent did stays saved. What was done, in words."""
    if made := _recovered(loop, entry):
        what = f"{entry.title} was accepted before: it is committed as {made[:12]}"
        raise UsageError(what, hint=f"git revert {made[:12]} takes it back")
    _forget(loop, entry, int(time()), reason)
    _decide(loop, entry.key, "rejected")
    return f"{entry.title} is in the queue again; what its agent did is kept in {entry.saved}"


def _forget(loop: LoopRun, entry: Entry, now: int, again: str | None) -> None:
    """Let the item wait for nobody any more: it is done, or with a reason to be done `again`."""
    found = settling.settled(loop, entry, lambda place: documents.read(loop.documents.path(place)), now, again)
    for place, text in found.items():
        documents.write(loop.documents.path(place), text)
