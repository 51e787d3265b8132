"""A visit that its drivers die of is not tried for ever."""

from pathlib import Path

import pytest

from crash import runs
from raymond.machine.events import Decision, StepInterrupted, StepStarted
from raymond.machine.failures import DEATHS
from raymond.machine.run import Run
from raymond.store import journal
from raymond.store.project import Project

FLOWS = {
    "script": {"START_sh": "sleep 1000"},
    "turn": {"START_md": "Think.", "replies": "START.md: {text: <result/>, delay: 1h}"},
}


class Death(BaseException):
    """What a face cannot do to a driver; the next best thing to kill -9 in one process."""


def die(run: Run, decisions: list[Decision]) -> None:
    if any(isinstance(event, StepStarted) for decision in decisions for event in decision.events):
        raise Death


def begun(kind: str, path: Path) -> tuple[Project, str]:
    project = runs.project_in(path)
    return project, runs.begin(project, runs.workflow(path / "flow", **FLOWS[kind]), id="r")


@pytest.mark.parametrize("kind", FLOWS)
def test_after_five_deaths_in_a_row_it_has_failed(kind: str, tmp_path: Path) -> None:
    project, id = begun(kind, tmp_path)
    for _ in range(DEATHS):
        with pytest.raises(Death):
            runs.drive(project, id, runs.Silent(die))
    run = runs.drive(project, id, runs.Silent(die)).run
    assert runs.ending(run) == ("failed", 1)
    stuck = run.agents["main"].visit.stuck
    assert stuck
    assert stuck.error == "the process that drives the run died 5 times in a row during this visit"


@pytest.mark.parametrize("kind", FLOWS)
def test_a_restart_that_somebody_asked_for_is_no_death(kind: str, tmp_path: Path) -> None:
    project, id = begun(kind, tmp_path)
    for restart in (False, True, False):
        with pytest.raises(Death):
            runs.drive(project, id, runs.Silent(die), restart=restart)
    happened = [event for decision in journal.decisions(project.run(id)) for event in decision.events]
    assert [event.by_death for event in happened if isinstance(event, StepInterrupted)] == [False, True]
