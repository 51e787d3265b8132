"""A run is found from anywhere by its id; what cannot be undone needs all of it."""

import pytest

from trust.places import Place, contents, no_traceback


@pytest.fixture
def other(room: Place) -> Place:
    """Another project of the same person."""
    folder = room.path.parent / "other"
    folder.mkdir()
    return Place(folder, HOME=room.environment["HOME"])


# --- from anywhere


@pytest.mark.slow
def test_status_and_logs_find_a_run_from_the_root_directory(room: Place) -> None:
    room.ask("nightly-1")
    status = room.raymond("status", "nightly-1", cwd="/")
    assert status.returncode == 0, status.stderr
    assert "waiting" in status.stdout
    logs = room.raymond("logs", "nightly-1", cwd="/")
    assert logs.returncode == 0, logs.stderr
    assert "Which?" in logs.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "logs", "cost", "wait"])
def test_a_prefix_is_enough_to_read(room: Place, command: str) -> None:
    room.ask("nightly-1")
    done = room.raymond(command, "night", cwd="/")
    assert done.returncode in (0, 3), done.stderr
    assert done.stdout or command == "wait"


@pytest.mark.slow
def test_a_full_id_is_enough_to_change_something_elsewhere(room: Place, other: Place) -> None:
    room.ask("nightly-1")
    done = other.raymond("answer", "nightly-1", "yes", "--no-resume")
    assert done.returncode == 0, done.stderr
    assert str(room.path) in done.stderr, "it says in which project"
    resumed = other.raymond("resume", "nightly-1")
    assert (resumed.returncode, resumed.stdout) == (0, "told yes\n"), resumed.stderr
    assert str(room.path) in resumed.stderr


@pytest.mark.parametrize("args", [("cancel", "night"), ("clean", "night")])
def test_a_prefix_is_not_enough_for_what_cannot_be_undone_elsewhere(room: Place, args: tuple[str, ...]) -> None:
    room.ask("nightly-1")
    before = room.journal("nightly-1").read_bytes()
    done = room.raymond(*args, cwd="/")
    said = no_traceback(done)
    assert done.returncode == 2, said
    assert "nightly-1" in said, "the full id"
    assert str(room.path) in said, "its project"
    assert room.journal("nightly-1").read_bytes() == before


def test_a_prefix_is_enough_to_change_something_here_and_elsewhere(room: Place) -> None:
    room.ask("nightly-1")
    assert room.raymond("answer", "night", "yes", "--no-resume").returncode == 0
    done = room.raymond("resume", "night", cwd="/")
    assert (done.returncode, done.stdout) == (0, "told yes\n"), done.stderr
    assert f"project: {room.path}\n" in done.stderr


@pytest.mark.parametrize(
    "args", [("status", ""), ("stop", ""), ("clean", ""), ("stop", "r", "--agent", ""), ("doctor", "--repair", "")]
)
def test_the_empty_value_of_a_variable_names_nothing(room: Place, args: tuple[str, ...]) -> None:
    room.ask()
    before = room.journal().read_bytes()
    done = room.raymond(*args)
    assert done.returncode == 2, done.stderr
    assert " is empty\nhint: " in done.stderr
    assert room.journal().read_bytes() == before


def test_a_run_here_comes_before_runs_elsewhere(room: Place, other: Place) -> None:
    other.ask("nightly-2")
    room.ask("nightly-1")
    assert room.status("night")["workflow_id"] == "nightly-1"
    assert other.status("night")["workflow_id"] == "nightly-2"


def test_a_command_without_an_id_means_this_project_only(room: Place, other: Place) -> None:
    room.ask()
    for args in (("status",), ("answer",), ("answer", "-"), ("resume",), ("stop",)):
        done = other.raymond(*args)
        assert done.returncode == 2, (args, no_traceback(done))


def test_a_run_in_another_project_works_in_its_own_directory(room: Place, other: Place) -> None:
    where = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>$PWD</result>"'}
    room.ask(files=where)
    assert other.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    assert other.raymond("resume", "r").stdout == f"{room.path}\n"


def test_an_id_that_is_nowhere_is_said_to_be_nowhere(room: Place, other: Place) -> None:
    other.ask("nightly-1")
    done = room.raymond("status", "nihgtly-1")
    assert done.returncode == 2
    assert "nihgtly-1" in done.stderr


