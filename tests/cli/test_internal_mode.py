"""Internal mode is switched off: what belonged to it says so, whatever it is given."""

import pytest

from running import Room


@pytest.mark.parametrize(
    "words",
    [
        ("continuous-session", "next", "--json"),
        ("task-loop", "record", "--failed", "it died"),
        ("story-loop", "next", "--resume", "x"),
        ("init", "--claude"),
        ("init", "--plugin", "DIR"),
    ],
)
def test_it_is_refused_and_nothing_is_written(room: Room, words: tuple[str, ...]) -> None:
    before = sorted(room.path.rglob("*"))
    done = room.raymond(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: internal mode is switched off in this version: it moves into workspaces next\n"
        "hint: raymond LOOP start runs the loop with agents of its own\n"
    )
    assert sorted(room.path.rglob("*")) == before
    assert f"  {words[1]} " not in room.raymond(words[0], "--help").stdout
