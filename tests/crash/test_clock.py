"""Timers are moments of the wall clock: they survive a restart, and a clock that is set neither fools nor hangs them."""

import os
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from crash import runs
from crash.torture import ID, Place, until
from raymond.machine.events import (
    AgentMoved,
    AgentWoke,
    AskEnded,
    AskStarted,
    BackendOpened,
    Decision,
    StepFailed,
    StepFinished,
    WaitEnded,
)
from raymond.machine.run import Run
from raymond.machine.schedule import wake_at
from raymond.store import journal
from raymond.store.project import Project

T = 1_800_000_000.0
"""When everything here begins."""
HOUR, DAY = 3600.0, 86400.0
TICK = """# /// raymond
# max_visits: 40
# then: TICKED.sh
# ///
echo '<goto>TICK.sh</goto>'"""
"""An agent that does something all the time, so that the driver is awake and the test can count."""
TIMED = {
    "sleep": {"START_sh": """echo '<fork>TICK.sh</fork><goto after="10m">LATE.sh</goto>'"""},
    "ask": {
        "START_sh": """echo '<fork>TICK.sh</fork><goto>ASK.sh</goto>'""",
        "ASK_sh": """echo '<ask next="LATE.sh" timeout="10m" timeout_next="LATE.sh">well?</ask>'""",
    },
    "wait": {"START_sh": """echo '<fork>TICK.sh</fork><wait timeout="10m" timeout_next="LATE.sh">LATE.sh</wait>'"""},
    "limit": {
        "START_sh": """echo '<fork>TICK.sh</fork><goto>THINK.md</goto>'""",
        "THINK_md": "Think.",
        "replies": "THINK.md: [[{fail: limit, retry_after: 10m}, '<goto>LATE.sh</goto>']]",
    },
}
FIRED = (AgentWoke, AskEnded, WaitEnded, BackendOpened)


class Clock:
    """A wall clock that people set."""

    def __init__(self, time: float = T) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


class Scene:
    """A run, and what is done to its clock at which tick."""

    def __init__(self, folder: Path, states: dict[str, str]) -> None:
        self.project: Project = runs.project_in(folder)
        late = {"LATE_sh": "echo '<result>late</result>'", "TICK_sh": TICK, "TICKED_sh": "echo '<result></result>'"}
        self.id = runs.begin(self.project, runs.workflow(folder / "flow", **late, **states), id="r")
        self.clock = Clock()
        self.ticks = 0
        """Counted from when there is a timer."""
        self.fired_at = -1
        """After how many ticks the timer fired."""

    def drive(self, set_clock: dict[int, float]) -> Run:
        """Drive to the end; `set_clock` says what the clock is set to after so many ticks."""

        def decided(run: Run, decisions: list[Decision]) -> None:
            for event in (event for decision in decisions for event in decision.events):
                if isinstance(event, FIRED) and self.fired_at < 0:
                    self.fired_at = self.ticks
                if isinstance(event, StepFinished) and event.agent == "main_tick1" and wake_at(run) is not None:
                    self.ticks += 1
                    self.clock.time = set_clock.get(self.ticks, self.clock.time)

        return runs.drive(self.project, self.id, runs.Silent(decided), clock=self.clock).run


@pytest.mark.parametrize("kind", TIMED)
def test_a_timer_fires_when_the_wall_clock_says_so(kind: str, tmp_path: Path) -> None:
    """Set back an hour, set to a moment before the time, and then to the time."""
    scene = Scene(tmp_path, TIMED[kind])
    run = scene.drive({4: T - HOUR, 7: T + 599.5, 10: T + 600})
    assert runs.ending(run) == ("completed", 0)
    assert runs.outcomes(run)["main"] == ("LATE.sh", "done", "late", "")
    assert 10 <= scene.fired_at <= 11


@pytest.mark.parametrize("kind", TIMED)
def test_a_clock_set_forward_a_day_fires_what_is_due(kind: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, TIMED[kind])
    run = scene.drive({6: T + DAY})
    assert runs.ending(run) == ("completed", 0)
    assert 6 <= scene.fired_at <= 7


