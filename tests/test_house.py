"""The house keeps its own rules: names, doors, pages, and what is imported when."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from pace import mostly_slow
from raymond import errors
from raymond.cli import COMMANDS, SHARED
from raymond.language import findings, policy
from raymond.language.findings import FINDINGS
from scenario import compare

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "src" / "raymond"

DRAWERS = {
    *("base", "common", "context", "data", "handler", "helper", "helpers"),
    *("info", "manager", "misc", "processor", "util", "utils", "wrapper"),
}
"""Words that say nothing about what is inside."""

DOORS = {"cli/__init__.py", "backends/guard.py"}
"""Where anything may be caught: the command line says it is our bug."""

EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 70, 129, 130, 141, 143, 124}


def modules() -> list[Path]:
    """Files that can be imported; states of shipped workflows are no modules."""
    return sorted(
        path
        for path in HOUSE.rglob("*.py")
        if all((folder / "__init__.py").exists() for folder in path.parents if folder.is_relative_to(HOUSE))
    )


def place(path: Path) -> str:
    return path.relative_to(HOUSE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(name: str, heading: str) -> str:
    """The part of a page under one heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page(name), re.DOTALL | re.MULTILINE)
    assert found, f"{name} has no section {heading!r}"
    return found[1]


# Files, functions, names


def test_a_module_opens_with_one_sentence() -> None:
    """It takes one line; what else there is to say follows an empty one."""
    opens = {place(path): (ast.get_docstring(tree(path)) or "").split("\n\n")[0] for path in modules()}
    assert {name: first for name, first in opens.items() if not first.endswith(".") or "\n" in first} == {}


def names(path: Path) -> list[str]:
    """What a module and its classes are called."""
    classes = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    return [path.parent.name if path.name == "__init__.py" else path.stem, *classes]


def test_modules_and_classes_are_named_for_what_they_are() -> None:
    hidden = [place(path) for path in modules() if not re.fullmatch(r"[a-z][a-z0-9_]*|__main__", names(path)[0])]
    assert hidden == [], "hidden, or not lower case"
    words = {place(path): re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", " ".join(names(path))) for path in modules()}
    assert {name: found for name, said in words.items() if (found := {word.lower() for word in said} & DRAWERS)} == {}


def test_anything_is_caught_at_the_doors_only() -> None:
    caught = [
        f"{place(path)}:{node.lineno}"
        for path in modules()
        if place(path) not in DOORS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and catches_all(node)
    ]
    assert caught == []


def catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id == "Exception" for kind in caught)


def test_the_wings_stand_in_one_order_and_those_that_decide_are_pure() -> None:
    contracts = {
        contract["id"]: contract
        for contract in tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    }
    layers = [re.findall(r"\w+", layer) for layer in contracts["wings"]["layers"]]
    views = next(number for number, layer in enumerate(layers) if "views" in layer)
    below = {"views", *(name for layer in layers[views + 1 :] for name in layer)}
    assert contracts["wings"]["exhaustive"]
    # Of the wings above, only what loops read and write is text in, text out.
    assert set(contracts["pure"]["source_modules"]) == {"raymond.loops.formats", *(f"raymond.{name}" for name in below)}


# Pages


def test_the_map_is_true() -> None:
    """Every wing is on the map, and every wing and file that the map names is there."""
    house = section("docs/design.md", "The house")
    wings = {path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists()}
    assert set(re.findall(r"^\| `(\w+)/` \|", house, re.MULTILINE)) == wings
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", house)
    assert [path for path in named if not (HOUSE / path).exists() and not (ROOT / path).exists()] == []


def test_every_policy_key_is_documented() -> None:
    written = section("docs/language.md", "Policy")
    keys = [field.encode_name for field in msgspec.structs.fields(policy.Policy) if field.name != "late"]
    assert [key for key in keys if f"`{key}`" not in written] == []


def test_every_finding_is_documented() -> None:
    written = section("docs/language.md", "Lint")
    errors_, warnings = (
        re.findall(r"^\| `([a-z0-9-]+)` \|", part, re.MULTILINE) for part in written.split("| warning")
    )
    assert set(errors_) == {id for id, finding in FINDINGS.items() if finding.severity == "error"}
    assert set(warnings) == {id for id, finding in FINDINGS.items() if finding.severity == "warning"}


def test_the_page_says_which_findings_cannot_be_silenced() -> None:
    written = section("docs/language.md", "Lint")
    stays = re.search(r"^These cannot be silenced:(.*?)\n\n", written, re.DOTALL | re.MULTILINE)
    first = written.partition("| error |")[0]
    assert stays
    listed = re.findall(r"`([a-z0-9-]+)`", stays[1]) + re.findall(r"^\| `([a-z0-9-]+)` \|", first, re.MULTILINE)
    assert sorted(listed) == sorted(id for id, finding in FINDINGS.items() if finding.firm)


ID_ARGUMENT = {"diagnose": 1, "refuse": 1, "_no_entry": 1, "refusal": 0}
"""Functions that make a finding -> where they take its id."""


