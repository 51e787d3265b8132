"""Objects of git that are compared with their names, in repositories of both kinds."""

import hashlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from raymond.loops.genuine import Forged, Genuine
from raymond.loops.git_calls import GitError
from raymond.loops.repository import Repository


class Room:
    """A repository with a file, a folder, and folders that are alike."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        self.git("init", "-q", f"--object-format={kind}", ".")
        for name, text in {"top": "top\n", "a/b/c": "c\n", "x/b/c": "c\n", "large": "x" * 2_000_000}.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text, "utf-8")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "start")
        self.head = self.git("rev-parse", "HEAD")
        self.repository = Repository(str(path), str(path.parent / "own/index"))

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.path, capture_output=True, text=True, check=True).stdout.strip()

    def forge(self, name: str, kind: str, content: bytes) -> None:
        path = self.path / ".git/objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(zlib.compress(f"{kind} {len(content)}\0".encode() + content))

    def forge_text(self, text: str) -> None:
        """Let git have something else under the name of this text."""
        content = text.encode()
        self.forge(hashlib.new(self.kind, b"blob %d\0" % len(content) + content).hexdigest(), "blob", b"evil\n")


@pytest.fixture(params=["sha1", "sha256"])
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Room:
    (tmp_path / "room").mkdir()
    return Room(tmp_path / "room", request.param)


def test_what_is_stored_is_compared_with_its_name(room: Room) -> None:
    names = [room.git("rev-parse", f"HEAD{what}") for what in ("", "^{tree}", ":a", ":top", ":large")]
    with Genuine(room.repository) as stored:
        assert all(one.is_genuine for one in stored.read(names))
        assert stored.forged([room.head, ""]) == []
        found = stored.files(room.head, ["top", "a/b/c", "x/b/c", "a/b", "none/at/all"])
        assert sorted(found) == ["a/b/c", "top", "x/b/c"]
        assert found["a/b/c"] == found["x/b/c"]
    room.forge(names[0], "commit", f"tree {names[1]}\n\nevil\n".encode())
    with Genuine(room.repository) as stored:
        assert stored.forged([room.head, names[1]]) == [f"the commit {room.head[:12]}"]
        with pytest.raises(GitError, match="has no object"):
            list(stored.read(["0" * len(room.head)]))


def test_a_forged_folder_is_found_wherever_it_is(room: Room) -> None:
    room.forge(room.git("rev-parse", "HEAD:a/b"), "tree", b"")
    with Genuine(room.repository) as stored:
        assert stored.forged([room.head]) == ["a/b/"]
        assert list(stored.files(room.head, ["top"])) == ["top"]
    with pytest.raises(Forged, match="in the place of a/b/"):
        room.repository.bring_back(room.head, ["a/b/c"])


def test_nothing_is_brought_back_unless_all_of_it_is_there(room: Room) -> None:
    room.forge_text("top\n")
    room.repository.bring_back(room.head, ["top"])
    assert (room.path / "top").read_text("utf-8") == "top\n", "it was there, and stayed"
    (room.path / "more").touch()
    (room.path / "top").unlink()
    with pytest.raises(Forged, match="in the place of top"):
        room.repository.bring_back(room.head, ["more", "top"])
    assert (room.path / "more").exists()
    assert not (room.path / "top").exists()


def test_what_is_new_in_a_commit_is_what_was_written(room: Room) -> None:
    (room.path / "a/new").write_text("new\n", "utf-8")
    tree = room.repository.tree()
    room.repository.check_new(tree, room.head)
    room.repository.check_new(tree, "")
    room.forge_text("new\n")
    with pytest.raises(Forged, match="in the place of a/new"):
        room.repository.check_new(tree, room.head)
    room.forge(tree, "tree", b"")
    assert room.repository.changed_since(room.head) == ["a/new"]
    with pytest.raises(Forged, match="in the place of the root folder"):
        room.repository.check_new(tree, room.head)


def test_a_pipe_in_the_place_of_an_object_is_not_waited_for_forever(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raymond.loops.genuine.PATIENCE", 0.3)
    name = room.git("rev-parse", "HEAD:top")
    path = room.path / ".git/objects" / name[:2] / name[2:]
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GitError, match="or git cannot read it"), Genuine(room.repository) as stored:
        list(stored.read([name]))
