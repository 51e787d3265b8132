"""A project: which directory it is, and the folder of its runs."""

import os
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from raymond.errors import Error, JournalError, UsageError
from raymond.store import clean
from raymond.store import project as projects
from raymond.store.home import Home
from raymond.store.project import About, Project, known
from raymond.system import folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home that commands find."""
    monkeypatch.setenv("RAYMOND_HOME", f"{tmp_path}/home")
    return Home(f"{tmp_path}/home")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The directory of a project."""
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def project(home: Home, tree: Path) -> Project:
    """A project with four runs, the first of them the oldest."""
    project = Project(home, str(tree))
    project.make()
    for age, id in enumerate(("review-1f3a", "review-2b00", "ship", "ship-it")):
        os.mkdir(project.run(id).path)
        Path(project.run(id).journal).write_text("")
        os.utime(project.run(id).journal, (1_000_000 + age, 1_000_000 + age))
    return project


def said(caught: pytest.ExceptionInfo[Error]) -> tuple[str, str]:
    return str(caught.value), caught.value.hint


def git(cwd: Path, *args: str) -> str:
    name = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(["git", *name, *args], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


# Which directory it is


def test_it_is_the_top_level_of_the_repository(home: Home, tree: Path) -> None:
    git(tree, "init", "-q")
    (tree / "a" / "b").mkdir(parents=True)
    assert projects.at(str(tree / "a" / "b")) == projects.at(str(tree)) == Project(home, str(tree))


def test_without_a_repository_it_is_the_directory_itself(home: Home, tree: Path) -> None:
    """A `.raymond` further up is not looked for: anybody can put one into a temporary folder."""
    (tree / ".raymond").mkdir()
    (tree / "a").mkdir()
    assert projects.at(str(tree / "a")).tree == str(tree / "a")


def test_a_worktree_is_a_project_of_its_own(home: Home, tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "commit", "-q", "--allow-empty", "-m", "first")
    git(tree, "worktree", "add", "-q", "../other")
    assert projects.at(str(tree.parent / "other")).tree == str(tree.parent / "other")


def test_a_link_to_it_is_the_same_project(home: Home, tree: Path) -> None:
    (tree.parent / "link").symlink_to(tree)
    assert projects.at(str(tree.parent / "link")).tree == str(tree)


# The folder of its runs


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        ("/src/my-app_1.0", "my-app_1.0"),
        ("/src/größe & ä", "gr__e____"),
        ("/src/" + "x" * 80, "x" * 50),
        ("/", "root"),
        ("/src/caf\udce9", "caf_"),
    ],
)
def test_its_name_can_be_read_and_is_different_for_every_path(tree: str, name: str) -> None:
    twelve = sha256(os.fsencode(tree)).hexdigest()[:12]
    assert Project(Home("/h"), tree).root == f"/h/projects/{name}-{twelve}"


def test_every_path_lies_in_the_folder() -> None:
    project = Project(Home("/h"), "/src/app")
    root = project.root
    assert project.runs == f"{root}/runs"
    run = project.run("r")
    assert (run.id, run.path, run.file("a", "b")) == ("r", f"{root}/runs/r", f"{root}/runs/r/a/b")
    assert {name: getattr(run, name) for name in ("journal", "source", "driver", "state", "snapshot", "log")} == {
        "journal": f"{root}/runs/r/journal.jsonl",
        "source": f"{root}/runs/r/source.zip",
        "driver": f"{root}/runs/r/driver.json",
        "state": f"{root}/runs/r/state.json",
        "snapshot": f"{root}/runs/r/snapshot",
        "log": f"{root}/runs/r/log",
    }
    inside = ("inbox", "spool", "transcripts", "blobs", "sessions", "pids")
    assert [getattr(run, name) for name in inside] == [f"{root}/runs/r/{name}" for name in inside]


def test_it_is_made_private_and_outside_of_the_directory(home: Home, tree: Path) -> None:
    project = projects.at(str(tree))
    old = os.umask(0)
    try:
        project.make()
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (home.path, project.root, project.runs)]
    assert modes == [0o700] * 3
    assert stat.S_IMODE(os.stat(f"{project.root}/project.json").st_mode) == 0o600
    assert os.listdir(tree) == []


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(home: Home, tree: Path) -> None:
    project = projects.at(str(tree))
    home.make()
    Path(project.root).write_text("in the way")
    with pytest.raises(JournalError) as caught:
        project.make()
    assert str(caught.value) == f"{project.runs}: not a directory"


# What is known of it


def test_a_project_that_was_never_used_is_not_known(home: Home, tree: Path) -> None:
    assert projects.at(str(tree)).about() is None
    assert known(home) == []


def test_it_knows_its_path_its_first_commit_and_when_it_was_used(home: Home, tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "commit", "-q", "--allow-empty", "-m", "first")
    root = git(tree, "rev-parse", "HEAD")
    git(tree, "commit", "-q", "--allow-empty", "-m", "second")
    project = projects.at(str(tree))
    project.make()
    about = project.about()
    assert about is not None
    assert (about.path, about.root_commit) == (str(tree), root)
    assert about.last_use >= about.first_use > 1_700_000_000


