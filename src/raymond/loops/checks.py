"""Checks of an item, as gates and people are given them, what is run beside items, and hooks."""

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.language.check import Check, expectation, expected
from raymond.loops.formats.foreign_text import last_line
from raymond.loops.step import Step, tell
from raymond.system import files, git
from raymond.system.files import contents
from raymond.system.stragglers import MARK
from raymond.workspace import publish
from raymond.workspace.place import Place
from raymond.workspace.repository import Repository

if TYPE_CHECKING:
    from raymond.machine.events import GateEnded
    from raymond.verifier import command
    from raymond.verifier.assignment import Assignment, Found, Told

_MOST = 200
"""Characters of what a check printed."""

Checks = tuple[tuple[Check, ...], float]
"""The commands of an item, and the seconds that each may take."""

_PATIENCE = 600.0
_PRINTED = 4000
"""Characters of what a hook printed that are told."""
_MESSAGE = ".git/COMMIT_EDITMSG"


def as_gate(checks: Iterable[Check]) -> str:
    """The value of a late gate: the command itself where that says everything, and nothing else can be read in it."""
    found = tuple(checks)
    if not found:
        return ""
    if len(found) == 1 and found[0] == Check(run=found[0].run) and not _is_like_tables(found[0].run):
        return found[0].run
    return json.dumps([_table(one) for one in found])


def gate_of(texts: Iterable[str]) -> str:
    """The same for commands that a person gave; empty for none."""
    return as_gate(Check(run=text) for text in texts)


def _is_like_tables(command: str) -> bool:
    return command.lstrip().startswith("[{")


def _table(check: Check) -> dict[str, Any]:
    table: dict[str, Any] = {"run": check.run}
    if check.exit or check.contains or check.matches:
        table["expected"] = check.exit or expected(check)
    if check.timeout:
        table["timeout"] = f"{check.timeout:g}s"
    return table


def read_checks(text: str) -> tuple[Check, ...]:
    """The checks in what `as_gate` made."""
    if not text.startswith('[{"'):
        return (Check(run=text),) if text else ()
    return tuple(_check(one) for one in json.loads(text))


def _check(table: dict[str, Any]) -> Check:
    more: dict[str, Any] = expectation(table["expected"]) if "expected" in table else {}
    return Check(run=table["run"], timeout=float(table.get("timeout", "0s")[:-1]), **more)


def in_a_line(checks: Iterable[Check]) -> str:
    """The commands in a line, as people would type them."""
    return " && ".join(one.run for one in checks)


def outcome_of(found: "GateEnded | Found") -> str:
    """What a check has shown: of a red one, the last line that it printed, which is where test runners sum up."""
    if found.verdict == "passed":
        return "green"
    said = last_line(found.output, _MOST) if found.verdict == "failed" else ""
    return f"{'red' if found.verdict == 'failed' else found.verdict}: {said or found.reason}"


def explain(checks: Iterable[Check]) -> str:
    """The commands with what makes each green, for whoever works on it."""
    return ", ".join(f"`{one.run}`{_with(one)}" for one in checks)


def _with(check: Check) -> str:
    return f" ({expected(check)})" if check.exit or check.contains or check.matches else ""


# In the place of the checks, beside the items


def assignment(step: Step, checks: Sequence[Check] = (), seconds: float = 0.0, may: Iterable[str] = ()) -> "Assignment":
    """Checks as a gate of this run would run them."""
    from raymond.verifier.assignment import Assignment
    from raymond.verifier.checks import environment_of

    mark = os.environ.get(MARK, "")
    folder = step.folder.seals
    return Assignment(
        checks=tuple(checks),
        timeout=seconds or step.settings.gate_timeout,
        reruns=1,
        environment=environment_of(os.environ, {MARK: mark}, os.path.join(folder, "caches")),
        cwd=step.cwd,
        key=mark.rpartition(":")[2].rpartition("/")[0],
        folder=folder,
        unseal=tuple(may),
        work=step.workspace,
        step=step.number,
    )


