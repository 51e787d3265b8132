"""Parking: how everything stood when nobody had an item any more, and what has changed since.

A loop whose items somebody else does stands still between two of them, and whoever did the last one can still write.
So what decides about the next item is compared before that begins, and a person is asked about what nobody explains.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from raymond.digests import sha256
from raymond.errors import Error
from raymond.loops import documents, doubts
from raymond.loops.baseline import FIRST, Baseline, Keeper, keeper_of
from raymond.loops.change import Change
from raymond.loops.documents import LEARNINGS, LOGS, PROGRESS, WRITTEN, Documents
from raymond.loops.formats.foreign_text import code
from raymond.loops.ledger import Ledger, entry_of
from raymond.loops.ledger import read as read_ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.references import References
from raymond.loops.repository import SAVED
from raymond.loops.saved import Saved
from raymond.loops.step import Step
from raymond.loops.wishes import EDITED, LEARNED
from raymond.loops.work import Work
from raymond.verifier import names

_ANSWER, _GO_ON = "ANSWER.py", "continue"
_MOST, _SHOWN, _FILES = 50, 20, 200
"""Doubts that are kept, those that a person is shown, and files that are named."""
_COMMIT = 12
_ASKED = """\
Somebody changed something while nobody had an item:

{doubts}

`git diff {since}` and `git status` show files that changed. Put back what is not yours, then answer `continue`: that \
counts for what is there now, so whoever changes anything before is asked once more."""


class Between(Struct):
    """What has changed since nobody had an item any more."""

    doubts: list[str] = []
    """What a person has to look at, in words."""
    files: list[str] = []
    since: str = ""
    """A commit of all files as they were."""
    parked: str = ""
    """How everything stands now: as the ledger has it."""
    has_wishes: bool = False
    """Whether a person has left something that is written into the documents now."""


class _Before(Struct, frozen=True):
    """How everything stood."""

    keeper: Keeper
    baseline: Baseline
    saved: Saved
    files: str
    """The commit that all files, or only documents, are compared with."""
    head: str
    """The commit that HEAD named; empty if nobody knows."""
    only_documents: bool
    written: dict[str, str]
    """The documents that Raymond wrote since: path -> digest."""


# In a step


def look(step: Step) -> Between:
    """What has changed since the last item ended, and how everything stands now.

    Nothing where another branch is checked out: a person has to switch back first.
    """
    if step.settings.branch and step.repository.branch() != step.settings.branch:
        return Between()
    ledger = read_ledger(step.input if step.visit > 1 else "")
    before = _before(step, ledger)
    if before is None:
        return Between()
    found = Between(
        since=before.files[:_COMMIT], has_wishes=any(map(os.path.exists, map(step.file, (EDITED, LEARNED))))
    )
    _add(found.doubts, _of_settings(before))  # git does nothing below that somebody has set
    now = _note(step, before.files, found)
    _add(found.doubts, _of_references(step, ledger, before, now))
    changes = step.repository.changes(before.files, now.work)
    changes = [one for one in changes if not _is_ours(step.documents, one.path, before.written)]
    if before.only_documents:
        changes = [one for one in changes if step.documents.owns(one.path)]
    _add(found.doubts, _of_files(step, changes))
    found.files = [one.path for one in changes]
    return found


def settle(step: Step, ledger: Ledger, found: Between) -> None:
    """Enter what was found into the ledger, once what a person said and left is in it."""
    if any(_is_agreed(one) for one in json.loads(step.text("results") or "[]")):
        ledger.doubted, ledger.shown = [], 0
    if found.has_wishes and found.parked:
        parked = _work(found.parked)
        wished = (LOGS, LEARNINGS)
        now = _note(step, parked, found)
        late = [one for one in step.repository.changes(parked, now.work) if _part(step, one.path) not in wished]
        _add(found.doubts, _of_files(step, late))
    ledger.parked = found.parked or ledger.parked
    ledger.parked_since = found.since if found.doubts else ledger.parked_since
    ledger.noticed += [f"when nobody had an item, somebody {one}" for one in found.doubts]
    ledger.doubted = [*ledger.doubted, *found.doubts][:_MOST]
    ledger.between = list(dict.fromkeys([*ledger.between, *found.files]))[:_FILES]


def question(ledger: Ledger, other: str) -> str:
    """What a person is asked about what changed, and about `other`; empty when they know of all that did."""
    if len(ledger.doubted) == ledger.shown:
        return ""
    fresh, ledger.shown = ledger.doubted[ledger.shown :], len(ledger.doubted)
    lines = [f"- {one}" for one in fresh[:_SHOWN]]
    lines += [f"- and {len(fresh) - _SHOWN} more, which the summary names"] if len(fresh) > _SHOWN else []
    asked = _ASKED.format(doubts="\n".join(lines), since=ledger.parked_since)
    return "\n\n".join(filter(None, (other, asked))).replace("</", "< /")


def check_still(step: Step, ledger: Ledger) -> None:
    """Refuse to begin an item if anything changed while it was chosen: the step is repeated, and asks about it."""
    if not ledger.open or not ledger.parked:
        return
    changes = step.repository.changes(_work(ledger.parked), Work(step, ledger.open).baseline.work)
    if found := list(_of_files(step, changes)):
        raise Error(f"while an item was chosen, somebody {found[0]}")


# At the end


def accounted(loop: LoopRun, paths: Iterable[str]) -> list[str]:
    """Those of the documents that Raymond wrote, or that nobody has changed since the last item ended.

    What a person has not let pass is left for them.
    """
    ledger, repository = loop.ledger, loop.repository
    if not ledger.parked:
        return list(paths)
    written = {**documents.noted(loop.file(WRITTEN)), **_written(loop.file, range(1, len(ledger.entries) + 1))}
    changed = {one.path for one in repository.changes(_work(ledger.parked), repository.tree())}
    all_ = bool(ledger.doubted)
    return [one for one in paths if _is_ours(loop.documents, one, written) or not (all_ or one in changed)]


# Both


def _before(step: Step, ledger: Ledger) -> _Before | None:
    """How everything stood when nobody had an item any more; None when nobody has had one."""
    if ledger.open:
        return _after_item(step, ledger)
    if not ledger.parked:
        return None
    slot, digest, _ = ledger.parked.split()
    keeper = keeper_of(step, slot)
    base = keeper.load(digest)
    saved = Saved(step.file(f"saved-{slot}"), step.repository, f"{SAVED}{step.id}/", step.key)
    return _Before(keeper, base, saved, files=base.work, head=base.head, only_documents=False, written={})


def _after_item(step: Step, ledger: Ledger) -> _Before | None:
    """The same when an item has just ended: as it was checked and committed, or as it began."""
    outcome = next((one for one in json.loads(step.text("results") or "[]") if one["status"] == "done"), None)
    if outcome is None:
        return None  # whoever collects it looks at what it left
    entry, work = entry_of(json.loads(outcome["result"])), Work(step, ledger.open)
    written = {**documents.noted(step.file(WRITTEN)), **_written(step.file, [work.slot])}
    return _Before(
        work.keeper,
        work.baseline,
        work.saved,
        files=entry.commit or work.baseline.work,
        head=entry.commit,
        only_documents=not entry.commit or step.settings.is_dirty,
        written=written,
    )


def _note(step: Step, before: str, found: Between) -> Baseline:
    """Note how everything stands now. The same files make the same commit, also in a step that is repeated.

    `before` is the commit of how everything stood.
    """
    slot, date = f"parked-{step.number}", f"{step.repository.date(before)} +0000"
    base, digest = keeper_of(step, slot).take(f"{SAVED}{step.id}/parked", date)
    found.parked = f"{slot} {digest} {base.work}"
    return base


def _work(parked: str) -> str:
    return parked.split()[2]


def _of_settings(before: _Before) -> list[str]:
    """What decides what git does: it is as it was afterwards."""
    found = [*before.keeper.regained(before.baseline), *before.keeper.differences(before.baseline)]
    kept = before.keeper.restore(before.baseline) if found else []
    found = [f"{one}, which was put back" for one in found]
    found += [f"changed a file of git, which was put back; it is kept as {path}" for path in kept]
    return found + before.keeper.differences_elsewhere(before.baseline)


def _of_references(step: Step, ledger: Ledger, before: _Before, now: Baseline) -> Iterator[str]:
    base = before.baseline
    first = keeper_of(step, FIRST).load(ledger.first) if ledger.first else base
    found = References(step.repository, base, first, before.saved, "", is_shared=before.keeper.is_shared)
    own = f"{SAVED.removeprefix('refs/')}{step.id}/parked"  # which was moved by now, to keep the files
    yield from (one for one in (*found.tampered(), *found.doubtful()) if one not in (f"made {own}", f"moved {own}"))
    if before.head and now.head != before.head:
        commits = step.repository.commits(before.head, now.head)
        made = f"made {len(commits)} of its own" if commits else "took commits away"
        yield f"moved HEAD from {before.head[:_COMMIT]} to {now.head[:_COMMIT]} ({made})"


def _of_files(step: Step, changes: Sequence[Change]) -> Iterator[str]:
    """Files that say what is to be done, or decide whether it is, or were there; other new ones are work."""
    progress = os.path.join(step.documents.inside, PROGRESS)
    for one in changes:
        verb = {"A": "added", "D": "removed"}.get(one.status, "changed")
        is_known = one.status != "A" or step.documents.owns(one.path) or _decides(one.path)
        if is_known and one.path != progress:
            yield f"{verb} {code(one.path)}"
    yield from doubts.of_changes(step.repository, changes).review


def _decides(path: str) -> bool:
    """Whether a new file can decide a check, by its name."""
    folder, name = os.path.split(path)
    return names.is_test(name) or names.loaded(name, folder, is_root=True, of_tests=True) is not None


def _part(step: Step, path: str) -> str:
    return os.path.relpath(path, step.documents.inside).partition("/")[0]


def _written(file: Callable[[str], str], slots: Iterable[object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for slot in slots:
        found |= documents.noted(file(f"written-{slot}"))
    return found


def _is_ours(own: Documents, path: str, written: Mapping[str, str]) -> bool:
    """Whether a document says what Raymond wrote last."""
    digest = written.get(path)
    return bool(digest) and sha256(documents.content(os.path.join(own.top, path))).hexdigest() == digest


def _is_agreed(outcome: Mapping[str, str]) -> bool:
    return (outcome["state"], outcome["status"]) == (_ANSWER, "done") and outcome["result"].strip() == _GO_ON


def _add(to: list[str], more: Iterable[str]) -> None:
    to += [one for one in dict.fromkeys(more) if one not in to]
