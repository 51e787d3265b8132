"""Python's search for garbage is put off, and never for good."""

import gc

import pytest

from raymond.store import journal


def test_nothing_is_searched_meanwhile_and_everything_after_it() -> None:
    with journal.without_collector():
        assert not gc.isenabled()
        with journal.without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the inner one leaves that to the outer one"
    assert gc.isenabled()


def test_a_failure_does_not_leave_it_off() -> None:
    with pytest.raises(ValueError, match="x"), journal.without_collector():
        raise ValueError("x")
    assert gc.isenabled()
