"""Internal mode: an agent that tells git something else is noticed, and a person decides."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inside import Inside
from typist import Typist

pytestmark = pytest.mark.slow


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    inside = Inside(tmp_path)
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    return inside


def _hook(inside: Inside) -> None:
    hook = inside.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntrue\n", "utf-8")
    hook.chmod(0o755)


def _moved(inside: Inside) -> None:
    inside.git("update-ref", "refs/raymond/n/tip", inside.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "mine"))


CHEATS: dict[str, tuple[Callable[[Inside], object], str]] = {
    "setting": (lambda one: one.git("config", "core.fsmonitor", "evil"), "git's setting core.fsmonitor was changed"),
    "hook": (_hook, "the hook .git/hooks/pre-commit was added"),
    "hooks elsewhere": (
        lambda one: one.git("config", "core.hooksPath", "docs"),
        "git's setting core.hookspath was",
    ),
    "branch": (lambda one: one.git("branch", "-f", "raymond/n", "HEAD~0"), "refs/heads/raymond/n was changed"),
    "branch gone": (lambda one: one.git("branch", "-D", "raymond/n"), "refs/heads/raymond/n was removed"),
    "tip": (_moved, "refs/raymond/n/tip was changed"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_difference_pauses_before_anything_is_checked(inside: Inside, cheat: str) -> None:
    if cheat == "branch":
        inside.record()
        inside.next()
        inside.work({"two.txt": "7\n"})
    does, told = CHEATS[cheat]
    does(inside)
    waits = inside.record(code=3)
    assert waits["status"] == "waiting"
    assert waits["question"].startswith(f"while the item was handed out, {told}")
    assert (
        inside.git("ls-tree", "--name-only", "refs/raymond/n/tip", "two.txt" if cheat == "branch" else "answer.txt")
        == ""
    )
    status = inside.call("status").stdout
    assert "Mode:     INTERNAL, PAUSED\n" in status
    assert told in status
    refused = inside.room.raymond("answer", "n", "continue", "--no-resume")
    assert (refused.returncode, "asks for the approval of a person" in refused.stderr) == (2, True)


def test_a_person_who_knows_about_it_lets_it_go_on(inside: Inside) -> None:
    inside.git("config", "branch.main.remote", "origin")
    inside.record(code=3)
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.record(None)["verdict"] == "passed"
    assert inside.next()["title"] == "Write the other"
    inside.work({"two.txt": "7\n"})
    assert inside.record()["verdict"] == "passed", "it is known by now"


def test_a_person_who_does_not_sets_the_item_aside_and_ends_the_loop(inside: Inside) -> None:
    _hook(inside)
    inside.record(code=3)
    assert Typist(inside.room, "answer", "n", "stop", "--no-resume").end() == 0
    end = inside.record(None)
    assert (end["status"], end["verdict"], end["ended"]) == ("done", "review", "stopped: on request")
    assert "the hook .git/hooks/pre-commit was added" in end["reason"]
    assert inside.subjects == ["start", *["chore(loop): records"] * 3]
    assert "answer.txt" in inside.git("ls-tree", "--name-only", "refs/raymond/n/1.1")


def test_published_commits_are_brought_home_and_nothing_else(inside: Inside) -> None:
    inside.record()
    inside.next()
    inside.work({"two.txt": "unchecked\n"})
    assert inside.room.raymond("apply", "n").returncode == 0
    assert (inside.path / "answer.txt").read_text("utf-8") == "42\n"
    assert not (inside.path / "two.txt").exists()