def test_a_clock_set_back_goes_on_from_where_it_is(tmp_path: Path) -> None:
    """Once set back, no jump is needed: the time comes when the clock comes to it."""
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<goto after="10m">LATE.sh</goto>'""",
        LATE_sh="echo '<result>late</result>'",
    )
    id = runs.begin(project, flow, id="r")
    clock = Clock()

    def back(run: Run, decisions: list[Decision]) -> None:
        if any(isinstance(event, AgentMoved) for decision in decisions for event in decision.events):
            clock.time = T - HOUR

    seen: list[float] = []

    def going() -> float:
        """Every look finds it twenty minutes on: the driver looks again and again, at least once a second."""
        clock.time += 1200
        seen.append(clock.time)
        return clock.time

    run = runs.drive(project, id, runs.Silent(back), clock=going).run
    assert runs.ending(run) == ("completed", 0)
    happened = [one for d in journal.decisions(project.run(id)) for one in d.events]
    moved = next(one for one in happened if isinstance(one, AgentMoved))
    woke = next(one for one in happened if isinstance(one, AgentWoke))
    (at,) = [d.time for d in journal.decisions(project.run(id)) if woke in d.events]
    assert min(seen) < T < moved.wake_at <= at < moved.wake_at + 1200


@pytest.mark.parametrize("kind", ["sleep", "ask", "wait"])
def test_a_timer_is_the_same_moment_after_a_restart(kind: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, TIMED[kind])
    crash(scene, lambda run: run.agents["main"].status in ("sleeping", "asking", "waiting"))
    due = wake_at(journal.read(scene.project.run(scene.id)).run)
    assert due == T + 600

    scene.clock.time = T + 599
    scene.ticks = 0
    run = scene.drive({5: T + 599.9, 8: T + 600})

    assert runs.outcomes(run)["main"] == ("LATE.sh", "done", "late", "")
    assert 8 <= scene.fired_at <= 9


@pytest.mark.parametrize("set_by", [-HOUR, HOUR])
def test_a_clock_that_is_set_neither_prolongs_a_sleep_nor_uses_up_max_time(set_by: float, tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<goto after="50ms">LATE.sh</goto>'""",
        LATE_sh="echo '<result>late</result>'",
    )
    id = runs.begin(project, flow, id="r", max_time=60.0)
    ahead = [0.0]

    def jump(run: Run, decisions: list[Decision]) -> None:
        if any(isinstance(event, AgentMoved) for decision in decisions for event in decision.events):
            ahead[0] = set_by

    run = runs.drive(project, id, runs.Silent(jump), clock=lambda: time() + ahead[0]).run
    assert runs.outcomes(run)["main"][2] == "late"


class SetBack:
    """A clock that goes on, tells no moment twice, and is set back a day after so many looks at it."""

    def __init__(self, after: float = float("inf")) -> None:
        self._after = after
        self.told: list[float] = []

    def __call__(self) -> float:
        back = DAY if len(self.told) >= self._after else 0.0
        self.told.append(round(time() + 0.001 * len(self.told) - back, 3))
        return self.told[-1]


