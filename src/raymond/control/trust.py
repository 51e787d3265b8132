"""Trust a project: let the agents' programs use the settings that come with it."""

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from raymond import pasted
from raymond.control import inside, paths
from raymond.errors import UsageError
from raymond.faces import foreign_text
from raymond.language import judges
from raymond.language.workflow import Workflow
from raymond.machine.events import RunStarted
from raymond.store import foreign_settings
from raymond.store import home as homes
from raymond.store import trust as trusting
from raymond.store.foreign_settings import Unclear
from raymond.store.project import Project
from raymond.store.trust import Trust
from raymond.text import visible

if TYPE_CHECKING:
    from raymond.control.actions import Action

USES = {"claude": (".claude", ".mcp.json"), "codex": (".codex",)}
"""The backends whose programs use settings of a project, and where those are."""


class Offer(Struct, frozen=True, kw_only=True):
    """What a project would give the agents' programs."""

    tree: str
    files: dict[str, str]
    is_trusted: bool
    """A person has trusted these very files."""
    runs: "list[Action]" = []
    """What a program would do because of them."""


# --- for a run


class Standing(Struct, frozen=True, kw_only=True):
    """How far the settings of a run's project are used, for each backend that would."""

    trusts: dict[str, Trust] = {}
    note: str = ""
    """What is to be told of settings that are not used; empty when there are none."""


class Use(Struct, frozen=True, kw_only=True):
    """Settings of a project for one of the backends' programs."""

    backend: str
    names: list[str]
    is_used: bool
    why: str


NOTHING = Standing()
"""No settings of a project are used."""


def standing(project: Project, start: RunStarted, workflow: Workflow, *, trusts_now: bool = False) -> Standing:
    """Decide it for as long as the run is driven: what agents write meanwhile changes nothing.

    `trusts_now` trusts the project as it is now, for this time. Refused where settings cannot be left out.
    """
    if trusts_now:
        inside.check_person("--trust-project")
    needed = [name for name in USES if name in _backends(start, workflow)]
    if not needed:
        return NOTHING
    tree, cwd = project.tree, start.cwd
    records = {path: one.files for path, one in trusting.recorded(project.home).items()}
    trusts = {name: _trust(name, tree, cwd, records, trusts_now) for name in needed}
    unused = [name for name in needed if not trusts[name].trees]
    left = {name: _there(tree, cwd, USES[name], nested=tree in records) for name in unused}
    why = _why(tree, cwd, records) if any(left.values()) else ""
    if left.get("codex"):
        raise UsageError(
            f"{visible(tree)} has settings for Codex in .codex: {why}",
            hint=f"{_command(tree)} shows what they do, and asks; --trust-project trusts them this time",
        )
    return Standing(trusts=trusts, note=_note(tree, left["claude"], why) if left.get("claude") else "")


def uses(tree: str, cwd: str, backends: Collection[str] = tuple(USES), *, trusts_now: bool = False) -> list[Use]:
    """Whether the settings that there are for these backends would be used by a run in `cwd`."""
    records = {path: one.files for path, one in trusting.recorded(homes.find()).items()}
    found: list[Use] = []
    for name in (one for one in USES if one in backends):
        names = _there(tree, cwd, USES[name], nested=tree in records)
        if names:
            trust = _trust(name, tree, cwd, records, trusts_now)
            why = _because(trust, trusts_now) if trust.trees else _why(tree, cwd, records)
            found.append(Use(backend=name, names=names, is_used=bool(trust.trees), why=why))
    return found


def used(project: Project, start: RunStarted, workflow: Workflow, *, trusts_now: bool = False) -> list[Use]:
    """Whether the settings of its project would be used by a run."""
    return uses(project.tree, start.cwd, _backends(start, workflow), trusts_now=trusts_now)


def _because(trust: Trust, trusts_now: bool) -> str:
    if trusts_now:
        return "--trust-project"
    return "you told Claude Code to trust the folder" if None in trust.trees.values() else "you trust the project"


