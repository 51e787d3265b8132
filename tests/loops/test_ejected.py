"""Workflows of loops that somebody has ejected and taken a state out of."""

from pathlib import Path

import pytest

from planned import Planned


@pytest.mark.slow
def test_a_workflow_without_a_state_that_its_loop_needs_is_refused(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    for loop, state in (("task-loop", "CHECK.py"), ("story-loop", "PLAN.md"), ("continuous-session", "MANUAL.py")):
        assert night.room.raymond(loop, "eject", loop).returncode == 0
        (night.path / loop / state).unlink()
        done = night.room.raymond(loop, "start", "--workflow", loop)
        assert done.returncode == 2, done.stderr
        assert f"is not a workflow of {loop}: it has no {state}" in done.stderr
        assert f"hint: raymond {loop} eject DIR makes one" in done.stderr
    assert night.subjects == ["start", "status"], "nothing was committed"
