"""What a run remembers of agents that have ended: as much as somebody can still ask for."""

import hashlib

import pytest

from builders import Play
from raymond.machine import placed_workflow
from raymond.machine import run as runs
from raymond.machine.agent import LONG_TEXT, Agent, Outcome, Visit, done_outcome

FILES = {"START.md": "", "A.md": "", "B.md": ""}


@pytest.mark.parametrize("length", [0, LONG_TEXT])
def test_a_result_that_is_not_long_is_held(length: int) -> None:
    assert done_outcome("a", "A.md", "x" * length) == Outcome("a", "A.md", "done", "x" * length)


def test_of_a_long_result_the_beginning_and_the_name_are_held() -> None:
    text = "é" * (LONG_TEXT + 1)
    name = hashlib.sha256(text.encode()).hexdigest()
    assert done_outcome("a", "A.md", text) == Outcome("a", "A.md", "done", "é" * 1000, "", name, LONG_TEXT + 1)
    assert done_outcome("main", "A.md", text).result == text, "the result of the run is shown as soon as it ends"


def test_what_a_wait_hands_over_is_whole() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><wait>B</wait>")
    play.say(f"<result>{'x' * (LONG_TEXT + 1)}</result>", "main_a1")
    [collected] = play.main.visit.results or []
    assert len(collected.result) == 1000
    given = placed_workflow.collected_results(play.main.visit, lambda one: f"all of {one.agent}")
    assert (
        given == '[{"agent":"main_a1","label":"","state":"A.md","status":"done","result":"all of main_a1","error":""}]'
    )


def ended(play: runs.Run, count: int, begin: int = 0) -> None:
    for number in range(begin, begin + count):
        runs.keep_outcome(play, Outcome(f"a{number}", "A.md", "done", str(number)))


def test_agents_that_nobody_waits_for_are_forgotten_the_oldest_first() -> None:
    play = runs.Run()
    ended(play, 5 * runs.KEPT)
    assert runs.KEPT <= len(play.outcomes) < 2 * runs.KEPT
    assert list(play.outcomes)[-1] == f"a{5 * runs.KEPT - 1}"


def test_what_somebody_can_still_collect_is_never_forgotten() -> None:
    play = runs.Run()
    waits = Agent("main", Visit("A.md"), children={f"a{n}": None for n in range(0, 30_000, 3)})
    play.agents["main"] = waits
    ended(play, 30_000)
    runs.keep_outcome(play, Outcome("main", "A.md", "done", "all"))
    ended(play, 60_000, 30_000)
    assert set(waits.children or ()) <= set(play.outcomes)
    assert "main" in play.outcomes
    assert len(play.outcomes) < 60_000


def test_only_the_last_requests_are_remembered() -> None:
    play = runs.Run()
    for number in range(2500):
        runs.keep_request(play, f"r{number}")
    assert list(play.requests) == [f"r{number}" for number in range(1500, 2500)]


def test_failures_that_a_wait_collected_are_counted() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork><fork>A</fork><wait>B</wait>")
    play.fail("setup", "main_a1")
    play.say("<result>fine</result>", "main_a2")
    assert (play.run.lost, play.run.started, play.run.failed_count) == (1, 3, 0)
