"""The `.raymond` folder: where it is found and made, and how a run in it is named."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from raymond.errors import Error, JournalError, RunNotFound, UsageError
from raymond.store.project import Project, find, known, make


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with `.git`, so that nothing above it is looked at."""
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def project(home: Path) -> Project:
    """A project with four runs, the first of them the oldest."""
    project = make(str(home))
    for age, id in enumerate(("review-1f3a", "review-2b00", "ship", "ship-it")):
        journal = home / ".raymond" / "workflows" / f"{id}.jsonl"
        journal.write_text("")
        os.utime(journal, (1_000_000 + age, 1_000_000 + age))
    return project


def said(caught: pytest.ExceptionInfo[Error]) -> tuple[str, str]:
    return str(caught.value), caught.value.hint


def root_from(folder: Path) -> str | None:
    """The folder that is found from here."""
    found = find(str(folder))
    return found.root if found else None


# Found and made


def test_nothing_is_found_where_nothing_is(home: Path) -> None:
    assert find(str(home)) is None


def test_the_nearest_folder_upward_is_taken(home: Path) -> None:
    for folder in (".raymond", "a/.raymond", "a/b/c"):
        (home / folder).mkdir(parents=True)
    assert root_from(home / "a" / "b" / "c") == str(home / "a" / ".raymond")
    (home / "a" / ".raymond").rmdir()
    assert root_from(home / "a" / "b" / "c") == str(home / ".raymond")


def test_the_folder_with_git_is_the_last_one_looked_at(home: Path) -> None:
    (home / ".raymond").mkdir()
    (home / "inner" / ".git").mkdir(parents=True)
    (home / "inner" / "sub").mkdir()
    assert find(str(home / "inner" / "sub")) is None


def test_a_worktree_whose_git_is_a_file_ends_the_search_too(home: Path) -> None:
    (home / ".raymond").mkdir()
    (home / "tree").mkdir()
    (home / "tree" / ".git").write_text("gitdir: elsewhere")
    assert find(str(home / "tree")) is None


def test_a_file_of_that_name_is_not_taken(home: Path) -> None:
    (home / ".raymond").write_text("")
    assert find(str(home)) is None


def test_it_is_made_beside_git(home: Path) -> None:
    (home / "a" / "b").mkdir(parents=True)
    assert make(str(home / "a" / "b")).root == str(home / ".raymond")


def test_it_is_made_here_where_there_is_no_repository(tmp_path: Path) -> None:
    assert make(str(tmp_path)).root == str(tmp_path / ".raymond")


def test_one_that_is_there_is_taken_and_gets_what_it_lacks(home: Path) -> None:
    """A configuration that was checked out is kept; without a .gitignore git would take the runs."""
    (home / ".raymond").mkdir()
    (home / ".raymond" / "config.toml").write_text("budget = 1\n")
    (home / "a").mkdir()
    assert make(str(home / "a")).root == str(home / ".raymond")
    assert sorted(os.listdir(home / ".raymond")) == [".gitignore", "config.toml", "workflows"]
    assert (home / ".raymond" / "config.toml").read_text() == "budget = 1\n"


def test_a_gitignore_that_is_there_is_kept(home: Path) -> None:
    make(str(home))
    (home / ".raymond" / ".gitignore").write_text("mine\n")
    make(str(home))
    assert (home / ".raymond" / ".gitignore").read_text() == "mine\n"


