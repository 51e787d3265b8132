"""Killed at any call of git, a run with a workspace loses nothing, and leaves the repository as it should be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash import torture
from raymond.errors import WorkspaceError
from raymond.workspace.slot import Slot

HOLDING = """
import sys
from raymond.workspace.repository import call
from raymond.workspace.slot import Slot
with Slot(sys.argv[1]).alone():
    call(["sh", "-c", "read line < pipe"], sys.argv[2], {})
"""


def test_nobody_has_a_tree_alone_while_a_git_works_there_that_outlived_its_driver(tmp_path: Path) -> None:
    slot = Slot(f"{tmp_path}/1")
    slot.prepare()
    os.mkfifo(tmp_path / "pipe")
    driver = subprocess.Popen([sys.executable, "-c", HOLDING, slot.path, str(tmp_path)])
    with open(tmp_path / "pipe", "w", encoding="ascii"):  # which returns when the command reads
        driver.kill()
        driver.wait()
        with pytest.raises(WorkspaceError, match="a step is still at work"), slot.alone():
            pass
    with slot.alone(patience=torture.PATIENCE):
        pass
