"""The run that a command changes, and the runs that were not taken over."""

import sys

from raymond.control import handle, runs
from raymond.control.handle import RunHandle
from raymond.text import visible


def change(id: str) -> RunHandle:
    """The run that `id` names; when it is one of another project, that is said."""
    found = handle.find(id, changes=True)
    if found.project.tree != runs.here().tree:
        print(f"project: {visible(found.project.tree)}", file=sys.stderr)
    return found


def mention_earlier() -> None:
    """Say once that an earlier release left runs here."""
    home = runs.here()
    if not runs.may_have_earlier(home):
        return
    from raymond.control import adopt

    found = adopt.untold(home)
    if found:
        some = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        print(f"an earlier release kept runs in .raymond ({some}): `raymond adopt` takes them over", file=sys.stderr)


def warn_of_reach(run: RunHandle) -> None:
    """Say that the agents of a project can reach what is kept about them."""
    if run.project.holds_home:
        what = f"runs are kept in {run.project.home.path}, inside the project, where agents can change them"
        print(f"warning: {what}; set RAYMOND_HOME to a folder outside of it", file=sys.stderr)
