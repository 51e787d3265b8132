"""What the real Claude Code may run when the commands of gates are allowed: exactly these."""

from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Text, Tool, program, results

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

GATE = ["make a", "make b && make c", "bash -c '(make d)'"]
OTHERS = [
    "make b",
    "make a e",
    "make f",
    "make a && make g",
    "make a; make h",
    "bash -c '(make i)'",
    "bash -c make",
    "make",
]
TRIED = [*GATE, *OTHERS]


def test_exactly_the_commands_of_the_gates_run(desk: Callable[..., Desk]) -> None:
    answers = [Tool("Bash", {"command": command}) for command in TRIED]
    room = desk({"prompt START": [*answers, Text("<result>fine</result>")]})
    (room.path / "Makefile").write_text("a b c d e f g h i:\n\t@echo made $@\n", "utf-8")
    checks = "\n".join(f'- "{one}"' for one in GATE)
    ran = room.claude({"START.md": f"---\ngate:\n{checks}\n---\nprompt START"}, "--allow-gate-commands")
    assert (ran.code, ran.out) == (0, "fine\n"), ran.err
    said = results(room.server.requests[-1])
    allowed = [command for command, result in zip(TRIED, said, strict=True) if result.startswith("made")]
    assert allowed == GATE, said
