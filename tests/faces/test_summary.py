"""What stands at the end of a run: how and why it ended, and the command to run next."""

from typing import Any, get_args

import pytest

from builders import Play, head
from raymond.control import runs
from raymond.faces import summary
from raymond.machine.events import RunStopped
from raymond.machine.limits import LimitName

FILES = {"START.md": "", "A.md": "", "ASKS.md": head("on_denied: pause"), "N.md": ""}
NEXT = {
    "budget": "raymond resume test-1 --budget MORE",
    "iterations": "raymond resume test-1 --max-iterations MORE",
    "turns": "raymond resume test-1 --max-turns MORE",
    "unpriced": "raymond resume test-1 --max-turns MORE",
    "time": "raymond resume test-1 --max-time MORE",
    "wait": "raymond resume test-1 --now",
}


@pytest.mark.parametrize("limit", get_args(LimitName))
def test_a_run_that_stopped_at_a_limit_is_resumed_with_more_of_it(limit: Any) -> None:
    play = Play(FILES)
    play.stop(RunStopped(kind="limit", limit=limit, amount=1.0))
    assert summary.next_command(play.run) == NEXT[limit]


@pytest.mark.parametrize(
    "how", [RunStopped(kind="paused"), RunStopped(kind="stop"), RunStopped(kind="signal", signal=15)]
)
def test_a_run_that_a_person_or_a_signal_stopped_is_just_resumed(how: RunStopped) -> None:
    play = Play(FILES)
    play.stop(how)
    assert summary.next_command(play.run) == "raymond resume test-1"


def test_an_agent_that_was_denied_tools_is_resumed_with_those_that_are_not_allowed_yet() -> None:
    play = Play(FILES, entry="ASKS.md", allowed_tools=["Read"])
    play.say("<goto>A</goto>", denied=("Bash(npm test:*)", "Read", "Edit"))
    command = "raymond resume test-1 --allow-tool 'Bash(npm test:*)' --allow-tool Edit"
    assert summary.next_command(play.run) == command
    assert summary.ending(play.run, runs.left(play.run)).splitlines()[-1] == f"next:   {command}"


def test_an_agent_whose_conversation_is_gone_is_resumed_without_it() -> None:
    play = Play(FILES)
    play.fail("session", error="it is gone")
    play.pass_time()
    assert summary.ending(play.run, runs.left(play.run)).splitlines()[1:] == [
        "why:    1 agent failed",
        "cost:   $0.00 in 1 step",
        "failed: main in START.md: it is gone",
        "next:   raymond resume test-1 --fresh",
    ]


def test_an_agent_that_failed_in_another_way_keeps_its_conversation() -> None:
    play = Play(FILES)
    play.fail("setup")
    play.pass_time()
    assert summary.next_command(play.run) == "raymond resume test-1"
