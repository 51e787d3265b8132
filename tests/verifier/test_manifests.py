"""Manifests and build files: what decides a check counts, and the rest is the task's."""

import json

import pytest

from pace import mostly_slow
from raymond.verifier.build_files import counts_when_new, is_manifest, put_back, relevant_part

POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><artifactId>a</artifactId><version>1</version>'
    "<dependencies><dependency><artifactId>b</artifactId></dependency></dependencies>"
    "<properties><maven.test.skip>false</maven.test.skip></properties></project>"
)
CSPROJ = (
    "<Project><PropertyGroup><IsTestProject>true</IsTestProject></PropertyGroup>"
    '<ItemGroup><PackageReference Include="x" Version="1"/></ItemGroup></Project>'
)
GRADLE = "plugins { id 'java' }\nversion = '1'\ndependencies {\n  implementation('a')\n}\ntest { maxHeapSize = '1g' }\n"
MIX = (
    'defmodule A.MixProject do\n  def project do\n    [\n      app: :a,\n      version: "1",\n      deps: deps()\n    ]\n  end\n'
    "  defp deps do\n    [{:b, path: 'b'}]\n  end\nend\n"
)
CMAKE = "add_executable(a a.c)\nenable_testing()\nadd_test(NAME t COMMAND a)\n"
MESON = "executable('a', 'a.c')\ntest('t', a)\n"
CARGO = '[package]\nname = "a"\n\n[dependencies]\nb = "1"\n\n[profile.test]\nopt-level = 0\n'
COMPOSER = '{"require": {"a": "1"}, "scripts": {"test": "phpunit"}}'

OF_NODE = ("imports", "prettier", "standard", "xo", "stylelint", "ts-node")
OF_PYTHON = (
    *("black", "isort", "flake8", "importlinter", "bandit", "ty", "basedpyright", "pyrefly", "codespell"),
    *("pydocstyle", "vulture", "interrogate", "deptry", "behave", "robot"),
)


@pytest.mark.parametrize(
    ("name", "text", "old", "free", "decisive"),
    [
        ("pom.xml", POM, "<artifactId>b<", "<artifactId>c<", ("false", "true")),
        ("a.csproj", CSPROJ, 'Version="1"', 'Version="2"', ("true", "false")),
        ("a.fsproj", CSPROJ, '<PackageReference Include="x"', '<PackageReference Include="y"', ('Include="x"', 'Remove="t"')),
        ("b.csproj", CSPROJ, 'Version="1"', 'Version="2"', ("<ItemGroup>", "<ItemGroup Condition=\"'1' == '2'\">")),
        ("pom.xml", POM, "<version>1<", "<version>2<", ("<properties>", "<modules><module>b</module></modules><properties>")),
        ("build.gradle", GRADLE, "implementation('a')", "implementation 'c:d:1'", ("dependencies {", "dependencies {\n test.enabled = false\n")),
        ("mix.exs", MIX, "{:b, path: 'b'}", "{:c, \"~> 1.0\"}", ("defp deps do", "defp deps do\n    System.halt(0)\n")),
        ("CMakeLists.txt", CMAKE, "a a.c", "a a.c c.c", ("enable_testing()", "enable_testing()\nreturn()")),
        ("CMakeLists.txt", CMAKE + "add_executable(t tests/t.c)\n", "a a.c", "a b.c", ("tests/t.c", "empty.c")),
        ("meson.build", MESON + "executable('t', 'tests/t.c')\n", "'a.c'", "'b.c'", ("'tests/t.c'", "'empty.c'")),
        ("Cargo.toml", CARGO + '[workspace]\nmembers = ["x", "y"]\n', 'b = "1"', 'c = "2"', ('"x", "y"', '"x"')),
        ("setup.cfg", "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n", "name = x", "name = y", ("addopts", "ADDOPTS")),
        ("setup.cfg", "[options]\na = 1\n[flake8]\nb = 1\n", "a = 1", "a = 2", ("[flake8]", "[mypy]\nignore_errors = 1\n[flake8]")),
        ("build.gradle", GRADLE, "implementation('a')", "implementation('c')", ("test {", "test { enabled = false;")),
        ("build.gradle.kts", GRADLE, "version = '1'", "version = '2'", ("java", "groovy")),
        ("mix.exs", MIX, "{:b, path: 'b'}", "{:b, path: 'b'}, {:c, path: 'c'}", ("app: :a", "test_paths: []")),
        ("CMakeLists.txt", CMAKE, "a a.c", "a a.c b.c", ("COMMAND a", "COMMAND true")),
        ("meson.build", MESON, "'a.c'", "'a.c', 'b.c'", ("test('t', a)", "")),
        ("Cargo.toml", CARGO, 'b = "1"', 'b = "2"', ("opt-level = 0", "opt-level = 3")),
        ("composer.json", COMPOSER, '"a": "1"', '"a": "2"', ("phpunit", "true")),
        ("Cargo.toml", CARGO + '[lints.rust]\nunused = "deny"\n', 'b = "1"', 'b = "2"', ("deny", "allow")),
        ("Cargo.toml", CARGO + "[lints]\nworkspace = true\n", 'b = "1"', 'b = "2"', ("workspace = true", "")),
        ("Cargo.toml", CARGO + '[workspace.lints.clippy]\nall = "deny"\n', 'b = "1"', 'b = "2"', ("deny", "allow")),
        ("deno.jsonc", '{"imports": {"a": "1"}, "exclude": []}', '"a": "1"', '"a": "2"', ("[]", '["tests"]')),
        *(("package.json", f'{{"version": "1", "{key}": {{"a": 1}}}}', '"1"', '"2"', ('"a": 1', '"a": 2')) for key in OF_NODE),
        *(("pyproject.toml", f'[project]\nversion = "1"\n[tool.{key}]\na = 1\n', '"1"', '"2"', ("a = 1", "a = 2")) for key in OF_PYTHON),
    ],
)  # fmt: skip
def test_a_dependency_is_free_and_what_is_said_about_tests_counts(
    name: str, text: str, old: str, free: str, decisive: tuple[str, str]
) -> None:
    assert is_manifest(name)
    assert old in text
    assert relevant_part(name, text.replace(old, free).encode()) == relevant_part(name, text.encode())
    assert relevant_part(name, text.replace(*decisive).encode()) != relevant_part(name, text.encode())