def test_a_new_project_is_remembered_once_the_latest_first(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert known() == []
    for name in ("one", "two", "one"):
        (home / name / ".git").mkdir(parents=True, exist_ok=True)
        make(str(home / name))
    assert [project.root for project in known()] == [f"{home}/two/.raymond", f"{home}/one/.raymond"]
    register = tmp_path / "state" / "raymond" / "projects"
    assert register.read_text() == f"{home}/one/.raymond\n{home}/two/.raymond\n"
    assert stat.S_IMODE(register.stat().st_mode) == 0o600


def test_a_project_that_is_gone_is_no_longer_known(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = make(str(home)).root
    os.rename(root, f"{root}-away")
    assert known() == []


@pytest.mark.parametrize(
    ("environment", "written"),
    [({"XDG_STATE_HOME": "state"}, "state/raymond/projects"), ({"HOME": "me"}, "me/.local/state/raymond/projects")],
)
def test_projects_are_remembered_in_the_state_folder_of_the_person(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], written: str
) -> None:
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    make(str(home))
    assert (tmp_path / written).read_text() == f"{home}/.raymond\n"


def test_a_person_without_a_home_has_projects_all_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert (home / make(str(home)).root).is_dir()
    assert known() == []


def test_it_is_private_and_git_ignores_all_of_it_but_the_config(home: Path) -> None:
    root = make(str(home)).root
    assert stat.S_IMODE(os.stat(root).st_mode) == 0o700
    assert (home / ".raymond" / ".gitignore").read_text() == "*\n!.gitignore\n!config.toml\n"


def test_real_git_sees_nothing_but_gitignore_and_config(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    project = make(str(tmp_path))
    for path in ("config.toml", "workflows/r.jsonl", "blobs/abc"):
        (tmp_path / ".raymond" / path).parent.mkdir(exist_ok=True)
        (tmp_path / ".raymond" / path).write_text("x")
    done = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["??", ".raymond/.gitignore", "??", ".raymond/config.toml"]
    assert project.root == str(tmp_path / ".raymond")


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".raymond").write_text("in the way")
    with pytest.raises(JournalError) as caught:
        make(str(tmp_path))
    assert said(caught) == (
        f"{tmp_path}/.raymond is a file where a folder should be",
        "Raymond keeps its runs there: move the file away, or start somewhere else",
    )


# Paths


def test_every_path_lies_in_the_folder() -> None:
    project = Project("/p/.raymond")
    assert project.journal("r") == "/p/.raymond/workflows/r.jsonl"
    assert project.beside("r", "lock") == "/p/.raymond/workflows/r.lock"
    assert project.source("abc") == "/p/.raymond/sources/abc.zip"
    assert project.path("logs", "r.log") == "/p/.raymond/logs/r.log"


def test_a_folder_is_made_private_when_it_is_needed(home: Path) -> None:
    path = make(str(home)).folder("blobs", "deep")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


# Names of runs


def test_the_runs_are_listed_with_the_latest_first(project: Project) -> None:
    assert project.ids() == ["ship-it", "ship", "review-2b00", "review-1f3a"]


def test_without_a_folder_there_are_no_runs(tmp_path: Path) -> None:
    assert Project(str(tmp_path / "nowhere")).ids() == []


def test_what_is_no_journal_is_no_run(project: Project, home: Path) -> None:
    for name in ("ship.json", "ship.lock", "x.jsonl.1.tmp"):
        (home / ".raymond" / "workflows" / name).write_text("")
    (home / ".raymond" / "workflows" / "folder.jsonl").mkdir()
    assert project.ids() == ["ship-it", "ship", "review-2b00", "review-1f3a"]


def test_a_whole_id_is_taken_although_another_begins_with_it(project: Project) -> None:
    assert project.resolve("ship") == "ship"


@pytest.mark.parametrize(
    ("given", "id"), [("review-1", "review-1f3a"), ("review-2b00", "review-2b00"), ("ship-", "ship-it")]
)
def test_a_beginning_that_only_one_id_has_is_enough(project: Project, given: str, id: str) -> None:
    assert project.resolve(given) == id


def test_a_beginning_that_several_ids_have_is_refused_with_all_of_them(project: Project) -> None:
    with pytest.raises(UsageError) as caught:
        project.resolve("review")
    assert said(caught) == ("`review` matches 2 runs", "one of: review-2b00, review-1f3a")


def test_an_id_that_is_not_there_is_answered_with_one_that_is_like_it(project: Project, home: Path) -> None:
    with pytest.raises(RunNotFound) as caught:
        project.resolve("reviw-1f3a")
    assert said(caught) == (
        f"there is no run `reviw-1f3a` in {home}/.raymond",
        "did you mean `review-1f3a` or `review-2b00`?",
    )


def test_an_id_like_no_other_is_answered_with_the_way_to_see_them(project: Project, home: Path) -> None:
    with pytest.raises(RunNotFound) as caught:
        project.resolve("zzz")
    assert said(caught) == (f"there is no run `zzz` in {home}/.raymond", "`raymond list` shows the runs there are")


def test_where_there_is_no_run_the_way_to_start_one_is_told(home: Path) -> None:
    with pytest.raises(RunNotFound) as caught:
        make(str(home)).resolve("zzz")
    assert said(caught)[1] == "no run has been started here yet: raymond run PATH"


@pytest.mark.parametrize("given", ["../ship", "a/b", "ship.jsonl", "", "x" * 101, "é", "a b", "ship\n"])
def test_what_cannot_be_an_id_is_never_made_a_path(project: Project, given: str) -> None:
    with pytest.raises(UsageError) as caught:
        project.resolve(given)
    assert said(caught) == (f"`{given}` is not a run id", "an id has letters, digits, _ and - only")
