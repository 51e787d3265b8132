"""`--dry-run` of a loop: what an agent would be sent, what the check shows now, rights and money as they really are."""

import json
from pathlib import Path

import pytest

from looping import Night

RED = "echo '== 1 failed, 3 passed =='; exit 1\n"


def night_of(path: Path) -> Night:
    night = Night(path, **{"check.sh": RED, "PROMPT.md": "Make it work.\n"})
    config = night.path.parent / "home/.config/raymond/config.toml"
    config.write_text(config.read_text("utf-8").replace("cost = 0.01\n", ""), "utf-8")
    return night


@pytest.mark.slow
def test_a_loop_over_items_shows_rights_and_money_too(tmp_path: Path) -> None:
    ran = night_of(tmp_path).loop("--dry-run")
    assert "  1. Write the answer: sh check.sh\n" in ran.out
    assert "rights:   those of your user, inside the workspace: mine ignores Raymond's permissions\n" in ran.out
    assert "set `cost` in [backends.mine]\n" in ran.out


@pytest.mark.slow
def test_a_loop_without_git_says_what_it_cannot_see(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    for folder in (night.path / ".git").iterdir():
        folder.rename(tmp_path / folder.name)
    (night.path / ".git").rmdir()
    ran = night.loop("PROMPT.md", "--max-iterations", "1", "--workspace", "here", loop="ralph")
    told = "nothing is committed, so Raymond does not see what an iteration changes: every iteration counts, whatever it did"
    assert f"{told}\n" in ran.err
    assert "- Cost: ~$0.50 (~ counts a turn of mine as $0.50: set `cost` in [backends.mine])\n" in ran.out


@pytest.mark.slow
def test_a_rehearsal_leaves_a_plain_loop_alone_that_was_killed_before_it_wrote_its_end(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    night.loop("PROMPT.md", "--max-iterations", "1", "--gate", "true", loop="ralph")
    path = night.path / "docs/.ralph-loop-state.json"
    killed = json.dumps(json.loads(path.read_text("utf-8")) | {"status": "running", "pid": 2_000_000_000})
    path.write_text(killed, "utf-8")
    ran = night.loop("PROMPT.md", "--gate", "true", "--id", "other", "--dry-run", loop="ralph")
    assert ran.code == 0, ran.err
    assert path.read_text("utf-8") == killed
