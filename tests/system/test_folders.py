"""Folders by descriptor: what is read, written and removed there is there, and not where a link leads."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from raymond.system import folders
from running import as_anyone

REMOVE = (
    "import sys; from raymond.system import folders\nwith folders.opened(sys.argv[1]) as fd: folders.remove('gone', fd)"
)
"""What removes the folder `gone`, as a program of its own."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no link may lead to."""
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_text("safe")
    return tmp_path / "outside"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top").mkdir()
    return tmp_path / "top"


def safe(outside: Path) -> bool:
    """Nothing was added, changed or removed."""
    return sorted(os.listdir(outside)) == ["deep", "file"] and (outside / "file").read_text() == "safe"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# Open


def test_a_link_in_place_of_a_folder_is_not_opened(top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside)
    with pytest.raises(NotADirectoryError), folders.opened(str(top / "link")):
        pass
    with pytest.raises(NotADirectoryError), folders.below(str(top), "link"):
        pass
    with pytest.raises(NotADirectoryError), folders.below(str(top), "link", "deep"):
        pass


def test_missing_folders_are_made_only_if_asked_for_and_are_private(top: Path) -> None:
    with pytest.raises(FileNotFoundError), folders.below(str(top), "a", "b"):
        pass
    assert os.listdir(top) == []
    with folders.below(str(top), "a", "b", make=True) as fd:
        assert os.path.samestat(os.fstat(fd), os.stat(top / "a" / "b"))
    assert [stat.S_IMODE((top / name).stat().st_mode) for name in ("a", "a/b")] == [0o700, 0o700]


def test_nothing_is_made_through_a_link(top: Path, outside: Path) -> None:
    (top / "a").symlink_to(outside)
    with pytest.raises(NotADirectoryError), folders.below(str(top), "a", "b", make=True):
        pass
    assert safe(outside)


def test_every_descriptor_is_closed_whatever_happens(top: Path) -> None:
    (top / "a" / "b").mkdir(parents=True)
    before = descriptors()
    with folders.below(str(top), "a", "b"):
        assert descriptors() == before + 3
    with pytest.raises(FileNotFoundError), folders.below(str(top), "a", "c"):
        pass
    assert descriptors() == before


# Put


def test_a_file_is_replaced_in_one_go_and_private(top: Path) -> None:
    (top / "file").write_text("a longer text that was there before")
    with folders.opened(str(top)) as fd:
        folders.put(fd, "file", b"new")
    assert (top / "file").read_text() == "new"
    assert stat.S_IMODE((top / "file").stat().st_mode) == 0o600
    assert os.listdir(top) == ["file"]


def test_a_link_is_replaced_and_not_written_through(top: Path, outside: Path) -> None:
    (top / "file").symlink_to(outside / "file")
    with folders.opened(str(top)) as fd:
        folders.put(fd, "file", b"new")
    assert (top / "file").read_text() == "new"
    assert not (top / "file").is_symlink()
    assert safe(outside)


def test_what_cannot_be_put_leaves_nothing(top: Path) -> None:
    (top / "file").mkdir()
    with folders.opened(str(top)) as fd, pytest.raises(IsADirectoryError):
        folders.put(fd, "file", b"new")
    assert os.listdir(top) == ["file"]


# Write below


def test_a_file_below_is_written_with_the_modes_of_others(top: Path) -> None:
    mask = os.umask(0o022)
    try:
        folders.write_below(str(top), "a/b/file", "a longer text")
        folders.write_below(str(top), "a/b/file", "new")
    finally:
        os.umask(mask)
    assert (top / "a" / "b" / "file").read_text() == "new"
    assert [stat.S_IMODE((top / name).stat().st_mode) for name in ("a", "a/b", "a/b/file")] == [0o755, 0o755, 0o644]


def test_a_link_may_lead_to_another_place_below_and_not_out(top: Path, outside: Path) -> None:
    (top / "real").mkdir()
    (top / "link").symlink_to("real")
    folders.write_below(str(top), "link/file", "x")
    assert (top / "real" / "file").read_text() == "x"
    (top / "out").symlink_to(outside)
    (top / "file").symlink_to(outside / "file")
    for name in ("out/file", "file", "../outside/file", str(outside / "file")):
        with pytest.raises(OSError) as caught:
            folders.write_below(str(top), name, "x")
        assert caught.value.filename == os.path.join(top, name)
    assert safe(outside)


def test_a_directory_that_a_link_has_replaced_is_not_written_to(top: Path, outside: Path) -> None:
    """It, or one above it."""
    (top / "link").symlink_to(outside)
    for directory in (top / "link", top / "link" / "deep"):
        with pytest.raises(NotADirectoryError):
            folders.write_below(str(directory), "file", "x")
    assert safe(outside)
    assert os.listdir(outside / "deep") == []


