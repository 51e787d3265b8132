"""Processes that are noted are found again, and no others."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.system.stragglers import PidFile

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="there is no /proc")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as made:
        yield made
        made.kill()


def test_a_process_is_left_until_it_ends(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    noted = PidFile(str(tmp_path / "processes"))
    assert noted.left() == {}
    noted.add({process.pid: 3})
    assert noted.left() == {process.pid: 3}
    process.kill()
    process.wait()
    assert noted.left() == {}


@pytest.mark.parametrize("word", range(4), ids=["pid", "step", "start", "boot"])
def test_a_line_that_is_damaged_or_of_an_earlier_boot_names_nothing(
    word: int, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "processes"
    PidFile(str(path)).add({process.pid: 3})
    words = path.read_text().split()
    words[word] = f"{words[word]}x"
    path.write_text(" ".join(words) + f"\n{process.pid} 3")
    assert PidFile(str(path)).left() == {}


@pytest.mark.parametrize("word", range(4), ids=["pid", "step", "start", "boot"])
def test_a_number_that_is_too_long_names_nothing(word: int, process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    path = tmp_path / "processes"
    PidFile(str(path)).add({process.pid: 3})
    words = path.read_text().split()
    path.write_text(" ".join([*words[:word], words[word].zfill(5000), *words[word + 1 :]]) + "\n")
    assert PidFile(str(path)).left() == {}


def test_what_we_come_from_is_not_left(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The terminal of a person, perhaps."""
    noted = PidFile(str(tmp_path / "processes"))
    noted.add({1: 1, os.getpid(): 2, os.getppid(): 3, process.pid: 4})
    assert noted.left() == {process.pid: 4}


def test_a_file_that_is_none_names_nothing(tmp_path: Path) -> None:
    path = tmp_path / "processes"
    os.mkfifo(path)
    with path.open("r+b", buffering=0):
        assert PidFile(str(path)).left() == {}


def test_the_file_does_not_grow_without_end(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    path = tmp_path / "processes"
    noted = PidFile(str(path))
    noted.add({process.pid: 3})
    for _ in range(100):
        noted.add(dict.fromkeys(range(1 << 30, (1 << 30) + 100), 0))
    assert noted.left() == {process.pid: 3}
    assert len(path.read_text().splitlines()) <= 1000
    assert path.stat().st_mode & 0o777 == 0o600
