"""A file that was changed in the second in which git last saw it, to another content of the same length."""

import os
import subprocess
from pathlib import Path

from raymond.workspace import tree
from raymond.workspace.slot import Slot
from running import until


def git(top: Path, *args: str) -> None:
    who = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    subprocess.run(["git", *who, *args], cwd=top, check=True, stdin=subprocess.DEVNULL)


def changed_at_once(top: Path) -> int:
    """Change a file right after git has seen it; the second, 0 when it was not the same one."""
    (top / "file").write_text("one\n", "utf-8")
    git(top, "add", "file")
    git(top, "commit", "-qm", "a file", "--allow-empty")
    (top / "file").write_text("two\n", "utf-8")
    seconds = {int(time) for path in ("file", ".git/index") for time in _times(top / path)}
    return seconds.pop() if len(seconds) == 1 else 0


def _times(path: Path) -> tuple[float, float]:
    found = os.stat(path)
    return found.st_mtime, found.st_ctime


def test_a_workspace_begins_with_what_the_file_has_now(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    second = until(lambda: changed_at_once(top), "a change within a second")
    clock = tmp_path / "clock"
    until(lambda: clock.write_text("") is not None and int(os.stat(clock).st_mtime) > second, "the next second")
    slot = Slot(f"{tmp_path}/slots/1")
    tree.make(slot, str(top), "r", carry=[], way="isolated", tell=print, time=0.0)
    assert Path(slot.tree, "file").read_text("utf-8") == "two\n"
