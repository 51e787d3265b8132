"""docs/python.md: its program does what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import raymond

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")


def block(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found[number]


def test_the_program_of_the_page_starts_follows_and_answers_a_run(tmp_path: Path) -> None:
    for line in block("text").splitlines():
        name, text = line.split(maxsplit=1)
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"{text}\n")
    assert raymond.check(raymond.load(str(tmp_path / "flow"))) == []
    program = tmp_path / "program.py"
    program.write_text(block("python"), "utf-8")

    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stderr == ""
    assert re.sub(r"flow-[0-9a-f]{8}", "flow-1b2c3d4e", done.stdout) == block("text", 1)
    assert len(block("python").splitlines()) <= 12
