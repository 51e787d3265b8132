"""What the page on security promises is attacked by tests, and the page says by which."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = ("attacks", "trust", "verifier", "workspace")
"""Folders whose tests attack something."""
_, _WHO, *PROMISES, _NOT = re.split(r"^## ", (ROOT / "docs" / "security.md").read_text("utf-8"), flags=re.MULTILINE)
NAMED = {
    section.splitlines()[0]: re.findall(r"`(tests/[\w/.]+)`", section.rpartition("\nTests: ")[2])
    for section in PROMISES
    if "\nTests: " in section
}


def held(path: Path) -> list[str]:
    """The tests in a file, or in all files of a folder."""
    files = path.rglob("test_*.py") if path.is_dir() else [path] if path.is_file() else []
    return [name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)]


def test_the_section_of_what_is_not_promised_comes_last() -> None:
    assert _WHO.startswith("Who is trusted\n")
    assert _NOT.startswith("Not promised\n")


def test_every_section_that_promises_something_names_tests_that_are_there() -> None:
    assert [*NAMED] == [section.splitlines()[0] for section in PROMISES]
    assert [path for paths in NAMED.values() for path in paths if not held(ROOT / path)] == []
    assert [section for section, paths in NAMED.items() if not paths] == []


def test_every_file_of_attacks_belongs_to_a_section() -> None:
    named = {path for paths in NAMED.values() for path in paths}
    files = [file.relative_to(ROOT) for folder in HOSTILE for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    assert [str(file) for file in files if named.isdisjoint(map(str, (file, *file.parents)))] == []
