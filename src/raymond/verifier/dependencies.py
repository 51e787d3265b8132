"""Dependencies: what manifests and lock files name, and the command that installs it.

Packages in a check are the person's. Where the work names others, Raymond installs them itself, in the project as the
person left it with only these names taken over, so that nothing that an agent wrote takes part.
"""

import glob
import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator
from typing import Any

from raymond.patterns import regex

_PARTS: dict[str, tuple[str, ...]] = {
    "package.json": (
        *("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides", "resolutions"),
    ),
    "pyproject.toml": (
        *("project.dependencies", "project.optional-dependencies", "dependency-groups"),
        *("tool.poetry.dependencies", "tool.poetry.group", "tool.pdm.dev-dependencies", "tool.uv.dev-dependencies"),
    ),
}
"""A manifest -> the keys of it that name dependencies."""
_WHOLE = regex(r"(?:package-lock|npm-shrinkwrap)\.json|pnpm-lock\.yaml|[\w-]+\.lock|requirements[\w.-]*\.txt")
"""Files that name nothing else."""
_MOST = 64 << 20
"""Bytes of a file that is read."""


def names_any(path: str) -> bool:
    """Whether a file can name dependencies."""
    name = os.path.basename(path)
    return name in _PARTS or _WHOLE.fullmatch(name) is not None


def named(path: str, content: bytes) -> Any:
    """What a file names, to be compared; None for a file that cannot be read."""
    name = os.path.basename(path)
    if name not in _PARTS:
        return content.decode("utf-8", "replace")
    try:
        data = _READ[name](content)
    except (ValueError, RecursionError):
        return None
    return [_at(data, key) for key in _PARTS[name]]


def taken_over(path: str, own: bytes, other: bytes) -> bytes:
    """The person's `own` manifest with the dependencies that the `other` names; a lock file is taken as it is."""
    name = os.path.basename(path)
    if name not in _PARTS:
        return other
    try:
        data, new = _READ[name](own), _READ[name](other)
    except (ValueError, RecursionError):
        return own
    for key in _PARTS[name]:
        _put(data, key, _at(new, key))
    return _WRITE[name](data).encode()


def _at(data: Any, key: str) -> Any:
    """The value at a key with dots; None where there is none."""
    for part in key.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    first, _, rest = key.partition(".")
    if rest and isinstance(data.get(first, {}), dict) and (value is not None or first in data):
        _put(data.setdefault(first, {}), rest, value)
    elif not rest and value is None:
        data.pop(first, None)
    elif not rest:
        data[first] = value


def _json(content: bytes) -> Any:
    found = json.loads(content or b"{}")
    return found if isinstance(found, dict) else {}


def _toml(content: bytes) -> Any:
    import tomllib  # only where there is such a file

    return tomllib.loads(content.decode())


def _json_text(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


def _toml_text(data: Any) -> str:
    return "".join(f"{_toml_value(key)} = {_toml_value(value)}\n" for key, value in data.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml_value(key)} = {_toml_value(one)}" for key, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


_READ: dict[str, Callable[[bytes], Any]] = {"package.json": _json, "pyproject.toml": _toml}
_WRITE: dict[str, Callable[[Any], str]] = {"package.json": _json_text, "pyproject.toml": _toml_text}


def setup(top: str, installed: Collection[str]) -> str:
    """The command that installs again what is in the folders `installed` of the project at `top`, by what made them.

    Empty when that is not known of all of them.
    """
    commands = [_command(top, folder) for folder in sorted(installed)]
    return " && ".join(commands) if all(commands) else ""


def _command(top: str, folder: str) -> str:
    place, name = os.path.split(folder)
    found = _node(os.path.join(top, folder), os.path.join(top, place))
    if name != "node_modules":
        found = _python(top, folder)
    return f"(cd {shlex.quote(place)} && {found})" if found and place else found


def _node(modules: str, place: str) -> str:
    if os.path.exists(f"{modules}/.modules.yaml"):
        return "pnpm install --frozen-lockfile"
    if os.path.exists(f"{modules}/.package-lock.json"):
        return f"npm {'ci' if os.path.exists(f'{place}/package-lock.json') else 'install'} --no-audit --no-fund"
    return ""


def _python(top: str, folder: str) -> str:
    """What puts a project and its dependencies into a virtual environment, from the folder that has it."""
    place, name = os.path.split(folder)
    infos = sorted(glob.glob(f"{glob.escape(os.path.join(top, folder))}/lib/python3*/site-packages/*.dist-info"))
    named = " -r requirements.txt" if os.path.exists(os.path.join(top, place, "requirements.txt")) else ""
    for info in infos:
        own = _editable(info, top)
        if own is not None:
            from_place = os.path.relpath(os.path.join(top, own), os.path.join(top, place))
            if os.path.exists(os.path.join(top, own, "uv.lock")):
                return "uv sync --inexact --all-extras" if own == place else ""
            return f"{_installer(info, name)}{named} -e {shlex.quote(f'{from_place}{_extras(info, infos)}')}"
    return f"{_installer(infos[0], name)}{named}" if infos and named else ""


def _installer(info: str, venv: str) -> str:
    python = shlex.quote(f"{venv}/bin/python")
    by = _text(f"{info}/INSTALLER").strip()
    return f"uv pip install --python {python}" if by == "uv" else f"{python} -m pip install"


def _editable(info: str, top: str) -> str | None:
    """The folder of the project that a package is installed from, if it is one of those below `top`."""
    try:
        said = json.loads(_text(f"{info}/direct_url.json") or "{}")
        url, editable = said.get("url", ""), said.get("dir_info", {}).get("editable")
    except (ValueError, AttributeError):
        return None
    from urllib.parse import unquote, urlsplit

    path = os.path.relpath(unquote(urlsplit(url).path), top) if editable else ".."
    return None if path.startswith("..") else path.removeprefix(".")


_EXTRA = regex(r"Requires-Dist: (?P<name>[\w.-]+).*;.*\bextra ?== ?['\"](?P<extra>[\w.-]+)['\"]")
_NAME = regex(r"[-_.]+")


def _extras(info: str, infos: Collection[str]) -> str:
    """The extras of a package all of which is there, as pip names them."""
    there = {_plain(os.path.basename(one).partition("-")[0]) for one in infos}
    found: dict[str, bool] = {}
    for line in _text(f"{info}/METADATA").partition("\n\n")[0].splitlines():
        if said := _EXTRA.match(line):
            found[said["extra"]] = found.get(said["extra"], True) and _plain(said["name"]) in there
    extras = ",".join(sorted(name for name, is_there in found.items() if is_there))
    return f"[{extras}]" if extras else ""


def _plain(name: str) -> str:
    return _NAME.sub("-", name).lower()


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST)
    except OSError:
        return ""


def fingerprint(top: str, installed: Collection[str]) -> list[tuple[str, int]]:
    """What changes when somebody installs something in these folders."""
    return [(path, os.stat(path).st_mtime_ns) for folder in installed for path in _tell_tale(os.path.join(top, folder))]


def _tell_tale(folder: str) -> Iterator[str]:
    yield from (one for one in (folder, f"{folder}/.package-lock.json") if os.path.exists(one))
    yield from sorted(glob.glob(f"{glob.escape(folder)}/lib/python3*/site-packages"))
