"""Workflows of loops that somebody has ejected from an older release."""

from pathlib import Path

import pytest

from planned import Planned


@pytest.mark.slow
def test_a_workflow_of_an_older_release_is_refused_with_the_state_it_lacks(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    for loop, state in (("task-loop", "CHECK.py"), ("story-loop", "PLAN.md"), ("continuous-session", "MANUAL.py")):
        assert night.room.raymond(loop, "eject", loop).returncode == 0
        (night.path / loop / state).unlink()
        done = night.room.raymond(loop, "start", "--workflow", loop, "--on-dirty", "commit")
        assert done.returncode == 2, done.stderr
        assert f"is not a workflow of {loop}: it has no {state}" in done.stderr
        assert f"hint: raymond {loop} eject DIR makes one" in done.stderr
    assert night.subjects == ["start", "status"], "nothing was committed"
