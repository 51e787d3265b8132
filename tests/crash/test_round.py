"""Random workflows in random trouble: `make torture`, with TORTURE rounds from SEED on, WITHOUT some kinds of trouble."""

import os
import shutil

import pytest

from crash import round as rounds

ROUNDS = int(os.environ.get("RAYMOND_TORTURE", "500"))
FIRST = int(os.environ.get("RAYMOND_SEED", "0"))
WITHOUT = set(filter(None, os.environ.get("RAYMOND_WITHOUT", "").split(",")))


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_whatever_happens_nothing_is_lost_or_done_twice_or_left(seed: int) -> None:
    folder = rounds.folder_of(seed)
    without = f" WITHOUT={','.join(sorted(WITHOUT))}" if WITHOUT else ""
    print(f"to repeat it: make torture TORTURE=1 SEED={seed}{without}; everything is in {folder}")
    played = rounds.Round(seed, folder, WITHOUT)
    print(played)
    played.play()
    shutil.rmtree(folder)
