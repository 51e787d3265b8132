"""A workflow unpacked for its scripts: read-only, exactly what its snapshot says, and safe from `clean` while in use."""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raymond.store import workflow_snapshot
from raymond.store.home import Home
from raymond.store.workflow_snapshot import UnpackedWorkflow
from raymond.system import folders

FILES = {"START.sh": b"echo\n", "B.md": b"b", "data/deep/x": b"x", "data/y": b""}
DIGEST = "0" * 64


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(f"{tmp_path}/home")


@pytest.fixture
def made(home: Home) -> Iterator[UnpackedWorkflow]:
    """The folder, as it should be."""
    made = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    assert made.make() is False
    yield made
    made.close()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are looked at every time, and not once a second."""
    monkeypatch.setattr(workflow_snapshot, "ALL_EVERY", 0.0)


def everything(folder: str) -> dict[str, bytes]:
    top = Path(folder)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def opened_up(path: Path) -> Path:
    """A path whose folder can be changed, as its owner can do."""
    path.parent.chmod(0o700)
    return path


# How anybody who can write files could change what runs next


def rewritten(top: Path) -> None:
    (top / "START.sh").chmod(0o600)
    (top / "START.sh").write_bytes(b"evil\n")


def replaced(top: Path) -> None:
    """The same text, which can be written to."""
    opened_up(top / "START.sh").unlink()
    (top / "START.sh").write_bytes(FILES["START.sh"])


def linked(top: Path) -> None:
    (top.parent / "evil").write_bytes(FILES["START.sh"])
    opened_up(top / "START.sh").unlink()
    (top / "START.sh").symlink_to("../evil")


def removed(top: Path) -> None:
    opened_up(top / "START.sh").unlink()


def added(top: Path) -> None:
    opened_up(top / "json.py").write_bytes(b"evil")


def added_below(top: Path) -> None:
    opened_up(top / "data" / "deep" / "json.py").write_bytes(b"evil")


def emptied(top: Path) -> None:
    top.chmod(0o700)
    with folders.opened(str(top.parent)) as above:
        folders.remove(top.name, above)


def swapped(top: Path) -> None:
    top.rename(top.parent / "away")
    shutil.copytree(top.parent / "away", top)
    rewritten(top)


def a_link(top: Path) -> None:
    top.rename(top.parent / "away")
    top.symlink_to("away")


HARM = [rewritten, replaced, linked, removed, added, added_below, emptied, swapped, a_link]


# Made


def test_everything_is_there_and_read_only(made: UnpackedWorkflow, home: Home) -> None:
    assert made.path == f"{home.work}/{DIGEST}"
    assert everything(made.path) == FILES
    top = Path(made.path)
    modes = {str(path.relative_to(top)): stat.S_IMODE(path.stat().st_mode) for path in [top, *top.rglob("*")]}
    assert modes == dict.fromkeys((".", "data", "data/deep"), 0o500) | dict.fromkeys(FILES, 0o400)
    assert os.listdir(home.work) == [DIGEST]


def test_one_that_is_there_and_right_is_kept(made: UnpackedWorkflow, home: Home) -> None:
    before = os.stat(f"{made.path}/START.sh")
    again = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    assert again.make() is False
    assert os.stat(f"{made.path}/START.sh") == before
    again.close()


@pytest.mark.parametrize("harm", HARM)
def test_one_that_is_not_what_the_snapshot_says_is_replaced_and_said(home: Home, harm: Callable[[Path], None]) -> None:
    first = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    first.make()
    first.close()
    harm(Path(first.path))
    second = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    assert second.make() is (harm is not emptied), "what is not there was not changed"
    assert everything(second.path) == FILES
    assert not os.path.islink(second.path)
    assert not [name for name in os.listdir(home.work) if name.startswith(".")], "nothing is left of the old one"
    second.close()


def test_of_many_that_make_it_at_once_all_have_it(home: Home) -> None:
    many = [UnpackedWorkflow(home, DIGEST, lambda: FILES) for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(UnpackedWorkflow.make, many))
    assert everything(many[0].path) == FILES
    assert not any(one.check("START.sh") for one in many), "everybody holds the same folder"
    assert os.listdir(home.work) == [DIGEST]
    for one in many:
        one.close()


# Looked at


def test_what_stands_as_it_was_is_trusted(made: UnpackedWorkflow, always: None) -> None:
    before = os.stat(made.path)
    for _ in range(3):
        assert made.check("START.sh") is False
    assert os.stat(made.path) == before


@pytest.mark.parametrize("harm", HARM)
def test_a_script_that_was_touched_is_put_back_before_it_is_started(
    made: UnpackedWorkflow, harm: Callable[[Path], None]
) -> None:
    harm(Path(made.path))
    assert made.check("START.sh") is (harm is not emptied)
    assert everything(made.path) == FILES
    assert made.check("START.sh") is False


def test_the_other_files_are_looked_at_too_now_and_then(
    made: UnpackedWorkflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(made.path, "data", "deep", "x")
    path.chmod(0o600)
    path.write_bytes(b"X")
    assert made.check("START.sh") is False
    assert path.read_bytes() == b"X", "not at every start: there may be a thousand"
    monkeypatch.setattr(workflow_snapshot, "monotonic", lambda: float("inf"))
    assert made.check("START.sh") is True
    assert everything(made.path) == FILES


# In use


def test_nobody_can_claim_a_folder_that_is_in_use(made: UnpackedWorkflow) -> None:
    with folders.opened(made.path) as fd:
        assert not folders.claim(fd)
        made.close()
        assert folders.claim(fd)


def test_one_that_was_replaced_is_held_again(made: UnpackedWorkflow) -> None:
    rewritten(Path(made.path))
    made.check("START.sh")
    with folders.opened(made.path) as fd:
        assert not folders.claim(fd)


def test_the_folders_of_files_are_named_parents_first() -> None:
    assert workflow_snapshot.folders_of(["a", "b/c/d", "b/e", "f/g"]) == ["b", "b/c", "f"]


@pytest.mark.slow
def test_a_process_that_keeps_the_folder_locked_stops_nobody(home: Home) -> None:
    """A step can take any lock on what it can read."""
    first = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    first.make()
    first.close()
    fd = os.open(first.path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    second = UnpackedWorkflow(home, DIGEST, lambda: FILES)
    assert second.make() is False
    os.close(fd)
