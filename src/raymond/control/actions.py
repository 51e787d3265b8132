"""What settings of a project would have an agent's program do: shown to whoever is asked to trust them."""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raymond.system import files

_MOST = 1 << 20
_READ = (".mcp.json", "settings.json", "settings.local.json", "config.toml", "hooks.json")


class Action(Struct, frozen=True):
    """Something a program would do, and the file that says so."""

    file: str
    kind: str
    text: str


def of(tree: str, paths: Iterable[str]) -> list[Action]:
    """Every action that the files at `paths` name; what a program reads in other ways is not among them."""
    return [Action(path, kind, text) for path in paths for kind, text in _of(tree, path)]


def _of(tree: str, path: str) -> Iterator[tuple[str, str]]:
    if os.path.basename(path) not in _READ:
        return
    try:
        yield from _actions(path, _read(tree, path))
    except (OSError, ValueError, RecursionError):
        # A program may be less strict than we are.
        yield "unknown", "cannot be read here: what it does is not known"


def _read(tree: str, path: str) -> dict[str, Any]:
    data = files.contents(os.path.join(tree, path), _MOST + 1)
    if len(data) > _MOST:
        raise ValueError("it is too large")
    said = tomllib.loads(data.decode()) if path.endswith(".toml") else msgspec.json.decode(data)
    if not isinstance(said, dict):
        raise ValueError("it is not a table")
    return said


def _actions(path: str, said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shown: tuple[str, ...] = ("$schema",)
    match os.path.basename(path):
        case ".mcp.json":
            shown += ("mcpServers",)
            yield from _servers(said.get("mcpServers"))
        case "settings.json" | "settings.local.json":
            shown += ("hooks", "env", "enabledPlugins", *_COMMANDS)
            yield from _hooks(said.get("hooks"))
            yield from (("command", f"{name}: {_command(said[name])}") for name in _COMMANDS if name in said)
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
                yield "hook", f"{event}: {_command(hook)}"


def _command(said: object) -> str:
    return str(_table(said).get("command") or _table(said).get("url") or said)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
