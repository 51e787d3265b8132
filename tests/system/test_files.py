"""Files that are read and written whole: private, through no link, and with every folder on the way."""

import os
import stat
from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.system import files


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe without a writer would be waited for, and a device never ends."""
    (tmp_path / "file").write_text("safe")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = descriptors()
    for path, why in (
        (tmp_path / "link", "Too many levels of symbolic links"),
        (tmp_path / "folder", "Is a directory"),
        (tmp_path / "pipe", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
    ):
        with pytest.raises(OSError, match=why):
            files.contents(str(path))
    assert descriptors() == before


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert files.contents(str(tmp_path / "file")) == b"x" * 100
    assert files.contents(str(tmp_path / "file"), 10) == b"x" * 10


def test_a_file_that_is_too_large_to_be_read_whole_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 8 << 40)
    with pytest.raises(OSError, match="it is larger than 256 MiB"):
        files.contents(str(path))
    assert files.contents(str(path), 10) == b"\0" * 10


def test_lines_are_read_up_to_one_that_is_too_long(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    Path(path).write_bytes(b"one\ntwo\nthree\nfour\n")
    whole = Path(path).read_bytes()
    assert [files.lines(path, longest, 4) for longest in (6, 7, 15, 100)] == [whole[4:]] * 4
    os.truncate(path, 8 << 40)
    assert files.lines(path, 10) == whole + b"\0" * (30 - len(whole))
    assert len(files.lines(path, 7)) < len(whole) + 14


def test_a_file_of_another_program_may_be_a_link_but_no_pipe_and_not_too_long(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    assert files.foreign(str(tmp_path / "link"), 100) == b"x" * 100
    for name, why in (("link", "File too large"), ("pipe", "not a regular file"), ("zero", "not a regular file")):
        with pytest.raises(OSError, match=why):
            files.foreign(str(tmp_path / name), 99)


def test_a_file_is_replaced_whole_and_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("safe")
    (tmp_path / "file").symlink_to("outside")
    files.replace(str(tmp_path / "file"), b"new", durable=True)
    assert not (tmp_path / "file").is_symlink()
    assert ((tmp_path / "file").read_text(), (tmp_path / "outside").read_text()) == ("new", "safe")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_what_cannot_be_replaced_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(JournalError) as caught:
        files.replace(str(tmp_path / "folder"), b"new", run="r")
    assert str(caught.value) == f"{tmp_path}/folder: is a directory"
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume r`"
    assert os.listdir(tmp_path) == ["folder"]


def test_the_parents_of_a_private_folder_are_private_too(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        files.make_private(str(tmp_path / "a" / "b"), durable=True)
    finally:
        os.umask(old)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o700, 0o700]


def test_a_file_in_the_way_of_a_private_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(JournalError) as caught:
            files.guard(str(path), lambda path=path: files.make_private(str(path)))  # type: ignore[misc]
        assert str(caught.value) == f"{path}: not a directory"
