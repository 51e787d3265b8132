"""Stragglers: processes that steps of a run left running, for whoever is a step of it and goes on without them."""

from collections.abc import Callable

from raymond.system import kin, processes
from raymond.system.marks import Marks, end_all
from raymond.system.noted import Noted


def end(key: str, noted: str, only: Callable[[int], bool]) -> None:
    """End what the steps `only` is true of have left running; `key` is the mark of the run."""
    end_all(lambda: _of(key, noted, only))


def _of(key: str, noted: str, only: Callable[[int], bool]) -> dict[int, int]:
    """By their mark, by what the driver saw, and by whom they come from."""
    seen = Noted(noted).left() if noted else {}
    found = {pid: step for pid, step in seen.items() if step and only(step)}
    found |= Marks(key, "").find(only)
    return dict.fromkeys(kin.of(found), 0) if found and processes.HAS_PROC else found
