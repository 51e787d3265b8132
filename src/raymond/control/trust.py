"""Trust a project: let the agents' programs use the settings that come with it, and show what these do."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raymond import pasted
from raymond.control import arguments, inside
from raymond.errors import UsageError
from raymond.faces import foreign_text
from raymond.language import judges
from raymond.language.workflow import Workflow
from raymond.machine.events import RunStarted
from raymond.store import home as homes
from raymond.store import trust as trusting
from raymond.store.project import Project
from raymond.store.trust import Trust, Unclear
from raymond.system import files
from raymond.text import visible

USES = {"claude": (".claude", ".mcp.json"), "codex": (".codex",)}
"""The backends whose programs use settings of a project, and where those are."""

_MAX_BYTES = 1 << 20
_READABLE = (".mcp.json", "settings.json", "settings.local.json", "config.toml", "hooks.json")

_COMMANDS = (
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "otelHeadersHelper",
    "fileSuggestion",
    "statusLine",
    "subagentStatusLine",
)


class Offer(Struct, frozen=True, kw_only=True):
    """What a project would give the agents' programs."""

    tree: str
    files: dict[str, str]
    is_trusted: bool
    """A person has trusted these very files."""
    runs: "list[Action]" = []
    """What a program would do because of them."""


# --- for a run


class TrustDecision(Struct, frozen=True, kw_only=True):
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


NOTHING = TrustDecision()
"""No settings of a project are used."""


def decide(project: Project, start: RunStarted, workflow: Workflow, *, trusts_now: bool = False) -> TrustDecision:
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
    left = {name: _present(tree, cwd, USES[name], nested=tree in records) for name in unused}
    why = _why(tree, cwd, records) if any(left.values()) else ""
    if left.get("codex"):
        raise UsageError(
            f"{visible(tree)} has settings for Codex in .codex: {why}",
            hint=f"{_command(tree)} shows what they do, and asks; --trust-project trusts them this time",
        )
    return TrustDecision(trusts=trusts, note=_note(tree, left["claude"], why) if left.get("claude") else "")


def uses(tree: str, cwd: str, backends: Collection[str] = tuple(USES), *, trusts_now: bool = False) -> list[Use]:
    """Whether the settings that there are for these backends would be used by a run in `cwd`."""
    records = {path: one.files for path, one in trusting.recorded(homes.find()).items()}
    found: list[Use] = []
    for name in (one for one in USES if one in backends):
        names = _present(tree, cwd, USES[name], nested=tree in records)
        if names:
            trust = _trust(name, tree, cwd, records, trusts_now)
            why = _because(trust, trusts_now) if trust.trees else _why(tree, cwd, records)
            found.append(Use(backend=name, names=names, is_used=bool(trust.trees), why=why))
    return found


def uses_of_run(project: Project, start: RunStarted, workflow: Workflow, *, trusts_now: bool = False) -> list[Use]:
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


def _present(tree: str, cwd: str, names: Collection[str], *, nested: bool) -> list[str]:
    """Which of `names` there are; all that may be when it cannot be told."""
    try:
        parts = {part for path in trusting.foreign_settings(tree, cwd, nested=nested) for part in path.split("/")}
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
        changes = trusting.lapse(trusting.foreign_settings(tree, cwd), trusted)
    except Unclear as error:
        return visible(str(error))
    return foreign_text.changes_since_trusted([(one.path, one.what) for one in changes])


def _command(tree: str) -> str:
    return f"raymond trust {pasted.word(tree, 'DIR')}"


# --- for a person


def offer(folder: str) -> Offer:
    """What the project of `folder` would give; refused when that cannot be told."""
    tree = _tree(folder)
    found = _offered(tree, folder)
    record = trusting.recorded(homes.find()).get(tree)
    known = record is not None and record.files == found
    return Offer(tree=tree, files=found, is_trusted=known, runs=actions_of(tree, found))


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
    return arguments.check_path(trusting.top_of(folder), "the path of the project")


def _offered(tree: str, cwd: str) -> dict[str, str]:
    try:
        return trusting.foreign_settings(tree, cwd)
    except Unclear as error:
        raise UsageError(f"{tree} cannot be trusted: {error}", hint="remove it, or make it a file of its own") from None


# --- what settings do


class Action(Struct, frozen=True):
    """Something a program would do, and the file that says so."""

    file: str
    kind: str
    text: str


def actions_of(tree: str, paths: Iterable[str]) -> list[Action]:
    """Every action that the files at `paths` name; what a program reads in other ways is not among them."""
    return [Action(path, kind, text) for path in paths for kind, text in _actions_of_file(tree, path)]


def _actions_of_file(tree: str, path: str) -> Iterator[tuple[str, str]]:
    if os.path.basename(path) not in _READABLE:
        return
    try:
        yield from _actions_of_settings(path, _read_settings(tree, path))
    except (OSError, ValueError, RecursionError):
        # A program may be less strict than we are.
        yield "unknown", "cannot be read here: what it does is not known"


def _read_settings(tree: str, path: str) -> dict[str, Any]:
    data = files.contents(os.path.join(tree, path), _MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError("it is too large")
    import tomllib  # only what a person is shown needs it, not a run

    said = tomllib.loads(data.decode()) if path.endswith(".toml") else msgspec.json.decode(data)
    if not isinstance(said, dict):
        raise ValueError("it is not a table")
    return said


def _actions_of_settings(path: str, said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shown: tuple[str, ...] = ("$schema",)
    match os.path.basename(path):
        case ".mcp.json":
            shown += ("mcpServers",)
            yield from _servers(said.get("mcpServers"))
        case "settings.json" | "settings.local.json":
            shown += ("hooks", "env", "enabledPlugins", *_COMMANDS)
            yield from _hooks(said.get("hooks"))
            yield from (("command", f"{name}: {_command_of(said[name])}") for name in _COMMANDS if name in said)
            yield from (("variable", f"{name}={value}") for name, value in _table(said.get("env")).items())
            yield from (("plug-in", name) for name in _table(said.get("enabledPlugins")))
        case "config.toml":
            shown += ("mcp_servers", "hooks", "notify")
            yield from _hooks(said.get("hooks"))
            yield from (("command", f"notify: {said['notify']}") for _ in range("notify" in said))
            yield from _servers(said.get("mcp_servers"))
        case "hooks.json":
            shown += ("hooks", "description")
            yield from _hooks(said.get("hooks"))
        case _:
            pass
    yield from (("also sets", f"{name}: {said[name]}") for name in said if name not in shown)


def _servers(servers: object) -> Iterator[tuple[str, str]]:
    for name, one in _table(servers).items():
        about = _table(one)
        given = about.get("args")
        words = [about.get("command") or about.get("url") or "?", *(given if isinstance(given, list) else ())]
        rest = {key: value for key, value in about.items() if key not in ("command", "url", "args", "type")}
        yield "server", f"{name}: {' '.join(map(str, words))}" + (f" with {rest}" if rest else "")


def _hooks(hooks: object) -> Iterator[tuple[str, str]]:
    for event, groups in _table(hooks).items():
        for group in groups if isinstance(groups, list) else ():
            inner = _table(group).get("hooks")
            for hook in inner if isinstance(inner, list) else ():
                yield "hook", f"{event}: {_command_of(hook)}"


def _command_of(said: object) -> str:
    return str(_table(said).get("command") or _table(said).get("url") or said)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
