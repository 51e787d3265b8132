"""Watch a run that another process drives."""

import sys

from raymond.cli import terminals
from raymond.control import left_requests, runs
from raymond.control.attach import attach
from raymond.control.follow import Follower
from raymond.control.handle import RunHandle
from raymond.faces import summary


def follow(found: RunHandle) -> int:
    """Watch a run until nobody drives it; its exit code."""
    project, id = found.project, found.id
    follower = Follower(project, id)
    follower.look()
    if not follower.pid:
        return _tell(found, follower)
    face = terminals.face(watches=True)
    try:
        attach(project, id, follower, face, f"watching {id}; Ctrl-C leaves it running")
    except KeyboardInterrupt:
        face.close()
        print(
            f"detached; {id} is still running: raymond attach {id} returns, raymond stop {id} stops it",
            file=sys.stderr,
        )
        return 0
    face.close()
    return _tell(found, follower)


def _tell(found: RunHandle, follower: Follower) -> int:
    """How it ended, and what nobody has heard of; the exit code."""
    left = left_requests.of(found.project, follower.run)
    return summary.tell(follower.run, runs.left(follower.run), left=left.lines(), then=left.next_command)
