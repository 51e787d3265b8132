"""The inbox of a run: what lies in it is a request, or is put aside."""

from pathlib import Path

from raymond.machine.requests import Request
from raymond.store import inbox


def test_what_cannot_be_read_as_a_request_does_not_hide_those_that_can(tmp_path: Path) -> None:
    folder = tmp_path / "r.inbox"
    kept = Request(id="q", kind="stop")
    path = inbox.leave(str(folder), kept)
    (folder / "folder.json").mkdir()
    (folder / "garbage.json").write_text("{")
    found = dict(inbox.look(str(folder)))
    assert found.pop(path) == kept
    assert set(found.values()) == {None}
    assert {Path(one).name for one in found} == {"folder.json", "garbage.json"}
