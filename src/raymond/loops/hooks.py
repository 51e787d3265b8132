"""Hooks of the project: they see a commit in the place of its check, and as the person has them."""

import os
import shlex
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from raymond.language.check import Check
from raymond.system import git
from raymond.system.files import contents, replace
from raymond.workspace import publish
from raymond.workspace.place import Place
from raymond.workspace.repository import Repository

if TYPE_CHECKING:  # hardly any project has such hooks
    from raymond.verifier import command
    from raymond.verifier.assignment import Assignment

_PATIENCE = 600.0
_PRINTED = 4000
"""Characters of what a hook printed that are told."""
_MESSAGE = ".git/COMMIT_EDITMSG"


class Hooked(Struct, frozen=True):
    """How the hooks ended."""

    tree: str
    """What they made of the tree."""
    message: str
    rejection: str = ""
    """What the one that rejected the commit printed; empty when none did."""


def folder(top: str) -> str:
    """Where the person's hooks are; empty when there is none of those that see a commit."""
    named = publish.settings(top).get("core.hookspath", "")
    found = os.path.join(top, os.path.expanduser(named)) if named else os.path.join(git.directories(top)[1], "hooks")
    names = ("pre-commit", "commit-msg")
    return found if any(os.access(os.path.join(found, name), os.X_OK) for name in names) else ""


def run(given: "Assignment", place: Place, hooks: str, tree: str, message: str) -> Hooked:
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
        replace(f"{checkout}/{_MESSAGE}", message.encode("utf-8", "replace"))
        where, environment = room.place(given.environment, "on")
        printed = _run(where, environment, inside)
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
    replace(path, message.encode("utf-8", "replace"))
    printed = _run(command.Place(cwd=place.top), environment, hooks, path)
    if printed is not None:
        return Hooked(tree, message, printed)
    with place.alone():
        return Hooked(place.harvest().tree, contents(path).decode("utf-8", "replace"))


def _run(where: "command.Place", environment: Mapping[str, str], hooks: str, message: str = _MESSAGE) -> str | None:
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
