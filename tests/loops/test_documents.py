"""How documents are read, and how they are written: with the mode that they had, which is never wider meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from looping import Night
from raymond.loops import documents
from raymond.loops.documents import Folder

SPEC = "docs/implementation/1-core/1.4-answers.md"
TASK = "### 1.4.1. Write the answer\n\n**Status:** 🔵 Planned\n**Verification:** `sh check.sh`\n"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_what_is_a_link_or_of_another_kind_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "docs/implementation/1-core").mkdir(parents=True)
    (tmp_path / "docs/implementation/1-core/1.1-a.md").write_text("a", "utf-8")
    (tmp_path / "docs/prd.md").symlink_to("implementation/1-core/1.1-a.md")
    (tmp_path / "docs/session_logs").symlink_to("implementation")
    found = Folder(str(tmp_path), "docs", str(tmp_path))
    assert (found.read("implementation", "1-core", "1.1-a.md"), found.read("prd.md")) == ("a", "")
    assert (found.beginning("implementation/1-core/1.1-a.md"), found.read("implementation")) == ("a", "")
    files = ("implementation/1-core/1.1-a.md", "prd.md", "implementation")
    assert [found.exists(one) for one in files] == [True, False, False]
    assert [found.is_folder(one) for one in ("implementation", "session_logs", "prd.md")] == [True, False, False]
    assert sorted(found.names()) == ["implementation", "prd.md", "session_logs"]
    assert found.names("implementation", "1-core") == ["1.1-a.md"]
    assert [*found.names("session_logs"), *found.names("session_logs", "1-core"), *found.names("nowhere")] == []
    found.write("b", "summaries", "b.md")
    assert found.read("summaries", "b.md") == "b"


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o755, 0o444, 0o666])
def test_a_document_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "prd.md"
    path.write_text("old", "utf-8")
    path.chmod(kept)
    documents.write(str(path), "new")
    assert (path.read_text("utf-8"), mode(path)) == ("new", kept)
    assert os.listdir(tmp_path) == ["prd.md"]


def test_a_new_document_is_as_open_as_any_new_file(tmp_path: Path) -> None:
    documents.write(str(tmp_path / "new.md"), "new")
    (tmp_path / "other.md").touch()
    assert mode(tmp_path / "new.md") == mode(tmp_path / "other.md")


def test_a_link_gives_nothing_its_mode(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(0o777)
    (tmp_path / "prd.md").symlink_to(tmp_path / "elsewhere")
    documents.write(str(tmp_path / "prd.md"), "new")
    (tmp_path / "other.md").touch()
    assert mode(tmp_path / "prd.md") == mode(tmp_path / "other.md")
    assert (tmp_path / "elsewhere").read_text() == ""


OPENED = """
import os, sys
from raymond.loops import documents
from raymond.loops.documents import Folder
def told(event, args):
    if event == "os.rename":
        print(oct(os.stat(args[0]).st_mode & 0o777))
real = os.open
def opened(path, flags, mode=0o777, **more):
    fd = real(path, flags, mode, **more)
    if ".raymond-new" in str(path):
        print(oct(os.fstat(fd).st_mode & 0o777))
    return fd
os.open = opened
os.umask(0)
sys.addaudithook(told)
documents.write(sys.argv[1], "new")
"""


def test_what_is_written_aside_is_never_more_open(tmp_path: Path) -> None:
    path = tmp_path / "prd.md"
    path.write_text("old", "utf-8")
    path.chmod(0o640)
    done = subprocess.run([sys.executable, "-c", OPENED, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0o600", "0o640"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to any group")
def test_a_document_keeps_its_group(tmp_path: Path) -> None:
    path = tmp_path / "prd.md"
    path.write_text("old", "utf-8")
    os.chown(path, -1, 4242)
    documents.write(str(path), "new")
    assert path.stat().st_gid == 4242


@pytest.mark.slow
def test_a_loop_commits_no_change_of_a_mode(tmp_path: Path) -> None:
    night = Night(tmp_path, **{SPEC.replace("/", "__"): TASK})
    (night.path / SPEC).chmod(0o755)
    night.commit("executable")
    assert night.loop(loop="task-loop").code == 0
    assert "**Verified:** true" in night.text(SPEC)
    assert night.git("ls-tree", night.tip, SPEC).split()[0] == "100755"
