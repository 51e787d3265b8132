"""The run that a command is about, and what to say about its neighbours."""

import sys

from raymond.control import handle, runs
from raymond.control.handle import RunHandle
from raymond.control.naming import SeveralRuns
from raymond.faces.foreign_text import said


def find(id: str | None, verb: str = "") -> RunHandle:
    """The run that `id` names, or that `verb` can act on; a person on a terminal chooses where several can be meant."""
    return _found(id, verb, changes=False)


def change(id: str | None, verb: str = "") -> RunHandle:
    """The same for a command that changes a run; when it is one of another project, that is said."""
    found = _found(id, verb, changes=True)
    if found.project.tree != runs.here().tree:
        print(said(f"project: {found.project.tree}", sys.stderr), file=sys.stderr)
    return found


def _found(id: str | None, verb: str, *, changes: bool) -> RunHandle:
    try:
        return handle.find(id or None, changes=changes, verb=verb)
    except SeveralRuns as several:
        from raymond.cli import picker

        if not picker.can_ask():
            raise
        return handle.from_row(picker.pick(several))


def warn_of_company(run: RunHandle) -> None:
    """Say that other runs are working in the same directory."""
    found = runs.neighbours(run.project, run.start)
    if found:
        some = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        what = f"{some} {'is' if len(found) == 1 else 'are'} running in this directory too"
        hint = (
            "agents that change the same files get in each other's way: --cd DIR, or another worktree, keeps them apart"
        )
        print(f"warning: {what}; {hint}", file=sys.stderr)


def warn_of_reach(run: RunHandle) -> None:
    """Say that the agents of a project can reach what is kept about them."""
    if run.project.holds_home:
        what = f"runs are kept in {run.project.home.path}, inside the project, where agents can change them"
        print(f"warning: {what}; set RAYMOND_HOME to a folder outside of it", file=sys.stderr)
