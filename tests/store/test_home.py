"""RAYMOND_HOME: where it is, and that nobody else can change what is in it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from raymond.errors import Error, UsageError
from raymond.store import home as homes
from raymond.store.home import Home

OUT = "set RAYMOND_HOME to a folder of your own, outside of your projects"


def said(caught: pytest.ExceptionInfo[Error]) -> tuple[str, str]:
    return str(caught.value), caught.value.hint


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# Where it is


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"RAYMOND_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"RAYMOND_HOME": "", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/raymond"),
        ({"HOME": "/c"}, "/c/.local/state/raymond"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/c"}, "/c/.local/state/raymond"),
        ({"RAYMOND_HOME": "/a/b/../c/"}, "/a/c"),
    ],
)
def test_it_is_what_the_environment_names_first(environment: dict[str, str], path: str) -> None:
    assert homes.find(environment) == Home(path)


def test_without_any_place_there_is_none() -> None:
    with pytest.raises(UsageError) as caught:
        homes.find({})
    assert said(caught) == ("there is no place for runs: neither RAYMOND_HOME nor HOME is set", OUT)


def test_a_relative_one_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        homes.find({"RAYMOND_HOME": "runs"})
    assert said(caught) == (
        "RAYMOND_HOME=runs is not an absolute path",
        "set RAYMOND_HOME to a folder of your own, outside of your projects",
    )


def test_looking_for_it_makes_nothing(tmp_path: Path) -> None:
    homes.find({"RAYMOND_HOME": f"{tmp_path}/home"})
    assert os.listdir(tmp_path) == []


def test_everything_lies_in_it() -> None:
    home = Home("/h")
    assert (home.projects, home.sources, home.work) == ("/h/projects", "/h/sources", "/h/work")


# Whose it is


def a_link(path: Path) -> None:
    (path.parent / "real").mkdir(0o700)
    path.symlink_to("real")


def a_file(path: Path) -> None:
    path.write_text("in the way")


def open_to(bits: int, holds: str = "") -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        if holds:
            (path / holds).touch()
        path.chmod(0o700 | bits)

    return make


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("in the way")


@pytest.mark.parametrize(
    ("make", "why", "hint"),
    [
        (a_link, "is a link", "name the folder itself: RAYMOND_HOME=HERE/real"),
        (a_file, "is not a folder", OUT),
        (below_a_file, "cannot be reached: not a directory", OUT),
        (open_to(0o050), "is open to other users", f"chmod 700 HERE/home, or {OUT}"),
        (
            open_to(0o001, holds="notes"),
            "is open to other users",
            "set RAYMOND_HOME to HERE/home/raymond, which is made for you alone",
        ),
        (open_to(0o002, holds="notes"), "is open to other users", OUT),
    ],
)
def test_one_that_others_could_change_is_refused(
    tmp_path: Path, make: Callable[[Path], None], why: str, hint: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    make(here / "home")
    with pytest.raises(UsageError) as caught:
        homes.find({"RAYMOND_HOME": f"{here}/home"})
    message = f"runs cannot be kept in {here}/home (RAYMOND_HOME): it {why}"
    assert said(caught) == (message, hint.replace("HERE", str(here)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_one_that_belongs_to_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(0o700)
    os.chown(tmp_path / "home", 54321, -1)
    with pytest.raises(UsageError) as caught:
        homes.find({"RAYMOND_HOME": f"{tmp_path}/home"})
    message = f"runs cannot be kept in {tmp_path}/home (RAYMOND_HOME): it belongs to user 54321"
    assert said(caught) == (message, OUT)


def test_one_of_our_own_is_taken(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(0o700)
    assert homes.find({"RAYMOND_HOME": f"{tmp_path}/home"}).path == f"{tmp_path}/home"


# What is in it


def test_it_is_made_private_with_its_missing_parents(tmp_path: Path) -> None:
    home = Home(f"{tmp_path}/new/home")
    old = os.umask(0)
    try:
        home.make()
        home.make()
    finally:
        os.umask(old)
    made = [f"{tmp_path}/new", home.path, home.projects, home.sources, home.work]
    assert [mode(path) for path in made] == [0o700] * 5
    assert sorted(os.listdir(home.path)) == ["projects", "sources", "work"]


@pytest.mark.parametrize("name", ["projects", "sources", "work"])
def test_a_link_in_it_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "home").mkdir(0o700)
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "home" / name).symlink_to("../real")
    with pytest.raises(UsageError) as caught:
        Home(f"{tmp_path}/home").make()
    assert said(caught) == (
        f"runs cannot be kept in {tmp_path}/home/{name} (RAYMOND_HOME): it is a link",
        f"name the folder itself: RAYMOND_HOME={tmp_path}/real",
    )
    assert os.listdir(tmp_path / "real") == []
