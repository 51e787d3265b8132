"""Claude Code 2.1.197, the newest for Node 20: it does not tell apart what a branch cost, and has to."""

import os
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import ROOT, Text, Usage
from raymond.machine.events import StepEnded

PROGRAM = ROOT / ".cache" / "agents-2.1.197" / "node_modules" / ".bin" / "claude"
MISSING = "run make e2e first: Claude Code 2.1.197 is not installed"
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)]


def test_every_turn_that_goes_on_from_another_costs_what_the_program_says(desk: Callable[..., Desk]) -> None:
    goto, tokens = "<goto>START</goto>", Usage(1000, 100)
    room = desk([Text(goto, tokens), Text(goto, tokens), Text("<result>third</result>", tokens)])
    room.environment["PATH"] = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
    ran = room.claude({"START.md": "Go on."}, "--budget", "2")
    assert (ran.code, ran.out) == (0, "third\n")
    ended = ran.all(StepEnded)
    # 1000 tokens at $5 and 100 at $25 a million: its model is Opus 4.8.
    assert [(round(event.cost, 6), event.estimated) for event in ended] == [(0.0075, False)] * 3
