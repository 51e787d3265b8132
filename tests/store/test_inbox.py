"""The inbox of a run: what lies in it is a request, or is put aside."""

from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.machine.requests import Request
from raymond.store import inbox


def test_what_cannot_be_read_as_a_request_does_not_hide_those_that_can(tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    kept = Request(id="q", kind="stop")
    path = inbox.leave(str(folder), kept)
    (folder / "folder.json").mkdir()
    (folder / "garbage.json").write_text("{")
    found = dict(inbox.pending(str(folder)))
    assert found.pop(path) == kept
    assert set(found.values()) == {None}
    assert {Path(one).name for one in found} == {"folder.json", "garbage.json"}


def test_a_link_to_a_request_and_one_that_is_too_long_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    kept = Path(inbox.leave(str(folder), Request(id="q", kind="stop")))
    kept.rename(tmp_path / "outside")
    (folder / "link.json").symlink_to(tmp_path / "outside")
    (folder / "long.json").write_text('{"id":"q","kind":"stop","text":"' + "x" * (1 << 20) + '"}')
    assert [request for _, request in inbox.pending(str(folder))] == [None, None]


def test_a_request_that_cannot_be_left_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "inbox").write_text("in the way")
    with pytest.raises(JournalError) as caught:
        inbox.leave(str(tmp_path / "inbox"), Request(id="q", kind="stop"))
    assert str(caught.value) == f"{tmp_path}/inbox: not a directory"


def test_nothing_behind_a_link_in_place_of_the_inbox_is_a_request(tmp_path: Path) -> None:
    inbox.leave(str(tmp_path / "elsewhere"), Request(id="q", kind="stop"))
    (tmp_path / "inbox").symlink_to("elsewhere")
    assert list(inbox.pending(str(tmp_path / "inbox"))) == []
