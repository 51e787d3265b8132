"""Specs that git does not see: an agent can write them unnoticed, so they count for nothing."""

import subprocess
from pathlib import Path

import pytest

from looping import Night
from raymond.loops import specs
from raymond.loops.documents import Documents

SPEC = "docs/implementation/1-core/1.4-answers.md"
TEXT = "### 1.4.1. Answer\n\n**Status:** 🔵 Planned\n**Verification:** `sh check.sh`\n"
OTHER = "### 9.1.1. Other\n\n**Status:** 🔵 Planned\n**Verification:** `touch $TEST_ROOM/../ran`\n"
TOLD = "git ignores this spec, or it is in a repository of its own, so its tasks do not count"
HIDDEN = {
    "by a rule of the loop": ("9-x.raymond-new", ":"),
    "by a rule of the project": ("9-x.log", ":"),
    "by a rule of the agent": ("9-x.tmp", "echo '*.tmp' >> .gitignore"),
    "in a repository of its own": ("9-x", "git init -q docs/implementation/9-x"),
    "in the index": ("9-x.log", "git add -f docs/implementation/9-x.log"),
}


def ids(path: Path) -> tuple[list[str], list[str]]:
    """The tasks that count, and the specs that do not."""
    found = specs.read(Documents(str(path), "docs", str(path), has_plans=True))
    return list(found.tasks), [one.place for one in found.doubts if one.message == TOLD]


@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param(one, marks=pytest.mark.slow) for one in HIDDEN][:-1] + ["in the index"])
def test_a_spec_that_an_agent_hides_is_not_done(tmp_path: Path, how: str) -> None:
    folder, does = HIDDEN[how]
    agent = f"""
        [ -e ../once ] || {{
            touch ../once; mkdir -p docs/implementation/{folder}; cp ../other.md docs/implementation/{folder}/9.1-o.md
            {does}
        }}
        echo 42 > answer.txt; echo ITERATION_COMPLETE
    """
    (tmp_path / "other.md").write_text(OTHER, "utf-8")
    night = Night(tmp_path, agent=agent, **{SPEC.replace("/", "__"): TEXT, ".gitignore": "*.log\n"})
    night.loop(loop="task-loop")
    assert not (tmp_path / "ran").exists()
    night.agent("echo 42 > answer.txt; echo ITERATION_COMPLETE")
    again = night.loop("--id", "m", "--pause", "0s", "--on-dirty", "commit", loop="task-loop")
    assert "9.1.1" not in again.out
    assert not (tmp_path / "ran").exists()


def test_what_head_has_and_what_is_new_counts(tmp_path: Path) -> None:
    night = Night(tmp_path, **{SPEC.replace("/", "__"): TEXT, ".gitignore": "*.log\n"})
    night.write({"docs/implementation/2-kept.log/2.1-a.md": "### 2.1.1. Kept\n"})
    assert ids(night.path) == (["1.4.1"], ["implementation/2-kept.log/2.1-a.md"])
    night.git("add", "-f", "docs/implementation/2-kept.log")
    assert ids(night.path) == (["1.4.1"], ["implementation/2-kept.log/2.1-a.md"]), "an agent could have put it there"
    night.git("commit", "-qm", "Kept")
    night.write({"docs/implementation/3-ü new/3.1-a.md": "### 3.1.1. New\n"})
    assert ids(night.path) == (["1.4.1", "2.1.1", "3.1.1"], [])


def test_without_commits_or_a_repository_specs_count(tmp_path: Path) -> None:
    spec = tmp_path / SPEC
    spec.parent.mkdir(parents=True)
    spec.write_text(TEXT, "utf-8")
    assert ids(tmp_path) == (["1.4.1"], [])
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert ids(tmp_path) == (["1.4.1"], [])
    (tmp_path / ".gitignore").write_text("docs/implementation/1-core/\n", "utf-8")
    assert ids(tmp_path) == ([], ["implementation/1-core/1.4-answers.md"])


@pytest.mark.slow
def test_a_person_is_told_which_spec_does_not_count(tmp_path: Path) -> None:
    night = Night(tmp_path, **{SPEC.replace("/", "__"): TEXT, ".gitignore": "*.log\n"})
    night.write({"docs/implementation/9-x.log/9.1-o.md": OTHER})
    shown = night.loop("--dry-run", loop="task-loop")
    assert f"warning: docs/implementation/9-x.log/9.1-o.md:1: {TOLD}" in shown.err
    assert "9.1.1" not in shown.out
