"""Python's search for garbage is put off, and never for good."""

import gc

import pytest

from raymond.system import garbage


def test_nothing_is_searched_meanwhile_and_everything_after_it() -> None:
    with garbage.kept():
        assert not gc.isenabled()
        with garbage.kept():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the inner one leaves that to the outer one"
    assert gc.isenabled()


def test_a_failure_does_not_leave_it_off() -> None:
    with pytest.raises(ValueError, match="x"), garbage.kept():
        raise ValueError("x")
    assert gc.isenabled()
