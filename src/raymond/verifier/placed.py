"""A gate of work in a workspace: harvested, and checked in a checkout that no agent could write.

The checks run with everything as the agents left it. If what decides them is not what was vouched for, they run again
with that put back. Both must be green.
"""

import os
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from raymond.language.check import Check
from raymond.verifier import checks, rules, vouched
from raymond.verifier.assignment import Assignment, Found, Noted, Where, Work
from raymond.verifier.checks import Ran, Tell, listed
from raymond.verifier.decides import Change, How, digest_of
from raymond.verifier.room import Room, Wanted
from raymond.verifier.vouched import Deciding, Differences, Entries

_NAMED = 50
"""Files that decide and that are named."""


def verify(given: Assignment, work: Work, tell: Tell) -> Found:
    """Take what agents did, and check it."""
    room = Room(given, work)
    tree = room.harvest(tell)
    base = room.vouched(given.digest)
    with room.alone():
        deciding = room.deciding(base)
        found = _checked(room, given, _Work(base, tree, deciding, *room.changes(base, tree)), tell)
        return replace(found, seal=base, tree=tree, commit=room.base.head, files=len(deciding.parts))


class _Work(Struct, frozen=True):
    """What is checked."""

    base: str
    """The tree that was vouched for."""
    tree: str
    """What was harvested."""
    deciding: Deciding
    old: Entries
    new: Entries
    """What differs between them, in each."""


def _checked(room: Room, given: Assignment, work: _Work, tell: Tell) -> Found:
    """Run the checks, and judge what it is worth that they are green."""
    wanted = room.wanted(work.tree)
    if wanted and room.setup and (failed := _install(room, given, wanted, tell)):
        return failed
    room.stand(work.tree)
    if why := room.unfit(work.tree):
        return Found(verdict="failed", reason=why)
    # Before anything runs there: it could hide what it is.
    differs = vouched.differences(work.deciding, room.repository, work.old, work.new, room.files)
    here = _run(room, given, tell)
    if not here.is_green and wanted and not room.setup:
        missing = f"{listed(wanted.files)} names other dependencies, and nobody said how to install them"
        return replace(here.found, reason=f"{here.found.reason}; {missing} (`setup: COMMAND` in workflow.yaml)")
    if not here.is_green:
        return here.found
    outside = _outside(room, given, work)
    changes = [*differs.all(work.new), *outside]
    digest = digest_of(changes) if changes else ""
    named = tuple(f"{one.how} {one.path}" for one in (*differs.changes, *outside))
    found = replace(here.found, changes=named, digest=digest, new_tests=len(differs.tests))
    if digest and digest == given.accepted:
        return _counted(room, given, work, differs, found, accepted=True)
    there = _as_vouched(room, given, work, differs, tell)
    found = replace(found, twin="checkout" if there else "", reason=there.note if there else "")
    if outside:
        reason = f"it changed {listed([one.path for one in outside])}, which `may_change` does not name"
    elif there and not there.ran.is_green and not there.note:
        reason = f"green only with the agent's {listed([one.path for one in changes])}: {there.ran.found.reason}"
    else:
        return _counted(room, given, work, differs, found, followed=there.followed if there else {})
    if given.allows_edits and not outside:
        return _counted(
            room, given, work, differs, replace(found, reason=f"accepted in advance, {reason}"), accepted=True
        )
    from raymond.redaction import Secrets  # hardly any check needs them
    from raymond.verifier import review

    name = f"{given.step}.review"
    review.save(
        os.path.join(given.folder, name),
        changes,
        vouched.reader(room.repository, work.old),
        vouched.reader(room.repository, work.new),
        {"check.txt": here.printed, "sealed.txt": there.ran.printed if there else ""},
        Secrets.of(given.environment),
    )
    return replace(found, verdict="review", reason=reason, review=name, output="")


