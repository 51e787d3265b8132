"""Large prompts, large replies and many agents at once, with the real Claude Code."""

import os
import random
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, PATIENCE, Gate, Request, Slow, Text, program
from raymond.machine.events import AgentEnded, StepFailed, StepFinished, StepStarted
from running import GO, Ran, until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

MB = 1_000_000
FINE = Text("<result>fine</result>")


def words(size: int) -> str:
    """Text of so many letters in which no part is like another."""
    some = random.Random(size)
    return "".join(f"{some.getrandbits(30):08x} " for _ in range(size // 9 + 1))[:size].strip()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file with five megabytes of text."""
    path = tmp_path / "large"
    path.write_text(words(5 * MB), "utf-8")
    return path


def test_a_prompt_of_five_megabytes_arrives_whole(desk: Callable[..., Desk], large: Path) -> None:
    room = desk(lambda request: FINE)
    # It is more than the model could read: the program would refuse it, see below.
    room.environment["CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"] = "9000000"
    ran = room.claude({"START.md": "prompt: {{input}} :end"}, "--input", f"@{large}")
    assert (ran.code, ran.out) == (0, "fine\n")
    (request,) = room.server.requests
    assert request.prompt == f"prompt: {large.read_text('utf-8')} :end"


def test_a_prompt_that_the_model_could_not_read_fails_as_too_long_and_nothing_is_asked(
    desk: Callable[..., Desk], large: Path
) -> None:
    room = desk([])
    ran = room.claude({"START.md": "prompt: {{input}}"}, "--input", f"@{large}")
    assert ran.code == 1
    assert [(event.kind, event.error) for event in ran.all(StepFailed)] == [("context", "Prompt is too long")] * 2
    assert room.server.requests == []


def peak(pid: int) -> int:
    """The most memory a process has had, in bytes."""
    status = Path("/proc", str(pid), "status").read_text("ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_twenty_megabytes_of_output_are_read_with_little_memory(desk: Callable[..., Desk]) -> None:
    """The program prints them three times: in pieces, as a message, as the result."""
    said = f"{words(20 * MB)}\n<goto>SECOND</goto>"
    room = desk({"prompt SHORT": Text("<goto>FIRST</goto>"), "prompt LONG": Slow(0, said)})
    files = {
        "START.md": "prompt SHORT",
        "FIRST.sh": f"{GO}\nrm go\necho '<reset>LONG</reset>'",
        "LONG.md": "prompt LONG",
        "SECOND.sh": f"touch second\n{GO}\necho '<result>fine</result>'",
    }
    with room.start(*room.begin(files)) as live:
        live.sees("main START.md -> FIRST.sh")
        before = peak(live.pid)
        room.go()
        until(lambda: (room.path / "second").exists(), "the second script")
        more = peak(live.pid) - before
        room.go()
        ran = live.wait()
    assert (ran.code, ran.out) == (0, "fine\n")
    assert [one["said"] for one in ran.transcript() if one["state"] == "LONG.md"] == [said]
    assert more < 8 * len(said), "the largest line in a few forms, and nothing of the rest"


AGENTS, AT_ONCE = 50, 4


class Crowd:
    """A model that answers when as many ask as may, and notes how many do."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._came, self._left = 0, 0
        self.most = 0
        self.first = Gate()
        """Where the first ones wait until the test has looked."""

    def __call__(self, request: Request) -> Text:
        with self._news:
            self._came += 1
            mine = self._came
            self.most = max(self.most, self._came - self._left)
            self._news.notify_all()
            # The last ones are too few to be a full house.
            full = min(-(-mine // AT_ONCE) * AT_ONCE, AGENTS)
            self._news.wait_for(lambda: self._came >= full, PATIENCE)
        self.first.wait()
        with self._news:
            self._left += 1
        return FINE


def test_fifty_agents_take_turns_four_at_a_time(desk: Callable[..., Desk]) -> None:
    crowd = Crowd()
    room = desk(crowd)
    files = {
        "START.sh": f"echo '{'<fork>WORK</fork>' * AGENTS}<wait>END</wait>'",
        "WORK.md": "prompt WORK",
        "END.sh": "echo '<result>fine</result>'",
    }
    with room.start(*room.begin(files, "--max-parallel", str(AT_ONCE))) as live:
        room.server.wait_for(AT_ONCE)
        assert len(os.listdir(room.project.run("r").spool)) == AT_ONCE, "each turn has a folder while it runs"
        crowd.first.open()
        for count in range(AT_ONCE, AGENTS, AT_ONCE):
            room.server.wait_for(count)
        ran = live.wait()
    assert (ran.code, ran.out) == (0, "fine\n")
    assert crowd.most == AT_ONCE
    assert len({request.session for request in room.server.requests}) == len(room.server.requests) == AGENTS
    assert _at_once(ran) == AT_ONCE
    assert len(ran.all(AgentEnded)) == AGENTS + 1
    assert not ran.all(StepFailed)


def _at_once(ran: Ran) -> int:
    """The most turns that were under way at a time, by the journal."""
    running, most = 0, 0
    for event in ran.events:
        if isinstance(event, StepStarted) and event.backend:
            running += 1
        elif isinstance(event, StepFinished) and event.agent != "main":
            running -= 1
        most = max(most, running)
    return most
