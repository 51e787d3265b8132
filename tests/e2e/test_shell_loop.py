"""docs/from-a-shell-loop.md, followed to its end with the real Claude Code: a cheat is found, a kill loses nothing."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Gate, Hang, Request, Text, Tool, program
from raymond.machine.events import RunResumed

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

PAGE = (Path(__file__).parents[2] / "docs" / "from-a-shell-loop.md").read_text("utf-8")
BLOCK = re.compile(r"(?:`([\w.]+)`[^\n`]*:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKEFILE = "test:\n\tbash greet.sh | grep -qx hello\n"
FIRST, SECOND = "- [ ] greet.sh prints hello", "- [ ] greet.sh bye prints goodbye"
"""What is on the list of the page."""


def blocks(name: str) -> list[str]:
    """The versions of a file that the page shows, in order."""
    return [text for file, _, text in BLOCK.findall(PAGE) if file == name]


def commands(start: str) -> list[str]:
    """The commands of the page that begin so."""
    return [text.strip() for file, kind, text in BLOCK.findall(PAGE) if kind == "bash" and text.startswith(start)]


class Worker:
    """An agent that ticks the first box and does nothing; then does what it is told."""

    def __init__(self, folder: Path, gate: Gate) -> None:
        self.gate = gate
        self.folder = folder
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> Answer:
        if request.call == 0:
            self.prompts.append(request.prompt)
        return self._turn(len(self.prompts))[request.call]

    def _turn(self, number: int) -> list[Answer]:
        plan, script = str(self.folder / "fix_plan.md"), str(self.folder / "greet.sh")
        look = Tool("Read", {"file_path": plan})
        if number == 1:
            return [look, self._tick(plan, FIRST), Text("Done! Everything works.")]
        if number == 2:
            return [Tool("Write", {"file_path": script, "content": "echo hello\n"}), Text("It works now.")]
        if number == 3:
            return [Hang(self.gate)]
        more = '[ "$1" = bye ] && echo goodbye || echo hello\n'
        return [
            Tool("Read", {"file_path": script}),
            Tool("Write", {"file_path": script, "content": more}),
            look,
            self._tick(plan, SECOND),
            Text("Done."),
        ]

    def _tick(self, plan: str, line: str) -> Tool:
        return Tool("Edit", {"file_path": plan, "old_string": line, "new_string": line.replace("[ ]", "[x]")})


def write(room: Desk, version: int, *names: str) -> None:
    for name in names:
        (room.path / name).write_text(blocks(name)[version], "utf-8")


def test_the_page_leads_from_a_loop_to_a_run_that_is_budgeted_checked_and_resumable(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    gate = Gate()
    worker = Worker(tmp_path / "room", gate)
    room = desk(worker)
    (room.path / "Makefile").write_text(MAKEFILE, "utf-8")
    (room.path / "legacy.py").write_text("print 'not Python 3'\n", "utf-8")
    write(room, 0, "PROMPT.md", "fix_plan.md")

    refused = room.raymond("PROMPT.md")
    assert refused.returncode == 6
    assert 'raymond ralph PROMPT.md --gate "make test"' in refused.stderr
    assert not room.server.requests

    write(room, 1, "PROMPT.md")
    write(room, 0, "CHECK.sh")
    [dry] = commands("raymond PROMPT.md --dry-run")
    assert room.raymond(*shlex.split(dry)[1:]).returncode == 0

    write(room, 2, "PROMPT.md")
    write(room, 1, "CHECK.sh")
    write(room, 0, "STUCK.sh")
    [start] = commands("raymond PROMPT.md --budget 5 --max-iterations")
    with room.start(*shlex.split(start)[1:], "--id", "r", "--strict") as live:
        gate.meet()
        assert "The check fails, whatever is ticked." in worker.prompts[1], "the cheat was found"
        assert "The check fails" not in worker.prompts[2], "what was done counts"
        room.kill(live)
        room.clear()  # the agent dies with it, as in a reboot

        resume, _ = commands("raymond resume")
        ran = room.raymond(*shlex.split(resume)[1:])
    assert (ran.returncode, ran.stdout) == (0, "every box is ticked, and the check passes\n")
    assert (room.path / "fix_plan.md").read_text("utf-8") == blocks("fix_plan.md")[0].replace("[ ]", "[x]")
    assert len([event for event in room.events() if isinstance(event, RunResumed)]) == 1
