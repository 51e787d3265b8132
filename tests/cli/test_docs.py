"""`raymond docs`: every page of the documentation, in a checkout and in an installed package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raymond
from raymond import cli
from raymond.cli.docs import PAGES

ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for pages in PAGES.values() for name in pages]


def test_the_list_names_every_page_of_the_folder_in_the_groups_of_the_readme(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["docs"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^  (\S+)", shown, re.MULTILINE) == NAMES
    assert sorted(NAMES) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
    readme = (ROOT / "README.md").read_text("utf-8")
    groups = dict(re.findall(r"^- \*\*(\w+)\*\*: (.*?)(?=^- \*\*|\Z)", readme, re.MULTILINE | re.DOTALL))
    assert {group: re.findall(r"\(docs/(\w+)\.md\)", text) for group, text in groups.items()} == {
        group: [*pages] for group, pages in PAGES.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_shown_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs", name]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def test_a_page_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs", "tutrial"]) == 2
    assert capsys.readouterr().err == "error: there is no page `tutrial`\nhint: did you mean `raymond docs tutorial`?\n"
    assert cli.main(["docs", "../README"]) == 2
    assert cli.main(["docs", "Loops.md"]) == 0


@pytest.mark.slow
def test_an_installed_package_has_the_pages(tmp_path: Path) -> None:
    """A wheel, as pip makes it, unpacked into a folder of its own."""
    for name in ("src", "docs", "README.md", "LICENSE", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    make = "from hatchling.build import build_wheel; print(build_wheel('dist'))"
    made = subprocess.run([sys.executable, "-c", make], cwd=tmp_path, capture_output=True, text=True, check=True)
    target = tmp_path / "site"
    shutil.unpack_archive(tmp_path / "dist" / made.stdout.split()[-1], target, "zip")
    shutil.rmtree(tmp_path / "src")
    shutil.rmtree(tmp_path / "docs")
    told = subprocess.run(
        [sys.executable, "-m", "raymond", "docs", "security"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == (ROOT / "docs" / "security.md").read_text("utf-8")
    assert Path(raymond.__file__).is_relative_to(ROOT), "these tests themselves run from the checkout"
