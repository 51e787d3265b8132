"""Another user of the same machine cannot make a person's runs, settings or code."""

import os
import pwd
from pathlib import Path

import pytest

from trust.places import Place, contents, no_traceback

NOBODY = 65534
DONE = {"START.sh": "echo '<result>done</result>'"}


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")


def names_the_owner(said: str) -> bool:
    try:
        return pwd.getpwuid(NOBODY).pw_name in said or str(NOBODY) in said
    except KeyError:
        return str(NOBODY) in said


def give(path: Path) -> None:
    """Let a folder and all that is in it belong to another user."""
    for one in (path, *path.rglob("*")):
        os.chown(one, NOBODY, NOBODY, follow_symlinks=False)


def planted(folder: Path) -> Path:
    """What another user puts into a folder that all may write to."""
    root = folder / ".raymond"
    for name in ("workflows", "work", "sources"):
        (root / name).mkdir(parents=True)
        (root / name).chmod(0o777)
    root.chmod(0o777)
    (root / "config.toml").write_text("budget = 3\n")
    give(root)
    return root


@pytest.mark.slow
def test_a_folder_of_another_user_further_up_is_not_looked_at(room: Place) -> None:
    root = planted(room.path.parent)
    before = contents(root)
    done = room.command(DONE)
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert "$3.00" not in done.err
    assert contents(root) == before
    assert [row["project"] for row in room.rows()] == [str(room.path)]


def test_code_that_another_user_plants_further_up_is_not_run(room: Place) -> None:
    """The other user waits for the workflow to be unpacked there, and replaces it while it runs."""
    root = planted(room.path.parent)
    swap = f"""
        for d in {root / "work"}/*/; do
            test -d "$d" && echo "echo '<result>planted</result>'" > "$d/TWO.sh"
        done
        echo '<goto>TWO.sh</goto>'
    """
    done = room.command({"START.sh": swap, "TWO.sh": "echo '<result>mine</result>'"})
    assert (done.code, done.out) == (0, "mine\n"), done.err


@pytest.mark.parametrize("args", [("run",), ("config",)])
def test_settings_of_another_user_are_an_error_that_names_the_user(room: Place, args: tuple[str, ...]) -> None:
    planted(room.path)
    done = room.raymond(*args, *([room.flow(DONE)] if args == ("run",) else []))
    said = no_traceback(done)
    assert done.returncode in (1, 2), said
    assert "config.toml" in said or ".raymond" in said
    assert names_the_owner(said)


def test_a_settings_file_of_another_user_in_an_own_folder_is_an_error(room: Place) -> None:
    path = room.path / ".raymond" / "config.toml"
    path.parent.mkdir()
    path.write_text("budget = 3\n")
    os.chown(path, NOBODY, NOBODY)
    done = room.raymond("run", room.flow(DONE))
    assert done.returncode in (1, 2)
    assert names_the_owner(no_traceback(done))


def test_a_folder_of_another_user_in_the_working_directory_is_not_written_to(room: Place) -> None:
    root = planted(room.path)
    (root / "config.toml").unlink()
    before = contents(root)
    no_traceback(room.raymond("run", room.flow(DONE), "--id", "r"))
    assert contents(root) == before


def test_a_home_of_another_user_is_refused(room: Place) -> None:
    room.home.mkdir(parents=True, mode=0o700)
    give(room.home)
    done = room.raymond("run", room.flow(DONE))
    assert done.returncode == 2
    assert "RAYMOND_HOME" in done.stderr
    assert names_the_owner(done.stderr)
    assert contents(room.path) == {}
    assert contents(room.home) == {}


@pytest.mark.parametrize("name", ["projects", "work", "sources"])
def test_a_folder_of_another_user_in_the_home_is_refused(room: Place, name: str) -> None:
    (room.home / name).mkdir(parents=True)
    room.home.chmod(0o700)
    give(room.home / name)
    done = room.raymond("run", room.flow(DONE))
    assert done.returncode == 2, done.stderr
    assert names_the_owner(done.stderr)
    assert contents(room.path) == {}


# --- repositories


def foreign(room: Place) -> Path:
    """A folder of this user inside a repository of another one."""
    room.repository()
    below = room.path / "mine"
    below.mkdir()
    for path in (room.path, room.path / ".git", *(room.path / ".git").rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return below


def project_of(room: Place, below: Path, **environment: str) -> str:
    done = room.raymond("run", room.flow(DONE), "--id", "r", cwd=below, environment=environment)
    assert done.returncode == 0, done.stderr
    (row,) = room.rows(cwd=below, environment=environment)
    return str(row["project"])


def test_a_repository_of_another_user_is_no_project(room: Place) -> None:
    below = foreign(room)
    assert project_of(room, below) == str(below)
    assert not (room.path / ".raymond").exists()


def test_settings_in_a_repository_of_another_user_do_not_count_below_it(room: Place) -> None:
    below = foreign(room)
    planted(room.path)
    done = room.raymond("run", room.flow(DONE), cwd=below)
    assert done.returncode == 0, done.stderr
    assert "$3.00" not in done.stderr


def test_a_repository_that_git_was_told_to_trust_is_a_project(room: Place) -> None:
    below = foreign(room)
    Path(room.environment["HOME"], ".gitconfig").write_text(f"[safe]\n\tdirectory = {room.path}\n")
    assert project_of(room, below) == str(room.path)


def test_a_repository_of_whoever_called_sudo_is_a_project(room: Place) -> None:
    below = foreign(room)
    assert project_of(room, below, SUDO_UID=str(NOBODY)) == str(room.path)
