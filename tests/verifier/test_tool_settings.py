"""Settings of git that run nothing of anybody's."""

import pytest

from raymond.verifier import tool_settings


@pytest.mark.parametrize("value", ["status", "status -sb", "log --oneline --graph", "checkout", "diff --cached"])
def test_an_alias_for_a_command_of_git_is_harmless(value: str) -> None:
    assert tool_settings.is_harmless("alias.x", [value])


@pytest.mark.parametrize(
    "value",
    ["!evil", "evil", "-c core.pager=evil log", "commit -n", "grep -Oevil", "config core.pager evil", "log x", ""],
)
def test_any_other_alias_is_not(value: str) -> None:
    assert not tool_settings.is_harmless("alias.x", [value])
