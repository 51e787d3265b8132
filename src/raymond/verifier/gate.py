"""A gate: its commands in order, the first red one ends it. Then, if what is sealed has changed, the same in a twin."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.digests import sha256
from raymond.errors import Error
from raymond.language.check import Check
from raymond.machine.step_events import GREEN
from raymond.patterns import regex
from raymond.redaction import Secrets
from raymond.system import git, stragglers
from raymond.system.marks import Marks
from raymond.verifier import command, compiled, control_plane, environment, seal, sealing
from raymond.verifier.assignment import TAIL, Assignment, Began, Ended, Found, Noted, Printed, Told, Where, Work
from raymond.verifier.command import HERE, Place, Result
from raymond.verifier.control_plane import Difference
from raymond.verifier.seal import Change, Seal
from raymond.verifier.written import Written

if TYPE_CHECKING:
    from raymond.verifier.room import Room

Tell = Callable[[Told], None]
_ROOM = 1 << 20
"""Bytes: a disk with less is full."""
_REASON = 300
_NUMBER = regex(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_CODE = frozenset(".py .sh .bash .js .mjs .cjs .ts .tsx .jsx .rs .go .rb .php .pl .t .c .cc .cpp .java .kt".split())
_NAMED = 20
"""Files that a check wrote and that are named."""


def verify(given: Assignment, tell: Tell) -> Found:
    """Run the checks; what happens is told as it does."""
    if given.turns:
        # An agent that goes on could change what is checked.
        stragglers.end(given.key, given.noted, lambda step: step in given.turns)
    began = time.monotonic()
    if given.work:
        try:
            found = _placed_gate(given, given.work, tell)
        except (OSError, Error) as error:
            found = Found(verdict="could not start", reason=f"the check cannot be judged: {error}")
        return replace(found, seconds=time.monotonic() - began)
    sealed = seal.load(sealing.seal_path(given.folder, given.sealed)) if given.sealed else None
    if sealed and given.digest and sealed.digest != given.digest:
        reason = "the seal of this visit is not what was journaled: somebody has changed files of the run"
        return Found(verdict="could not start", reason=reason)
    if sealed and given.cwd and sealed.cwd != os.path.realpath(given.cwd):  # a person has moved the run
        sealed = sealing.moved(given, sealed, os.path.realpath(given.cwd))
    try:
        found = _sealed_gate(given, sealed, tell) if sealed else _all(given, tell).found
    except OSError as error:  # the tree cannot be read, or what Python compiled cannot be removed
        found = Found(verdict="could not start", reason=f"the check cannot be judged: {error}")
    return replace(found, seconds=time.monotonic() - began)


def before(given: Assignment, tell: Tell) -> str:
    """What the checks find before the work: `green`, or why they are red."""
    return _before(_all(given, tell))


def _placed_gate(given: Assignment, work: Work, tell: Tell) -> Found:
    """The checks in a checkout of what agents did in a workspace; if what decides them differs, also as vouched for."""
    from raymond.verifier import review, vouched
    from raymond.verifier.room import Room

    room = Room(given, work)
    tree = room.harvest(tell)
    base = given.digest or room.base.tree
    with room.alone():
        deciding = room.deciding(base)
        here = _stood(room, given, tree, tell)
        known = {"seal": base, "tree": tree, "commit": room.base.head, "files": len(deciding.parts)}
        if not here.is_green:
            return replace(here.found, **known)
        old, new = room.changes(base, tree)
        differs = vouched.differences(deciding, room.repository, old, new, room.files)
        digest = review.digest_of(differs.all(new), ()) if differs.all(new) else ""
        accepted = bool(digest) and digest == given.accepted
        named = tuple(f"{one.how} {one.path}" for one in differs.changes)
        found = replace(here.found, **known, changes=named, digest=digest, new_tests=len(differs.tests))
        there: _Run | None = None
        if not accepted:
            put_back = vouched.put_back(room.repository, tree, differs, old, new)
            there = _stood(room, given, put_back, tell, "twin") if put_back != tree else None
        if there and not there.is_green and not vouched.tests_nothing(deciding, differs):
            which = _listed([one.path for one in differs.all(new)])
            reason = f"green only with the agent's {which}: as vouched for, {there.found.reason}"
            if not given.allows_edits:
                name = f"{given.step}.review"
                review.save(
                    os.path.join(given.folder, name),
                    differs.all(new),
                    vouched.reader(room.repository, old),
                    vouched.reader(room.repository, new),
                    {"check.txt": here.printed, "sealed.txt": there.printed},
                    Secrets.of(given.environment),
                )
                return replace(found, verdict="review", reason=reason, twin="checkout", review=name, output="")
            found, accepted = replace(found, reason=f"accepted in advance, {reason}"), True
        elif there and not there.is_green:
            found = replace(found, reason="own tests: nothing else there tests anything")
        room.keep_products()
        after = vouched.forward(room.repository, base, differs, new, accepted=accepted)
        return replace(found, vouched=after, twin="checkout" if there else "")


def before_work(given: Assignment, work: Work, tell: Tell) -> Found:
    """What is vouched for when a visit begins, and with `red_first` what the checks find then."""
    from raymond.verifier.room import Room

    try:
        room = Room(given, work)
        base = given.digest or room.base.tree
        with room.alone():
            known = Found(verdict="passed", seal=base, files=len(room.deciding(base).parts), commit=room.base.head)
            if not room.is_tried:
                tried = _preflight(room, given, tell)
                if tried.found.verdict == "could not start":
                    return tried.found
                room.note_tried()
                known = replace(known, before=_before(tried))
            if given.red_first:
                known = replace(known, before=_before(_stood(room, given, room.harvest(tell), tell)))
        return known
    except (OSError, Error) as error:
        return Found(verdict="could not start", reason=f"what decides the check cannot be known: {error}")


def _before(ran: "_Run") -> str:
    return GREEN if ran.is_green else f"{ran.found.reason[:_REASON]} [{ran.found.sign}]"


def trial(given: Assignment, work: Work, tell: Tell) -> Found:
    """Run the checks in a checkout of what the workspace began with; what it lacks is said."""
    from raymond.verifier.room import Room

    try:
        room = Room(given, work)
        with room.alone():
            count = len(room.deciding(room.base.tree).parts)
            tell(Noted(f"{count:,} {'file decides' if count == 1 else 'files decide'} the check"))
            return _preflight(room, given, tell).found
    except (OSError, Error) as error:
        return Found(verdict="could not start", reason=f"the check cannot be judged: {error}")


def _preflight(room: "Room", given: Assignment, tell: Tell) -> "_Run":
    """The checks before anybody has worked. One that is green in the person's directory alone could never be green."""
    tried = _stood(room, given, room.base.tree, tell)
    if tried.is_green:
        return tried
    tell(Noted("it is red in a checkout of the project: is it here, too?"))
    os.chdir(given.cwd)
    here = _all(given, tell, "control")
    if not here.is_green and tried.found.verdict != "could not start":
        return tried
    why = "; ".join(room.lacks(tried.printed))
    where = ", and green in your directory" if here.is_green else ""
    reason = f"{tried.found.reason}, before anybody has worked{where}"
    found = replace(tried.found, verdict="could not start", reason=f"{reason}{f': {why}' if why else ''}")
    return _Run(found, tried.printed)


