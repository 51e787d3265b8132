"""What decides a check, by name: test files, and what the runners of tests load.

A name that a runner would load is sealed also while there is no such file: a new `conftest.py`, `GNUmakefile` or
`.npmrc` can turn a check green without touching anything that exists. A new test is welcome.
"""

import os
import re
from typing import Literal, TypeAlias

from raymond.patterns import regex
from raymond.verifier import manifests

Part: TypeAlias = Literal["test", "loaded", "manifest", "named", "target"]
"""What a sealed file is to the check. A new file counts as a change unless it is a `test`."""

TEST_FOLDERS = frozenset(
    {
        "tests",
        "test",
        "spec",
        "specs",
        "t",
        "Tests",
        "__tests__",
        "__snapshots__",
        "testdata",
        "e2e",
        "features",
        "cypress",
    }
)
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".raymond", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
    | {".tox", ".nox", ".hypothesis", ".gradle", ".idea", ".venv", "venv"}
)
"""Folders of tools, which no check is decided by, or (`node_modules`, `.venv`) which every new dependency changes."""

_TEST = regex(
    r"tests?\.\w+|test_.*|test\w*\.py|.*_tests?\..*|.*\.tests?\..*|.*\.spec\..*|.*_spec\..*|.*Tests?\.\w+|.*\.snap|.*\.golden|.*\.bats|.*\.feature"
    r"|.*\.cy\.\w+|(?:jest|vitest)\.setup\.\w+|setupTests\.\w+",
    re.DOTALL,
)
_ANYWHERE = regex(
    r"conftest\.py|(?:site|user)customize\.py|.*\.pth|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.c?js|\.mocharc.*|\.rspec"
    r"|phpunit\.xml(?:\.dist)?|Directory\.Build\..*|\.runsettings|go\.work|\.coveragerc|entry_points\.txt|\.nycrc(?:\.\w+)?|(?:karma|wdio|protractor)\.conf\.\w+|.*\.egg-link|\.babelrc.*"
    r"|\.?ruff\.toml|\.eslintrc.*|\.?rustfmt\.toml|\.prettierrc.*|\.prettierignore|\.stylelintrc.*|\.stylelintignore|\.shellcheckrc|\.yamllint.*|\.rubocop\.yml|\.clang-(?:tidy|format)|\.isort\.cfg"
)
"""Loaded wherever tests are: by pytest and Python, npm and its relatives, mocha, rspec, phpunit, dotnet, go;
and by linters, which take the nearest one."""
_AT_A_ROOT = regex(
    r"\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|noxfile\.py|GNUmakefile|[Mm]akefile|.*\.mk|\.?[Jj]ustfile|Taskfile\.ya?ml|Rakefile"
    r"|.*\.config\.\w+|vitest\.workspace\.\w+|bunfig\.toml|\.?mypy\.ini|\.flake8|\.?pylintrc(?:\.toml)?|\.eslintignore|tsconfig.*\.json|biome\.jsonc?"
    r"|\.golangci\.\w+|\.?clippy\.toml|pyrightconfig\.json|\.pre-commit-config\.yaml|gradle\.properties|mvnw|gradlew|rust-toolchain(?:\.toml)?"
    r"|settings\.gradle(?:\.kts)?|phpstan\.neon.*|\.importlinter|\.bandit|\.proverc|CTestCustom\.(?:cmake|ctest)|CMake(?:User)?Presets\.json|behave\.ini|pnpm-workspace\.yaml|(?:lerna|nx|turbo)\.json"
)
"""Loaded from where a runner starts, or from a folder above it."""
_WITH_TESTS = regex(r"\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)")
"""Loaded from a folder that a runner of tests is given."""
_OF_NODE = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".json", ".node")
_SETTINGS = {
    ".cargo": regex(r"config(?:\.toml)?"),
    ".mvn": regex(r".*"),
    ".config": regex(r"nextest\.toml"),
    "wrapper": regex(r"gradle-wrapper\.properties"),
}
"""Folder -> what runners load from it."""


def hidden_by(path: str) -> set[str]:
    """The names that node and Perl would take for a file, when they are given it without what it ends in."""
    stem, ending = os.path.splitext(path)
    if ending not in _OF_NODE:
        return {f"{path}c"} if ending == ".pm" else set()
    folder, _, name = stem.rpartition("/")
    stems = {stem, folder} if name == "index" and folder else {stem}
    return {f"{one}{other}" for one in stems for other in ("", *_OF_NODE)} - {path}


def is_test(name: str) -> bool:
    """Whether a file is a test, by its name alone."""
    return _TEST.fullmatch(name) is not None


def loaded(name: str, folder: str, *, is_root: bool, of_tests: bool = False) -> Part | None:
    """What a file in `folder` is to a runner; a root is a folder where one starts."""
    if manifests.is_manifest(name):
        return "manifest"  # only a part of it counts: a task may add a dependency
    if _ANYWHERE.fullmatch(name) or (is_root and _AT_A_ROOT.fullmatch(name)):
        return "loaded"
    if of_tests and _WITH_TESTS.fullmatch(name):
        return "loaded"
    settings = _SETTINGS.get(folder.rpartition("/")[2])
    return "loaded" if settings and settings.fullmatch(name) else None
