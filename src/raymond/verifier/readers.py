"""Programs that judge or build the files they are given: `ruff check app.py` is about app.py, which decides nothing.

A program that runs its files, or compares them with others, is none of them.
"""

import os
import re
from collections.abc import Sequence
from itertools import pairwise

from raymond.patterns import regex

_ASKS = frozenset("test [ [[ ls stat file wc cat head tail".split())
"""Those whose options name no file that decides."""
_READERS = _ASKS.union(
    """grep egrep fgrep rg jq yq ruff mypy pyright black isort flake8 pylint pycodestyle pyflakes pydocstyle bandit
    py_compile compileall json.tool eslint prettier jshint stylelint biome shellcheck shfmt gofmt golint rustfmt
    clang-format clang-tidy cppcheck yamllint jsonlint hadolint markdownlint rubocop phpcs phpstan ktlint swiftlint
    luacheck xmllint actionlint""".split()
)
_COMPILERS = frozenset(
    """cc gcc g++ c++ clang clang++ ld ar as nasm gfortran rustc javac kotlinc scalac swiftc ghc ocamlc ocamlopt dmd tsc
    esbuild sassc""".split()
)
_CHECKER = regex(r"(?:^|[\W_])(?:check|verify|test|spec)", re.IGNORECASE)
"""In the names of sources that are built to check the others."""
_COMPARES = ("diff", "cmp", "comm")
_BEFORE = frozenset(
    """npx bunx uv uvx poetry pdm hatch pipenv rye bundle run exec env time nice command ! xargs if then while do else
    dlx npm pnpm yarn bun""".split()
)
"""What may stand before a program."""
_CHECKS_ONLY = {
    **dict.fromkeys(("bash", "sh", "zsh"), ("-n",)),
    "node": ("--check", "-c"),
    "php": ("-l",),
    "ruby": ("-c", "-wc"),
    "perl": ("-c", "-wc"),
}
"""Interpreters that, with such an option, only read."""
_TAKES_FILE = regex(r"-[cfp]|--(?:config|settings|rcfile|file|project|ignore-path|rules?)[\w-]*")
"""Options of readers whose value decides: `--config strict.toml`."""


def judged(words: Sequence[str]) -> frozenset[str]:
    """The words of a simple command that name what it judges."""
    at = next((at for at, word in enumerate(words) if not _is_before(word)), len(words))
    rest = words[at:]
    if not rest:
        return frozenset()
    name = os.path.basename(rest[0])
    if name.startswith("python") and rest[1:2] == ["-m"]:
        rest, name = rest[2:], rest[2] if len(rest) > 2 else ""
    elif any(option in rest[1:2] for option in _CHECKS_ONLY.get(name, ())):
        name = "test"
    if name in _COMPILERS:
        return frozenset(word for word in rest[1:] if not _CHECKER.search(word))
    if name not in _READERS:
        return frozenset()
    return frozenset(word for before, word in pairwise(rest) if name in _ASKS or not _TAKES_FILE.fullmatch(before))


def compares(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a command of a line compares files: then what the others only read may be what is expected."""
    return any(os.path.basename(word) in _COMPARES for words in commands for word in words[:1])


def _is_before(word: str) -> bool:
    return word in _BEFORE or re.match(r"[A-Za-z_]\w*=", word) is not None