def _stood(room: "Room", given: Assignment, tree: str, tell: Tell, where: Where = "") -> "_Run":
    """Run the checks with this tree in the checkout."""
    room.stand(tree)
    place, env = room.place(given.environment)
    os.chdir(room.outside())
    return _all(replace(given, environment=env), tell, where, place)


class _Run(Struct, frozen=True):
    """What came of running all checks at one place."""

    found: Found
    printed: str
    """The end of what they printed."""

    @property
    def is_green(self) -> bool:
        return self.found.verdict == "passed"


def _sealed_gate(given: Assignment, sealed: Seal, tell: Tell) -> Found:
    """The checks, and what their seal says about them."""
    top = sealed.rules.top
    private = sealing.git_of(given, top)
    before = seal.changes(sealed)
    compiled.remove(top)
    written = Written(top, private.tracked())
    times = seal.times(sealed)
    here = _all(given, tell)
    known = {"seal": sealed.digest, "commit": git.head(top), "files": len(sealed.entries)}
    known["wrote"] = tuple(written.names()[:_NAMED])
    known["new_tests"] = seal.new_tests(sealed)
    if not here.is_green:
        return replace(_missing(here.found, before), **known)
    # What a process put back when the check was over has changed too.
    now = seal.times(sealed)
    touched = [Change(path, "changed", "while the check ran") for path in times if times[path] != now[path]]
    changes = list({one.path: one for one in (*touched, *before, *seal.changes(sealed))}.values())
    tampered = control_plane.differences(sealed.control, control_plane.read(top, private))
    tampered += control_plane.rewritten(private, sealed.commit, git.head(top))
    found = _judged(given, sealed, here, changes, tampered, tell) if changes or tampered else here.found
    tree = private.tree()
    for path in private.removed:
        tell(Noted(f"{path} was a pipe, for which git would wait: it was removed"))
    return replace(found, **known, tree=tree)