def run_before_items(step: Step, every: Iterable[Checks]) -> tuple[str, list[str]]:
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
            seen.append(f"{running.listed([one.run for one in checks])} is {outcome_of(found)}")
    return "", seen


def run_after_items(step: Step, every: Iterable[Checks], may: Iterable[str], base: str, tree: str) -> "Found | None":
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


# The project's hooks, which see a commit as the person has them


class Hooked(Struct, frozen=True):
    """How the hooks ended."""

    tree: str
    """What they made of the tree."""
    message: str
    rejection: str = ""
    """What the one that rejected the commit printed; empty when none did."""


def hook_folder(top: str) -> str:
    """Where the person's hooks are; empty when there is none of those that see a commit."""
    named = publish.settings(top).get("core.hookspath", "")
    found = os.path.join(top, os.path.expanduser(named)) if named else os.path.join(git.directories(top)[1], "hooks")
    names = ("pre-commit", "commit-msg")
    return found if any(os.access(os.path.join(found, name), os.X_OK) for name in names) else ""


def run_hooks(given: "Assignment", place: Place, hooks: str, tree: str, message: str) -> Hooked:
    """Let the hooks in a folder see a commit of this tree with this message."""
    if given.work is None:
        return _here(place, hooks, tree, message)
    from raymond.verifier.room import Room

    room = Room(given, given.work)
    with room.alone():
        room.forget_products()
        room.stand(tree)
        inside = os.path.relpath(hooks, place.top)
        if inside.startswith(("../", ".git/")):
            inside = ".git/hooks"
        checkout = room.checkout
        shutil.copytree(hooks, f"{checkout}/{inside}", dirs_exist_ok=True, symlinks=True)
        files.replace(f"{checkout}/{_MESSAGE}", message.encode("utf-8", "replace"))
        where, environment = room.place(given.environment, "on")
        printed = _run_hook(where, environment, inside)
        if printed is not None:
            return Hooked(tree, message, printed)
        said = contents(f"{checkout}/{_MESSAGE}").decode("utf-8", "replace")
        return Hooked(room.changed(inside), said)


def _here(place: Place, hooks: str, tree: str, message: str) -> Hooked:
    """The same in the person's checkout, with an index of our own."""
    from raymond.verifier import command

    repository = Repository(place.slot.git, place.slot.rules)
    repository.ask("read-tree", tree, index="hooks.index")
    environment = {**os.environ, "GIT_INDEX_FILE": f"{repository.path}/hooks.index"}
    path = f"{place.slot.path}/{os.path.basename(_MESSAGE)}"
    files.replace(path, message.encode("utf-8", "replace"))
    printed = _run_hook(command.Place(cwd=place.top), environment, hooks, path)
    if printed is not None:
        return Hooked(tree, message, printed)
    with place.alone():
        return Hooked(place.harvest().tree, contents(path).decode("utf-8", "replace"))


def _run_hook(
    where: "command.Place", environment: Mapping[str, str], hooks: str, message: str = _MESSAGE
) -> str | None:
    """What the hook that rejected the commit printed; None when none did."""
    from raymond.verifier import command

    top = '"$(git rev-parse --show-toplevel)"'
    place = shlex.quote(hooks) if os.path.isabs(hooks) else f"{top}/{shlex.quote(hooks)}"
    for name, words in (("pre-commit", ""), ("commit-msg", f" -- {shlex.quote(message)}")):
        line = f"cd {top} && GIT_EDITOR=: git -c core.hooksPath={place} hook run"
        check = Check(run=f"{line} --ignore-missing {name}{words}")
        result = command.run(check, _PATIENCE, environment, lambda _: None, where)
        if result.exit_code != 0:
            how = (
                f"took longer than {_PATIENCE:g} s" if result.timed_out else f"ended with exit code {result.exit_code}"
            )
            return (result.output.strip() or f"the hook {name} {how}")[-_PRINTED:]
    return None
