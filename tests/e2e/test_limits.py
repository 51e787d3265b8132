"""A usage limit of one model alone, met by the real Claude Code of a subscriber."""

import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Limit, Request, Text, program
from raymond.machine.events import BackendClosed, BackendOpened, StepFailed
from raymond.store import journal
from raymond.views.times import instant
from running import until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

OPUS, SONNET = "claude-opus-5-5", "claude-sonnet-5-5"
CLOSED = f"claude/{OPUS}"
FILES = {
    "START.sh": "echo '<fork>LARGE</fork><fork>SMALL</fork><wait>END</wait>'",
    "LARGE.md": f"---\nmodel: {OPUS}\n---\nprompt LARGE",
    "SMALL.md": f"---\nmodel: {SONNET}\n---\nprompt SMALL",
    "MORE.md": f"---\nmodel: {SONNET}\n---\nprompt MORE",
    "END.md": f"---\nmodel: {OPUS}\n---\nprompt END",
}


class Weekly:
    """A model of which one size is used up for some seconds from the first question to it; the test may end it."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self.reset = 0
        self.open = False

    def __call__(self, request: Request) -> Text | Limit:
        if request.body["model"] == OPUS and not self.open:
            self.reset = self.reset or int(time.time()) + self._seconds
            if time.time() < self.reset:
                return Limit(self.reset, "seven_day_opus")
        if "SMALL" in request.prompt:
            # It says so, and nothing follows from it.
            return Text("The log says: API Error: 429. You've hit your Opus limit.\n<goto>MORE</goto>")
        return Text("<result>fine</result>")


def models(room: Desk) -> list[str]:
    return [request.body["model"] for request in room.server.requests]


def test_a_limit_of_one_model_closes_it_alone_and_its_reset_is_waited_out(desk: Callable[..., Desk]) -> None:
    weekly = Weekly(4)
    room = desk(weekly, subscription=True)
    ran = room.claude(FILES)
    assert (ran.code, ran.out) == (0, "fine\n")
    assert [(event.kind, event.charged) for event in ran.all(StepFailed)] == [("limit", False)]
    (closed,) = ran.all(BackendClosed)
    assert (closed.backend, closed.kind, closed.until) == (CLOSED, "limit", weekly.reset)
    assert [(event.backend, event.probing) for event in ran.all(BackendOpened)] == [(CLOSED, True), (CLOSED, False)]
    assert Counter(models(room)) == {OPUS: 3, SONNET: 2}


def test_a_kill_does_not_forget_the_limit_and_who_says_now_tries_at_once(desk: Callable[..., Desk]) -> None:
    weekly = Weekly(7200)
    room = desk(weekly, subscription=True)
    with room.start(*room.begin(FILES)) as live:
        live.sees(f"{CLOSED} is unavailable until ")
        live.sees("main_small2 done")
        assert f"{CLOSED} is unavailable until {instant(weekly.reset)} (limit): You've hit your " in live.err
        status = room.raymond("status", "r").stdout
        room.kill(live)
    assert f"({CLOSED} is unavailable until {instant(weekly.reset)}, in 1h 59m: You" in status.splitlines()[0]
    before = len(room.server.requests)
    with room.start("resume", "r") as live:
        live.sees("run resumed")
        until(lambda: "main_large1" in room.raymond("status", "r").stdout, "the agent that waits")
        live.signal(signal.SIGTERM)
        assert live.wait().code == 143
    assert journal.read(room.project.run("r")).run.closed[CLOSED].until == weekly.reset
    assert len(room.server.requests) == before, "nothing was asked meanwhile"
    weekly.open = True
    ran = room.resume("--now")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert models(room)[before:] == [OPUS, OPUS]
    assert len(ran.all(BackendClosed)) == 1