@pytest.mark.parametrize("name", ["pom.xml", "a.csproj", "package.json", "Cargo.toml"])
def test_of_a_file_that_cannot_be_read_everything_counts(name: str) -> None:
    assert relevant_part(name, b"dependencies { <") != relevant_part(name, b"dependencies { <<")


HOSTILE = [
    "test(",
    "dependencies {\n",
    "defp deps do\n",
    "add_test(",
    "[[",
    " ",
    "a",
    "x = ",
    "implementation ",
    "{:a,",
    "<a>",
]


@pytest.mark.parametrize(
    "name", mostly_slow(["meson.build", "build.gradle", "mix.exs", "CMakeLists.txt", "pom.xml", "pyproject.toml"])
)
def test_no_text_takes_long(name: str) -> None:
    """A pattern that looks back at every place would not be done before the timeout of the tests."""
    for piece in HOSTILE:
        text = (piece * (250_000 // len(piece))).encode()
        assert relevant_part(name, text) == relevant_part(name, put_back(name, text, text))


def test_a_dependency_stays_when_the_tables_of_the_tests_are_put_back() -> None:
    sealed = CARGO.encode()
    now = CARGO.replace('b = "1"', 'b = "1"\nc = "1"').replace("opt-level = 0", "opt-level = 3").encode()
    found = put_back("Cargo.toml", sealed, now).decode()
    assert found == CARGO.replace('b = "1"', 'b = "1"\nc = "1"')


def test_a_dependency_stays_when_the_scripts_are_put_back() -> None:
    now = {"name": "x", "scripts": {"test": "true"}, "jest": {"bail": 1}, "dependencies": {"a": "1"}}
    found = put_back("package.json", b'{"scripts": {"test": "jest"}}', json.dumps(now).encode())
    assert json.loads(found) == {"name": "x", "dependencies": {"a": "1"}, "scripts": {"test": "jest"}}


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("pyproject.toml", 'tool.pytest.ini_options.addopts = "--co"\n'),  # of no table
        ("pyproject.toml", "[tool.pytest.ini_options]\nx = '''\n[project]\n"),  # no TOML
        ("Cargo.toml", "[package]\nautotests = false\n"),
        ("pom.xml", POM),
    ],
)
def test_what_cannot_be_put_back_in_part_is_put_back_as_a_whole(name: str, now: str) -> None:
    sealed = b"" if name != "pom.xml" else POM.replace("false", "true").encode()
    assert put_back(name, sealed, now.encode()) == sealed


SEPARATORS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""The end of a line to `str.splitlines`, and not to configparser."""


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("package.json", '{"name": "b", "dependencies": {}}', False),
        ("package.json", '{"scripts": {"test": "true"}}', True),
        ("pyproject.toml", '[project]\nname = "b"\n', False),
        ("pyproject.toml", "[tool.mypy]\nignore_errors = true\n", True),
        ("Cargo.toml", CARGO, True),
        ("Cargo.toml", '[package]\nname = "b"\n', False),
        ("Cargo.toml", '[package]\nname = "b"\n[lints]\nworkspace = true\n', False),
        ("Cargo.toml", '[package]\nname = "b"\n[lints.rust]\nunused = "allow"\n', True),
        ("setup.cfg", "[metadata]\r\nname = x\r\n", False),
        *(("setup.cfg", f"[metadata]\nname = x{one}[tool:pytest]{one}addopts = --co{one}", True) for one in SEPARATORS),
        ("pom.xml", POM, False),
        ("package.json", "no JSON", True),
    ],
)
def test_a_new_package_counts_only_for_what_it_says_about_tests(name: str, text: str, counts: bool) -> None:
    assert counts_when_new(name, text.encode()) == counts
