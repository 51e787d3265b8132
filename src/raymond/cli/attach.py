"""`raymond attach`: watch a run that another process drives."""

import sys

import click

from raymond.cli import choice, terminals
from raymond.cli.names import RUN
from raymond.control import runs
from raymond.control.attach import attach
from raymond.control.follow import Follower
from raymond.control.handle import RunHandle
from raymond.faces import summary


@click.command("attach")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
def command(id_: str | None) -> int:
    """Watch run ID as if it ran here, and answer its questions; Ctrl-C leaves it running."""
    return follow(choice.find(id_, "attach"))


def follow(found: RunHandle) -> int:
    """Watch a run until nobody drives it; its exit code."""
    project, id = found.project, found.id
    follower = Follower(project, id)
    follower.look()
    if not follower.pid:
        return summary.tell(follower.run, runs.left(follower.run))
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
    return summary.tell(follower.run, runs.left(follower.run))
