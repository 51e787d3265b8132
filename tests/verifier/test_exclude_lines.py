"""Which lines of .git/info/exclude are Raymond's own."""

import hashlib
from pathlib import Path

import pytest

from raymond.loops.documents import Documents
from raymond.verifier import exclude_lines
from raymond.verifier.control_plane import Control, differences


@pytest.mark.parametrize("docs", ["docs", ".", "app1/docs", "a b", "x*[y]?", "back\\\\slash", "ü"])
def test_every_line_that_a_loop_adds_is_one(tmp_path: Path, docs: str) -> None:
    lines = Documents(str(tmp_path), docs, str(tmp_path)).excluded()
    assert [one.decode() for one in exclude_lines.own("\n".join(lines).encode())] == lines
    assert exclude_lines.others("\n".join(["mine", *lines, ""]).encode()) == b"mine"


@pytest.mark.parametrize(
    "line",
    [
        "/*/.task-loop-state.json*",
        "/a/**/.task-loop-state.json*",
        "/a[b]/.task-loop-state.json*",
        "/a?/.task-loop-state.json*",
        "/a\\b/.task-loop-state.json*",
        "/docs/.task-loop-state.json*\r",
        "/docs/.task-loop-state.json* ",
        "/docs/.task-loop-state.json/*",
        "!/docs/.task-loop-state.json*",
        "docs/.task-loop-state.json*",
        "/docs/task-loop-state.json*",
        "/docs/.other-loop-state.json*",
        "/.raymond/*",
        "*.raymond-new*",
    ],
)
def test_no_other_line_is_one(line: str) -> None:
    assert exclude_lines.own(line.encode()) == []


def test_lines_of_ours_may_come_but_not_go() -> None:
    own = b"/docs/.task-loop-state.json*\n"
    assert exclude_lines.is_same(b"mine", b"mine\n" + own)
    assert not exclude_lines.is_same(b"mine\n" + own, b"mine\n")
    assert not exclude_lines.is_same(own, own + b"mine\n")
    assert exclude_lines.joined(b"mine", b"theirs\n" + own + own) == b"mine\n" + own
    assert exclude_lines.joined(b"mine", b"theirs\n") == b"mine"


@pytest.mark.parametrize(("mine", "now"), [("*.log\n", hashlib.sha256(b"*.log").hexdigest()), ("", None)])
def test_a_seal_of_an_earlier_release_is_compared_without_lines_of_ours(mine: str, now: str | None) -> None:
    text = f"{mine}/docs/.task-loop-state.json*\n"
    parts = {".git/info/exclude": hashlib.sha256(text.encode()).hexdigest()}
    old = Control(parts, {".git/info/exclude": text}, version=4)
    assert differences(old, Control({".git/info/exclude": now} if now else {}, version=5)) == []
    [found] = differences(old, Control({".git/info/exclude": "other"}, version=5))
    assert found.words == ("changed .git/info/exclude" if mine else "added .git/info/exclude")
