"""A gate: its commands in order, the first red one ends it. Then, if what is sealed has changed, the same in a twin."""

import os
import time

from msgspec import Struct
from msgspec.structs import replace

from raymond.redaction import Secrets
from raymond.system import git
from raymond.verifier import checks, seal
from raymond.verifier.assignment import Assignment, Found, Noted
from raymond.verifier.checks import Ran, Tell, Written, listed
from raymond.verifier.decides import Change, digest_of
from raymond.verifier.seal import Seal

_ROOM = 1 << 20
"""Bytes: a disk with less is full."""
_CODE = frozenset(".py .sh .bash .js .mjs .cjs .ts .tsx .jsx .rs .go .rb .php .pl .t .c .cc .cpp .java .kt".split())
_NAMED = 20
"""Files that a check wrote and that are named."""


def verify(given: Assignment, tell: Tell) -> Found:
    """Run the checks; what happens is told as it does."""
    began = time.monotonic()
    sealed = seal.load(seal.seal_path(given.folder, given.sealed)) if given.sealed else None
    if sealed and given.digest and sealed.digest != given.digest:
        reason = "the seal of this visit is not what was journaled: somebody has changed files of the run"
        return Found(verdict="could not start", reason=reason)
    if sealed and given.cwd and sealed.cwd != os.path.realpath(given.cwd):  # a person has moved the run
        sealed = seal.moved_here(given, sealed, os.path.realpath(given.cwd))
    try:
        found = _sealed_gate(given, sealed, tell) if sealed else checks.run(given, tell).found
    except OSError as error:  # the tree cannot be read
        found = Found(verdict="could not start", reason=f"the check cannot be judged: {error}")
    return replace(found, seconds=time.monotonic() - began)


def before(given: Assignment, tell: Tell) -> str:
    """What the checks find before the work: `green`, or why they are red."""
    return checks.run(given, tell).before


def _sealed_gate(given: Assignment, sealed: Seal, tell: Tell) -> Found:
    """The checks, and what their seal says about them."""
    top = sealed.rules.top
    private = seal.git_of(given, top)
    before = seal.changes(sealed)
    written = Written(top, private.tracked())
    here = checks.run(given, tell)
    known = {"seal": sealed.digest, "commit": git.head(top), "files": len(sealed.entries)}
    known["wrote"] = tuple(written.names()[:_NAMED])
    known["new_tests"] = seal.new_tests(sealed)
    if not here.is_green:
        return replace(_missing(here.found, before), **known)
    changes = list({one.path: one for one in (*before, *seal.changes(sealed))}.values())
    found = _judged(given, sealed, here, changes, tell) if changes else here.found
    tree = private.tree()
    for path in private.removed:
        tell(Noted(f"{path} was a pipe, for which git would wait: it was removed"))
    return replace(found, **known, tree=tree)


def _missing(found: Found, changes: list[Change]) -> Found:
    """A check that cannot start because the agent removed a part of it is red, and no mistake of the workflow."""
    gone = [one.path for one in changes if one.how == "removed"]
    if found.verdict != "could not start" or not gone:
        return found
    return replace(found, verdict="failed", reason=f"{found.reason}; {listed(gone)} was there before: put it back")


def _judged(given: Assignment, sealed: Seal, here: Ran, changes: list[Change], tell: Tell) -> Found:
    """What a green check is worth when what decides it has changed."""
    from raymond.verifier import review

    digest = digest_of(changes)
    known = replace(here.found, changes=tuple(f"{one.how} {one.path}" for one in changes), digest=digest)
    if digest == given.accepted:
        return known
    compared = _compare(given, sealed, here, changes, tell)
    found = replace(compared.found, changes=known.changes, digest=digest)
    if found.verdict == "passed":
        return found
    if given.allows_edits:
        return replace(known, twin=found.twin, reason=f"accepted in advance, {found.reason}")
    name = f"{given.step}.review"
    folder = os.path.join(given.folder, name)
    review.save(
        folder,
        changes,
        *review.readers(folder, sealed),
        {"check.txt": here.printed, "sealed.txt": compared.twin, "control.txt": compared.control},
        Secrets.of(given.environment),
    )
    return replace(found, review=name)


class _Compared(Struct, frozen=True):
    """What came of the twin."""

    found: Found
    twin: str = ""
    control: str = ""


def _compare(given: Assignment, sealed: Seal, here: Ran, changes: list[Change], tell: Tell) -> _Compared:
    """Run the checks with the sealed files put back, and if they are red then, once more without that."""
    from raymond.verifier.twin import twin_of  # hardly any gate needs a twin

    lost = [one.path for one in changes if one.path in sealed.entries and not sealed.entries[one.path].can_be_put_back]
    if lost:
        reason = f"{listed(lost)} cannot be put back: too large to keep a copy"
        return _Compared(replace(here.found, verdict="not comparable", reason=reason))
    folder = os.path.join(given.folder, f"{given.step}.twin")
    try:
        put_back = list({one.path: one for one in (*seal.new_files(sealed), *changes)}.values())
        with twin_of(sealed, put_back, folder) as twin:
            there = checks.run(given, tell, "twin", twin.place)
            is_full = _is_full(folder, there)
            written = [path for path in twin.rewritten() if _decides(sealed, path)] if there.is_green else []
        if written:
            reason = f"the check itself writes {listed(written)}, so it cannot be told what it says as sealed"
            found = replace(here.found, verdict="not comparable", reason=reason, twin="overlay")
            return _Compared(found, there.printed)
        if there.is_green:
            return _Compared(replace(here.found, twin="overlay", flaky=there.found.flaky or here.found.flaky))
        with twin_of(sealed, [], folder) as same:
            control = checks.run(given, tell, "control", same.place)
            is_full = is_full or _is_full(folder, control)
    except OSError as error:
        reason = f"the check could not be repeated with the sealed files: {error}"
        return _Compared(replace(here.found, verdict="not comparable", reason=reason))
    found = _weigh(here, there, control, changes)
    if is_full:
        reason = f"the check could not be repeated with the sealed files: the disk of {given.folder} is full"
        found = replace(found, verdict="not comparable", reason=reason)
    return _Compared(found, there.printed, control.printed)


def _decides(sealed: Seal, path: str) -> bool:
    """Whether a sealed file is a part of the check, and no data or report that a check may write."""
    entry, ending = sealed.entries[path], os.path.splitext(path)[1]
    if entry.part not in ("test", "named"):
        return True
    return ending in _CODE or bool(entry.mode & 0o111) or (entry.part == "named" and not ending)


def _is_full(place: str, ran: Ran) -> bool:
    """Whether checks are red where there is no room for what they write."""
    if ran.is_green:
        return False
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize < _ROOM


def _weigh(here: Ran, there: Ran, control: Ran, changes: list[Change]) -> Found:
    red = there.found
    if not control.is_green:
        reason = f"it is red in a copy of the directory too, so nothing can be compared: {control.found.reason}"
        return replace(red, verdict="not comparable", reason=reason, twin="overlay")
    less = checks.fewer_tests(here.printed, there.printed)
    which = listed([one.path for one in changes])
    reason = f"green only with the agent's {which}: as sealed, {red.reason}{f'; {less}' if less else ''}"
    return replace(red, verdict="review", reason=reason, twin="overlay")
