"""The beat of a driver: until when a run was driven."""

import os
from pathlib import Path

from raymond.store.lock import Heartbeat


def test_a_beat_tells_how_long_a_run_was_driven_after_its_last_decision(tmp_path: Path) -> None:
    beat = Heartbeat(str(tmp_path / "beat"))
    assert beat.after(10.0, 99.0) == 0.0, "it never beat"
    beat.keep()
    os.utime(tmp_path / "beat", (0, 50.25))
    assert beat.after(10.0, 99.0) == 40.25
    assert beat.after(60.0, 99.0) == 0.0, "something was decided since"
    assert beat.after(10.0, 30.0) == 20.0, "not after now, whoever set the file's time"
    beat.keep()
    assert beat.after(10.0, 1e12) > 1e9
    assert (tmp_path / "beat").stat().st_mode & 0o777 == 0o600


def test_a_beat_that_cannot_be_kept_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "beat").mkdir()
    Heartbeat(str(tmp_path / "beat")).keep()
    Heartbeat(str(tmp_path / "none" / "beat")).keep()
