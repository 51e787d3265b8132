"""`raymond apply`: bring the work of a run with a workspace into the checkout."""

import sys

from raymond.cli import choice
from raymond.cli.command import argument, as_command
from raymond.cli.values import RUN
from raymond.control import inside, workspaces
from raymond.faces.foreign_text import said
from raymond.faces.words import many

_SHOWN = 20


@as_command("apply")
@argument("id_", metavar="[ID]", type=RUN, required=False)
def command(id_: str | None) -> int:
    """Write what run ID changed in its workspace into your checkout: all of it, or nothing if a file is in the way."""
    inside.check_person("apply")
    found = choice.find(id_, "apply")
    run, left_out = found.read(), list[tuple[str, str]]()
    if run.start.loop:
        from raymond.loops import ending
        from raymond.loops.loop_run import LoopRun

        applied = ending.bring_files(LoopRun(found.project, run))
    else:
        applied, left_out = workspaces.apply(found.project, run)
    for path, why in left_out:
        print(said(f"not taken from the workspace: {path} ({why})", sys.stderr), file=sys.stderr)
    if applied.conflicts:
        print(f"error: nothing was written: you changed {many(len(applied.conflicts), 'file')} since", file=sys.stderr)
        _list(applied.conflicts)
        shows = f"git diff refs/raymond/{found.id}/tip -- FILE shows the difference"
        takes = f"git restore --source refs/raymond/{found.id}/tip FILE takes the agent's"
        print(f"hint: {shows}; {takes}", file=sys.stderr)
        return 1
    if not applied.changed:
        why = f"everything of {found.id} is there already" if applied.there else f"{found.id} has changed nothing"
        print(why, file=sys.stderr)
        return 0
    print(f"{many(len(applied.changed), 'file')} of {found.id} brought home; nothing is committed", file=sys.stderr)
    _list(applied.changed)
    if (status := found.status()) != "completed":
        print(f"warning: {found.id} is {status}, not completed: look whether its checks were green", file=sys.stderr)
    return 0


def _list(paths: list[str]) -> None:
    for path in paths[:_SHOWN]:
        print(said(f"  {path}", sys.stderr), file=sys.stderr)
    if len(paths) > _SHOWN:
        print(f"  and {len(paths) - _SHOWN} more", file=sys.stderr)
