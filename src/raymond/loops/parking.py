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
from raymond.loops import documents, doubts, git_settings, unfinished
from raymond.loops.baseline import FIRST, Baseline, Keeper, keeper_of
from raymond.loops.change import Change
from raymond.loops.documents import LEARNINGS, LOGS, PROGRESS, WRITTEN, Documents
from raymond.loops.formats.foreign_text import code
from raymond.loops.inspection import is_generated
from raymond.loops.ledger import REVIEW, TAMPERED, Ledger, entry_of
from raymond.loops.ledger import read as read_ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.references import References
from raymond.loops.repository import SAVED
from raymond.loops.saved import Saved
from raymond.loops.step import Step
from raymond.loops.wishes import EDITED, LEARNED
from raymond.loops.work import Work
from raymond.verifier import control_plane

_ANSWER, _GO_ON = "ANSWER.py", "continue"
_MOST, _FILES = 200, 200
"""Doubts that a person is shown at once, and files that are named."""
_KEPT = ("slot", "baseline", "start", "hooks", "first", "title", "key", "began", "since")
"""What of an item is needed to compare with how it began."""
_COMMIT = 12
_BACK = ", which was put back"
_CUT = "..."
"""How a reason ends that was cut."""
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
    ended: dict[str, str] = {}
    """The item that has just ended, if it cannot be compared yet."""
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
    is_item: bool = False
    """An item has just ended: what git ignores, and the like, was looked at with it."""
    only_documents: bool = False
    told: tuple[str, ...] = ()
    """What the inspection of the item has found."""
    written: dict[str, str] = {}
    """The documents that Raymond wrote since: path -> digest."""


# In a step


def look(step: Step) -> Between:
    """What has changed since the last item ended, and how everything stands now.

    Where another branch is checked out, a person has to switch back first: that is compared then.
    """
    ledger = read_ledger(step.input if step.visit > 1 else "")
    if step.settings.branch and step.repository.branch() != step.settings.branch:
        return Between(ended=_ended(step, ledger))
    before = _before(step, ledger)
    if before is None:
        return Between()
    has_wishes = any(os.path.exists(step.file(name)) for name in (EDITED, LEARNED))
    found = Between(since=before.files[:_COMMIT], has_wishes=has_wishes)
    of_git = _of_settings(before)  # git does nothing below that somebody has set
    now = _note(step, before.files, found)
    of_git += _of_references(step, ledger, before, now)
    changes = step.repository.changes(before.files, now.work)
    changes = [one for one in changes if not _is_ours(step.documents, one.path, before.written)]
    own, others = _sorted(step, changes)
    if before.is_item:  # what was found out about it is told already
        others = [] if before.only_documents else others
        of_git = [one for one in of_git if not _is_told(one.removesuffix(_BACK), before.told)]
    else:
        of_git += _beyond_files(before.baseline, now)
    # What decides most comes first: a person may not read on to the end.
    for some in (_of_files(step, own), of_git, _of_files(step, others)):
        _add(found.doubts, some)
    found.files = [one.path for one in (*own, *others)]
    return found


