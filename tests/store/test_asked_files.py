"""Files that are shown with a question: what they were, and whether they still are that."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from raymond.language.refusal import Refusal
from raymond.machine.agent import AskedFile
from raymond.store import asked_files


def test_a_file_is_what_it_was_until_it_is_changed_or_somebody_has_seen_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("one")
    (tmp_path / "sub" / "b").write_bytes(b"\xff")
    taken = asked_files.resolve(str(tmp_path), " a.md\tsub/b  a.md ")
    assert taken == (
        AskedFile("a.md", 3, sha256(b"one").hexdigest()),
        AskedFile("sub/b", 1, sha256(b"\xff").hexdigest()),
    )

    def found() -> list[asked_files.Found]:
        return [asked_files.read_now(str(tmp_path), one.path) for one in taken]

    assert asked_files.changed(found(), taken, {}) == []
    (tmp_path / "a.md").write_text("two")
    assert asked_files.changed(found(), taken, {}) == ["a.md"]
    assert asked_files.changed(found(), taken, {"a.md": sha256(b"two").hexdigest()}) == []
    assert asked_files.why_hidden(found()) == ""
    os.unlink(tmp_path / "sub" / "b")
    assert asked_files.why_hidden(found()).startswith("`sub/b` cannot be read")


@pytest.mark.parametrize("path", ["missing", "../out", "/etc/passwd", "link", "sub", "pipe", "large", "a\0b", "."])
def test_what_cannot_be_shown_is_refused(tmp_path: Path, path: str) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (tmp_path / "out").write_text("secret")
    (top / "link").symlink_to("../out")
    os.mkfifo(top / "pipe")
    (top / "large").write_bytes(b"x" * ((1 << 20) + 1))
    refused = asked_files.resolve(str(top), path)
    assert isinstance(refused, Refusal)
    assert refused.kind == "file"
    assert "secret" not in refused.reason


def test_a_question_shows_a_few_files_only(tmp_path: Path) -> None:
    assert isinstance(asked_files.resolve(str(tmp_path), " ".join(map(str, range(21)))), Refusal)
