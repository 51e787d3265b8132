"""Which run a process drives: it holds the lock of its journal, by what the kernel shows, whatever driver.json says."""

import os

from raymond import errors
from raymond.store import home
from raymond.store.run_folder import ID_FORM, JOURNAL, RunFolder
from raymond.system import files, locks, process_tree
from raymond.system.locks import LOCKS

_BEGINNINGS = (b'{"format":', b'{"seq":')
"""How journals begin."""


def by(pid: int) -> RunFolder | None:
    """The run that process `pid` drives, wherever it is kept; None when it drives none. OSError: nobody can tell."""
    for number, path in process_tree.open_files(pid).items():
        if path.startswith("/") and not path.startswith("/dev/") and _is_driven(pid, number, path):
            return _folder(path)
    return None


def _is_driven(pid: int, number: str, path: str) -> bool:
    """Whether a descriptor holds the lock of a journal."""
    try:
        if locks.is_shown(pid, number):
            return _is_in_place(path) or _begins(pid, number)
        return _is_in_place(path) and _is_unseen(path)
    except OSError as error:
        if errors.is_passing_fault(error):
            raise
        return False  # closed by now


def _begins(pid: int, number: str) -> bool:
    """Whether it begins like a journal: a step can give that another name for a moment."""
    fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, 16).startswith(_BEGINNINGS)
    finally:
        os.close(fd)


def _is_unseen(path: str) -> bool:
    """Whether a lock may be held that the kernel does not show: it shows none, or the file system has none."""
    fd = files.private(path, os.O_RDONLY)
    try:
        return LOCKS.is_taken(fd) and not locks.are_shown()
    except OSError:
        return True
    finally:
        os.close(fd)


def _is_in_place(path: str) -> bool:
    """Whether it is where journals are: HOME/projects/PROJECT/runs/ID/journal.jsonl."""
    *above, runs, id, name = ("", "", "", *path.split("/"))
    return name == JOURNAL and runs == "runs" and above[-2] == "projects" and bool(ID_FORM.fullmatch(id))


def _folder(path: str) -> RunFolder:
    """The folder of a run, from the path of its journal."""
    above = os.path.dirname(path)
    parts = above.split("/")
    return RunFolder(home.Home("/".join(parts[:-4])), above, parts[-1])
