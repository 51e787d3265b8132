"""A run that is killed with -9 at chance moments ends as the unbroken run did."""

import os
from pathlib import Path

import pytest

from crash import torture
from crash.nothing_lost import Expected
from pace import mostly_slow

FEW = int(os.environ.get("RAYMOND_TORTURE", "15"))
MANY = int(os.environ.get("RAYMOND_TORTURE", "500"))
FIRST = int(os.environ.get("RAYMOND_SEED", "0"))
"""Other seeds are other moments."""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return torture.unbroken(tmp_path_factory.mktemp("unbroken"))


@pytest.mark.parametrize("seed", mostly_slow(range(FIRST, FIRST + FEW), daily=2))
def test_killed_at_chance_moments_nothing_is_lost_or_done_twice(seed: int, unbroken: Expected, tmp_path: Path) -> None:
    survive(seed, unbroken, tmp_path)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(FIRST + 1000, FIRST + 1000 + MANY))
def test_killed_hundreds_of_times_nothing_is_lost_or_done_twice(seed: int, unbroken: Expected, tmp_path: Path) -> None:
    survive(seed, unbroken, tmp_path)


def survive(seed: int, unbroken: Expected, folder: Path) -> None:
    place = torture.Place(folder)
    print(f"seed {seed}: RAYMOND_SEED={seed} RAYMOND_TORTURE=1; everything is in {folder}")
    done = torture.torture(place, seed)
    print(f"killed: {', '.join(done.killed) or 'nobody'}\n{done.ending.err}")
    torture.check(place, done, unbroken)