def _counted(
    room: Room,
    given: Assignment,
    work: _Work,
    differs: Differences,
    found: Found,
    *,
    accepted: bool = False,
    followed: Mapping[str, bytes] = {},
) -> Found:
    """The work counts: what it built may stay, and what decides from now on is vouched for."""
    room.keep_products()
    room.note_counted(work.tree)
    paths = [*differs.tests, *(one.path for one in differs.changes if accepted or one.how == "added")]
    may = rules.matcher(given.unseal)
    paths += [path for path in {**work.old, **work.new} if may(path)]
    paths += vouched.moved_tests(differs, work.old, work.new)
    lines = {**followed, **{path: work.new.get(path, b"") for path in paths}}
    after = room.repository.changed(work.base, lines)
    return replace(found, vouched=after)


def _outside(room: Room, given: Assignment, work: _Work) -> list[Change]:
    """What was changed although the work may only change other files."""
    if not given.may_change:
        return []
    may = rules.matcher(given.may_change)
    below = os.path.relpath(given.cwd, given.work.top if given.work else given.cwd)
    prefix = "" if below == "." else f"{below}/"
    found = []
    own = {path for entries in room.changes(room.base.tree, work.tree) for path in entries}
    for path in sorted((work.old.keys() | work.new.keys()) & own):
        if not may(path) and not (path.startswith(prefix) and may(path.removeprefix(prefix))):
            how: How = "added" if path not in work.old else "removed" if path not in work.new else "changed"
            found.append(Change(path, how, work.new.get(path, b"").decode("ascii")))
    return found


class _Repeated(Struct, frozen=True):
    """What came of the checks with what was vouched for."""

    ran: Ran
    note: str = ""
    """Why it does not matter that they are red, or what else was needed to make them green."""
    followed: Mapping[str, bytes] = {}
    """What was vouched for, with the new names of moved files."""


def _as_vouched(room: Room, given: Assignment, work: _Work, differs: Differences, tell: Tell) -> _Repeated | None:
    """Run the checks with what decides as it was vouched for; None where that is all the same."""
    tree = vouched.put_back(room.repository, work.tree, differs, work.old, work.new)
    if tree == work.tree:
        return None
    room.stand(tree)
    ran = _run(room, given, tell, "twin")
    if ran.is_green:
        return _Repeated(ran)
    if vouched.tests_nothing(work.deciding, differs):
        return _Repeated(ran, "own tests: nothing else there tests anything")
    if own := {path: work.new[path] for path in room.named() if path in differs.tests}:
        room.stand(room.repository.changed(tree, own))
        again = _run(room, given, tell, "twin")
        if again.is_green:
            return _Repeated(again, f"own tests: the command names {listed(sorted(own))}, which is new")
    found = vouched.renamed(room.repository, room.counted or work.base, work.tree, work.deciding, differs)
    if followed := vouched.followed(room.repository, tree, found, work.deciding, work.old):
        room.stand(room.repository.changed(tree, followed))
        again = _run(room, given, tell, "twin")
        if again.is_green:
            note = f"moved, and followed in what decides: {listed([str(one) for one in found])}"
            return _Repeated(again, note, followed)
    return _Repeated(replace(ran, found=replace(ran.found, reason=f"as vouched for, {ran.found.reason}")))


def before(given: Assignment, work: Work, tell: Tell) -> Found:
    """What is vouched for when a visit begins, and with `red_first` what the checks find then."""
    room = Room(given, work)
    base = room.vouched(given.digest)
    with room.alone():
        known = Found(verdict="passed", seal=base, files=len(room.deciding(base).parts), commit=room.base.head)
        if not room.is_tried:
            tried = _tried(room, given, tell)
            if tried.found.verdict == "could not start":
                # The run keeps what its workflow said when it began.
                return replace(tried.found, reason=f"{tried.found.reason}; then start a new run")
            known = replace(known, before=tried.before)
        if given.red_first:
            room.stand(room.harvest(tell))
            known = replace(known, before=_run(room, given, tell).before)
        return known


