"""A run that is killed with -9 at chance moments ends as the unbroken run did."""

from pathlib import Path

import pytest

from crash import torture
from crash.nothing_lost import Expected
from pace import mostly_slow

SEEDS = range(8)
"""Other seeds are other moments."""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return torture.unbroken(tmp_path_factory.mktemp("unbroken"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_slow(SEEDS, daily=2))
def test_killed_at_chance_moments_nothing_is_lost_or_done_twice(seed: int, unbroken: Expected, tmp_path: Path) -> None:
    survive(seed, unbroken, tmp_path)


def survive(seed: int, unbroken: Expected, folder: Path) -> None:
    place = torture.Place(folder)
    print(f"everything is in {folder}")
    done = torture.torture(place, seed)
    print(f"killed: {', '.join(done.killed) or 'nobody'}\n{done.ending.err}")
    torture.check(place, done, unbroken)