def made(path: Path) -> Iterator[str]:
    """The ids of findings that a module makes."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        at = ID_ARGUMENT.get(name, len(node.args))
        given = [
            *node.args[at : at + 1],
            *(one.value for one in node.keywords if name == "Diagnostic" and one.arg == "id"),
        ]
        yield from (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_finding_that_is_made_is_in_the_catalogue() -> None:
    assert {id: place(path) for path in modules() for id in made(path) if id not in FINDINGS} == {}


def test_every_finding_in_the_catalogue_is_made_unless_it_comes_later() -> None:
    somewhere = {id for path in modules() for id in made(path)}
    somewhere |= {*findings.OF_NAME.values(), *findings.MISSING.values()}
    assert {id for id, finding in FINDINGS.items() if not finding.later} == somewhere


def test_every_command_has_a_file_of_its_name_or_shares_one() -> None:
    files = {name: HOUSE / "cli" / f"{SHARED.get(name, name.replace('-', '_'))}.py" for name in COMMANDS}
    assert set(SHARED) <= set(COMMANDS)
    assert [name for name, file in files.items() if not file.exists()] == []


def test_every_exit_code_is_documented() -> None:
    raised = {
        kind.exit_code for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.Error)
    }
    first_cells = re.findall(r"^\| ([\d, ]+) \|", section("docs/language.md", "Exit codes"), re.MULTILINE)
    assert {int(code) for cell in first_cells for code in cell.split(",")} == EXIT_CODES
    assert raised <= EXIT_CODES


def test_the_readme_shows_how_to_begin() -> None:
    assert "make demo" in page("README.md")
    assert "make test" in page("README.md")


# Tools


def test_the_makefile_has_every_target_and_explains_it() -> None:
    targets = re.findall(r"^([a-z0-9]+):.*## \S", page("Makefile"), re.MULTILINE)
    assert set(targets) == {
        "help",
        "demo",
        "test",
        "check",
        "bench",
        "torture",
        "crashpoints",
        "e2e",
        "pins",
        "sbom",
        "clean",
    }


def test_what_has_to_pass_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    asked = re.findall(r"^(?:make|suite) ([\w-]+)", page(".ci/run"), re.MULTILINE)
    assert asked == ["test", "check", "test-slow", "e2e", "demo", "torture", "crashpoints"]


# Start-up


def test_the_version_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    """`re` alone is a third of the time a bare Python takes to start."""
    program = (
        "import sys; before = set(sys.modules); sys.argv = ['raymond', '--version']\n"
        "from raymond.__main__ import main\n"
        "try: code = main()\n"
        "except SystemExit as end: code = end.code\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"\d+\.\d+\.\d+", done.stdout)
    assert not set(done.stderr.split()) & {"msgspec", "click", "re", "enum", "typing", "pathlib", "subprocess"}


HEAVY = {"rich", "asyncio", "subprocess", "yaml", "tempfile", "socket", "ssl", "urllib.request", "http.client"}
ENGINE = {
    *("raymond.control.start", "raymond.drivers.local", "raymond.store.loader", "raymond.machine.decide"),
    *("raymond.steps.turn_step", "raymond.steps.script_step", "raymond.language.lint", "raymond.faces.live"),
}
READING = (
    *("list", "status", "logs", "wait r", "inbox", "clean", "config show", "completion bash", "doctor"),
    *("--help", "resume --help"),
)
VARIANTS = (
    *("list --json", "list --all", "status --json", "logs --json", "logs --step 1", "wait r --json", "inbox --json"),
    *("clean --dry-run", "config show --json", "completion fish", "doctor --json"),
)
_LOOKS = {"raymond.machine.decide", "raymond.store.loader", "socket", "tempfile"}
NEEDED = {"resume --help": ENGINE, "doctor": _LOOKS | {"subprocess"}, "doctor --json": _LOOKS | {"subprocess"}}
"""Who needs more: `doctor` isolates a command, and asks every backend, and importlib.metadata is not light."""


LIBRARIES = {"click", "msgspec", "rich", "yaml"}


def imported(folder: Path, *args: str) -> set[str]:
    """The modules that a command imported, which has to end well: in a project, and with a home beside it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "raymond", *args],
        cwd=folder / "project",
        env={**environment, "HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    # Whether somebody is logged in to the agent of this machine is not the question here.
    assert done.returncode in ((0, 1) if args[0] == "doctor" else (0,)), done.stderr
    found = set(re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE))
    assert {"raymond", "raymond.cli"} <= found
    return found


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run that is done, and a home that knows its workflow."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "home" / ".local" / "state" / "raymond").mkdir(parents=True, mode=0o700)
    (folder / "project" / "flow").mkdir(parents=True)
    (folder / "project" / "flow" / "START.sh").write_text("echo '<result>done</result>'")
    assert "raymond.drivers.local" in imported(folder, "run", "flow", "--id", "r")
    return folder


@pytest.mark.parametrize("command", mostly_slow([*READING, *VARIANTS], daily=len(READING)))
def test_a_reading_command_imports_nothing_it_does_not_need_and_writes_nothing(finished: Path, command: str) -> None:
    before = files(finished)
    allowed = NEEDED.get(command, set())
    assert imported(finished, *command.split()) & (HEAVY | ENGINE) - allowed == set()
    assert files(finished) == before, "a reading command wrote something"


@pytest.mark.parametrize("command", ["list", "logs r", "run flow --id imports", "status r", "status --json"])
def test_a_command_imports_these_modules_and_no_others(finished: Path, command: str) -> None:
    """Ours, each a third of a millisecond at every start, and libraries. UPDATE_SCENARIOS=1 writes the list anew."""
    found = imported(finished, *command.split())
    ours = sorted(name for name in found if name.startswith("raymond") or name in LIBRARIES)
    name = "status-json" if command == "status --json" else command.split()[0]
    compare(ROOT / "tests" / "imported" / f"{name}.txt", "".join(f"{name}\n" for name in ours))


@pytest.mark.parametrize("command", mostly_slow(["list", "list --all", "config show", "doctor", "--help"]))
def test_looking_where_nothing_was_started_writes_nothing(tmp_path: Path, command: str) -> None:
    (tmp_path / "project").mkdir()
    assert not imported(tmp_path, *command.split()) & (HEAVY | ENGINE) - NEEDED.get(command, set())
    assert list(tmp_path.rglob("*")) == [tmp_path / "project"]