def tried(given: Assignment, work: Work, tell: Tell) -> Found:
    """Try checks once before anybody works, as the first visit would."""
    room = Room(given, work)
    with room.alone():
        return Found(verdict="passed") if room.is_tried else _tried(room, given, tell).found


def trial(given: Assignment, work: Work, tell: Tell) -> Found:
    """Run the checks in a checkout of what the workspace began with; what it lacks is said."""
    room = Room(given, work)
    with room.alone():
        parts = sorted(room.deciding(room.base.tree).parts)
        more = f" and {len(parts) - _NAMED:,} more" if len(parts) > _NAMED else ""
        names = f": {', '.join(parts[:_NAMED])}{more}" if parts else ""
        tell(Noted(f"{len(parts):,} {'file decides' if len(parts) == 1 else 'files decide'} the check{names}"))
        if room.base.installed:
            how = f"by `{work.setup}`" if work.setup else "by nobody: workflow.yaml has no `setup: COMMAND`"
            tell(Noted(f"new dependencies would be installed {how}"))
        return _tried(room, given, tell).found


def closing(given: Assignment, work: Work, base: str, tree: str, tell: Tell) -> Found:
    """Run the checks once more when all work is done: with nothing built before, judged by what `base` vouches for."""
    room = Room(given, work)
    with room.alone():
        room.forget_products()
        deciding = room.deciding(base)
        found = _checked(room, given, _Work(base, tree, deciding, *room.changes(base, tree)), tell)
        return replace(found, seal=base, tree=tree, files=len(deciding.parts))


def _tried(room: Room, given: Assignment, tell: Tell) -> Ran:
    """The checks before anybody has worked. One that is green in the person's directory alone could never be green."""
    room.stand(room.base.tree)
    if room.may_be_offline:
        ran = _run(room, replace(given, reruns=0), tell, "offline", net="off")
        if ran.is_green:
            tell(Noted("it needs no network, so it has none"))
            room.note_tried("off")
            return ran
        room.stand(room.base.tree)
    ran = _run(room, given, tell, "first")
    if ran.is_green:
        room.note_tried(room.net)
        return ran
    tell(Noted("it fails in a clean checkout of the project: it runs here now, to compare"))
    os.chdir(given.cwd)
    here = checks.run(given, tell, "yours")
    differs = here.is_green or here.found.sign != ran.found.sign
    lacks = "; ".join(room.lacks(ran.printed)) if differs else ""
    if not here.is_green and ran.found.verdict != "could not start":
        if lacks:
            tell(Noted(f"it is red for another reason there: {lacks}"))
        room.note_tried(room.net)
        return ran
    reason = f"{ran.found.reason}{f': {lacks}' if lacks else ''}"
    if here.is_green:
        reason = f"`{ran.found.command}` is green here, and red where it would run: {lacks or ran.found.reason}"
    return Ran(replace(ran.found, verdict="could not start", reason=reason), ran.printed)


def _install(room: Room, given: Assignment, wanted: Wanted, tell: Tell) -> Found | None:
    """Install what the work depends on, unless that was done before; what went wrong."""
    if room.is_installed:
        return None
    room.make_ready(wanted)
    how = replace(given, checks=(Check(run=room.setup),), reruns=0)
    ran = _run(room, how, tell, "setup", net="on")
    why = room.keep_installed() if ran.is_green else ran.found.reason
    verdict = ran.found.verdict if ran.found.verdict == "could not start" else "failed"
    return replace(ran.found, verdict=verdict, reason=f"{listed(wanted.files)}: {why}") if why else None


def _run(room: Room, given: Assignment, tell: Tell, where: Where = "", *, net: str = "") -> Ran:
    """Run the checks with what is in the checkout; once more if somebody installed something meanwhile."""
    while True:
        seen = room.fingerprint()
        place, env = room.place(given.environment, net)
        os.chdir(room.outside())
        ran = checks.run(replace(given, environment=env), tell, where, place)
        if room.fingerprint() == seen:
            return ran
        tell(Noted("packages in your checkout changed while it ran: once more"))
