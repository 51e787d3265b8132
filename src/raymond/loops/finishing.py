"""What follows when an item counts: hooks, records, and a commit that cannot happen twice."""

from time import time
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from raymond.loops import commit_message, documents, hooked, inspection, markers
from raymond.loops.formats import queue, session_log
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.formats.log_line import lasted
from raymond.loops.hooks import is_there
from raymond.loops.inspection import Inspection
from raymond.loops.ledger import NO_CHANGE, OWN_CHECK, PASSED, PENDING, UNCHECKED, Entry
from raymond.loops.sources import source_of
from raymond.loops.work import Work
from raymond.verifier import private_git

_RECHECKS = 3
"""How often files that changed after the check are checked again."""
_PRINTED = 4000
"""Characters of what a hook printed that an agent is told."""


class Hooks(Struct, frozen=True):
    """How the hooks of the project ended."""

    rejection: str | None = None
    """What the one that rejected the commit printed."""
    changed: bool = False
    """Whether they changed files, which are not checked then."""


def is_verified(work: Work, gate: dict[str, Any]) -> bool:
    """Whether the files are those that the check was green with."""
    if not work.check or not gate.get("tree"):
        return True  # nothing was checked, or there was nothing to compare
    private = private_git.git_at(work.step.folder.seals, work.step.top)
    return bool(private.tree() == gate["tree"])


def did_nothing(work: Work, found: Inspection) -> bool:
    """Whether nobody could tell that the item was done."""
    return not work.check and not work.criteria and not found.changed and not found.commits


def run_hooks(work: Work, found: Inspection) -> Hooks:
    """Let the hooks of the project look at the commit, as they are."""
    if not work.settings.commits:
        return Hooks()
    repository = work.step.repository
    code, printed = repository.hook(repository.hooks_folder(), "pre-commit")
    if code:
        return Hooks(rejection=_kept(work, printed))
    if not printed:
        return Hooks()  # there is none
    return Hooks(changed=repository.tree() != found.tree)


def _kept(work: Work, printed: str) -> str:
    documents.write(work.rejection, printed[-_PRINTED:])
    return printed[-_PRINTED:]


def plan(work: Work, found: Inspection, gate: dict[str, Any], reply: str) -> dict[str, Any] | Hooks:
    """Write the records, and say what the commit will be, or how the hook for messages ended instead."""
    entry = _entry(work, found, gate)
    told = session_log.told(markers.without(reply))
    proposed = [*found.proposed, *session_log.proposals(told.pop("Next Steps", ""))]
    result = _result(entry, gate)
    source_of(work.step.documents, work.settings).done(work, entry)
    blocks = [one.raw for one in work.queue_before() if queue.key(one) != work.key]
    work.write_log(told, [*blocks, *work.new(proposed)], found, f"Done. Verification: {result}.")
    done = f"**{work.title}**\n\n{told.get('Summary', '')[:2000]}"
    work.write_progress(done, result)
    return committed(work, found, gate, entry, commit_message.headline(work.title, work.key))


def committed(
    work: Work, found: Inspection, gate: dict[str, Any], entry: Entry, title: str, said: str = ""
) -> dict[str, Any] | Hooks:
    """What the commit will be, once the hook for messages has seen its own, or how that ended instead."""
    if not work.settings.commits:
        return {"entry": asdict(entry)}
    repository = work.step.repository
    path = work.step.file("COMMIT_EDITMSG")
    documents.write(path, _message(work, entry, gate, title, said))
    hooks = repository.hooks_folder()
    if is_there(hooks, "commit-msg"):
        written = repository.tree()
        code, printed = repository.hook(hooks, "commit-msg", path)
        if code:
            return Hooks(rejection=_kept(work, printed))
        noticed = hooked.put_back(work, "commit-msg", written, found.head)
        entry = replace(entry, notes=(*entry.notes, *noticed))
    whole = repository.tree()
    others = [one.path for one in repository.changes(found.tree, whole) if not work.step.documents.owns(one.path)]
    if others:  # a hook, or something that was left running
        return Hooks(changed=True)
    return {
        "entry": asdict(entry),
        "tree": _tree(work, found, whole),
        "head": found.head,
        "parent": work.baseline.head if work.settings.squash else found.head,
        "message": documents.read(path),
        "date": f"{int(time())} +0000",
        "branch": work.baseline.branch,
        "signs": work.baseline.signs,
        "staged": work.baseline.staged,
        "base": work.baseline.head,
        "hooks_folder": hooks,
    }


