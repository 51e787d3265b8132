"""What is fetched to build, test and run Raymond: known by hash, bounded, named in a bill of materials."""

import contextlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PINS = ("requirements.txt", "requirements-build.txt", "requirements-dev.txt", "requirements-pins.txt")

DOWNLOADS = re.compile(
    r"""
      ://[^\s"'`<>)/]+/[^\s"'`<>)]*\.(?:whl|zip|tar|tgz|t?[gx]z|bz2|zst|deb|rpm|exe|dmg|sh)\b  # a file to fetch
    | \bgit[+](?:https?|ssh|file):                                                # a repository to install from
    | \s@\s\w+://                                                                 # a package by address
    | (?:index|registry|find)[-_](?:url|links)\b | --registry\b | "resolved":     # another place for packages
    | \b(?:curl|wget)\b[^|\n]*\|\s*(?:ba)?sh\b                                    # a program by pipe
    """,
    re.VERBOSE,
)


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def description() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def pins(name: str) -> dict[str, Requirement]:
    """The pins of a file, without their hashes."""
    lines = (line.partition(" --hash")[0] for line in logical_lines(name))
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


def logical_lines(name: str) -> list[str]:
    joined = text(name).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+", " ", line) for line in joined if line and not line.lstrip().startswith("#")]


def requirements(lines: list[str]) -> list[Requirement]:
    assert lines != []
    return [Requirement(line) for line in lines]


def runtime() -> list[Requirement]:
    return requirements(description()["project"]["dependencies"])


def bounded(requirement: Requirement) -> bool:
    return any(part.operator in ("<", "<=", "==", "~=") for part in requirement.specifier)


def fits(requirement: Requirement, pin: Requirement) -> bool:
    return requirement.specifier.contains(version(pin))


def version(pin: Requirement) -> str:
    (exact,) = pin.specifier
    assert exact.operator == "=="
    return exact.version


# Pins


