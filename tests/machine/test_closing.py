"""What follows when the machine has no room for a step: as many run as it had room for, and one more is tried."""

import pytest

from builders import Play, block
from raymond.machine import schedule
from raymond.machine.events import BackendClosed, BackendOpened, StepFailed
from raymond.machine.inputs import Started

FILES = {"START.sh": "", "WORK.sh": block("retries: 0"), "TURN.md": "", "END.sh": ""}
AGENTS = [f"main_work{number}" for number in range(1, 6)]


def started(play: Play, agent: str) -> list[object]:
    return [*play.put(Started(time=play.now, agent=agent))]


def forked() -> Play:
    """Five scripts that want to run at once."""
    play = Play(FILES, entry="START.sh", max_scripts_at_once=5)
    play.say("<fork>WORK</fork>" * 5 + "<wait>END</wait>")
    return play


def crowded() -> Play:
    """All five were begun; the machine had room for three."""
    play = forked()
    for agent in AGENTS:
        play.begin(agent)
    for agent in AGENTS[3:]:
        play.fail("machine", agent, "no room")
    return play


def test_a_step_that_could_not_be_started_leaves_everything_as_it_was() -> None:
    play = forked()
    play.begin(AGENTS[0])
    before = (play.run.iterations, play.run.turns)
    play.fail("machine", AGENTS[0])
    visit = play.agent(AGENTS[0]).visit
    assert (visit.attempt, visit.failures, visit.tries, visit.interrupted) == (0, 0, 0, False)
    assert (play.run.iterations, play.run.turns) == before
    assert [(one.charged, one.again) for one in play.last if isinstance(one, StepFailed)] == [(False, True)]


def test_as_many_run_at_once_as_the_machine_had_room_for() -> None:
    play = crowded()
    closed = play.run.closed["scripts"]
    assert (closed.most, closed.until, closed.tries) == (3, play.now + 1, 0)
    assert schedule.owed(play.run) == []
    play.say("<result/>", AGENTS[0])
    assert schedule.owed(play.run) == [AGENTS[3]]


def test_one_more_is_tried_after_1_5_15_and_15_seconds_however_long_it_takes() -> None:
    play = crowded()
    for wait in (1, 5, 15, 15, 15):
        assert play.pass_time(wait - 0.1) == []
        assert play.pass_time(0.1) == [BackendOpened(backend="scripts", probing=True)]
        [next] = schedule.owed(play.run)
        play.fail("machine", next)
    play.now += 7 * 86400
    play.pass_time()
    play.fail("machine", schedule.owed(play.run)[0])
    assert play.agent(AGENTS[4]).status == "ready"


def test_each_one_that_can_be_started_makes_room_for_the_next() -> None:
    play = crowded()
    play.pass_time(1)
    play.begin(AGENTS[3])
    [closed] = started(play, AGENTS[3])
    assert isinstance(closed, BackendClosed)
    assert (closed.most, closed.until, closed.tries) == (4, play.now + 1, 0)
    play.pass_time(1)
    play.begin(AGENTS[4])
    assert started(play, AGENTS[4]) == [BackendOpened(backend="scripts")]


def test_a_step_that_starts_while_there_is_no_trouble_says_nothing() -> None:
    play = forked()
    play.begin(AGENTS[0])
    assert started(play, AGENTS[0]) == []


@pytest.mark.parametrize("fails", [False, True])
def test_the_pool_is_open_again_when_nobody_waits_and_a_step_has_ended(fails: bool) -> None:
    play = crowded()
    play.pass_time(1)
    if fails:
        play.fail("script", AGENTS[0])
    else:
        play.say("<result/>", AGENTS[0])
    assert "scripts" not in play.run.closed


def test_a_turn_that_could_not_be_started_is_no_turn_and_its_backend_is_tried_again() -> None:
    play = Play({"START.md": ""})
    play.fail("machine")
    assert (play.run.turns, play.run.closed["claude"].most, schedule.owed(play.run)) == (0, 0, [])
    play.pass_time(1)
    play.begin()
    assert "(" not in play.main.visit.reminder
    assert play.main.visit.attempt == 1


def test_a_driver_that_resumes_tries_all_at_once_again() -> None:
    play = crowded()
    play.resume()
    assert play.run.closed == {}