def _tree(work: Work, found: Inspection, whole: str) -> str:
    """What is committed: all that was checked, but for what a person had not committed before, and what git ignored."""
    repository = work.step.repository
    dirty = [one.path for one in repository.changes(f"{work.start}^", work.start)]
    touched = {one.path for one in repository.changes(work.start, whole)} if dirty else set[str]()
    left_out = [path for path in dirty if path not in touched and not work.step.documents.owns(path)]
    left_out += [*found.hidden, *work.settings.prompt_in(work.step.cwd, work.step.top)]
    return repository.mixed(whole, repository.head(), left_out) if left_out else whole


def _entry(work: Work, found: Inspection, gate: dict[str, Any]) -> Entry:
    verdict = PASSED if work.check else UNCHECKED
    if work.criteria:
        verdict = PASSED if is_judged(work, found) else PENDING
    elif work.is_proposed:
        verdict = OWN_CHECK
    elif not found.changed and not found.commits:
        verdict = NO_CHANGE
    if decisive := gate.get("changes"):
        note = f"{', '.join(decisive)} (this decides the check, which is green also with it as before)"
        found.notes += [] if note in found.notes else [note]
    return work.entry(verdict, found, wrote=tuple(gate.get("wrote", [])))


def _result(entry: Entry, gate: dict[str, Any]) -> str:
    if entry.verdict == PENDING:
        return "skipped (it waits for a person's judgement)"
    if not entry.check:
        return "PASSED (a person says so)" if entry.verdict == PASSED else "skipped (the item has no check)"
    flaky = ", flaky: it was red at first" if gate.get("flaky") else ""
    before = ", as it was before the work" if gate.get("as_before") else ""
    change = ", without any change" if entry.verdict == NO_CHANGE else ""
    if not entry.is_done:
        return entry.verdict
    return f"PASSED in {lasted(gate.get('seconds', 0.0))}{flaky}{before}{change}"


def recheck(work: Work, *, by_hooks: bool = False) -> str:
    """The state that checks the files again; what changes them every time fails.

    A step that was killed after it had begun to write records has changed the files as well. That is nobody's fault,
    and is not counted.
    """
    if not by_hooks and work.has_written:
        return "RECHECK.py"
    path = work.step.file(f"rechecked-{work.slot}")
    noted = {*documents.read(path).split(), work.step.key}
    documents.write(path, "\n".join(sorted(noted)))
    return "RECHECK.py" if len(noted) <= _RECHECKS else "FAILED.py"


def is_to_be_judged(work: Work, found: Inspection) -> bool:
    """Whether a person is there, and has not said yet whether it is as it should be."""
    return bool(work.criteria) and work.settings.asks and not is_judged(work, found)


def is_judged(work: Work, found: Inspection) -> bool:
    """Whether a person has said `yes` to these files: to others they have said nothing."""
    seen = documents.read(judgement(work))
    changed = work.step.repository.changes(seen, found.tree) if seen else []
    return bool(seen) and all(work.step.documents.owns(one.path) for one in changed)


def judgement(work: Work) -> str:
    """The file with the tree that a person has said `yes` to."""
    return work.step.file(f"judged-{work.slot}")


def forget(work: Work) -> None:
    """What a person has said does not count for what follows."""
    documents.write(judgement(work), "")


def _trailer(work: Work) -> str:
    return f"Raymond-Item: {work.mark}"


def _message(work: Work, entry: Entry, gate: dict[str, Any], title: str, said: str) -> str:
    most = f"/{work.settings.most}" if work.settings.most else ""
    checked = f"Check: {entry.check} ({_result(entry, gate)})" if entry.check else "Check: none"
    facts = [f"{work.settings.loop} {work.number}{most}", checked, *([f"Log: {entry.log}"] if entry.log else [])]
    facts += [f"The agent said: {said}"] if said else []
    facts += [f"Noticed: {one_line(inspection.told(note))}" for note in entry.notes]
    trailers = [f"Raymond-Run: {work.step.id}", _trailer(work)]
    return commit_message.message(title, facts, entry.wrote, trailers)
