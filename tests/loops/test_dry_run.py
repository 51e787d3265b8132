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


def test_a_plain_loop_shows_what_would_be_sent_and_what_the_check_shows(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", "--dry-run", loop="ralph")
    assert ran.code == 0, ran.err
    assert "loop:     PROMPT.md; at most 10 iterations; check: sh check.sh; commits: green\n" in ran.out
    assert "prompt:\n  Make it work.\n" in ran.out
    assert "  (This is iteration 1 of 10. You have no memory of earlier iterations. After it, `sh check.sh`" in ran.out
    assert "works:    in a private copy; raymond/n gets what counts\n" in ran.out
    assert "rights:   those of your user, inside the workspace: mine takes no heed of Raymond's\n" in ran.out
    counted = "~ counts a turn of mine as $0.50: set `cost` in [backends.mine]\n"
    assert f"budget:   $10.00 (default); {counted}" in ran.out
    assert "check:    sh check.sh is red: 1 failed, 3 passed\n" in ran.out
    assert ran.out.endswith("apart from the check, nothing was started\n")
    assert "warning" not in ran.out + ran.err
    assert night.git("for-each-ref", "refs/raymond", "refs/heads/raymond") == ""


def test_what_a_plain_loop_would_do_is_a_document_for_programs(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    said = json.loads(night.loop("PROMPT.md", "--gate", "sh check.sh", "--dry-run", "--json", loop="ralph").out)
    assert said["prompt"].startswith("Make it work.\n")
    assert (said["check"], said["verdict"]) == ("sh check.sh", "failed")
    assert (said["branch"], said["workspace"], said["budget_usd"]) == ("raymond/n", "copy", 10.0)


@pytest.mark.slow
def test_a_loop_over_items_shows_rights_and_money_too(tmp_path: Path) -> None:
    ran = night_of(tmp_path).loop("--dry-run")
    assert "  1. Write the answer: sh check.sh\n" in ran.out
    assert "rights:   those of your user, inside the workspace: mine takes no heed of Raymond's\n" in ran.out
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


@pytest.mark.parametrize("args", [("ralph", "PROMPT.md", "--gate", "sh check.sh"), ("continuous-session", "start")])
def test_the_program_of_the_agents_need_not_be_there(tmp_path: Path, args: tuple[str, ...]) -> None:
    night = night_of(tmp_path)
    done = night.room.raymond(*args, "--backend", "claude", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "\nrights:   " in done.stdout
    missing = "warning: there is no program `claude` on the PATH (install Claude Code"
    assert missing in done.stdout + done.stderr
    assert night.room.raymond(*args, "--backend", "claude").returncode == 5
