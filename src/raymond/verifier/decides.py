"""What decides a check: one table, with a row for each kind of file. docs/writing.md has it.

A name that a runner would load counts also while there is no such file: a new `conftest.py`, `GNUmakefile` or `.npmrc`
can turn a check green without touching anything that exists. A new test is welcome.
"""

import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.digests import sha256

Part: TypeAlias = Literal["test", "loaded", "manifest", "named", "target"]
"""What a file is to a check. A new one counts as a change unless it is a `test`."""
Where: TypeAlias = Literal["anywhere", "where a runner starts", "with tests", "in a folder"]
Format: TypeAlias = Literal["", "json", "toml", "ini", "xml", "lines", "calls"]

How: TypeAlias = Literal["changed", "added", "removed"]


class Change(Struct, frozen=True):
    """A file that decides a check, and is not as it was."""

    path: str
    how: How
    digest: str = ""
    """What is in it now."""


def digest_of(changes: Sequence[Change]) -> str:
    """What is accepted: exactly these changes."""
    lines = [f"{one.how} {one.path} {one.digest}" for one in changes]
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


class Row(Struct, frozen=True):
    """Files of one kind; lists are separated by spaces."""

    what: str
    names: str
    where: Where = "anywhere"
    folders: str = ""
    """The names of the folders."""
    part: Part = "loaded"
    but: str = ""
    """Of a build file, what in it decides nothing, in words."""
    format: Format = ""
    free: str = ""
    """The same exactly: paths of keys or tags; patterns, each on a line; or calls, whose words are free
    unless one is about tests. Everything else counts; in a file that cannot be read, everything."""
    counts: str = ""
    """What counts below a free path."""


def _build_file(what: str, but: str, names: str, format: Format, free: str, counts: str = "") -> Row:
    return Row(what, names, part="manifest", but=but, format=format, free=free, counts=counts)


