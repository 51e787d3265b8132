"""Trials: what a loop runs in the place of its checks beside its items, before the first and after the last one."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from raymond.language.check import Check
from raymond.loops.checks import shown
from raymond.loops.step import Step, tell
from raymond.system.stragglers import MARK

if TYPE_CHECKING:  # hardly any step runs a check itself
    from raymond.verifier.assignment import Assignment, Found, Told

Checks = tuple[tuple[Check, ...], float]
"""The commands of an item, and the seconds that each may take."""


def assignment(step: Step, checks: Sequence[Check] = (), seconds: float = 0.0, may: Iterable[str] = ()) -> "Assignment":
    """Checks as a gate of this run would run them."""
    from raymond.verifier.assignment import Assignment
    from raymond.verifier.environment import environment

    mark = os.environ.get(MARK, "")
    folder = step.folder.seals
    return Assignment(
        checks=tuple(checks),
        timeout=seconds or step.settings.gate_timeout,
        reruns=1,
        environment=environment(os.environ, {MARK: mark}, os.path.join(folder, "caches")),
        cwd=step.cwd,
        key=mark.rpartition(":")[2].rpartition("/")[0],
        folder=folder,
        unseal=tuple(may),
        work=step.workspace,
        step=step.number,
    )


def before(step: Step, every: Iterable[Checks]) -> tuple[str, list[str]]:
    """Try each check once before an agent is paid: why one of them could never be green, and what each has shown."""
    from raymond.verifier import checks as running
    from raymond.verifier import placed
    from raymond.verifier.assignment import Noted

    work = step.workspace
    seen: list[str] = []
    if work is None:
        return "", seen
    for checks, seconds in dict.fromkeys(every):
        given = assignment(step, checks, seconds)
        _tell(Noted(f"trying {running.listed([one.run for one in checks])}"))
        found = placed.tried(given, work, _tell)
        if found.verdict == "could not start":
            return found.reason, seen
        if found.command:  # it was not tried before
            seen.append(f"{running.listed([one.run for one in checks])} is {shown(found)}")
    return "", seen


def after(step: Step, every: Iterable[Checks], may: Iterable[str], base: str, tree: str) -> "Found | None":
    """Run each check once more at the end, by what the person vouches for; the first that is not green."""
    from raymond.verifier import checks as running
    from raymond.verifier import placed
    from raymond.verifier.assignment import Noted

    for checks, seconds in dict.fromkeys(every):
        given = replace(assignment(step, checks, seconds, may), step=0)
        _tell(Noted(f"closing check: {running.listed([one.run for one in checks])}"))
        work = given.work
        found = placed.closing(given, work, base, tree, _tell) if work else running.run(given, _tell).found
        if found.verdict != "passed":
            return found
    return None


def _tell(what: "Told") -> None:
    from raymond.verifier.assignment import Noted

    if isinstance(what, Noted):
        tell(what.text)
