"""What a person says to a loop beside its work: each word of theirs becomes a commit on its branch."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from time import time

from msgspec import Struct

from raymond import pasted
from raymond.errors import Error, UsageError
from raymond.faces.words import many
from raymond.language.ways import Way
from raymond.loops import branch, checks, documents, ending, outcome, preflight, reasons, task_source
from raymond.loops import state as waiting_items
from raymond.loops.branch import BASE, OWN, TAKEN, VOUCHED, trailers
from raymond.loops.documents import LEARNINGS, LOGS, PRD_STATUS, Documents, Stored, stored
from raymond.loops.formats import document, foreign_text, prd_status, queue, task_edit, task_spec
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH, SESSION
from raymond.loops.spec_files import Placed
from raymond.system import git
from raymond.system.stragglers import MARK, Marks
from raymond.verifier import placed
from raymond.verifier.assignment import Assignment, Found, Printed, Told, Work
from raymond.verifier.checks import environment_of
from raymond.workspace import publish
from raymond.workspace import tree as trees
from raymond.workspace.place import Place

_HEADING = "# Critical learnings"

Read = Callable[[str], str]


def commit(
    loop: LoopRun,
    write: Callable[[Documents], None],
    message: str,
    mark: str = "",
    then: Callable[[], None] = lambda: None,
) -> None:
    """Write documents into a commit of a person's on the tip, if that changes anything; `then` is done with it."""
    branch = loop.branch
    with branch.alone():
        tip = branch.tip
        found = stored(loop.checkout, branch.repository, tip)
        write(found)
        tree = found.onto(branch.repository.tree_of(tip))
        if tree != branch.repository.tree_of(tip):
            text = f"{message}\n\n" + "\n".join(trailers(loop.id, mark)) + "\n"
            branch.commit(tree, text, tip)
        then()


# The queue, and what was learned


def edit(
    found: Documents, loop: LoopRun | None, open_editor: Callable[[str], None], tell: Callable[[str], None]
) -> int:
    """Let a person edit the queue: in the checkout where no loop has a branch, otherwise in a copy."""
    texts = loop.documents if loop else found
    if loop is None:
        preflight.check_folder(found, "edit")
    name = preflight.newest(texts)
    opened = texts.read(LOGS, name)
    for item in queue.read(opened).items:
        if item.proposed:
            tell(f"proposed by an agent: {one_line(item.title)} (remove *proposed* to run it)")
    if loop is None:
        open_editor(found.path(LOGS, name))
        _check(found.read(LOGS, name), found.shown(LOGS, name), tell)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, name)
        documents.write(copy, opened)
        open_editor(copy)
        typed = documents.read(copy)
    if typed == opened:
        tell("nothing was changed")
        return 0
    _commit_queue(loop, opened, typed)
    _check(typed, "what you wrote", tell)
    tell(f"committed on {loop.branch.shown}{_when(loop)}")
    return 0


def _commit_queue(loop: LoopRun, opened: str, typed: str) -> None:
    done = {one.key for one in loop.ledger.done}

    def write(found: Documents) -> None:
        name = found.newest()
        found.write(queue.with_edit(opened, typed, found.read(LOGS, name), done), LOGS, name)

    commit(loop, write, "docs(loop): edit the queue")


def _when(loop: LoopRun) -> str:
    return ": an agent is at work, so it counts from the next item on" if loop.ledger.open else ""


def edited(loop: LoopRun) -> list[str]:
    """The documents that a person has changed in the checkout since the loop began, which does not count."""
    before = _opened(loop)
    now, checkout = loop.documents, loop.checkout
    names = _names(checkout, "")
    return [one for one in names if checkout.read(one) not in (before.read(one), now.read(one))]


def _opened(loop: LoopRun) -> Stored:
    """The documents of the checkout as they were taken over last; without that, as the loop found them."""
    branch = loop.branch
    return stored(loop.checkout, branch.repository, branch.commit_of(TAKEN) or branch.commit_of(BASE))


def _names(found: Documents, folder: str) -> list[str]:
    """The documents in the checkout that only Raymond writes while a loop works."""
    names = []
    for one in found.owned if not folder else found.names(folder):
        path = os.path.join(folder, one)
        if found.is_folder(path):
            names += _names(found, path)
        elif found.exists(path):
            names.append(path)
    return names


