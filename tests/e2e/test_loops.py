"""Loops with the real Claude Code: a plain repository, a red check that turns green, a queue that is committed."""

import subprocess
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Script, Text, Tool, program

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

MAKEFILE = "test:\n\t@grep -q hello greeting.txt\n"
LOG = "docs/session_logs/20260101_0900_session.md"


@pytest.fixture
def repository(desk: Callable[..., Desk]) -> Callable[[Script], Desk]:
    """Makes the one desk of a test, with a repository whose check is red."""

    def make(script: Script) -> Desk:
        room = desk(script)
        files = {"Makefile": MAKEFILE, "PROMPT.md": "Make the greeting greet.\n", "greeting.txt": "bye\n"}
        files[LOG] = "## Next Steps\n\n1. [VERIFY: make test] Let it greet\n"
        for name, text in files.items():
            (room.path / name).parent.mkdir(parents=True, exist_ok=True)
            (room.path / name).write_text(text, "utf-8")
        who = ("user.name=a", "user.email=a@b.c")
        setup = "; ".join(f"git config {one.replace('=', ' ')}" for one in who)
        given = ["bash", "-ec", f"git init -q -b main .; {setup}; git add .; git commit -qm base"]
        subprocess.run(given, cwd=room.path, env=room.environment, check=True)
        return room

    return make


def edits(room: Desk, text: str, said: str) -> list[Answer]:
    path = str(room.path / "greeting.txt")
    return [
        Tool("Read", {"file_path": path}),
        Tool("Write", {"file_path": path, "content": text}),
        Text(said),
    ]


def git(room: Desk, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=room.path, env=room.environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_ralph_ends_when_the_check_turns_green(repository: Callable[[Script], Desk]) -> None:
    script: dict[str, list[Answer]] = {}
    room = repository(script)
    script["Make the greeting greet."] = edits(room, "hello\n", "It greets. LOOP_COMPLETE")
    done = room.raymond(
        "ralph", "PROMPT.md", "--gate", "make test", "--backend", "claude", "--id", "r", "--pause", "0s"
    )
    assert done.returncode == 0, done.stderr
    assert "Bash is denied under acceptEdits; --allow-tool Bash allows it" in done.stderr
    assert "- Ended: completed: the check was red at the start and is green now" in done.stdout
    assert "agents work in an isolated workspace" in done.stderr
    subjects = git(room, "log", "--format=%s", "refs/raymond/r/tip").splitlines()
    assert subjects == ["chore(loop): records", "feat: make the greeting greet (iteration 1)", "base"]
    assert git(room, "show", "raymond/r:greeting.txt") == "hello"
    assert git(room, "status", "--porcelain") == ""


def test_a_session_does_its_item_and_is_kept_from_forcing(repository: Callable[[Script], Desk]) -> None:
    script: dict[str, list[Answer]] = {}
    room = repository(script)
    forced = Tool("Bash", {"command": "git push origin main --force", "description": "push"})
    script["Let it greet"] = [forced, *edits(room, "hello\n", "## Summary\nIt greets.\n\nITERATION_COMPLETE")]
    done = room.raymond(
        "continuous-session", "start", "--backend", "claude", "--id", "r", "--pause", "0s", "--allow-tool", "Bash"
    )
    assert done.returncode == 0, done.stderr
    subjects = git(room, "log", "--format=%s", "refs/raymond/r/tip").splitlines()
    assert subjects == ["chore(loop): records", "feat: let it greet", "base"]
    assert git(room, "show", "raymond/r:docs/progress.md").count("(Continuous Session 1/5)") == 1
    results = [str(one) for request in room.server.requests for one in request.body.get("messages", [])]
    assert any("denied" in one.casefold() or "permission" in one.casefold() for one in results), "it was not let"
