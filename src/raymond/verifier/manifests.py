"""Manifests: the part of package.json, pyproject.toml, setup.cfg and Cargo.toml that decides a check."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

_NPM = ("scripts", "jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "eslintConfig", "eslintIgnore")
_PYTHON_TOOLS = ("pytest", "tox", "nox", "coverage", "poe", "taskipy", "ward", "ruff", "mypy", "pyright", "pylint")
_PYTHON_SCRIPTS = {"hatch": ("envs", "env"), "pdm": ("scripts",), "rye": ("scripts",)}
"""Tools whose tables also hold other things."""
_SECTIONS = ("tool:pytest", "pytest", "tox", "coverage", "nosetests", "aliases", "unittest")
_TARGETS = ("lib", "bin", "example", "bench")
_OF_A_TARGET = ("harness", "test", "doctest")
"""What says whether and how the tests of a target run; a task may add a target."""


def relevant(name: str, content: bytes) -> str:
    """A digest of what decides a check; of everything when the file cannot be read."""
    try:
        found: Any = _READERS[name](content.decode("utf-8"))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()


def is_relevant(name: str, content: bytes) -> bool:
    """Whether anything in it decides a check."""
    return relevant(name, content) != relevant(name, b"{}" if name.endswith(".json") else b"")


def _package(text: str) -> Any:
    return {key: value for key, value in json.loads(text).items() if key in _NPM}


def _pyproject(text: str) -> Any:
    import tomllib  # only where there is such a file

    tools = tomllib.loads(text).get("tool", {})
    found = {key: tools[key] for key in _PYTHON_TOOLS if key in tools}
    for tool, keys in _PYTHON_SCRIPTS.items():
        found[tool] = {key: tools[tool][key] for key in keys if key in tools.get(tool, {})}
    return found


def _setup(text: str) -> Any:
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return {name: dict(parser[name]) for name in parser.sections() if name.startswith(_SECTIONS)}


def _cargo(text: str) -> Any:
    import tomllib

    data = tomllib.loads(text)
    targets = [one for key in _TARGETS for one in _listed(data.get(key, []))]
    told = [{key: one[key] for key in ("name", *_OF_A_TARGET) if key in one} for one in targets]
    return {
        "test": data.get("test"),
        "autotests": data.get("package", {}).get("autotests"),
        "profile": {key: data.get("profile", {}).get(key) for key in ("dev", "test")},
        "targets": [one for one in told if one.keys() & set(_OF_A_TARGET)],
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_READERS: dict[str, Callable[[str], Any]] = {
    "package.json": _package,
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup,
    "Cargo.toml": _cargo,
}