def take_over(loop: LoopRun | None, tell: Callable[[str], None]) -> int:
    """Let what a person changed in the documents of the checkout count."""
    changed = edited(loop) if loop else []
    if loop is None or not changed:
        tell("nothing was changed in the checkout")
        return 0
    before = _opened(loop)
    newest = os.path.join(LOGS, before.newest())

    def write(found: Documents) -> None:
        for name in changed:
            typed, opened, now = loop.checkout.read(name), before.read(name), found.read(name)
            both = typed if now in (opened, typed) else _merged(opened, typed, now)
            if both is None:
                hint = f"git show {_shown(loop, name)} shows what the loop has made of it"
                raise UsageError(f"{found.shown(name)} was changed in the same lines on the branch", hint=hint)
            found.write(both, name)
            if name == newest and found.newest() != before.newest() and loop.loop == SESSION:
                done = {one.key for one in loop.ledger.done}
                there = found.read(LOGS, found.newest())
                found.write(queue.with_edit(opened, typed, there, done), LOGS, found.newest())

    commit(loop, write, "docs(loop): take over what was edited in the checkout")
    for name in changed:
        before.write(loop.checkout.read(name), name)
    tree = before.onto(loop.branch.repository.tree_of(before.tree))
    loop.branch.keep(TAKEN, tree, "raymond: taken over from the checkout\n", loop.branch.commit_of(BASE))
    tell(f"{', '.join(map(loop.checkout.shown, changed))} taken over{_when(loop)}")
    return 0


