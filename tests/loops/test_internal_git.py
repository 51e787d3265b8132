"""Internal mode: an agent that tells git something else is noticed, and a person decides."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inside import DONE, Inside
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
    hook.write_text(f"#!/bin/sh\ntouch {inside.path}/../hooked\n", "utf-8")
    hook.chmod(0o755)


def forged(inside: Inside, *trailers: str) -> str:
    """A commit of an agent on top of the branch, with something in it that no check has seen."""
    work = inside.path.parent / "forged"
    inside.git("worktree", "add", "-q", "--detach", str(work), "raymond/n")
    (work / "evil.txt").write_text("evil\n", "utf-8")
    for words in (["add", "-A"], ["commit", "-qm", "\n\n".join(["feat: write the answer", "\n".join(trailers)])]):
        inside.git("-C", str(work), *words)
    made = inside.git("-C", str(work), "rev-parse", "HEAD")
    inside.git("worktree", "remove", "--force", str(work))
    return made


SETTING, HOOK = "git's setting core.fsmonitor was changed", "the hook .git/hooks/pre-commit was added"
CHEATS: dict[str, tuple[Callable[[Inside], object], str]] = {
    "setting": (lambda one: one.git("config", "core.fsmonitor", "evil"), SETTING),
    "hook": (_hook, HOOK),
    "hooks elsewhere": (lambda one: one.git("config", "core.hooksPath", "docs"), "git's setting core.hookspath was"),
    "branch": (lambda one: one.git("branch", "-f", "raymond/n", forged(one)), "refs/heads/raymond/n was added"),
}


def undone(inside: Inside, waits: dict[str, object], told: str) -> None:
    """It pauses for a person, and nothing was checked or committed."""
    assert waits["status"] == "waiting"
    assert str(waits["question"]).startswith(f"git is not told the same as before: {told}")
    assert not (inside.path / "../hooked").exists()
    for name in ("evil.txt", "two.txt"):
        assert inside.git("ls-tree", "--name-only", "refs/raymond/n/tip", name) == ""
    refused = inside.room.raymond("answer", "n", "continue", "--no-resume")
    assert (refused.returncode, "asks for the approval of a person" in refused.stderr) == (2, True)


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_difference_pauses_before_anything_is_checked(inside: Inside, cheat: str) -> None:
    does, told = CHEATS[cheat]
    does(inside)
    undone(inside, inside.record(code=3), told)
    status = inside.call("status").stdout
    assert "Mode:     INTERNAL, PAUSED\n" in status
    assert told in status


@pytest.mark.parametrize("cheat", ["hook", "branch"])
def test_a_difference_that_is_made_between_two_items_pauses_before_the_next_one(inside: Inside, cheat: str) -> None:
    assert inside.record()["verdict"] == "passed"
    does, told = CHEATS[cheat]
    does(inside)
    undone(inside, inside.next(code=3), told)
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.next("--resume")["title"] == "Write the other"


def test_a_difference_that_the_check_itself_makes_pauses_after_the_next_attempt(tmp_path: Path) -> None:
    check = "sh prog.sh && grep -q 42 answer.txt\n"
    inside = Inside(tmp_path, **{"check.sh": check})
    inside.begin()
    inside.work({"prog.sh": f"git -C {inside.path} config core.fsmonitor evil; exit 1\n"})
    assert inside.record()["attempt"] == 2
    inside.work({"prog.sh": "exit 0\n", "answer.txt": "42\n"})
    undone(inside, inside.record(code=3), SETTING)


def test_a_folder_of_hooks_with_much_below_it_is_compared_at_its_top(inside: Inside) -> None:
    inside.git("config", "core.hooksPath", "/usr")
    waits = inside.record(code=3)
    assert str(waits["question"]).startswith("git is not told the same as before: git's setting core.hookspath was")
    assert "/usr/bin" not in waits["question"]


def test_what_was_undone_before_a_person_said_stop_ends_the_loop_all_the_same(inside: Inside) -> None:
    inside.git("config", "core.fsmonitor", "evil")
    inside.record(code=3)
    inside.git("config", "--unset", "core.fsmonitor")
    assert Typist(inside.room, "answer", "n", "stop", "--no-resume").end() == 0
    end = inside.record(None)
    assert (end["status"], end["verdict"], end["ended"]) == ("done", "review", "stopped: on request")


@pytest.mark.parametrize("verb", ["record", "next"])
def test_a_person_takes_for_right_only_what_they_were_shown(inside: Inside, verb: str) -> None:
    if verb == "next":
        inside.record()
    inside.git("config", "core.fsmonitor", "evil")
    waits = inside.next(code=3) if verb == "next" else inside.record(code=3)
    undone(inside, waits, SETTING)
    _hook(inside)
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    again = inside.next("--resume", code=3)
    assert "core.fsmonitor" not in again["question"]
    undone(inside, again, HOOK)


def test_a_difference_that_the_last_check_makes_is_told_before_the_loop_ends(tmp_path: Path) -> None:
    inside = Inside(
        tmp_path, "1. [VERIFY: sh check.sh] Write it\n", **{"check.sh": "sh prog.sh\ngrep -q 42 answer.txt\n"}
    )
    inside.begin()
    inside.work({"prog.sh": f"git -C {inside.path} config core.fsmonitor evil\n", "answer.txt": "42\n"})
    waits = inside.record(code=3)
    assert str(waits["question"]).startswith(f"git is not told the same as before: {SETTING}")
    assert Typist(inside.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert inside.record(None)["exit_code"] == 0


def test_a_lock_that_a_killed_git_has_left_bars_no_commit(inside: Inside) -> None:
    (inside.path / ".git/refs/raymond/n/tip.lock").touch()
    assert inside.record()["verdict"] == "passed"


def test_a_tip_that_is_gone_is_named_with_the_way_back(inside: Inside) -> None:
    inside.record()
    there = inside.git("rev-parse", "refs/raymond/n/tip")
    inside.git("update-ref", "-d", "refs/raymond/n/tip")
    said = inside.call("next")
    assert "refs/raymond/n/tip is gone" in said.stdout + said.stderr
    assert f"git update-ref refs/raymond/n/tip {there} puts it back" in said.stdout + said.stderr
    inside.git("update-ref", "refs/raymond/n/tip", there)
    inside.room.raymond("answer", "n", "continue", "--no-resume")
    assert inside.next("--resume")["title"] == "Write the other"


def test_a_branch_that_is_checked_out_and_falls_behind_is_no_difference(inside: Inside) -> None:
    inside.record()
    inside.git("switch", "-q", "raymond/n")
    for number in (1, 2):
        assert inside.next()["status"] == ("item" if number == 1 else "done")
        inside.work({"two.txt": "7\n"} if number == 1 else {})
        if number == 1:
            assert inside.record()["verdict"] == "passed"


@pytest.mark.parametrize("what", ["tip", "vouched", "own", "base"])
@pytest.mark.parametrize("trailers", [(), ("Raymond-Run: n", "Raymond-Item: n/1")], ids=["bare", "forged"])
def test_what_raymond_did_not_commit_is_not_built_on(inside: Inside, what: str, trailers: tuple[str, ...]) -> None:
    """It is refused where it would be used, and the loop ends well once the reference is back."""
    there, made = inside.git("rev-parse", f"refs/raymond/n/{what}"), forged(inside, *trailers)
    inside.git("update-ref", f"refs/raymond/n/{what}", made)
    inside.work({"two.txt": "7\n"})
    heard = []
    for verb, said in (("record", DONE), ("next", None), ("record", DONE)):
        done = inside.call(verb, "--json", said=said)
        heard.append(done.stdout + done.stderr)
    moved = f"refs/raymond/n/{what} is not where Raymond left it"
    assert any(moved in one for one in heard), heard
    assert '"exit_code": 0' not in heard[-1]
    inside.git("update-ref", f"refs/raymond/n/{what}", there)
    inside.room.raymond("answer", "n", "continue", "--no-resume")
    for _ in range(3):
        inside.call("next", "--resume")
        inside.call("record", said=DONE)
    assert inside.next()["exit_code"] == 0
    counted = [one for one in inside.subjects if not one.startswith("chore")]
    assert counted == ["start", "feat: write the answer", "feat: write the other"]
    assert not inside.has("evil.txt")


def test_no_loop_continues_a_branch_that_was_moved(inside: Inside) -> None:
    inside.record()
    assert inside.room.raymond("cancel", "n").returncode == 0
    assert inside.next()["ended"] == "cancelled"
    there, made = inside.git("rev-parse", "raymond/n"), forged(inside)
    inside.git("update-ref", "refs/raymond/n/tip", made)
    again = inside.call("next", "--start", "--id", "m")
    assert (again.returncode, "refs/raymond/n/tip is not where Raymond left it" in again.stderr) == (1, True)
    inside.git("update-ref", "refs/raymond/n/tip", there)
    inside.git("branch", "-f", "raymond/n", made)
    said = inside.refused("next", "--start", "--id", "m")
    assert said.startswith("error: raymond/n has commits that n did not make, and its agents had your rights\n")
    assert inside.next("--start", "--id", "o", "--from", "main")["status"] == "item"


def test_ordinary_work_of_a_person_is_no_difference(inside: Inside) -> None:
    inside.git("init", "-q", "--bare", str(inside.path / "../remote.git"))
    inside.git("switch", "-q", "-c", "feature")
    inside.write({"mine.txt": "mine\n"})
    inside.commit("mine")
    inside.git("push", "-q", "-u", str(inside.path / "../remote.git"), "feature")
    inside.git("stash", "list")
    assert inside.room.raymond("continuous-session", "learn", "x").returncode == 0
    assert inside.record()["verdict"] == "passed"
    assert inside.next()["title"] == "Write the other"


def test_a_person_who_knows_about_it_lets_it_go_on(inside: Inside) -> None:
    inside.git("config", "remote.origin.url", "elsewhere")
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
    assert HOOK in end["reason"]
    assert not inside.has("answer.txt")
    assert "answer.txt" in inside.git("ls-tree", "--name-only", "refs/raymond/n/1.1")


def test_published_commits_are_brought_home_and_nothing_else(inside: Inside) -> None:
    inside.record()
    inside.next()
    inside.work({"two.txt": "unchecked\n"})
    assert inside.room.raymond("apply", "n").returncode == 0
    assert (inside.path / "answer.txt").read_text("utf-8") == "42\n"
    assert not (inside.path / "two.txt").exists()
