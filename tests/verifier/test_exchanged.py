"""Files that are exchanged in place: afterwards, nothing that was built from the sealed ones is taken for the agent's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from raymond.verifier import swap
from verifier.desk import Desk

pytestmark = pytest.mark.slow

CAT = {
    "Makefile": "test: build/t\n\tsh build/t\nbuild/t: tests/check.sh\n\tmkdir -p build; cat tests/check.sh > build/t\n",
    "tests/check.sh": "exit 1\n",
    ".gitignore": "build/\n.seals/\n",
}
CC = {
    "Makefile": "test: build/t\n\t./build/t\nbuild/t: tests/t.c\n\tmkdir -p build; cc -o build/t tests/t.c\n",
    "tests/t.c": "int main(void) { return 1; }\n",
    ".gitignore": "build/\n.seals/\n",
}


def in_place(path: Path, files: dict[str, str]) -> Desk:
    """The seals are inside of the tree, where no overlay and no copy can be."""
    desk = Desk(path, files, "make test")
    desk.folder = desk.tree / ".seals"
    return desk


def is_green(desk: Desk) -> bool:
    return subprocess.run(["make", "test"], cwd=desk.tree, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("files", "script"),
    [
        (CAT, "echo true > tests/check.sh"),
        pytest.param(
            CC,
            "echo 'int main(void) { return 0; }' > tests/t.c",
            marks=pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler"),
        ),
    ],
    ids=["cat", "cc"],
)
def test_what_was_built_from_the_sealed_version_is_built_again(
    tmp_path: Path, files: dict[str, str], script: str
) -> None:
    desk = in_place(tmp_path, files)
    found = desk.after(script)
    assert (found.verdict, found.twin) == ("review", "in place"), found.reason
    assert is_green(desk)


def test_a_folder_of_the_agent_comes_back_as_new(tmp_path: Path) -> None:
    """It stood where a sealed file was."""
    top, folder = tmp_path / "top", tmp_path / "folder"
    (top / "a").mkdir(parents=True)
    folder.mkdir()
    (top / "a" / "b").write_text("agent")
    built = tmp_path / "built"
    with swap.swapped(str(top), [{"path": "a", "kind": "nothing"}], str(folder)):
        assert not (top / "a").exists()
        built.write_text("from the sealed version")
    assert (top / "a" / "b").read_text() == "agent"
    assert (top / "a" / "b").stat().st_mtime_ns > built.stat().st_mtime_ns