def _merged(opened: str, typed: str, now: str) -> str | None:
    """A text that two sides have changed; None where they changed the same lines."""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("now", "opened", "typed")]
        for path, text in zip(names, (now, opened, typed), strict=True):
            documents.write(path, text)
        done = subprocess.run(["git", "merge-file", "-p", *names], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


def _shown(loop: LoopRun, name: str) -> str:
    return f"{loop.branch.shown}:{loop.checkout.inside_path(name)}"


def _check(text: str, shown: str, tell: Callable[[str], None]) -> None:
    """Tell what a queue comes to, and what in it may not mean what its author thinks."""
    read = queue.read(text)
    if read.section is None:
        tell(f"warning: {shown} has no `## {queue.TITLE}`, so nothing is in the queue: raymond continuous-session edit")
        return
    for warning in read.warnings:
        tell(f"warning: {shown}:{warning.line}: {warning.message}")
    tell(f"{many(len([one for one in read.items if not one.ticked]), 'item')} in the queue")


def learn(found: Documents, loop: LoopRun | None, text: str) -> str:
    """Add a learning. What was done, in words."""
    line = f"- {datetime.now(UTC).astimezone():%Y-%m-%d}: {one_line(text)}\n"
    if loop is None:
        preflight.check_folder(found, "learn TEXT")
        _add(found, line)
        return f"added to {found.shown(LEARNINGS)}"
    commit(loop, lambda one: _add(one, line), "docs(loop): a learning")
    return f"added to {_shown(loop, LEARNINGS)}{_when(loop)}"


def _add(found: Documents, line: str) -> None:
    text = found.read(LEARNINGS) or f"{_HEADING}\n\n"
    begun = "" if text.endswith("\n") else document.newline(text)
    found.write(text + begun + document.adapted(line, document.newline(text)), LEARNINGS)


def eject(workflow: str, folder: str) -> str:
    """Copy a workflow that ships, to be changed; what was done, in words."""
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise UsageError(f"{folder} already exists", hint="name a folder that does not exist")
    shutil.copytree(workflow, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return f"copied to {folder}: change it, then start with {pasted.flag('--workflow', folder, 'DIR')}"


# Items that were set aside


class Accepted(Struct, frozen=True):
    """What became of an item that a person has accepted."""

    commit: str = ""
    branch: str = ""
    """Where it is when it does not fit what was committed since."""
    red: str = ""
    """Why its check is not green with what was committed since."""


def waiting(loop: LoopRun) -> list[Entry]:
    """The items that were set aside and are still there; lists of runs tell the same from then on."""
    if loop.settings.commits_anything:
        ending.settle(loop)
    return [one for one in waiting_items.waiting_of(loop.ledger) if git.reference(loop.top, one.saved)]


def _check_open(loop: LoopRun, entry: Entry) -> None:
    """Refuse to decide about an item that another person has just decided about."""
    made = loop.branch.made_for(_accepted(loop, entry))
    if made:
        what = f"{entry.title} was accepted before: it is committed as {made[:12]}"
        raise UsageError(what, hint=f"git revert {made[:12]} takes it back")
    if entry.key in waiting_items.decided(loop.project.run(loop.id)):
        raise UsageError(f"{entry.title} was rejected before", hint=f"what its agent did is in {entry.saved}")


def chosen(loop: LoopRun, name: str | None) -> Entry:
    """The item that is meant by a number or a title; the only one when none is named."""
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


def accept(loop: LoopRun, entry: Entry, tell: Callable[[Told], None]) -> Accepted:
    """Put what was saved on top of the tip, run the check with it, commit it."""
    branch, mark = loop.branch, _accepted(loop, entry)
    repository = branch.repository
    if made := branch.made_for(mark):
        waiting_items.decide(loop.project.run(loop.id), entry.key, made)
        ending.settle(loop)
        return Accepted(commit=made)
    tip = branch.tip
    work = stored(loop.checkout, repository, entry.base).onto(repository.tree_of(entry.kept))
    alone = repository.commit(work, [entry.base], f"{_subject(entry)}\n\nset aside by {loop.id}\n", time())
    merged, conflicts = repository.merged(tip, alone)
    if conflicts:
        name = f"raymond/{loop.id}-{entry.number}"
        publish.ask(loop.top, "update-ref", "--no-deref", f"refs/heads/{name}", alone)
        return Accepted(branch=name)
    found, message = _checked(loop, entry, merged, mark, tell)
    if found and found.verdict != "passed":
        return Accepted(red=found.reason)
    with branch.alone():
        _check_open(loop, entry)
        if branch.tip != tip:
            raise UsageError("the loop has committed meanwhile", hint="try it again")
        documents = stored(loop.checkout, repository, tip)
        for place, text in settled_documents(loop, entry, documents, int(time())).items():
            documents.write(text, place)
        made = branch.commit(documents.onto(merged), message, tip)
        for what in (VOUCHED, OWN):
            accepted = {os.fsdecode(path): new for path, (_, new) in repository.changes(tip, merged).items()}
            branch.vouch(what, repository.changed(branch.tree_of(what), accepted))
        waiting_items.decide(loop.project.run(loop.id), entry.key, made)
    ending.settle(loop)
    return Accepted(commit=made)


def _accepted(loop: LoopRun, entry: Entry) -> str:
    """The mark of the commit that accepts an item."""
    return f"{loop.id}/{entry.slot}-accepted"


def _subject(entry: Entry) -> str:
    return branch.subject(branch.headline(entry.title, entry.key))


def _checked(
    loop: LoopRun, entry: Entry, tree: str, mark: str, tell: Callable[[Told], None]
) -> tuple[Found | None, str]:
    """Run the check of an item, and the hooks of the project, where no agent was; the message of the commit."""
    facts = [f"Set aside as {entry.verdict}, accepted by a person", f"Check: {entry.check or 'none'}"]
    facts.append(f"Log: {entry.log}")
    title = branch.headline(entry.title, entry.key)
    message = branch.message(title, facts, (), trailers(loop.id, mark))
    folder = checks.hook_folder(loop.top)
    if not entry.check and not folder:
        return None, message
    start, key = loop.run.start, f"accept-{os.urandom(8).hex()}"
    way: Way = "isolated" if loop.settings.way == "isolated" else "copy"
    raymond = loop.project.home.path
    marks = Marks(key, "")
    with tempfile.TemporaryDirectory(prefix=f"{key[:15]}-", dir=raymond) as aside:
        place = Place(f"{aside}/workspace", loop.top, loop.id, raymond, way)
        carry = list(loop.settings.carry)
        trees.make_of(
            place.slot,
            loop.top,
            loop.branch.tip,
            loop.settings.branch,
            began=loop.branch.commit_of(BASE),
            kept=[],
            vouched=loop.branch.tip,
            carry=carry,
            way=place.way,
            tell=lambda _: None,
        )
        work = Work(place.folder, loop.top, loop.id, raymond, way, tuple(start.lend), start.net, start.setup)
        given = Assignment(
            checks=checks.read_checks(entry.checks or entry.check),
            timeout=entry.timeout or loop.settings.gate_timeout,
            reruns=1,
            environment=environment_of(os.environ, {MARK: marks.of(1)}, f"{aside}/caches"),
            cwd=loop.checkout.cwd,
            key=key,
            step=1,
            folder=f"{aside}/seals",
            work=work,
        )
        try:
            found = placed.closing(given, work, tree, tree, tell) if entry.check else None
            if found and found.verdict != "passed":
                return found, ""
            if folder:
                hooked = checks.run_hooks(given, place, folder, tree, message)
                if hooked.rejection or hooked.tree != tree:
                    tell(Printed(f"{hooked.rejection}\n"))
                    how = "rejects it" if hooked.rejection else "changes files"
                    raise Error(f"not committed, because a hook of the project {how}", hint="its output is above")
                message = hooked.message
            return found, message
        finally:
            marks.end()
            place.drop()


def reject(loop: LoopRun, entry: Entry, reason: str) -> str:
    """Put the item back into the queue; what its agent did stays saved. What was done, in words."""

    def write(found: Documents) -> None:
        _check_open(loop, entry)
        for place, text in settled_documents(loop, entry, found, int(time()), reasons.cleaned(reason)).items():
            found.write(text, place)

    title = one_line(entry.title)

    def decide() -> None:
        waiting_items.decide(loop.project.run(loop.id), entry.key, "", reason)

    commit(loop, write, f"docs(loop): reject {title}", f"{loop.id}/{entry.slot}-rejected", decide)
    ending.settle(loop)
    again = "does not count" if loop.loop == RALPH else "is in the queue again"
    return f"{entry.title} {again}; what its agent did is kept in {entry.saved}"


# What documents say once a person has decided


def settled_documents(
    loop: LoopRun, entry: Entry, found: Documents, now: int, again: str | None = None
) -> dict[str, str]:
    """The documents that change, with their new texts: the item is done, or with a reason to be done `again`."""
    texts = _of_queue(entry, found, again) if loop.loop == SESSION else {}
    if loop.loop != SESSION or entry.tasks:
        texts |= _of_plans(entry, found, now, again)
    return {place: text for place, text in texts.items() if text != found.read(place)}


def _of_queue(entry: Entry, found: Documents, again: str | None) -> dict[str, str]:
    name = found.newest()
    return {os.path.join(LOGS, name): _without(found.read(LOGS, name), entry.key, again)} if name else {}


def _without(text: str, key: str, again: str | None) -> str:
    """A session log in which the item no longer waits."""
    for item in queue.read(text).items:
        if queue.key(item) == key and item.verification.kind == "blocked":
            block = "" if again is None else _unblocked(item.raw, again)
            return text[: item.start] + block + text[item.end :]
    return text


def _unblocked(raw: str, reason: str) -> str:
    told = f"   It was rejected: {' '.join(reason.split())}\n" if reason.strip() else ""
    block = queue.unmarked(raw, f"[BLOCKED: {outcome.WAITS}")
    return f"{block}{told}" if block.endswith("\n") else f"{block}\n{told}"


def _of_plans(entry: Entry, found: Documents, now: int, again: str | None) -> dict[str, str]:
    from raymond.loops import spec_files

    specs = spec_files.paths(found)
    return settled_plan(entry, found.read, specs, again, datetime.fromtimestamp(now, UTC).astimezone())


def settled_plan(entry: Entry, read: Read, specs: Iterable[str], again: str | None, when: datetime) -> dict[str, str]:
    """The documents with their new texts: the item is done, or with a reason to be done `again`.

    `specs` are the names of all specs: the tasks of a story may stand in any of them.
    """
    if entry.key == entry.group:
        return _of_story(entry, read, again, when) | (_verified(entry, read, specs, when) if again is None else {})
    if again is None:
        return _verified(entry, read, specs, when)
    if not entry.place or not _has_once(read(entry.place), entry.key):
        return {}
    text = read(entry.place)
    reason = foreign_text.cut(f"rejected by a person: {again}".rstrip(": "), 300)
    stamp = f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {entry.place: task_edit.failed(text, entry.key, stamp, entry.check, reason, "", entry.attempts)}


def _verified(entry: Entry, read: Read, specs: Iterable[str], when: datetime) -> dict[str, str]:
    """The specs in which the tasks that are done with the item are marked, and those that they repair."""
    texts = {place: read(place) for place in specs}
    placed = [Placed(task, place) for place, text in texts.items() for task in task_spec.read(text).tasks]
    by_id = {one.task.id: one for one in placed}
    changed: dict[str, str] = {}
    for id in entry.tasks or (entry.key,):
        for one in (by_id[id], *task_source.repaired(placed, id)) if id in by_id else ():
            text = changed.get(one.place, texts[one.place])
            if _has_once(text, one.task.id):
                check = one.task.check.run if one.task.check else "accepted"
                changed[one.place] = task_edit.passed(text, one.task.id, f"{when:%Y-%m-%d}", check)
    return changed


def _has_once(text: str, id: str) -> bool:
    return [one.id for one in task_spec.read(text).tasks].count(id) == 1


def _of_story(entry: Entry, read: Read, again: str | None, when: datetime) -> dict[str, str]:
    try:
        status = prd_status.read(read(PRD_STATUS) or "{}")
    except Broken:
        return {}
    if prd_status.story(status, entry.key) is None:
        return {}
    date = f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if again is None:
        changed = prd_status.recorded(status, entry.key, "passed", date, "accepted by a person")
    else:
        notes = foreign_text.cut(f"rejected by a person: {again}".rstrip(": "), 200)
        changed = prd_status.recorded(status, entry.key, "failed", date, notes)
    return {PRD_STATUS: prd_status.write(changed)}
