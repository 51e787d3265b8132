"""Budgets with the real Claude Code: caps that are passed on, turns that go on with another one, nothing forgotten."""

import signal
from collections import Counter
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Mute, Request, Text, Tool, Usage, program
from raymond.machine.events import LimitsChanged, RunStopped, StepEnded, StepFailed, StepInterrupted, StepRefused
from raymond.machine.prices import UNKNOWN_TURN
from raymond.machine.prompts import CAPPED, INTERRUPTED
from running import Ran

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

CHEAP = 0.0008
"""Dollars of an answer with the usual tokens."""
FILLER = ("assistant", "No response requested.")
"""What the program itself puts where a turn was cut off between two answers."""


def dear(dollars: float, text: str) -> Tool:
    """An answer that costs so much, and after which the turn goes on if it may."""
    return Tool("Bash", {"command": f"echo {text}"}, text=text, usage=Usage(0, round(dollars / 20e-6)))


def paid(ran: Ran) -> list[float]:
    """What every step that cost anything cost, in the order of their ends."""
    return [round(event.cost, 6) for event in ran.events if isinstance(event, StepEnded) and event.cost]


def test_a_turn_that_reaches_its_share_goes_on_in_its_conversation_and_a_higher_budget_too(
    desk: Callable[..., Desk],
) -> None:
    """Two agents share a dollar; one wants more than its half, then more than all."""
    answers: list[Answer] = [dear(0.6, "first"), dear(0.6, "second"), Text("<result>third</result>")]
    room = desk(lambda request: Text("<result>cheap</result>") if "CHEAP" in request.prompt else answers.pop(0))
    files = {
        "START.sh": "echo '<fork>CHEAP</fork><fork>DEAR</fork><wait>END</wait>'",
        "CHEAP.md": "prompt CHEAP",
        "DEAR.md": "prompt DEAR",
        "END.sh": "echo '<result></result>'",
    }
    stopped = room.claude(files, "--budget", "1")
    assert stopped.code == 4
    assert stopped.all(RunStopped) == [RunStopped(kind="limit", limit="budget", amount=1.0)]
    assert "main_dear2 reached its share of the budget $0.60 total $0.60" in stopped.lines
    assert stopped.lines[-1] == "next:   raymond resume r --budget 2"
    ran = room.resume("--budget", "20")
    assert ran.code == 0
    assert [event.budget for event in ran.all(LimitsChanged)] == [20.0]
    assert sorted(paid(ran)) == [CHEAP, CHEAP, 0.6, 0.6]
    assert [event.capped for event in ran.all(StepRefused)] == [True, True]
    caps = [turn.cap for turn in room.turns("main_dear2", "DEAR.md")]
    assert caps[0] == 0.5
    assert caps[1] == pytest.approx(1 - 0.6 - CHEAP)
    assert caps[2] > 15
    said = room.conversation("DEAR", "main_dear2", visit=3)
    assert [line for line in said if line != FILLER] == [
        ("user", "prompt DEAR"),
        ("assistant", "first"),
        ("user", CAPPED),
        ("assistant", "second"),
        ("user", CAPPED),
    ]


BUDGET, CALL = 1.0, 0.0502
GREEDY = {
    "START.sh": "echo '" + "<fork>WORK</fork>" * 8 + "<wait>END</wait>'",
    "WORK.md": "prompt WORK",
    "END.sh": "echo '<result></result>'",
}


def greedy(request: Request) -> Answer:
    """There is always one more tool to use; far beyond all caps there is an end of it."""
    return dear(CALL, "more") if request.call < 40 else Text("<result>far too late</result>")


def within_the_budget(room: Desk, ran: Ran) -> None:
    """Every question to the model was paid for and counted once; no turn passed its cap by more than one of them."""
    assert ran.code == 4
    assert ran.all(RunStopped) == [RunStopped(kind="limit", limit="budget", amount=1.0)]
    assert ran.run.cost == pytest.approx(CALL * len(room.server.requests))
    caps = {turn.session: turn.cap for turn in room.turns()}
    asked = Counter(request.session for request in room.server.requests)
    for session, calls in asked.items():
        assert (calls - 1) * CALL < caps[session] <= calls * CALL
    assert sum(list(caps.values())[:4]) == pytest.approx(BUDGET), "the first four share all there is"
    assert BUDGET <= ran.run.cost < BUDGET + max(caps.values()), "by no more than what one turn may cost"
    assert ran.run.reserved == pytest.approx(0)
    room.nothing_runs()


def test_eight_agents_that_each_want_it_all_stay_within_the_budget(desk: Callable[..., Desk]) -> None:
    room = desk(greedy)
    ran = room.claude(GREEDY, "--budget", "1", "--max-parallel", "4")
    within_the_budget(room, ran)
    assert len(ran.run.agents) == 9, "nobody has ended and nobody has failed"


def test_they_do_so_over_a_kill_in_the_middle_too(desk: Callable[..., Desk]) -> None:
    room = desk(greedy)
    with room.start(*room.begin(GREEDY, "--budget", "1", "--max-parallel", "4")) as live:
        room.server.wait_for(6)
        room.kill(live)
        ran = room.resume()
    within_the_budget(room, ran)


def test_a_visit_has_a_budget_of_its_own_and_what_failed_or_was_cut_off_is_in_the_ledger(
    desk: Callable[..., Desk],
) -> None:
    mute = Mute()
    room = desk(
        {
            "prompt START": dear(0.2, "first"),
            INTERRUPTED: Text("<result>fine</result>"),
            "prompt LAST": mute,
        }
    )
    files = {
        "START.md": "---\nbudget: 0.10\non_error: LAST\n---\nprompt START",
        "LAST.md": "prompt LAST",
    }
    with room.start(*room.begin(files)) as live:
        mute.gate.meet()
        live.signal(signal.SIGTERM)
        assert live.wait().code == 143
    ran = room.resume()
    assert (ran.code, ran.out) == (0, "fine\n")
    assert [turn.cap for turn in room.turns("main", "START.md")] == [0.1]
    (failed,) = ran.all(StepFailed)
    assert (failed.kind, round(failed.cost, 6), failed.charged) == ("cap", 0.2, True)
    assert failed.error.endswith("; the visit cost $0.20, and its budget is $0.10")
    assert [event.cost for event in ran.all(StepInterrupted)] == [UNKNOWN_TURN]
    assert room.raymond("cost", "r", "--by", "state").stdout == (
        "STATE     TURNS    COST   FAILED  TOKENS IN     OUT\n"
        "LAST.md       2  ~$0.50  1 $0.50        100      20\n"
        "START.md      1   $0.20  1 $0.20          0  10,000\n"
        "total         3  ~$0.70  2 $0.70        100  10,020\n"
    )
    assert ran.run.cost == pytest.approx(0.7 + CHEAP)


def test_without_a_budget_nothing_stops_a_turn(desk: Callable[..., Desk]) -> None:
    """Else the tests above would prove nothing."""
    room = desk([dear(0.3, "one"), dear(0.3, "two"), Text("<result></result>")])
    assert room.claude({"START.md": "prompt"}, "--budget", "0").code == 0
    assert len(room.server.requests) == 3
    assert [turn.cap for turn in room.turns()] == [0]
