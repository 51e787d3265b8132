"""`raymond attach`: watch a run that another process drives."""

import os
import select
import sys
import uuid

import click

from raymond.cli import ending, target
from raymond.control.follow import EVERY, Follower, told
from raymond.drivers.face import Face
from raymond.faces import lines
from raymond.machine.events import Decision, StepEnded
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.redaction import Secrets
from raymond.store import inbox
from raymond.store.project import Project


@click.command("attach")
@click.argument("id_", metavar="[ID]", required=False, default="")
def command(id_: str) -> int:
    """Watch run ID as if it ran here, and answer what it asks; Ctrl-C leaves it running."""
    project, id = target.run(id_)
    follower = Follower(project, id)
    follower.look()
    if not follower.pid:
        return ending.tell(follower.run)
    face = _face()
    try:
        _watch(project, id, follower, face)
    except KeyboardInterrupt:
        face.close()
        print(f"left; {id} goes on. raymond attach {id} comes back, raymond stop {id} stops it", file=sys.stderr)
        return 0
    face.close()
    return ending.tell(follower.run)


def _face() -> Face:
    if sys.stderr.isatty():
        from raymond.faces.live import Live, usable

        if usable(sys.stderr):
            return Live(sys.stderr, stdin=0 if os.isatty(0) else -1, refuses=Secrets.of(os.environ).find)
    return lines.Lines()


def _watch(project: Project, id: str, follower: Follower, face: Face) -> None:
    run = follower.run
    first = Decision(seq=run.seq, time=run.now, events=[])
    face.on_decisions(run, [first])
    face.on_note(f"watching {id}; Ctrl-C leaves it running")
    drawn = 0.0
    for decisions in follower.watch(0.0):
        if decisions:
            _show(project, id, run, decisions, face)
        drawn += EVERY
        if decisions or drawn >= face.refresh_every:
            face.refresh(run)
            drawn = 0.0
        _listen(project, id, face)


def _show(project: Project, id: str, run: Run, decisions: list[Decision], face: Face) -> None:
    """What was decided, and what the steps that ended had said."""
    folder = project.path("transcripts", id)
    for decision in decisions:
        for event in decision.events:
            if isinstance(event, StepEnded):
                for kind, text in told(folder, event):
                    face.on_output(event.agent, kind, text)
        face.on_decisions(run, [decision])


def _listen(project: Project, id: str, face: Face) -> None:
    """Wait a moment; what is typed meanwhile is an answer."""
    ready, _, _ = select.select([face.stdin] if face.stdin >= 0 else [], [], [], EVERY)
    if ready:
        for agent, answer in face.answers():
            request = Request(id=str(uuid.uuid4()), kind="answer", agent=agent, text=answer)
            inbox.leave(project.beside(id, "inbox"), request)