def _missing(found: Found, changes: list[Change]) -> Found:
    """A check that cannot start because the agent removed a part of it is red, and no mistake of the workflow."""
    gone = [one.path for one in changes if one.how == "removed"]
    if found.verdict != "could not start" or not gone:
        return found
    return replace(found, verdict="failed", reason=f"{found.reason}; {_listed(gone)} was there before: put it back")


def _judged(
    given: Assignment, sealed: Seal, here: _Run, changes: list[Change], tampered: list[Difference], tell: Tell
) -> Found:
    """What a green check is worth when what decides it has changed."""
    from raymond.verifier import review

    digest = review.digest_of(changes, tampered)
    named = (*(f"{one.how} {one.path}" for one in changes), *(one.words for one in tampered))
    known = replace(here.found, changes=named, digest=digest)
    if digest == given.accepted:
        return known
    told = ""
    compared = _compare(given, sealed, here, changes, tell) if changes else _Compared(known)
    found = replace(compared.found, changes=named, digest=digest)
    if tampered:
        told = "\n\n".join(one.shown() for one in tampered)
        what = "; ".join(one.words for one in tampered)
        reason = f"TAMPERED: the agent changed what decides how its work is seen, not only its work: {what}"
        found = replace(found, verdict="tampered", reason=reason, output=told[:TAIL])
    elif found.verdict != "passed" and given.allows_edits:
        return replace(known, twin=found.twin, reason=f"accepted in advance, {found.reason}")
    if found.verdict == "passed":
        return found
    name = f"{given.step}.review"
    folder = os.path.join(given.folder, name)
    review.save(
        folder,
        changes,
        *review.readers(folder, sealed),
        {"tampered.txt": told, "check.txt": here.printed, "sealed.txt": compared.twin, "control.txt": compared.control},
        Secrets.of(given.environment),
    )
    return replace(found, review=name)


class _Compared(Struct, frozen=True):
    """What came of the twin."""

    found: Found
    twin: str = ""
    control: str = ""


