"""Which run a process drives: it has the journal open and holds its lock."""

import os

from raymond.store import home, lock
from raymond.store.run_folder import ID_FORM, JOURNAL, RunFolder
from raymond.system import ancestry


def by(pid: int) -> RunFolder | None:
    """The run that process `pid` drives, wherever it is kept; None when it drives none. OSError: nobody can tell."""
    for path in ancestry.open_files(pid):
        folder = _folder(path)
        if folder and lock.is_held_by(folder, pid):
            return folder
    return None


def _folder(path: str) -> RunFolder | None:
    """The folder of a run, from the path of its journal: HOME/projects/PROJECT/runs/ID/journal.jsonl."""
    above, name = os.path.split(path)
    parts = above.split("/")
    if name != JOURNAL or len(parts) < 5 or parts[-4] != "projects" or parts[-2] != "runs":
        return None
    return RunFolder(home.Home("/".join(parts[:-4])), above, parts[-1]) if ID_FORM.fullmatch(parts[-1]) else None
