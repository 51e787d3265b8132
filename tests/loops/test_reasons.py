"""Review reasons in the files of an agent, however many they are."""

import os
import shutil
from pathlib import Path

import pytest

from looping import Night
from raymond.loops import reasons
from raymond.loops.reasons import LARGE
from raymond.workspace.publish import Person

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def test_many_files_are_looked_at_with_few_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = Night(tmp_path)
    night.write({"known.txt": TOKEN})
    before = night.commit("known")
    night.write({f"many/{number}.txt": f"{number}\n" for number in range(250)})
    night.write({"known.txt": f"more {TOKEN}", "many/249.txt": TOKEN, "large": "x" * (LARGE + 1)})
    after = night.commit("many")
    counting = tmp_path / "bin/git"
    counting.parent.mkdir()
    counting.write_text(f'#!/bin/sh\necho >> {tmp_path}/calls\nexec {shutil.which("git")} "$@"\n', "utf-8")
    counting.chmod(0o755)
    monkeypatch.setenv("PATH", f"{counting.parent}:{os.environ['PATH']}")
    repository = Person(str(night.path), str(tmp_path))
    changes = repository.changes(before, after)
    found = reasons.reasons_for(repository, changes, lambda path: False, reasons.texts_of(repository, changes))
    told = "put something that looks like a GitHub token into many/249.txt"
    assert found == ["added large, which has 10 MB", told]
    assert len((tmp_path / "calls").read_text("utf-8").splitlines()) < 12