@pytest.mark.slow
def test_a_clock_set_back_just_after_a_step_has_failed_does_not_prolong_its_wait(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    replies = "START.md: [[{fail: crash}, <result>late</result>]]"
    flow = runs.workflow(tmp_path / "flow", START_md="Think.", replies=replies)
    looks = SetBack()
    assert runs.outcomes(runs.drive(project, runs.begin(project, flow, id="r"), clock=looks).run)["main"][2] == "late"
    decisions = journal.decisions(project.run("r"))
    [failed] = [one.time for one in decisions if any(isinstance(event, StepFailed) for event in one.events)]
    again = SetBack(looks.told.index(failed) + 1)
    run = runs.drive(project, runs.begin(project, flow, id="again"), clock=again).run
    assert runs.outcomes(run)["main"][2] == "late"


class Crash(BaseException):
    """What a face cannot do to a driver; the next best thing to kill -9 in one process."""


def crash(scene: Scene, when: Callable[[Run], bool]) -> None:
    """Drive until `when`, then fall out of the driver as an unheard-of error would."""

    def decided(run: Run, decisions: list[Decision]) -> None:
        if when(run):
            raise Crash

    with pytest.raises(Crash):
        runs.drive(scene.project, scene.id, runs.Silent(decided), clock=scene.clock)


@pytest.mark.parametrize("later", [601.0, DAY])
def test_what_fell_due_while_nobody_drove_fires_at_once(later: float, tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<ask next="NEVER.sh" timeout="10m" timeout_next="LATE.sh">well?</ask>'""",
        NEVER_sh="exit 1",
        LATE_sh="echo '<result>late</result>'",
    )
    id = runs.begin(project, flow, id="r")
    clock = Clock()

    def asked(run: Run, decisions: list[Decision]) -> None:
        if any(isinstance(event, AskStarted) for decision in decisions for event in decision.events):
            raise Crash

    with pytest.raises(Crash):
        runs.drive(project, id, runs.Silent(asked), clock=clock)
    clock.time = T + later
    run = runs.drive(project, id, clock=clock).run
    assert runs.outcomes(run) == {"main": ("LATE.sh", "done", "late", "")}
    (ended,) = [(d.time, e) for d in journal.decisions(project.run(id)) for e in d.events if isinstance(e, AskEnded)]
    assert (ended[0], ended[1].timed_out) == (T + later, True)


@pytest.mark.usefixtures("no_senders")
def test_an_answer_in_time_silences_the_timer(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<ask next="NEXT.sh" timeout="10m" timeout_next="LATE.sh">well?</ask>'""",
        NEXT_sh="""echo '<goto after="20m">END.sh</goto>'""",
        LATE_sh="exit 1",
        END_sh="echo '<result>in time</result>'",
    )
    id = runs.begin(project, flow, id="r")
    clock = Clock()

    def told(run: Run, decisions: list[Decision]) -> None:
        for event in (event for decision in decisions for event in decision.events):
            if isinstance(event, AskStarted):
                clock.time = T + 500
                runs.leave(project, id, runs.request("answer", text="yes"))
            if isinstance(event, AgentMoved) and event.wake_at:
                clock.time = T + 1100 if clock.time < T + 1100 else clock.time + 700

    def moving() -> float:
        if clock.time >= T + 1100:
            clock.time += 100
        return clock.time

    run = runs.drive(project, id, runs.Silent(told), clock=moving).run
    assert runs.outcomes(run) == {"main": ("END.sh", "done", "in time", "")}
    assert wake_at(run) is None


def test_timers_fire_in_the_order_of_their_times(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="".join(f"""echo '<fork after="{minutes}m">LATE.sh</fork>'\n""" for minutes in (30, 10, 20))
        + "echo '<wait>END.sh</wait>'",
        LATE_sh="echo '<result>late</result>'",
        END_sh="echo '<result>end</result>'",
    )
    id = runs.begin(project, flow, id="r")
    scene = Clock()

    def asleep(run: Run, decisions: list[Decision]) -> None:
        if "main" in run.agents and run.agents["main"].status == "waiting":
            raise Crash

    with pytest.raises(Crash):
        runs.drive(project, id, runs.Silent(asleep), clock=scene)
    scene.time = T + DAY
    assert runs.ending(runs.drive(project, id, clock=scene).run) == ("completed", 0)
    woke = [e.agent for d in journal.decisions(project.run(id)) for e in d.events if isinstance(e, AgentWoke)]
    assert woke == ["main_late2", "main_late3", "main_late1"]


def test_a_clock_that_jumps_does_not_make_a_step_silent(tmp_path: Path) -> None:
    """How long a step may be silent is no matter of the wall clock."""
    project = runs.project_in(tmp_path)
    os.mkfifo(tmp_path / "gate")
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<fork>WORK.sh</fork><goto>OPEN.sh</goto>'""",
        WORK_sh="# /// raymond\n# timeout: 30s\n# max_time: 60s\n# ///\ncat gate; echo '<result>worked</result>'",
        OPEN_sh="echo > gate; echo '<result>opened</result>'",
    )
    id = runs.begin(project, flow, id="r")
    clock = Clock()

    def decided(run: Run, decisions: list[Decision]) -> None:
        clock.time += DAY if run.seq % 2 else -2 * DAY

    run = runs.drive(project, id, runs.Silent(decided), clock=clock).run
    assert runs.ending(run) == ("completed", 0)
    assert runs.outcomes(run)["main_work1"][2] == "worked"


def test_a_journal_whose_times_go_backward_folds_all_the_same(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TIMED["sleep"])
    scene.drive({3: T - DAY, 6: T + DAY, 8: T - HOUR})
    times = [decision.time for decision in journal.decisions(scene.project.run(scene.id))]
    assert times != sorted(times)
    run = journal.read(scene.project.run(scene.id)).run
    assert runs.ending(run) == ("completed", 0)
    assert runs.outcomes(run)["main"][2] == "late"


@pytest.mark.slow
def test_the_time_of_a_driver_that_was_killed_counts(tmp_path: Path) -> None:
    """It may have been killed long after its last decision."""
    place = Place(tmp_path)
    flow = runs.workflow(tmp_path / "flow", START_sh="sleep 60; echo '<result>x</result>'")
    command = place.start("run", str(flow), "--id", ID, "--max-time", "1h")
    beat = Path(place.project.run(ID).beat)
    until(beat.exists, "the first beat")
    first = beat.stat().st_mtime
    until(lambda: beat.stat().st_mtime > first, "the second")
    command.kill()
    last = beat.stat().st_mtime
    before = journal.read(place.project.run(ID)).run
    place.resume()
    until(lambda: runs.story(place.project, ID).resumed, "the next driver")
    driven = journal.read(place.project.run(ID)).run.driven
    assert driven == pytest.approx(last - before.started_at, abs=0.002)
    assert driven > before.driven_until - before.started_at
