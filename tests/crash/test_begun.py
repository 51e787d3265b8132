"""A start that the machine refuses half way names the run that has begun: nobody has to start it a second time."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raymond import cli
from raymond.control import config
from raymond.store import home as homes
from raymond.store import project as projects
from raymond.store.project import Project

SAFE = "hint: nothing already written is lost: fix this, then `raymond resume r`"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "here" / "flow").mkdir(parents=True)
    (tmp_path / "here" / "flow" / "START.sh").write_text("echo '<result>done</result>'\n")
    monkeypatch.setenv(homes.VARIABLE, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return projects.at(str(tmp_path / "here"))


def refuse(number: int) -> Callable[[], object]:
    def call() -> object:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize(("call", "number"), [("fork", errno.EAGAIN), ("pipe", errno.EMFILE), ("fork", errno.ENOMEM)])
def test_a_run_that_cannot_get_into_the_background_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str, number: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse(number))
        assert cli.main(["run", "flow", "-d", "--id", "r"]) == 1
    why = os.strerror(number).lower()
    assert capsys.readouterr().err.splitlines()[-2:] == [f"error: the system refused a call: {why}", SAFE]
    assert project.ids() == ["r"]


def test_a_run_whose_scripts_do_not_fit_on_the_disk_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are unpacked into a folder that is not the run's."""
    make = os.mkdir

    def full(path: str, *args: int, dir_fd: int | None = None) -> None:
        if os.path.join("home", "work", "") in str(path) and not path.endswith("/home/work"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        make(path, *args, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", full)
        assert cli.main(["run", "flow", "--id", "r"]) == 1
    *_, error, hint = capsys.readouterr().err.splitlines()
    assert (error.endswith(": no space left on device"), hint) == (True, SAFE)
    assert project.ids() == ["r"]


@pytest.fixture
def crowded() -> Iterator[Callable[[], None]]:
    """Lets this process open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def fill() -> None:
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))

    yield fill
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("whose", ["person", "project"])
def test_settings_that_the_machine_cannot_open_are_not_wrong(
    tmp_path: Path, crowded: Callable[[], None], whose: str
) -> None:
    person, its_own = tmp_path / "raymond" / "config.toml", tmp_path / "tree" / ".raymond" / "config.toml"
    for path in (person, its_own):
        path.parent.mkdir(parents=True)
    (person if whose == "person" else its_own).write_text("budget = 5\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path)} if whose == "person" else {}
    crowded()
    with pytest.raises(OSError, match="Too many open files") as caught:
        config.load("" if whose == "person" else str(tmp_path / "tree"), environment=environment)
    assert caught.value.filename == str(person if whose == "person" else its_own)
