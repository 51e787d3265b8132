"""docs/backends.md: its backend is a real one, found by its entry point, and keeps the contract."""

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.backends import Backend, Setup
from raymond.testing import BackendContract
from running import Room

PAGE = Path(__file__).parents[2] / "docs" / "backends.md"
QUILL = """#!{python}
import json, os, pathlib, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
folder = pathlib.Path(os.environ["QUILL_TALKS"])
before = json.loads((folder / given["--from"]).read_text()) if "--from" in given else []
talk = [*before, sys.stdin.read()]
(folder / "seen").write_text("\\n".join(talk))
text = (folder / "answer").read_text()
(folder / given["--talk"]).write_text(json.dumps([*talk, text]))
print(json.dumps({{"kind": "tool", "command": "make test"}}))
print(json.dumps({{"kind": "answer", "text": text, "read": 100, "wrote": 20}}))
"""
"""The program that the page imagines."""


def block(language: str, start: str) -> str:
    """The code of the page that begins with `start`."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return next(code for code in found if code.startswith(start))


@pytest.fixture
def quill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package of the page, installed, and the program on the PATH."""
    (tmp_path / "raymond_quill.py").write_text(block("python", '"""Quill'))
    about = tmp_path / "raymond_quill-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: raymond-quill\nVersion: 1\n")
    points = block("toml", "[project.entry-points").replace(
        '[project.entry-points."raymond.backends"]', "[raymond.backends]"
    )
    (about / "entry_points.txt").write_text(points.replace('"', ""))
    program = tmp_path / "bin" / "quill"
    program.parent.mkdir()
    program.write_text(QUILL.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("QUILL_TALKS", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("raymond_quill", None)


class TestTheBackendOfThePage(BackendContract):
    """What the page shows keeps what the page says."""

    @pytest.fixture(autouse=True)
    def _quill(self, quill: Path) -> None:
        self.folder = quill

    def make(self) -> Backend:
        made: Backend = importlib.import_module("raymond_quill").Quill(Setup(name="quill"))
        return made

    def expect(self, text: str) -> None:
        (self.folder / "answer").write_text(text)

    def seen(self) -> str:
        return (self.folder / "seen").read_text()


def test_a_run_uses_it_by_its_name(quill: Path, tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.environment |= {"PYTHONPATH": str(quill), "PATH": os.environ["PATH"], "QUILL_TALKS": str(quill)}
    (quill / "answer").write_text("<result>written</result>")
    ran = room.command({"START.md": "Write."}, "--backend", "quill", "--json")
    assert (ran.code, json.loads(ran.out)["result"], json.loads(ran.out)["cost_is_estimated"]) == (
        0,
        "written",
        True,
    )
    assert "main * make test" in ran.err
    listed = json.loads(room.raymond("doctor", "--json").stdout)
    assert [one["found"] for one in listed if one["what"] == "quill"] == [
        f"{quill}/bin/quill; conversations branch; paid by: the account in ~/.quill"
    ]
    room.clear()


BROKEN = """
class Broken:
    name, paid = "broken", True

    def __init__(self, setup):
        from raymond.backends import Abilities
        self.can = Abilities()

    def look(self):
        from raymond.backends import Found
        return Found(program="sh", payer="nobody")

    def command(self, turn):
        from raymond.backends import Command
        return Command(["sh", "-c", "echo one; echo two"])

    def reader(self, turn):
        return self

    ending, tool = None, ""

    def feed(self, line):
        raise KeyError(line)

    def close(self, code, errors):
        raise RuntimeError("no")

    def spent(self):
        raise RuntimeError("no")
"""


def test_a_backend_that_is_broken_fails_its_turns_and_not_the_run(quill: Path, tmp_path: Path) -> None:
    (quill / "raymond_quill.py").write_text(BROKEN.replace("class Broken", "class Quill"))
    room = Room(tmp_path)
    room.environment |= {"PYTHONPATH": str(quill)}
    ran = room.command({"START.md": "---\nretries: 0\n---\nWrite."}, "--backend", "quill")
    assert (ran.code, ran.run.agents["main"].error) == (1, "its backend is broken: KeyError: b'one'")
    assert room.raymond("doctor").returncode in (0, 1)
    room.clear()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["command", "recall", "look", "reader"])
def test_whatever_a_backend_raises_the_run_is_kept(quill: Path, tmp_path: Path, method: str) -> None:
    """Nothing ends with a traceback, and what was mended goes on."""
    good = (quill / "raymond_quill.py").read_text()
    raises = f"def {method}(self, *_):\n        raise KeyError('oops')\n\n    def no_{method}("
    room = Room(tmp_path)
    room.environment |= {"PYTHONPATH": str(quill), "PATH": os.environ["PATH"], "QUILL_TALKS": str(quill)}
    (quill / "answer").write_text("<result>written</result>")
    (quill / "raymond_quill.py").write_text(good.replace(f"def {method}(", raises, 1))
    ran = room.command({"START.md": "---\nretries: 0\n---\nWrite."}, "--backend", "quill")
    assert ran.code == {"command": 1, "reader": 1, "look": 5, "recall": 0}[method]
    assert "Traceback" not in ran.err
    if ran.code == 1:
        assert ran.run.agents["main"].error == "its backend is broken: KeyError: 'oops'"
        (quill / "raymond_quill.py").write_text(good)
        assert room.resume().result == "written"
    room.clear()