def _sorted(step: Step, changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
    """The documents of the loop, and other files: new ones last."""
    own: list[Change] = []
    others: list[Change] = []
    progress = os.path.join(step.documents.inside, PROGRESS)
    for one in sorted(changes, key=lambda one: one.status == "A"):
        (own if step.documents.owns(one.path) else others).append(one)
    return [one for one in own if one.path != progress], others


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
    if found.parked or found.ended:
        ledger.parked, ledger.ended_item = found.parked, found.ended
    ledger.parked_since = found.since if found.doubts else ledger.parked_since
    kept = found.doubts[:_MOST]
    kept += [f"changed {len(found.doubts) - _MOST} more files"] if len(found.doubts) > _MOST else []
    ledger.noticed += [f"when nobody had an item, somebody {one}" for one in kept]
    ledger.doubted = [*ledger.doubted, *kept]
    ledger.between = list(dict.fromkeys([*ledger.between, *found.files]))[:_FILES]


def question(ledger: Ledger, other: str) -> str:
    """What a person is asked about what changed, and about `other`; empty when they know of all that did."""
    if len(ledger.doubted) == ledger.shown:
        return ""
    fresh, ledger.shown = ledger.doubted[ledger.shown :], len(ledger.doubted)
    asked = _ASKED.format(doubts="\n".join(f"- {one}" for one in fresh), since=ledger.parked_since)
    return "\n\n".join(filter(None, (other, asked))).replace("</", "< /")


def check_still(step: Step, ledger: Ledger) -> None:
    """Refuse to begin an item if anything changed while it was chosen: the step is repeated, and asks about it."""
    if not ledger.open or not ledger.parked:
        return
    slot, digest, _ = ledger.parked.split()
    before, now = keeper_of(step, slot).load(digest), Work(step, ledger.open).baseline
    changes = _sorted(step, step.repository.changes(before.work, now.work))
    found = [*_of_files(step, [*changes[0], *changes[1]]), *_beyond_files(before, now), *_of_git(before, now)]
    if found:
        raise Error(f"while an item was chosen, somebody {found[0]}")


# At the end


def accounted(loop: LoopRun, paths: Iterable[str]) -> list[str]:
    """Those of the documents that Raymond wrote, or that nobody has changed since the last item ended.

    What a person has not let pass is left for them.
    """
    ledger, repository = loop.ledger, loop.repository
    if not ledger.parked and not ledger.ended_item:
        return list(paths)
    written = {**documents.noted(loop.file(WRITTEN)), **_written(loop.file, range(1, len(ledger.entries) + 1))}
    all_ = bool(ledger.doubted or ledger.ended_item)
    changed = set() if all_ else {one.path for one in repository.changes(_work(ledger.parked), repository.tree())}
    return [one for one in paths if _is_ours(loop.documents, one, written) or not (all_ or one in changed)]


# Both


def _before(step: Step, ledger: Ledger) -> _Before | None:
    """How everything stood when nobody had an item any more; None when nobody has had one."""
    if item := _ended(step, ledger) or ledger.ended_item:
        return _after_item(step, item)
    if not ledger.parked:
        return None
    slot, digest, _ = ledger.parked.split()
    keeper = keeper_of(step, slot)
    base = keeper.load(digest)
    saved = Saved(step.file(f"saved-{slot}"), step.repository, f"{SAVED}{step.id}/", step.key)
    return _Before(keeper, base, saved, files=base.work, head=base.head)


def _ended(step: Step, ledger: Ledger) -> dict[str, str]:
    """The item that has just ended, with its commit; empty if whoever collects it looks at what it left."""
    outcome = next((one for one in json.loads(step.text("results") or "[]") if one["status"] == "done"), None)
    if not ledger.open or outcome is None:
        return {}
    kept = {name: ledger.open[name] for name in _KEPT if name in ledger.open}
    entry = entry_of(json.loads(outcome["result"]))
    # Of another item, the reason may have words of its agent in it.
    reasons = entry.error.split("; ") if entry.verdict in (REVIEW, TAMPERED) else []
    return {**kept, "commit": entry.commit, "told": json.dumps([*reasons, *entry.notes][:_MOST])}


def _after_item(step: Step, item: Mapping[str, str]) -> _Before:
    """How everything stood when an item had ended: as it was checked and committed, or as it began."""
    work, commit = Work(step, item), item["commit"]
    return _Before(
        work.keeper,
        work.baseline,
        work.saved,
        files=commit or work.baseline.work,
        head=commit,
        is_item=True,
        told=tuple(json.loads(item["told"])),
        only_documents=not commit or step.settings.is_dirty,
        written={**documents.noted(step.file(WRITTEN)), **_written(step.file, [work.slot])},
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
    """What decides what git does: it is as it was afterwards. Where the loop's branch is pushed to decides nothing."""
    upstream = {f"added the git setting branch.{before.baseline.branch}.{one}" for one in ("merge", "remote")}
    found = [*before.keeper.regained(before.baseline), *before.keeper.differences(before.baseline)]
    found = [] if upstream.issuperset(found) else found
    kept = before.keeper.restore(before.baseline) if found else []
    found = [f"{one}{_BACK}" for one in found]
    found += [f"changed a file of git, which was put back; it is kept as {path}" for path in kept]
    return found + before.keeper.differences_elsewhere(before.baseline)


def _is_told(found: str, told: Iterable[str]) -> bool:
    """Whether the inspection of an item has found the same."""
    return any(found == one or (one.endswith(_CUT) and found.startswith(one.removesuffix(_CUT))) for one in told)


def _of_references(step: Step, ledger: Ledger, before: _Before, now: Baseline) -> Iterator[str]:
    base = before.baseline
    first = keeper_of(step, FIRST).load(ledger.first) if ledger.first else base
    found = References(step.repository, base, first, before.saved, "", is_shared=before.keeper.is_shared)
    prefix = f"{SAVED.removeprefix('refs/')}{step.id}/"
    # Which this step has moved by now, or before it was killed, to keep the files.
    ours = {f"{verb} {prefix}{name}" for verb in ("made", "moved") for name in ("parked", "base", "start")}
    yield from (one for one in (*found.tampered(), *found.doubtful()) if one not in ours)
    if before.head and now.head != before.head:
        commits = step.repository.commits(before.head, now.head)
        made = f"made {len(commits)} of its own" if commits else "took commits away"
        yield f"moved HEAD from {before.head[:_COMMIT]} to {now.head[:_COMMIT]} ({made})"


def _of_files(step: Step, changes: Sequence[Change]) -> Iterator[str]:
    for one in changes:
        yield f"{ {'A': 'added', 'D': 'removed'}.get(one.status, 'changed') } {code(one.path)}"
    yield from doubts.of_changes(step.repository, changes).review


def _beyond_files(before: Baseline, now: Baseline) -> Iterator[str]:
    """What a tree does not tell of: what git ignores, submodules, repositories inside of this one."""
    hidden = set(now.ignored).difference(before.ignored)
    yield from (f"added {code(one)}, which git ignores" for one in sorted(hidden) if not is_generated(one))
    for path in sorted({*before.modules, *now.modules}):
        if before.modules.get(path, "") != now.modules.get(path, ""):
            yield f"changed the submodule {code(path)}"
    new = [one for one in now.nested if one not in before.nested]
    yield from (f"left a repository of its own in {code(one)}" for one in new)
    if names := [one for one in now.unfinished if one not in before.unfinished]:
        yield f"left {unfinished.words(names)} unfinished"


def _of_git(before: Baseline, now: Baseline) -> Iterator[str]:
    """What decides what git does and is not as it was, between two moments."""
    yield from control_plane.differences(before.control, now.control)
    for old, new in ((before.settings, now.settings), (before.in_effect, now.in_effect)):
        yield from git_settings.differences(old or {}, new or {}, before.references)
    if before.hooks != now.hooks or before.hooks_folder != now.hooks_folder:
        yield "changed the hooks of the project"
    if (before.head, before.branch) != (now.head, now.branch):
        yield f"moved HEAD from {before.head[:_COMMIT]} to {now.head[:_COMMIT]}"
    moved = {name for name, commit in before.references.items() if now.references.get(name) != commit}
    yield from (f"moved {name}" for name in sorted(moved) if name.startswith("refs/heads/"))


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