# --- the same id in two projects


def test_the_same_id_in_two_projects_means_the_one_here(room: Place, other: Place) -> None:
    room.ask("same")
    assert other.command({"START.sh": "echo '<result>done</result>'"}, id="same").code == 0
    assert room.status("same")["status"] == "waiting"
    assert other.status("same")["status"] == "completed"


@pytest.mark.parametrize("args", [("status", "same"), ("answer", "same", "yes"), ("resume", "same")])
def test_the_same_id_in_two_projects_is_refused_from_a_third_place(
    room: Place, other: Place, args: tuple[str, ...]
) -> None:
    room.ask("same")
    other.ask("same")
    done = room.raymond(*args, cwd="/")
    said = no_traceback(done)
    assert done.returncode == 2, said
    assert str(room.path) in said
    assert str(other.path) in said
    chosen = room.raymond("-C", str(other.path), *args, cwd="/")
    assert chosen.returncode in (0, 3), chosen.stderr


# --- -C


def test_the_directory_can_be_named(room: Place) -> None:
    room.ask()
    assert [row["workflow_id"] for row in room.rows("-C", str(room.path), cwd="/")] == ["r"]


def test_a_run_can_be_started_in_another_directory(room: Place) -> None:
    flow = room.flow({"START.sh": 'echo "<result>$PWD</result>"'})
    done = room.raymond("-C", str(room.path), "run", flow, "--id", "r", cwd=room.path.parent)
    assert (done.returncode, done.stdout) == (0, f"{room.path}\n"), done.stderr
    assert [row["project"] for row in room.rows()] == [str(room.path)]


def test_a_path_after_the_directory_is_meant_from_there(room: Place) -> None:
    room.flow({"START.sh": "echo '<result>done</result>'"})
    done = room.raymond("-C", "room", "run", "../flow", cwd=room.path.parent)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_directory_that_is_not_there_is_named(room: Place) -> None:
    done = room.raymond("-C", "nowhere", "list")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


# --- list


def test_list_in_a_folder_without_runs_points_to_the_others(room: Place, other: Place) -> None:
    room.ask()
    done = other.raymond("list")
    assert done.returncode == 0, done.stderr
    assert str(room.path) in done.stdout
    assert "all your projects" in done.stderr
    assert contents(other.path) == {}, "looking leaves nothing behind"


def test_list_of_all_projects_works_from_anywhere(room: Place, other: Place) -> None:
    room.ask("one")
    other.ask("two")
    rows = room.raymond("list", "--all", cwd="/").stdout
    assert "one" in rows
    assert str(room.path) in rows
    assert "two" in rows
    assert str(other.path) in rows


def test_a_worktree_is_a_project_of_its_own(room: Place) -> None:
    room.repository().git("worktree", "add", "-q", "../tree")
    tree = room.path.parent / "tree"
    room.ask("here")
    assert room.rows(cwd=tree) == []
    assert room.raymond("status", "here", cwd=tree).returncode == 0


def test_a_repository_is_one_project_from_every_folder_in_it(room: Place) -> None:
    below = room.repository().path / "a" / "b"
    below.mkdir(parents=True)
    room.ask()
    assert [row["workflow_id"] for row in room.rows(cwd=below)] == ["r"]
    assert room.raymond("answer", "r", "yes", "--no-resume", cwd=below).returncode == 0


def test_an_empty_folder_called_git_makes_no_repository(room: Place) -> None:
    """Sandboxes leave such folders behind; git does not take them for a repository either."""
    (room.path.parent / ".git").mkdir()
    room.ask()
    assert [row["project"] for row in room.rows()] == [str(room.path)]


def test_a_project_is_the_same_through_a_link(room: Place) -> None:
    room.ask()
    link = room.path.parent / "link"
    link.symlink_to(room.path)
    assert [row["workflow_id"] for row in room.rows(cwd=link)] == ["r"]


def test_a_beginning_of_several_runs_elsewhere_names_them(room: Place, other: Place) -> None:
    room.ask("g-1")
    room.ask("g-2")
    for command in (["status", "g-"], ["stop", "g-"]):
        done = other.raymond(*command)
        assert done.returncode == 2
        assert "g-1" in done.stderr
        assert "g-2" in done.stderr
