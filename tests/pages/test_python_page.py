"""docs/python.md: its program does what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import raymond

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")


def block(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found[number]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the workflow of the page."""
    for line in block("text").splitlines():
        name, text = line.split(maxsplit=1)
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"{text}\n")
    return tmp_path


def printed(project: Path, program: str) -> str:
    file = project / "program.py"
    file.write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=project,
        env={**os.environ, "HOME": str(project)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_program_of_the_page_starts_follows_and_answers_a_run(project: Path) -> None:
    assert raymond.check(raymond.load(str(project / "flow"))) == []
    told = printed(project, block("python"))
    assert re.sub(r"flow-[0-9a-f]{8}", "flow-1b2c3d4e", told) == block("text", 1)
    assert len(block("python").splitlines()) <= 12


def test_the_service_of_the_page_publishes_in_a_thread(project: Path) -> None:
    assert printed(project, block("python", 1)) == "published\n"