def test_its_first_use_is_kept(home: Home, tree: Path) -> None:
    project = projects.at(str(tree))
    project.make()
    Path(f"{project.root}/project.json").write_bytes(
        msgspec.json.encode(About(path=str(tree), first_use=1.0, last_use=2.0))
    )
    project.make()
    about = project.about()
    assert about is not None
    assert (about.first_use, about.last_use > 2.0) == (1.0, True)


def test_the_projects_that_were_used_are_known_the_latest_first(home: Home, tree: Path) -> None:
    for age, name in enumerate(("one", "two", "three")):
        project = Project(home, f"{tree}/{name}")
        project.make()
        about = About(path=project.tree, last_use=float(age))
        Path(f"{project.root}/project.json").write_bytes(msgspec.json.encode(about))
    assert [one.tree for one in known(home)] == [f"{tree}/three", f"{tree}/two", f"{tree}/one"]


def test_what_is_not_where_it_belongs_is_no_project(home: Home, tree: Path) -> None:
    """A folder that says it is of another path would lend its runs to that project."""
    project = Project(home, str(tree))
    project.make()
    os.rename(project.root, f"{home.projects}/tree-000000000000")
    for name, content in (("x-111111111111", b"{"), ("plain", msgspec.json.encode(About(path="/plain")))):
        os.mkdir(f"{home.projects}/{name}")
        Path(f"{home.projects}/{name}/project.json").write_bytes(content)
    os.mkdir(f"{home.projects}/empty-222222222222")
    assert known(home) == []


def test_a_path_that_is_not_text_has_a_project_too(home: Home, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(odd)
    project = projects.at(odd)
    project.make()
    about = project.about()
    assert about is not None
    assert about.path == f"{tmp_path}/caf\ufffd"
    assert projects.at(odd).ids() == []


# Names of runs


def test_the_runs_are_listed_with_the_latest_first(project: Project) -> None:
    assert project.ids() == ["ship-it", "ship", "review-2b00", "review-1f3a"]


def test_without_a_folder_there_are_no_runs(home: Home, tree: Path) -> None:
    assert Project(home, str(tree / "nowhere")).ids() == []


def test_what_has_no_journal_is_no_run(project: Project) -> None:
    os.mkdir(f"{project.runs}/empty")
    Path(f"{project.runs}/file").write_text("")
    for name in (".new-run.01234567.new", "not an id"):
        os.mkdir(f"{project.runs}/{name}")
        Path(f"{project.runs}/{name}/journal.jsonl").write_text("")
    assert project.ids() == ["ship-it", "ship", "review-2b00", "review-1f3a"]
    assert not project.run("empty").exists


def test_a_run_whose_journal_cannot_be_read_is_still_there(project: Project) -> None:
    os.unlink(project.run("ship").journal)
    os.mkdir(project.run("ship").journal)
    assert project.run("ship").exists
    assert "ship" in project.ids()


def test_a_link_in_place_of_all_runs_is_not_followed(home: Home, project: Project) -> None:
    os.rename(project.runs, f"{home.path}/elsewhere")
    os.symlink(f"{home.path}/elsewhere", project.runs)
    assert project.ids() == []


@pytest.mark.parametrize("given", ["../ship", "a/b", "ship.jsonl", "", "x" * 101, "é", "a b", "ship\n"])
def test_what_cannot_be_an_id_is_never_made_a_path(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        projects.check_id(given)
    assert said(caught) == (f"`{given}` is not a run id", "an id has letters, digits, _ and - only")


# Projects that are gone


def test_a_project_that_is_gone_and_has_no_run_is_forgotten(home: Home, tmp_path: Path) -> None:
    gone, used, ran, there = (Project(home, f"{tmp_path}/{name}") for name in ("gone", "used", "ran", "there"))
    for one in (gone, used, ran, there):
        one.make()
        if one is not used:
            one._note(About(path=one.tree, first_use=1.0, last_use=1.0))
    os.mkdir(there.tree)
    os.mkdir(ran.run("r").path)
    for one in (gone, used, ran, there):
        os.utime(one.root, (1.0, 1.0))
    assert [found for found in clean.unused(there) if isinstance(found, str)] == [gone.root]
    assert [*clean.remove_unused(there)] == [gone.root]
    assert {one.tree for one in known(home)} == {used.tree, ran.tree, there.tree}
    assert os.path.isdir(ran.run("r").path)


def test_a_run_that_is_started_while_its_project_is_forgotten_stays(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(home, f"{tmp_path}/gone")
    project.make()
    project._note(About(path=project.tree, first_use=1.0, last_use=1.0))
    unlink = os.unlink

    def start_meanwhile(path: str, **given: int) -> None:
        unlink(path, **given)
        os.makedirs(project.run("r").path)

    monkeypatch.setattr(os, "unlink", start_meanwhile)
    with folders.opened(home.projects) as fd:
        projects.forget(home, os.path.basename(project.root), fd)
    assert os.path.isdir(project.run("r").path)
    assert [one.tree for one in known(home)] == [project.tree]
