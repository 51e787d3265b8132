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


FILE, FOLDER = LINKS
EVIL = "echo touch ../evil"
CHANGES = [
    # the link, what the agent does, the verdict, what the summary says
    (FILE, "ln -sfn ../evil LINK", "tampered", "let the link LINK lead elsewhere"),
    (FILE, f"rm LINK; {EVIL} > LINK", "tampered", "replaced the link LINK"),
    (FOLDER, f"rm LINK; mkdir LINK; {EVIL} > LINK/pre-commit", "tampered", "replaced the link LINK"),
    (FILE, f"{EVIL} >> tools/hooks/pre-commit", "review", "changed the hooks of the project in .git/hooks"),
    (FOLDER, f"{EVIL} >> tools/hooks/pre-commit", "review", "changed the hooks of the project in .git/hooks"),
]


@pytest.mark.parametrize(("name", "script", "verdict", "told"), CHANGES)
def test_a_link_that_an_agent_changed_is_named_and_put_back(
    tmp_path: Path, name: str, script: str, verdict: str, told: str
) -> None:
    link = f".git/{name}"
    night = linked(tmp_path, name, f"{script.replace('LINK', link)}; {HONEST}")
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.out + ran.err
    assert [one["verdict"] for one in night.state["failedItems"]] == [verdict], ran.out
    assert told.replace("LINK", link) in ran.out
    assert os.readlink(night.path / link) == LINKS[name]
    assert night.text("tools/hooks/pre-commit") == HOOK
    assert not (tmp_path / "evil").exists()
    assert night.git("status", "--porcelain") == ""


@pytest.mark.parametrize("megabytes", [2, 17])
def test_a_large_hook_is_put_back_whole_or_not_at_all(tmp_path: Path, megabytes: int) -> None:
    night = Night(tmp_path, agent=f"echo touch ../evil >> .git/hooks/pre-commit; {HONEST}")
    hook = night.path / ".git/hooks/pre-commit"
    text = "#!/bin/sh\nexit 0\n".ljust(megabytes * 1_000_000, "#") + "\n"
    hook.write_text(text, "utf-8")
    hook.chmod(0o755)
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.out
    assert [one["verdict"] for one in night.state["failedItems"]] == ["tampered"]
    is_kept = megabytes == 2
    told = "changed .git/hooks/pre-commit" + ("" if is_kept else ", which is not put back")
    assert told in ran.out
    assert hook.read_text("utf-8") == text + ("" if is_kept else "touch ../evil\n")


def test_a_setting_that_an_agent_wrote_behind_a_link_lets_the_loop_wait(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"git config filter.x.clean 'touch ../evil; cat'; {HONEST}")
    config, real = night.path / ".git/config", tmp_path / "config of all clones"
    config.rename(real)
    config.symlink_to(real)
    before = real.read_bytes()
    ran = night.loop("--attempts", "1")
    assert ran.code == 3, ran.out
    assert "the agent added the git setting filter.x.clean (a link leads to it" in ran.out
    assert config.is_symlink()
    real.write_bytes(before)
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.out + ran.err
    assert [one["verdict"] for one in night.state["failedItems"]] == ["tampered"]
    assert config.is_symlink()
    assert not (tmp_path / "evil").exists()
