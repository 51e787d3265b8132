"""The shell loop of docs/tutorial.md, typed with the real Claude Code: a cheat is found, a kill loses nothing."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Gate, Hang, Request, Text, Tool, program
from raymond.machine.events import RunResumed

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"(?:`([\w.]+)`[^\n`]*:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKEFILE = "test:\n\tbash greet.sh | grep -qx hello\n"
FIRST, SECOND = "- [ ] greet.sh prints hello", "- [ ] greet.sh bye prints goodbye"
"""What is on the list of the page."""


def block(name: str) -> str:
    """A file that the page shows."""
    [found] = [text for file, _, text in BLOCK.findall(PAGE) if file == name]
    return str(found)


def command(start: str) -> list[str]:
    """What follows `raymond` in the command of the page that begins so."""
    shown = "".join(text for file, kind, text in BLOCK.findall(PAGE) if kind == "bash" and not file)
    [found] = [line for line in shown.splitlines() if line.startswith(start)]
    return shlex.split(found)[1:]


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


def write(room: Desk, *names: str) -> None:
    for name in names:
        (room.path / name).write_text(block(name), "utf-8")


def test_the_page_leads_from_a_loop_to_a_run_that_is_budgeted_checked_and_resumable(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    gate = Gate()
    worker = Worker(tmp_path / "room", gate)
    room = desk(worker)
    (room.path / "Makefile").write_text(MAKEFILE, "utf-8")
    (room.path / "legacy.py").write_text("print 'not Python 3'\n", "utf-8")
    write(room, "PROMPT.md", "fix_plan.md")
    _, policy, text = block("PROMPT.md").split("---\n")
    assert "force_implicit" in policy
    (room.path / "PROMPT.md").write_text(text.replace("\n{{input}}\n", ""), "utf-8")

    refused = room.raymond("PROMPT.md")
    assert refused.returncode == 6
    assert 'raymond ralph PROMPT.md --gate "make test"' in refused.stderr
    assert not room.server.requests

    write(room, "PROMPT.md", "CHECK.sh", "STUCK.sh")
    assert room.raymond(*command("raymond PROMPT.md --dry-run")).returncode == 0

    start = command("raymond PROMPT.md --budget 5 --max-iterations")
    with room.start(*start, "--id", "r", "--strict") as live:
        gate.meet()
        assert "The check fails, whatever is ticked." in worker.prompts[1], "the cheat was found"
        assert "The check fails" not in worker.prompts[2], "what was done counts"
        room.kill(live)
        room.clear()  # the agent dies with it, as in a reboot

        assert "`raymond resume` continues it after a kill" in PAGE
        ran = room.raymond("resume")
    assert (ran.returncode, ran.stdout) == (0, "every box is ticked, and the check passes\n")
    assert (room.path / "fix_plan.md").read_text("utf-8") == block("fix_plan.md").replace("[ ]", "[x]")
    assert len([event for event in room.events() if isinstance(event, RunResumed)]) == 1
