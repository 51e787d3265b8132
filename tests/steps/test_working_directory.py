"""`cd`: where agents may go, with real folders, links, repositories and worktrees."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.language.tags import Fork, Goto, Reset, Transition
from raymond.machine.events import AgentFailed, AgentStarted
from raymond.steps.job import Job
from raymond.steps.working_directory import allowed, directories
from running import Ran, Room

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
PWD = 'echo "<result>$PWD</result>"'


def git(folder: Path, *args: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *args], cwd=folder, env=GIT, check=True, capture_output=True)


def repository(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def resolved(cwd: Path, cd: str, *, base: Path | None = None, roots: list[str] | None = None) -> Any:
    """What becomes of one `cd` of an agent that stands in `base`."""
    return directories(job(cwd, base or cwd, tuple(roots or ())), [Reset(target="A", cd=cd)])[cd]


def job(home: Path, cwd: Path, roots: tuple[str, ...] = ()) -> Job:
    """The job of an agent that stands in `cwd`."""
    return Job(
        agent="main",
        state="A.sh",
        step=1,
        attempt=1,
        cwd=str(cwd),
        task_folder="",
        home=str(home),
        roots=roots,
        policy=Policy(),
        silence=60.0,
    )


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def refusal(ran: Ran) -> str:
    [failed] = ran.all(AgentFailed)
    return str(failed.error)


# What a `cd` means


def test_a_directory_is_found_from_where_the_agent_stands(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert resolved(tmp_path, "a") == f"{tmp_path}/a"
    assert resolved(tmp_path, "b", base=tmp_path / "a") == f"{tmp_path}/a/b"
    assert resolved(tmp_path, "..", base=tmp_path / "a") == str(tmp_path)
    assert resolved(tmp_path, f"{tmp_path}/a/../a/b/.") == f"{tmp_path}/a/b"


def test_only_what_asks_for_a_directory_is_looked_at(tmp_path: Path) -> None:
    asked: list[Transition] = [
        Fork(target="A", next="B", cd="nowhere"),
        Fork(target="A", next="B"),
        Goto(target="B"),
        Reset(target="B"),
    ]
    assert list(directories(job(tmp_path, tmp_path), asked)) == ["nowhere"]


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert resolved(tmp_path, "nowhere") == Refusal(
        "directory", f'cd="nowhere": there is no directory {tmp_path}/nowhere'
    )
    assert resolved(tmp_path, "file") == Refusal("directory", f'cd="file": there is no directory {tmp_path}/file')


def test_a_path_with_nul_is_refused(tmp_path: Path) -> None:
    assert resolved(tmp_path, "a\0b") == Refusal("directory", "`cd` is not a path: it contains a NUL")


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """It could not be journaled, and the run would end at that step whenever it is resumed."""
    (tmp_path / "home" / "a\udcff").mkdir(parents=True)
    (tmp_path / "b\udcff").mkdir()
    for name, target in (("inside", "a\udcff"), ("outside", "../b\udcff")):
        (tmp_path / "home" / name).symlink_to(target)
        refused = Refusal("directory", f'cd="{name}" leads to a path that is not UTF-8')
        assert resolved(tmp_path / "home", name) == refused


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    long = "x" * 5000
    assert resolved(tmp_path, long) == Refusal("directory", f'cd="{long}": there is no directory {tmp_path}/{long}')


@pytest.mark.parametrize("cd", ["..", "/", "/etc", "a/../.."])
def test_a_directory_outside_is_refused(tmp_path: Path, cd: str) -> None:
    home = tmp_path / "home"
    (home / "a").mkdir(parents=True)
    assert resolved(home, cd) == Refusal(
        "directory",
        f'cd="{cd}": {os.path.realpath(home / cd)} is outside {home}, the repository\'s worktrees and every `--root`',
    )


def test_a_neighbour_whose_name_begins_the_same_is_outside(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home-of-another").mkdir()
    assert resolved(tmp_path / "home", "../home-of-another").kind == "directory"


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (home / "out").symlink_to("../outside")
    (home / "in").symlink_to("a")
    assert resolved(home, "out").reason.startswith(f'cd="out": {tmp_path}/outside is outside {home},')
    assert resolved(home, "in") == f"{home}/a"


def test_a_run_started_through_a_link_stays_in_the_real_directory(tmp_path: Path) -> None:
    (tmp_path / "real" / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert resolved(tmp_path / "link", "a") == f"{tmp_path}/real/a"


def test_roots_open_further_directories(tmp_path: Path) -> None:
    for name in ("home", "other/deep", "third"):
        (tmp_path / name).mkdir(parents=True)
    roots = [f"{tmp_path}/other"]
    assert resolved(tmp_path / "home", "../other/deep", roots=roots) == f"{tmp_path}/other/deep"
    assert resolved(tmp_path / "home", "../third", roots=roots).kind == "directory"
    assert resolved(tmp_path / "home", "/etc", roots=["/"]) == "/etc"


# Worktrees


def test_worktrees_of_the_repository_are_open_from_each_of_them(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "worktree", "add", "-q", "../one")
    git(repo, "worktree", "add", "-q", "../two")
    (tmp_path / "one" / "sub").mkdir()
    for start in (repo, tmp_path / "one", tmp_path / "one" / "sub"):
        for goal in (repo, tmp_path / "one", tmp_path / "two", tmp_path / "one" / "sub"):
            assert resolved(start, str(goal)) == str(goal)
    assert resolved(repo, str(tmp_path)).kind == "directory"


def test_a_worktree_of_another_repository_is_outside(tmp_path: Path) -> None:
    repo, other = repository(tmp_path / "repo"), repository(tmp_path / "other")
    git(other, "worktree", "add", "-q", "../theirs")
    assert resolved(repo, "../theirs").kind == "directory"
    assert resolved(repo, "../other").kind == "directory"


def test_a_worktree_made_while_the_run_goes_on_is_open(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    (tmp_path / "late").mkdir()
    assert resolved(repo, "../late").kind == "directory"
    (tmp_path / "late").rmdir()
    git(repo, "worktree", "add", "-q", "../late")
    assert resolved(repo, "../late") == f"{tmp_path}/late"


def test_a_worktree_that_git_wrote_down_with_a_relative_path_is_open(tmp_path: Path) -> None:
    """As git 2.48 does with worktree.useRelativePaths, wherever this process stands."""
    repo = repository(tmp_path / "repo")
    git(repo, "worktree", "add", "-q", "../tree")
    (repo / ".git" / "worktrees" / "tree" / "gitdir").write_text("../../../../tree/.git\n")
    assert resolved(repo, "../tree") == f"{tmp_path}/tree"


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "part")
    assert resolved(outer, "part") == f"{outer}/part"
    assert resolved(outer / "part", "..").kind == "directory"


def test_without_a_repository_there_are_no_worktrees(tmp_path: Path) -> None:
    assert allowed(str(tmp_path), ()) == [str(tmp_path)]


# In a run


def test_reset_changes_the_directory_and_goto_keeps_it(room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = room.drive({"START.sh": "echo '<reset cd=\"sub\">A</reset>'", "A.sh": "echo '<goto>B</goto>'", "B.sh": PWD})
    assert ran.result == f"{room.path}/sub"


def test_a_directory_does_not_leak_back_to_the_caller(room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = room.drive(
        {
            "START.sh": "echo '<call return=\"AFTER\">SUB</call>'",
            "SUB.sh": "echo '<reset cd=\"sub\">DEEP</reset>'",
            "DEEP.sh": PWD,
            "AFTER.sh": 'echo "<result>$RAYMOND_RESULT then $PWD</result>"',
        }
    )
    assert ran.result == f"{room.path}/sub then {room.path}"


def test_a_fork_stands_where_its_parent_stands_or_where_its_cd_says(room: Room) -> None:
    (room.path / "sub" / "deep").mkdir(parents=True)
    ran = room.drive(
        {
            "START.sh": "echo '<reset cd=\"sub\">SPLIT</reset>'",
            "SPLIT.sh": "echo '<fork>WORK</fork><fork cd=\"deep\">WORK</fork><goto>END</goto>'",
            "WORK.sh": PWD,
            "END.sh": PWD,
        }
    )
    assert {name: one.result.removeprefix(str(room.path)) for name, one in ran.run.outcomes.items()} == {
        "main_work1": "/sub",
        "main_work2": "/sub/deep",
        "main": "/sub",
    }
    assert [event.cwd for event in ran.all(AgentStarted)] == ["", f"{room.path}/sub", f"{room.path}/sub/deep"]


def test_a_script_that_asks_for_a_directory_outside_fails_with_the_reason(room: Room) -> None:
    (room.path / "out").symlink_to(room.path.parent)
    ran = room.drive({"START.sh": "echo '<reset cd=\"out\">START</reset>'"})
    assert refusal(ran) == (
        f'cd="out": {room.path.parent} is outside {room.path}, the repository\'s worktrees and every `--root`'
    )


def test_one_fork_with_a_wrong_directory_stops_all_forks_of_the_output(room: Room) -> None:
    ran = room.drive(
        {"START.sh": "echo '<fork>WORK</fork><fork cd=\"nowhere\">WORK</fork><goto>WORK</goto>'", "WORK.sh": PWD}
    )
    assert refusal(ran) == f'cd="nowhere": there is no directory {room.path}/nowhere'
    assert [event.agent for event in ran.all(AgentStarted)] == ["main"]


def test_a_prompt_that_asks_for_a_wrong_directory_is_reminded(room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = room.drive(
        {
            "START.md": "",
            "END.sh": PWD,
            "replies.yaml": """START: [['<reset cd="nowhere">END</reset>', '<reset cd="sub">END</reset>']]""",
        }
    )
    assert ran.result == f"{room.path}/sub"
    assert ran.transcript()[1]["sent"].startswith(
        f'I could not act on your reply: cd="nowhere": there is no directory {room.path}/nowhere\n'
    )


def test_the_person_opens_directories_and_the_workflow_may_name_what_it_needs_of_them(room: Room) -> None:
    for name in ("one", "two"):
        (room.path.parent / name).mkdir()
    (room.path.parent / "two" / "deep").mkdir()
    ran = room.command(
        {
            "START.sh": 'echo \'<fork cd="../one">WORK</fork><fork cd="../two">WORK</fork><goto>WORK</goto>\'',
            "WORK.sh": PWD,
            "workflow.yaml": "roots: [../one, ../two/deep, sub]",
        },
        *("--root", "../one", "--root", "../two"),
    )
    assert ran.code == 0, ran.err
    assert ran.run.outcomes["main_work2"].result == f"{room.path.parent}/two"


def test_an_agent_works_in_a_real_worktree_it_made_itself(room: Room) -> None:
    git(room.path, "init", "-q")
    git(room.path, "commit", "-q", "--allow-empty", "-m", "first")
    ran = room.drive(
        {
            "START.sh": "git worktree add -q ../tree >&2 && echo '<reset cd=\"../tree\">WORK</reset>'",
            "WORK.sh": 'echo "<result>$(git rev-parse --abbrev-ref HEAD) in $PWD</result>"',
        }
    )
    assert ran.result == f"tree in {room.path.parent}/tree"
