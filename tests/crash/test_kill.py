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


@pytest.fixture(scope="module")
def unbroken_inside(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return torture.unbroken(tmp_path_factory.mktemp("unbroken"), isolated=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_chance_moments_a_workspace_loses_nothing_and_the_repository_is_as_it_was(
    seed: int, unbroken_inside: Expected, tmp_path: Path
) -> None:
    survive(seed, unbroken_inside, tmp_path, isolated=True)


def survive(seed: int, unbroken: Expected, folder: Path, *, isolated: bool = False) -> None:
    place = torture.Place(folder, isolated=isolated)
    print(f"everything is in {folder}")
    done = torture.torture(place, seed)
    print(f"killed: {', '.join(done.killed) or 'nobody'}\n{done.ending.err}")
    torture.check(place, done, unbroken)