def _compare(given: Assignment, sealed: Seal, here: _Run, changes: list[Change], tell: Tell) -> _Compared:
    """Run the checks with the sealed files put back, and if they are red then, once more without that."""
    from raymond.verifier.twin import twin_of  # hardly any gate needs a twin

    lost = [one.path for one in changes if one.path in sealed.entries and not sealed.entries[one.path].can_be_put_back]
    if lost:
        reason = f"{_listed(lost)} cannot be put back: too large to keep a copy"
        return _Compared(replace(here.found, verdict="not comparable", reason=reason))
    folder = os.path.join(given.folder, f"{given.step}.twin")
    compiled.remove(sealed.rules.top)
    try:
        put_back = list({one.path: one for one in (*seal.new_files(sealed), *changes)}.values())
        with twin_of(sealed, put_back, folder) as twin:
            there = _all(given, tell, "twin", twin.place)
            is_full = _is_full(folder, there)
            written = [path for path in twin.rewritten() if _decides(sealed, path)] if there.is_green else []
        if written:
            reason = f"the check itself writes {_listed(written)}, so it cannot be told what it says as sealed"
            found = replace(here.found, verdict="not comparable", reason=reason, twin="overlay")
            return _Compared(found, there.printed)
        if there.is_green:
            return _Compared(replace(here.found, twin="overlay", flaky=there.found.flaky or here.found.flaky))
        with twin_of(sealed, [], folder) as same:
            control = _all(given, tell, "control", same.place)
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


def _is_full(place: str, ran: _Run) -> bool:
    """Whether checks are red where there is no room for what they write."""
    if ran.is_green:
        return False
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize < _ROOM


def _weigh(here: _Run, there: _Run, control: _Run, changes: list[Change]) -> Found:
    red = there.found
    if not control.is_green:
        reason = f"it is red in a copy of the directory too, so nothing can be compared: {control.found.reason}"
        return replace(red, verdict="not comparable", reason=reason, twin="overlay")
    from raymond.verifier import counts

    less = counts.fewer(here.printed, there.printed)
    which = _listed([one.path for one in changes])
    reason = f"green only with the agent's {which}: as sealed, {red.reason}{f'; {less}' if less else ''}"
    return replace(red, verdict="review", reason=reason, twin="overlay")


def _listed(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown


def _all(given: Assignment, tell: Tell, where: Where = "", place: Place = HERE) -> _Run:
    """Run the checks in order until one is red."""
    flaky, printed = False, ""
    last = Found(verdict="passed")
    for check in given.checks:
        last, output = _check(given, check, tell, where, place)
        flaky, printed = flaky or last.flaky, (printed + output)[-TAIL:]
        if last.verdict != "passed":
            break
    return _Run(replace(last, flaky=flaky and last.verdict == "passed"), printed)


def _check(given: Assignment, check: Check, tell: Tell, where: Where, place: Place) -> tuple[Found, str]:
    """Run one command, and once more when it is red: what is red by chance teaches agents to weaken tests."""
    seconds = check.timeout or given.timeout
    env = environment.apart(given.environment, where) if where else given.environment
    for again in range(given.reruns + 1):
        tell(Began(check.run, again, where))
        result = command.run(check, seconds, env, lambda text: tell(Printed(text)), place)
        if given.step:
            Marks(given.key, "").end(step=given.step)
        tell(Ended(result.exit_code, result.seconds))
        why = command.why_red(check, result, seconds)
        if not why:
            flaky = Found(verdict="passed", command=check.run, exit_code=result.exit_code, flaky=again > 0)
            return flaky, result.output
        if cause := command.cannot_start(check, result, env):
            reason = f"the check `{check.run}` cannot start: {cause}"
            found = Found(verdict="could not start", command=check.run, exit_code=result.exit_code, reason=reason)
            return found, result.output
    return _red(check, result, why), result.output


def _red(check: Check, result: Result, why: str) -> Found:
    return Found(
        verdict="timed out" if result.timed_out else "failed",
        command=check.run,
        exit_code=result.exit_code,
        reason=f"`{check.run}` {why}",
        output=result.output.strip("\n")[-TAIL:],
        sign=_sign(f"{check.run} {why}\n{result.output[-TAIL:]}"),
    )


def _sign(text: str) -> str:
    """The same for the same failure: times and addresses differ from run to run."""
    return sha256(_NUMBER.sub("0", text).encode("utf-8", "replace")).hexdigest()[:12]