def test_a_file_that_has_another_name_is_neither_written_nor_emptied(top: Path, outside: Path) -> None:
    os.link(outside / "file", top / "file")
    with pytest.raises(OSError, match="not a file of its own"):
        folders.write_below(str(top), "file", "x")
    assert safe(outside)


def test_a_pipe_is_refused_and_not_waited_for(top: Path) -> None:
    os.mkfifo(top / "pipe")
    with pytest.raises(OSError, match="No such device"):
        folders.write_below(str(top), "pipe", "x")
    reader = os.open(top / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="not a file of its own"):
        folders.write_below(str(top), "pipe", "x")
    os.close(reader)


# Remove


def test_a_folder_is_removed_with_everything_in_it_and_nothing_behind_its_links(top: Path, outside: Path) -> None:
    (top / "gone" / "a" / "b").mkdir(parents=True)
    (top / "gone" / "a" / "file").write_text("x")
    (top / "gone" / "a" / "out").symlink_to(outside)
    (top / "gone" / "out").symlink_to(outside / "file")
    (top / "gone" / "nowhere").symlink_to("nowhere")
    os.mkfifo(top / "gone" / "pipe")
    (top / "kept").write_text("x")
    with folders.opened(str(top)) as fd:
        folders.remove("gone", fd)
        folders.remove("gone", fd)
    assert os.listdir(top) == ["kept"]
    assert safe(outside)


def test_a_link_is_removed_and_not_what_it_leads_to(top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside)
    with folders.opened(str(top)) as fd:
        folders.remove("link", fd)
    assert os.listdir(top) == []
    assert safe(outside)


def test_what_cannot_be_read_is_removed_too(top: Path) -> None:
    (top / "gone" / "a" / "b").mkdir(parents=True)
    for path in ("gone/a/b", "gone/a", "gone"):
        (top / path).chmod(0o000)
    subprocess.run([*as_anyone(), sys.executable, "-c", REMOVE, str(top)], check=True)
    assert os.listdir(top) == []


def test_what_is_deep_and_read_only_is_removed_too(top: Path) -> None:
    """Without the right to write to it a folder cannot be moved to where it can be reached."""
    paths = [top / "gone"]
    for _ in range(120):
        paths.append(paths[-1] / "d")
    paths[-1].mkdir(parents=True)
    for path in reversed(paths):
        path.chmod(0o500)
    subprocess.run([*as_anyone(), sys.executable, "-c", REMOVE, str(top)], check=True)
    assert os.listdir(top) == []


def test_the_mode_of_what_a_link_leads_to_is_not_changed(
    top: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder can become a link between the look at it and its removal."""
    (top / "gone").mkdir()
    outside.chmod(0o500)
    look = os.lstat

    def swapped(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        found = look(path, dir_fd=dir_fd)
        (top / "gone").rename(top / "moved")
        (top / "gone").symlink_to(outside)
        return found

    monkeypatch.setattr(os, "lstat", swapped)
    with folders.opened(str(top)) as fd, pytest.raises(NotADirectoryError):
        folders.remove("gone", fd)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500
    assert safe(outside)


# Share and claim


def test_a_folder_that_somebody_shares_cannot_be_claimed(top: Path) -> None:
    first, second = folders.share(str(top)), folders.share(str(top))
    with folders.opened(str(top)) as fd:
        assert not folders.claim(fd)
        os.close(first)
        assert not folders.claim(fd)
        os.close(second)
        assert folders.claim(fd)


def test_a_claimed_folder_cannot_be_shared_until_it_is_let_go(top: Path) -> None:
    before = descriptors()
    with folders.opened(str(top)) as fd:
        assert folders.claim(fd)
        with pytest.raises(BlockingIOError):
            folders.share(str(top))
    os.close(folders.share(str(top)))
    assert descriptors() == before


def test_a_link_cannot_be_shared(top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        folders.share(str(top / "link"))


def test_only_a_folder_itself_is_a_folder(top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside)
    found = [folders.is_folder(str(path)) for path in (top, top / "link", outside / "file", top / "nowhere")]
    assert found == [True, False, False, False]


def test_a_folder_is_removed_however_deep_it_is(tmp_path: Path) -> None:
    """An agent can make one that is deeper than a process may open files."""
    here = os.getcwd()
    (tmp_path / "top").mkdir()
    os.chdir(tmp_path / "top")
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    with folders.opened(str(tmp_path)) as fd:
        folders.remove("top", fd)
    assert os.listdir(tmp_path) == []
