"""Projects whose runs are only kept, not run: an empty journal and a state file that is believed."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raymond.store.home import Home
from raymond.store.project import Project


class Projects:
    """The projects of one person; the current directory is one called `here`, without runs."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.home = Home(f"{folder}/home")
        patch.setenv("RAYMOND_HOME", self.home.path)
        (folder / "here").mkdir()
        patch.chdir(folder / "here")

    def keep(self, name: str, **runs: str | dict[str, Any]) -> Project:
        """A project with runs, by their id (`_` stands for `-`) and status, or more of a state file; the oldest first."""
        (self.folder / name).mkdir(exist_ok=True)
        made = Project(self.home, str(self.folder / name))
        made.make()
        for age, (id, about) in enumerate(runs.items()):
            folder = made.run(id.replace("_", "-"))
            os.mkdir(folder.path)
            Path(folder.journal).write_text("")
            os.utime(folder.journal, (1_000_000 + age, 1_000_000 + age))
            said = about if isinstance(about, dict) else {"status": about}
            is_over = {"is_over": said["status"] in ("completed", "cancelled")}
            Path(folder.state).write_bytes(msgspec.json.encode(_STATE | is_over | said))
        return made


_STATE = {
    "agents_started": 1,
    "total_cost_usd": 0.0,
    "cost_is_estimated": False,
    "started_at": None,
    "updated_at": None,
    "stop_kind": None,
    "journal_bytes": 0,
}