def _backends(start: RunStarted, workflow: Workflow) -> set[str]:
    prompts = [state.name for state in judges.answered(workflow)]
    return {start.backends.get(state, start.backend) for state in prompts}


def _trust(name: str, tree: str, cwd: str, records: dict[str, dict[str, str]], trusts_now: bool) -> Trust:
    known: dict[str, dict[str, str] | None] = {**records}
    if trusts_now:
        known[tree] = _offered(tree, cwd)
    elif name == "claude":
        from raymond.backends import claude

        # Codex writes into its own record by itself, so that says nothing about a person.
        known |= dict.fromkeys(claude.trusted_folders())
    return trusting.decide(tree, cwd, known)


def _there(tree: str, cwd: str, names: Collection[str], *, nested: bool) -> list[str]:
    """Which of `names` there are; all that may be when it cannot be told."""
    try:
        parts = {part for path in foreign_settings.brought(tree, cwd, nested=nested) for part in path.split("/")}
    except Unclear:
        return [name for name in names if os.path.lexists(os.path.join(tree, name))] or list(names)
    return [name for name in names if name in parts]


def _note(tree: str, names: list[str], why: str) -> str:
    return f"{foreign_text.settings_use(names, False, why)} ({_command(tree)} shows what they do, and asks)"


def _why(tree: str, cwd: str, records: Mapping[str, dict[str, str]]) -> str:
    if tree not in records:
        return "you have not trusted the project"
    return f"settings have changed since you trusted the project: {_lapse(tree, cwd, records[tree])}"


def _lapse(tree: str, cwd: str, trusted: dict[str, str]) -> str:
    """What has changed since a project was trusted; empty when nothing has."""
    if not os.path.isdir(tree):
        return "the folder is gone"
    try:
        changes = trusting.lapse(foreign_settings.brought(tree, cwd), trusted)
    except Unclear as error:
        return visible(str(error))
    return foreign_text.changes_since_trusted([(one.path, one.what) for one in changes])


def _command(tree: str) -> str:
    return f"raymond trust {pasted.word(tree, 'DIR')}"


# --- for a person


def offer(folder: str) -> Offer:
    """What the project of `folder` would give; refused when that cannot be told."""
    from raymond.control import actions  # every run decides about trust, and none needs these

    tree = _tree(folder)
    found = _offered(tree, folder)
    record = trusting.recorded(homes.find()).get(tree)
    known = record is not None and record.files == found
    return Offer(tree=tree, files=found, is_trusted=known, runs=actions.of(tree, found))


def accept(offered: Offer) -> None:
    """Trust a project with what was shown."""
    inside.check_person("trust")
    trusting.remember(homes.find(), offered.tree, offered.files)


def forget(folder: str) -> str:
    """Trust the project of `folder` no longer; its top level."""
    inside.check_person("trust")
    tree = _tree(folder, must_exist=False)
    if not trusting.forget(homes.find(), tree):
        raise UsageError(f"{tree} is not trusted", hint="`raymond trust --list` shows the projects that are")
    return tree


def trusted() -> dict[str, str]:
    """The projects that a person trusted, each with why it is trusted no longer; empty while it is."""
    records = trusting.recorded(homes.find())
    return {tree: _lapse(tree, tree, one.files) for tree, one in sorted(records.items())}


def _tree(folder: str, *, must_exist: bool = True) -> str:
    if must_exist and not os.path.isdir(folder):
        raise UsageError(f"{folder} is not a folder", hint="name the project: raymond trust DIR")
    return paths.check(trusting.top_of(folder), "the path of the project")


def _offered(tree: str, cwd: str) -> dict[str, str]:
    try:
        return foreign_settings.brought(tree, cwd)
    except Unclear as error:
        raise UsageError(f"{tree} cannot be trusted: {error}", hint="remove it, or make it a file of its own") from None
