"""Killed at any call of git, a run with a workspace loses nothing, and leaves the repository as it should be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash import nothing_lost, torture, workshop
from crash.nothing_lost import Expected
from crash.workshop import Workshop
from pace import mostly_slow
from raymond.errors import WorkspaceError
from raymond.store import journal
from raymond.workspace.slot import Slot

PARTS = 8


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Expected, list[str]]:
    return workshop.unbroken(tmp_path_factory.mktemp("unbroken"))


def survive(folder: Path, expected: Expected, how: str, number: int, asked: str) -> None:
    """Kill whoever makes this call of git, and let the next one finish."""
    folder.mkdir()
    place = Workshop(folder)
    print(f"{how} call {number}, git {asked}: everything is in {folder}")
    place.strike(how, number)
    struck = place.begin().wait()
    assert struck.code == -9, f"call {number} was not made: {struck.err}"
    assert place.person is not None
    if place.journal.exists():
        journal.read(place.project.run("r"))
    place.strike("never", 0)
    endings = place.finish()
    if "run completed" in struck.err:
        endings += place.finish()
    nothing_lost.check(place, expected, endings, paid_once=True)
    place.clear()


def calls(asked: list[str], *of: str) -> list[int]:
    """The numbers of the calls with one of these words."""
    return [number for number, text in enumerate(asked, 1) if not of or set(of) & set(text.split())]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_is_killed_at_any_call_of_git_loses_nothing(
    part: int, unbroken: tuple[Expected, list[str]], tmp_path: Path
) -> None:
    expected, asked = unbroken
    for number in calls(asked)[part::PARTS]:
        survive(tmp_path / str(number), expected, "before", number, asked[number - 1])


@pytest.mark.slow
def test_a_git_that_outlives_its_driver_spoils_nothing(unbroken: tuple[Expected, list[str]], tmp_path: Path) -> None:
    expected, asked = unbroken
    for number in calls(asked, "update-index", "checkout-index", "update-ref"):
        survive(tmp_path / str(number), expected, "late", number, asked[number - 1])


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


@pytest.mark.parametrize("word", mostly_slow(["update-ref", "update-index", "write-tree"]))
def test_the_lock_that_a_killed_git_leaves_is_in_no_ones_way(
    word: str, unbroken: tuple[Expected, list[str]], tmp_path: Path
) -> None:
    expected, asked = unbroken
    for number in calls(asked, word):
        survive(tmp_path / str(number), expected, "locked", number, asked[number - 1])


def test_a_driver_killed_while_the_tree_is_removed_leaves_that_to_whoever_resumes(
    unbroken: tuple[Expected, list[str]], tmp_path: Path
) -> None:
    """It is renamed first: what is left then is no tree, and everything in it was saved before."""
    expected, _ = unbroken
    place = Workshop(tmp_path)
    place.finish()
    aside = Path(place.project.run("r").workspace, "1.0a1b2c3d.dropped", "tree", "sub")
    aside.mkdir(parents=True)
    (aside / "file").write_text("half removed\n", "utf-8")
    nothing_lost.check(place, expected, place.finish())
    assert not os.path.exists(place.project.run("r").workspace)
