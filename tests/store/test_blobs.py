"""Long texts beside a journal: kept once, and read back only as what was kept."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from raymond.machine.agent import LONG_TEXT
from raymond.store import blobs
from raymond.store.blobs import BadBlob

TEXT = "é" * (LONG_TEXT + 1)
NAME = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "r" / "blobs")


def refused(folder: str, value: object) -> str:
    with pytest.raises(BadBlob) as caught:
        blobs.put_back(folder, value)
    return str(caught.value)


def test_every_long_text_comes_back_from_wherever_it_was(folder: str) -> None:
    value = {"a": TEXT, "list": ["short", TEXT + "x", {"deep": TEXT}], "n": 1, "none": None}
    put = blobs.put_aside(folder, value)
    assert put == {
        "a": f"\0blob:{NAME}",
        "list": ["short", f"\0blob:{hashlib.sha256(f'{TEXT}x'.encode()).hexdigest()}", {"deep": f"\0blob:{NAME}"}],
        "n": 1,
        "none": None,
    }
    assert blobs.put_back(folder, put) == value
    assert len(os.listdir(folder)) == 2


def test_a_text_that_is_not_long_stays_and_makes_no_folder(folder: str) -> None:
    assert blobs.put_aside(folder, ["x" * LONG_TEXT]) == ["x" * LONG_TEXT]
    assert not os.path.exists(folder)


@pytest.mark.parametrize("text", ["\0blob:" + "0" * 64, "\0", "\0blob:../../etc/passwd"])
def test_a_text_that_looks_like_a_name_is_kept_as_the_text_it_is(folder: str, text: str) -> None:
    assert blobs.put_back(folder, blobs.put_aside(folder, text)) == text


def test_a_text_that_is_not_unicode_comes_back(folder: str) -> None:
    text = "\udce9" * (LONG_TEXT + 1)
    assert blobs.put_back(folder, blobs.put_aside(folder, text)) == text


def test_it_is_private_and_written_once(folder: str) -> None:
    blobs.put_aside(folder, TEXT)
    path = f"{folder}/{NAME}"
    before = os.stat(path)
    blobs.put_aside(folder, TEXT)
    assert os.stat(path).st_ino == before.st_ino
    assert (stat.S_IMODE(before.st_mode), stat.S_IMODE(os.stat(folder).st_mode)) == (0o600, 0o700)


def test_one_that_was_changed_is_written_again(folder: str) -> None:
    blobs.put_aside(folder, TEXT)
    Path(folder, NAME).write_bytes(TEXT.encode().replace(b"\xc3\xa9", b"xx"))
    assert blobs.put_back(folder, blobs.put_aside(folder, TEXT)) == TEXT


def test_one_that_was_changed_or_is_gone_or_is_a_link_is_refused(folder: str, tmp_path: Path) -> None:
    put = blobs.put_aside(folder, TEXT)
    path = f"{folder}/{NAME}"
    Path(path).write_text(TEXT + " ")
    assert refused(folder, [put]) == f"needs {path}, which was changed after it was kept"
    os.unlink(path)
    assert refused(folder, {"a": put}) == f"needs {path}: no such file or directory"
    (tmp_path / "outside").write_text(TEXT)
    os.symlink(tmp_path / "outside", path)
    assert refused(folder, put) == f"needs {path}: too many levels of symbolic links"


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "", "0" * 63, "0" * 65, "G" * 64, NAME + "\n"])
def test_only_a_name_of_its_form_is_ever_a_path(folder: str, name: str) -> None:
    blobs.put_aside(folder, TEXT)
    assert refused(folder, f"\0blob:{name}") == "names a long text that cannot be one of this run"
