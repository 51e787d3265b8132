"""Folders by descriptor: what is read, written and removed there is there, and not where a link leads."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from raymond.system import folders
from running import as_anyone


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


def test_what_is_read_only_is_removed_too(top: Path) -> None:
    (top / "gone" / "a").mkdir(parents=True)
    (top / "gone" / "a" / "file").write_text("x")
    for path in ("gone/a/file", "gone/a", "gone"):
        (top / path).chmod(0o500)
    code = "import sys; from raymond.system import folders\nwith folders.opened(sys.argv[1]) as fd: folders.remove('gone', fd)"
    subprocess.run([*as_anyone(), sys.executable, "-c", code, str(top)], check=True)
    assert os.listdir(top) == []


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
