"""Which lines of .git/info/exclude are Raymond's own."""

from pathlib import Path

import pytest

from raymond.loops.documents import Documents
from raymond.verifier import exclude_lines


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
