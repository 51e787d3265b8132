"""Large families of tests: some cases in `make test`, the others in `make test-slow`."""

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")
DAILY = 1
"""Cases of a test that starts programs and that `make test` runs."""


def mostly_slow(cases: Iterable[T], *, daily: int = 1) -> list[T | ParameterSet]:
    """The first `daily` cases as they are, the rest marked slow."""
    return [case if at < daily else pytest.param(case, marks=pytest.mark.slow) for at, case in enumerate(cases)]
