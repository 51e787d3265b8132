"""Manifests: the part of package.json, pyproject.toml, Cargo.toml and their like that decides a check."""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from raymond.digests import sha256
from raymond.patterns import regex
from raymond.verifier import build_files

_DENO = ("tasks", "test", "lint", "fmt", "exclude")
_JSON = {
    "package.json": (
        *("scripts", "jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "eslintConfig", "eslintIgnore"),
        *("babel", "workspaces", "imports", "prettier", "standard", "xo", "stylelint", "ts-node"),
    ),
    "composer.json": ("scripts",),
    "deno.json": (*_DENO,),
    "deno.jsonc": (*_DENO,),
}
"""The keys that count."""
_PYTHON_TOOLS = (
    *("pytest", "pytest_env", "tox", "nox", "coverage", "poe", "taskipy", "ward", "behave", "robot", "ruff", "mypy"),
    *("pyright", "basedpyright", "ty", "pyrefly", "pylint", "black", "isort", "flake8", "pycodestyle", "pydocstyle"),
    *("importlinter", "bandit", "codespell", "vulture", "interrogate", "deptry"),
)
_PYTHON_SCRIPTS = {"hatch": ("envs", "env"), "pdm": ("scripts",), "rye": ("scripts",)}
"""Tools whose tables also hold other things."""
_FREE_SECTIONS = ("metadata", "options", "bdist", "sdist", "build", "install", "develop", "egg_info", "bumpversion")
"""Sections of setup.cfg that are about the package itself."""
_TARGETS = ("lib", "bin", "example", "bench")
_OF_A_TARGET = ("harness", "test", "doctest")
"""What says whether and how the tests of a target run; a task may add a target."""
_OF_A_WORKSPACE = ("members", "exclude", "default-members", "lints")
_PROFILES = ("dev", "test")
_HEADER = regex(r"^[ \t]*\[\[?(?P<name>[^\]\n]+)\]\]?[ \t]*(?:[#;].*)?$", re.MULTILINE)
_PARTS = {
    "pyproject.toml": (
        *(f"tool.{tool}" for tool in _PYTHON_TOOLS),
        *(f"tool.{tool}.{key}" for tool, keys in _PYTHON_SCRIPTS.items() for key in keys),
    ),
    "Cargo.toml": ("test", "lints", "workspace.lints", *(f"profile.{name}" for name in _PROFILES)),
}
"""The tables that count as a whole, with those below them."""
_ALONE = {"Cargo.toml": ("workspace",)}
"""And those without."""
_INHERITED = {"workspace": True}
"""Lints of a new crate that are those of its workspace."""
_SEPARATES = regex(r"\r(?!\n)|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What is the end of a line to some readers of setup.cfg, and to others is not."""
_MOST = 256 << 10
"""Bytes of a file that is taken apart: of a larger one, everything counts."""


def is_manifest(name: str) -> bool:
    """Whether only a part of a file with this name counts."""
    return name in _READERS or name.endswith(_ENDINGS)


def _kind(name: str) -> str:
    return name if name in _READERS else os.path.splitext(name)[1]


def relevant(name: str, content: bytes) -> str:
    """A digest of what decides a check; of everything when the file cannot be read."""
    try:
        found = _read(name, content)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return sha256(content).hexdigest()
    return sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()


def counts_when_new(name: str, content: bytes) -> bool:
    """Whether a file that was not there before decides a check; a build file is about its own folder."""
    if _kind(name) in build_files.READERS:
        return False
    try:
        return bool(_emptied(_read(name, content)))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return True


def put_back(name: str, sealed: bytes, current: bytes) -> bytes:
    """`current` with the part that decides as it is in `sealed`; `sealed` itself where that cannot be done.

    A dependency that the work needs stays, whatever else was changed in the file.
    """
    try:
        _read(name, current)
        found = _joined(name, sealed.decode("utf-8"), current.decode("utf-8")).encode()
        return found if relevant(name, found) == relevant(name, sealed) else sealed
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return sealed


def _read(name: str, content: bytes) -> Any:
    if len(content) > _MOST:
        raise ValueError("too large to be taken apart")
    return _READERS[_kind(name)](content.decode("utf-8"))


def _emptied(value: Any) -> Any:
    """What is left of a value without what says nothing."""
    if isinstance(value, dict):
        return {key: kept for key, one in value.items() if (kept := _emptied(one)) not in (None, {}, [], _INHERITED)}
    return value


def _joined(name: str, sealed: str, current: str) -> str:
    if keys := _JSON.get(name):
        kept = {key: value for key, value in json.loads(current).items() if key not in keys}
        old = {key: value for key, value in json.loads(sealed or "{}").items() if key in keys}
        return json.dumps({**kept, **old}, indent=2) + "\n"
    tables = [text for table, text in _tables(current) if not _counts(name, table)]
    tables += [text for table, text in _tables(sealed) if _counts(name, table)]
    return "".join(f"{one}\n" if one and not one.endswith("\n") else one for one in tables)


def _tables(text: str) -> Iterator[tuple[str, str]]:
    """The tables of a text with their names, as they stand there; first what comes before them all."""
    name, at = "", 0
    for header in _HEADER.finditer(text):
        yield name, text[at : header.start()]
        name, at = re.sub(r"[\s\"']", "", header["name"]), header.start()
    yield name, text[at:]


def _counts(name: str, table: str) -> bool:
    if name == "setup.cfg":
        return bool(table) and not table.startswith(_FREE_SECTIONS)
    is_below = any(table == one or table.startswith(f"{one}.") for one in _PARTS[name])
    return is_below or table in _ALONE.get(name, ())


def _of_json(name: str) -> Callable[[str], Any]:
    return lambda text: {key: value for key, value in json.loads(text or "{}").items() if key in _JSON[name]}


def _pyproject(text: str) -> Any:
    import tomllib  # only where there is such a file

    tools = tomllib.loads(text).get("tool", {})
    found = {key: tools[key] for key in _PYTHON_TOOLS if key in tools}
    for tool, keys in _PYTHON_SCRIPTS.items():
        found[tool] = {key: tools[tool][key] for key in keys if key in tools.get(tool, {})}
    return found


def _setup(text: str) -> Any:
    import configparser

    if _SEPARATES.search(text):
        raise ValueError("read in more than one way")
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return {name: dict(parser[name]) for name in parser.sections() if not name.startswith(_FREE_SECTIONS)}


def _cargo(text: str) -> Any:
    import tomllib

    data = tomllib.loads(text)
    targets = [one for key in _TARGETS for one in _listed(data.get(key, []))]
    told = [{key: one[key] for key in ("name", *_OF_A_TARGET) if key in one} for one in targets]
    return {
        "test": data.get("test"),
        "package": {key: data.get("package", {}).get(key) for key in ("autotests", "build")},
        "workspace": {key: data.get("workspace", {}).get(key) for key in _OF_A_WORKSPACE},
        "lints": data.get("lints"),
        "features": data.get("features", {}).get("default"),
        "profile": {key: data.get("profile", {}).get(key) for key in _PROFILES},
        "targets": [one for one in told if one.keys() & set(_OF_A_TARGET)],
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_READERS: dict[str, Callable[[str], Any]] = {
    **{name: _of_json(name) for name in _JSON},
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup,
    "Cargo.toml": _cargo,
    **build_files.READERS,
}
_ENDINGS = tuple(name for name in _READERS if name.startswith("."))
