"""The message of a commit, by value."""

import pytest

from raymond.loops.branch import subject


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Write the answer", "feat: write the answer"),
        ("Fix the login page.", "fix: fix the login page"),
        ("Fix: Impossible", "fix: impossible"),
        ("Fix:", "fix: fix:"),
        ("feat(ui): Add a page", "feat(ui): Add a page"),
        ("README of the tool", "docs: README of the tool"),
        ("x" * 80, f"feat: {'x' * 63}..."),
    ],
)
def test_a_title_becomes_a_conventional_subject(title: str, expected: str) -> None:
    assert subject(title) == expected