@pytest.mark.parametrize("name", PINS)
def test_a_file_of_pins_holds_exact_versions_with_hashes_and_nothing_else(name: str) -> None:
    pin = r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[0-9][a-z0-9.]*( ; [^\\#@]+?)?( --hash=sha256:[0-9a-f]{64})+"
    assert logical_lines(name) != []
    assert [line for line in logical_lines(name) if not re.fullmatch(pin, line)] == []
    assert "://" not in text(name)


def test_every_runtime_dependency_is_bounded_and_pinned_within_its_bounds() -> None:
    pinned = pins("requirements.txt")
    assert [str(one) for one in runtime() if not bounded(one)] == []
    assert [str(one) for one in runtime() if not fits(one, pinned[canonicalize_name(one.name)])] == []


def test_every_tool_of_a_contributor_is_pinned_within_its_bounds() -> None:
    pinned = pins("requirements-dev.txt")
    tools = requirements(description()["project"]["optional-dependencies"]["dev"])
    assert [str(one) for one in tools if not fits(one, pinned[canonicalize_name(one.name)])] == []


def test_a_package_that_is_needed_with_an_extra_is_pinned_with_it() -> None:
    """Otherwise pip refuses all pins as soon as there is a newer release of that package."""
    pinned = pins("requirements-dev.txt")
    for name in pinned:
        with contextlib.suppress(PackageNotFoundError):  # on other platforms only
            needed = [Requirement(one) for one in metadata.requires(name) or ()]
            for one in needed:
                if one.extras and (one.marker is None or one.marker.evaluate({"extra": ""})):
                    assert one.extras <= pinned[canonicalize_name(one.name)].extras, f"{name} needs {one}"


def test_what_users_run_is_what_the_tests_ran_with() -> None:
    used, tested = (
        {re.sub(r" ; .*? (?=--hash)", " ", line) for line in logical_lines(name)}
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert used - tested == set()


def test_the_build_backend_is_one_version_and_pinned_with_a_hash() -> None:
    (backend,) = requirements(description()["build-system"]["requires"])
    assert version(backend) == version(pins("requirements-build.txt")[backend.name])
    assert pins("requirements-build.txt").items() <= pins("requirements-dev.txt").items()


def test_the_environment_is_made_of_files_with_known_hashes_only() -> None:
    installs = re.findall(r"pip install .*", text("Makefile"))
    assert [line for line in installs if "--require-hashes" not in line and "--no-index --no-deps" not in line] == []
    assert all("--no-build-isolation" in line for line in installs if line.endswith("-e ."))
    assert all("--require-hashes" in line for line in re.findall(r"pip install .*", text("tools/pins")))


@pytest.mark.slow
def test_a_release_whose_file_was_exchanged_is_refused(tmp_path: Path) -> None:
    pin = next(line for line in logical_lines("requirements-dev.txt") if line.startswith("mdurl=="))
    (tmp_path / "pins.txt").write_text(pin)
    name = f"mdurl-{version(Requirement(pin.partition(' --')[0]))}"
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mdurl/__init__.py", "print('owned')")
        for file in ("METADATA", "WHEEL", "RECORD"):
            wheel.writestr(f"{name}.dist-info/{file}", "")
    asked = ["--require-hashes", "--target", "in", "--no-index", "-f", ".", "-r", "pins.txt"]
    command = [sys.executable, "-m", "pip", "--isolated", "install", *asked]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert (done.returncode, (tmp_path / "in").exists()) == (1, False)


# Addresses


@pytest.mark.slow
def test_nothing_in_the_repository_is_fetched_by_address() -> None:
    names = [name for name in tracked() if ROOT / name != Path(__file__)]
    assert len(names) > 100
    assert [f"{name}: {hit[0]}" for name in names for hit in DOWNLOADS.finditer(readable(name))] == []


@pytest.mark.parametrize("name", ["pyproject.toml", "Makefile", ".ci/run", "tools/pins", "tests/e2e/install"])
def test_what_installs_asks_for_packages_by_name(name: str) -> None:
    assert "://" not in text(name)


@pytest.mark.parametrize(
    "line",
    [
        "see https://example.org/a/click-8.5.1-py3-none-any.whl#sha256=0",
        "pip install git+https://example.org/click",
        "click @ https://example.org/click",
        "--extra-index-url https://example.org/simple",
        '"resolved": "a/b.tgz"',
        "curl -fsSL https://example.org/install | bash",
    ],
)
def test_the_search_for_addresses_finds(line: str) -> None:
    assert DOWNLOADS.search(line)


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def readable(name: str) -> str:
    return (ROOT / name).read_text("utf-8", errors="replace")


# The bill of materials


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `make sbom` writes, in the environment of these tests."""
    target = tmp_path_factory.mktemp("sbom") / "new" / "sbom.json"
    settings = [f"BIN={Path(sys.executable).parent}", f"SBOM={target}"]
    subprocess.run(["make", "-s", "-o", ".venv/.ready", "sbom", *settings], cwd=ROOT, check=True)
    return dict[str, Any](json.loads(target.read_text("utf-8")))


@pytest.mark.slow
def test_the_bill_of_materials_names_all_that_runs_and_nothing_else(bill: dict[str, Any]) -> None:
    pinned = [pin for pin in pins("requirements.txt").values() if pin.marker is None or pin.marker.evaluate()]
    listed = {part["purl"] for part in bill["components"]}
    assert {canonicalize_name(one.name) for one in runtime()} <= {part["name"] for part in bill["components"]}
    assert listed == {f"pkg:pypi/{canonicalize_name(pin.name)}@{version(pin)}" for pin in pinned}


@pytest.mark.slow
def test_every_part_in_the_bill_has_a_licence_and_the_hashes_of_its_pin(bill: dict[str, Any]) -> None:
    for part in bill["components"]:
        (line,) = [line for line in logical_lines("requirements.txt") if line.startswith(f"{part['name']}==")]
        (reference,) = part["externalReferences"]
        assert [f"sha256:{one['content']}" for one in reference["hashes"]] == re.findall(r"--hash=(\S+)", line)
        assert part["licenses"] != []


@pytest.mark.slow
def test_the_bill_tells_what_needs_what(bill: dict[str, Any]) -> None:
    needs = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    refs = {part["bom-ref"] for part in bill["components"]}
    own = bill["metadata"]["component"]["bom-ref"]
    assert needs.keys() == refs | {own}
    assert {name.partition("@")[0] for name in needs[own]} == {
        f"pkg:pypi/{canonicalize_name(one.name)}" for one in runtime()
    }
    assert {ref for wanted in needs.values() for ref in wanted} == refs


@pytest.mark.slow
def test_the_bill_has_every_field_its_format_requires(bill: dict[str, Any]) -> None:
    """The required fields, enumerations and patterns of CycloneDX 1.6 for what the bill uses."""
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["metadata"]["timestamp"])
    parts = [bill["metadata"]["component"], *bill["components"]]
    assert [part["type"] for part in parts] == ["application"] + ["library"] * len(bill["components"])
    assert all(part["name"] and part["version"] and part["purl"] for part in parts)
    assert len({part["bom-ref"] for part in parts}) == len(parts)
    for part in parts:
        assert well_licensed(part["licenses"])
        for reference in part.get("externalReferences", []):
            assert (reference["type"], reference["url"]) == ("distribution", part["purl"])
            assert all(one["alg"] == "SHA-256" for one in reference["hashes"])
            assert all(re.fullmatch(r"[0-9a-f]{64}", one["content"]) for one in reference["hashes"])


def well_licensed(licences: list[dict[str, Any]]) -> bool:
    """One expression, or any number of named licences; never both."""
    if "expression" in licences[0]:
        return len(licences) == 1
    return all(one.keys() == {"license"} and one["license"].keys() == {"name"} for one in licences)
