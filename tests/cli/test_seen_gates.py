"""What people see of gates before and while they run, and which commands are refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def gated(policy: str, *replies: str) -> dict[str, str]:
    """A workflow with one prompt, whose turns run these scripts."""
    turns = ", ".join(f'"{one}"' for one in replies)
    return {"START.md": f"---\n{policy}\n---\nDo it. <result>x</result>\n", "replies.yaml": f"START: [[{turns}]]\n"}


DONE = "<result>done</result>"

# --- what is refused


def test_a_gate_given_with_set_is_judged_like_that_of_a_file(room: Room) -> None:
    ran = room.command(gated("gate: make test", DONE), "--set", "START.gate=make; git reset --hard")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err == (
        "error: this check discards changes: `git reset --hard`\n --> --set START.gate=make; git reset --hard\n"
        "hint: a check only looks: remove this, or do it yourself before the run\n"
    )
    assert not room.home.exists(), "nothing was started"
    tried = room.raymond("gate", room.flow({}), "START", "--set", "START.gate=git clean -fdx")
    assert (tried.returncode, tried.stdout) == (6, "")


def test_a_gate_that_comes_with_latest_is_judged_like_the_first(room: Room) -> None:
    ran = room.command(gated("gate: exit 1\ngate_tries: 0", DONE))
    assert ran.code == 1
    room.flow({"START.md": "---\ngate: rm -rf ..\n---\nDo it. <result>x</result>\n"})
    again = room.resume("--latest")
    assert again.code == 6
    assert "error: this check deletes everything in `..`\n --> ../flow/START.md:2:7\n" in again.err
    assert room.events() == ran.events, "nothing was changed"


def test_a_gate_that_is_doubtful_is_told_before_the_first_turn(room: Room) -> None:
    ran = room.command(gated("gate: my-check", DONE))
    warning = "warning: `my-check` is no test runner, build tool or file of the project that Raymond knows"
    assert warning in ran.err
    assert room.command(gated("gate: my-check", DONE), "--strict", id="s").code == 6
