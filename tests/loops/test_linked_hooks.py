"""Hooks of a person that are links, or large: they stay what they are, and an agent changes none unnoticed."""

import os
from pathlib import Path

import pytest

from looping import HONEST, Night

pytestmark = pytest.mark.slow
HOOK = "#!/bin/sh\ntouch $TEST_ROOM/../ran\n"
LINKS = {"hooks/pre-commit": "../../tools/hooks/pre-commit", "hooks": "../tools/hooks"}


def linked(path: Path, name: str, agent: str) -> Night:
    """A night in a repository whose hook, or folder of hooks, is a link into the tree."""
    night = Night(path, agent=agent, **{"tools/hooks/pre-commit": HOOK})
    (night.path / "tools/hooks/pre-commit").chmod(0o755)
    night.commit("hooks")
    hooks = night.path / ".git/hooks"
    hooks.rename(path / "hooks of git")
    if name != "hooks":
        hooks.mkdir()
    (night.path / ".git" / name).symlink_to(LINKS[name])
    return night


@pytest.mark.parametrize("name", LINKS)
def test_a_hook_that_is_a_link_runs_and_stays_one(tmp_path: Path, name: str) -> None:
    night = linked(tmp_path, name, HONEST)
    ran = night.loop()
    assert ran.code == 0, ran.out
    assert night.subjects == ["start", "hooks", "feat: write the answer", "chore(loop): records"]
    assert (tmp_path / "ran").exists()
    assert os.readlink(night.path / ".git" / name) == LINKS[name]
