"""Watch a run that another process drives."""

import sys
from typing import TYPE_CHECKING

from raymond.cli import terminals, wait
from raymond.control.attach import attach
from raymond.control.follow import Follower
from raymond.control.handle import RunHandle

if TYPE_CHECKING:
    from raymond import Run


def follow(found: RunHandle) -> int:
    """Watch a run until nobody drives it; its exit code."""
    seen = until_left(found)
    return wait.tell(found, seen) if seen else 0


def until_left(found: RunHandle) -> "Run | None":
    """Watch a run until nobody drives it; None when the person left it running."""
    project, id = found.project, found.id
    follower = Follower(project, id)
    follower.look()
    if not follower.pid:
        return follower.run
    face = terminals.face(watches=True)
    if follower.run.start.loop:
        from raymond.loops import telling

        telling.dress(face, project)
    try:
        attach(project, id, follower, face, f"watching {id}; Ctrl-C leaves it running")
    except KeyboardInterrupt:
        face.close()
        print(
            f"detached; {id} is still running: raymond attach {id} returns, raymond stop {id} stops it",
            file=sys.stderr,
        )
        return None
    face.close()
    return follower.run
