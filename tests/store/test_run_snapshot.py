"""A snapshot holds whatever a run can hold."""

from typing import Any

from raymond.machine.events import RunStarted
from raymond.machine.run import Run
from raymond.store import run_snapshot


def test_a_run_with_settings_of_any_kind_comes_back_from_its_snapshot() -> None:
    overrides = {"START": {"max_visits": 5, "model": "m", "budget": 0.5, "gate": ["true"]}}
    begun: dict[str, Any] = {
        "workflow_id": "r",
        "key": "k",
        "name": "f",
        "scope_dir": "/f",
        "source": "",
        "entry": "A.sh",
        "cwd": "/",
        "budget_from": "default",
        "version": "1",
    }
    run = Run(begun=RunStarted(**begun, overrides=overrides))
    kept = run_snapshot.unpack(run_snapshot.pack(0, b"", run))
    assert kept
    assert kept.run.start.overrides == overrides