_OF_PYTEST = "pytest.ini pytest.toml .pytest.ini .pytest.toml tox.ini tox.toml"
_TESTS = "tests test spec specs t Tests __tests__ __snapshots__ testdata e2e features cypress"
TABLE = (
    Row(
        "tests and snapshots",
        """test.* tests.* test_* test*.py *_test.* *_tests.* *.test.* *.tests.* *.spec.* *_spec.* *Test.* *Tests.*
        *.snap *.golden *.bats *.feature *.cy.* jest.setup.* vitest.setup.* setupTests.*""",
        part="test",
    ),
    Row("everything in a folder of tests", "*", "in a folder", _TESTS, part="test"),
    Row(
        "what Python loads unasked",
        "conftest.py sitecustomize.py usercustomize.py *.pth *.egg-link entry_points.txt .coveragerc",
    ),
    Row(
        "settings that hold for their folder: of runners, package managers and linters",
        """.npmrc .yarnrc .yarnrc.yml .pnpmfile.js .pnpmfile.cjs .mocharc* .nycrc* .babelrc* karma.conf.* wdio.conf.*
        protractor.conf.* .rspec phpunit.xml phpunit.xml.dist Directory.Build.* .runsettings go.work ruff.toml
        .ruff.toml .eslintrc* rustfmt.toml .rustfmt.toml .prettierrc* .prettierignore .stylelintrc* .stylelintignore
        .shellcheckrc .yamllint* .rubocop.yml .clang-tidy .clang-format .isort.cfg""",
    ),
    Row(
        "recipes",
        """GNUmakefile makefile Makefile *.mk justfile Justfile .justfile Taskfile.yml Taskfile.yaml Rakefile
        noxfile.py mvnw gradlew""",
        "where a runner starts",
    ),
    Row(
        "settings of runners, linters and type checkers",
        f"""{_OF_PYTEST} *.config.* vitest.workspace.* bunfig.toml behave.ini .proverc gradle.properties settings.gradle
        settings.gradle.kts CTestCustom.* CMakePresets.json CMakeUserPresets.json pnpm-workspace.yaml lerna.json nx.json
        turbo.json rust-toolchain rust-toolchain.toml mypy.ini .mypy.ini .flake8 pylintrc* .pylintrc* .eslintignore
        tsconfig*.json biome.json biome.jsonc .golangci.* clippy.toml .clippy.toml pyrightconfig.json
        .pre-commit-config.yaml phpstan.neon* .importlinter .bandit""",
        "where a runner starts",
    ),
    Row("settings of pytest", _OF_PYTEST, "with tests"),
    Row("settings of Cargo", "config config.toml", "in a folder", ".cargo"),
    Row("settings of nextest", "nextest.toml", "in a folder", ".config"),
    Row("settings of Maven", "*", "in a folder", ".mvn"),
    Row("settings of Gradle", "gradle-wrapper.*", "in a folder", "wrapper"),
    _build_file(
        "a package of node",
        "metadata, entry points and dependencies",
        "package.json",
        "json",
        """name version description keywords homepage bugs license author contributors funding repository private files
        main module browser types typings typesVersions exports bin man directories type sideEffects engines os cpu
        dependencies devDependencies peerDependencies peerDependenciesMeta optionalDependencies bundleDependencies
        overrides resolutions pnpm packageManager publishConfig browserslist lint-staged husky release""",
    ),
    _build_file(
        "a package of Deno",
        "metadata, imports and exports",
        "deno.json deno.jsonc",
        "json",
        "name version license exports imports scopes lock publish nodeModulesDir vendor",
    ),
    _build_file(
        "a package of PHP",
        "metadata, dependencies and autoloading",
        "composer.json",
        "json",
        """name description version type keywords license authors homepage support funding require require-dev conflict
        replace provide suggest autoload autoload-dev repositories minimum-stability prefer-stable config extra bin""",
    ),
    _build_file(
        "a package of Python",
        "metadata, dependencies and how it is built (but not for entry points)",
        "pyproject.toml",
        "toml",
        """project build-system dependency-groups tool.poetry tool.uv tool.setuptools tool.setuptools_scm tool.flit
        tool.hatch tool.pdm tool.rye tool.maturin tool.scikit-build tool.bumpversion tool.commitizen tool.towncrier""",
        "tool.hatch.envs tool.hatch.env tool.pdm.scripts tool.rye.scripts project.entry-points tool.poetry.plugins",
    ),
    _build_file(
        "a package of Python",
        "metadata, dependencies and how it is built (but not for entry points)",
        "setup.cfg",
        "ini",
        "metadata options bdist* sdist* build* install* develop egg_info bumpversion*",
        "options.entry_points",
    ),
    _build_file(
        "a package of Rust",
        "metadata, dependencies, features that are not on by default, and targets (but not whether these are tested)",
        "Cargo.toml",
        "toml",
        """dependencies dev-dependencies build-dependencies package features target patch replace badges profile lib bin
        example bench workspace.dependencies workspace.package workspace.metadata workspace.resolver""",
        """package.autotests package.build features.default profile.dev profile.test *.harness lib.test lib.doctest
        bin.test bin.doctest example.test example.doctest bench.test bench.doctest""",
    ),
    _build_file(
        "a build of Maven",
        "metadata and dependencies",
        "pom.xml",
        "xml",
        """modelVersion groupId artifactId version name description url inceptionYear organization licenses developers
        contributors scm dependencies dependencyManagement repositories""",
    ),
    _build_file(
        "a build of .NET",
        "the names and versions of items",
        "*.csproj *.fsproj *.vbproj",
        "xml",
        """ItemGroup.*.Include ItemGroup.*.Version ItemGroup.*.PrivateAssets ItemGroup.*.IncludeAssets""",
    ),
    _build_file(
        "a build of Gradle",
        "lines with a dependency, a name or a version",
        "build.gradle build.gradle.kts",
        "lines",
        r"""(?:\w+(?:Implementation|Api|Only|Processor)|implementation|api|kapt|ksp|classpath)[ \t]*[( ][^;{}\n]*
        (?:group|version|description)\b[ \t]*=?[ \t]*["'][^"'\n]*["']""",
    ),
    _build_file(
        "a build of Mix",
        "lines with a dependency or a version",
        "mix.exs",
        "lines",
        r"""\[?\{:\w+,[^\n]*\}[\],]{0,2}
        @?version:? "[^"\n]*",?""",
    ),
    _build_file(
        "a build of CMake",
        "sources and libraries whose names are not about tests",
        "CMakeLists.txt",
        "calls",
        """add_executable add_library target_sources target_link_libraries target_include_directories find_package
        cmake_minimum_required project""",
    ),
    _build_file(
        "a build of Meson",
        "sources and libraries whose names are not about tests",
        "meson.build",
        "calls",
        "executable library static_library shared_library dependency files project",
    ),
)
TEST_FOLDERS = frozenset(_TESTS.split())
SKIPPED = frozenset(
    """.git .hg .svn .raymond node_modules __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .hypothesis
    .gradle .idea .venv venv""".split()
)
"""Folders of tools, which no check is decided by, or (`node_modules`, `.venv`) which every new dependency changes."""
_OF_SETTINGS = frozenset(folder for row in TABLE if row.part == "loaded" for folder in row.folders.split())
_BUILD_FILES = {name.removeprefix("*"): row for row in TABLE if row.format for name in row.names.split()}


@functools.cache
def _matcher(part: Part, where: Where, folder: str = "") -> Callable[[str], bool]:
    """Whether a name is in the rows for such a place."""
    rows = (row for row in TABLE if (row.part, row.where) == (part, where) and folder in ("", *row.folders.split()))
    names = (re.escape(name).replace(r"\*", ".*") for row in rows for name in row.names.split())
    found = re.compile("|".join(names), re.DOTALL)
    return lambda name: found.fullmatch(name) is not None


def build_file(name: str) -> Row | None:
    """The row of a file of which only a part counts."""
    return _BUILD_FILES.get(name) or _BUILD_FILES.get(os.path.splitext(name)[1])


def is_test(name: str) -> bool:
    """Whether a file is a test, by its name alone."""
    return _matcher("test", "anywhere")(name)


def loaded(name: str, folder: str, *, is_root: bool, of_tests: bool = False) -> Part | None:
    """What a file in `folder` is to a runner; a root is a folder where one starts."""
    if build_file(name):
        return "manifest"
    last = folder.rpartition("/")[2]
    module = f"{last}.py" if name.startswith("__init__.") else name  # a package is loaded as the module would be
    is_loaded = (
        _matcher("loaded", "anywhere")(module)
        or (is_root and _matcher("loaded", "where a runner starts")(name))
        or (of_tests and _matcher("loaded", "with tests")(name))
        or (last in _OF_SETTINGS and _matcher("loaded", "in a folder", last)(name))
    )
    return "loaded" if is_loaded else None
