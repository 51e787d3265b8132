"""Let a face watch a run that another process drives, and answer what it asks."""

import select

from raymond.control import request
from raymond.control.follow import EVERY, Follower
from raymond.control.questions import files_of
from raymond.drivers.face import Face
from raymond.errors import UsageError
from raymond.faces.history import told_by_step as said
from raymond.language.refusal import Refusal
from raymond.machine.events import Decision, StepEnded
from raymond.store.project import Project
from raymond.store.transcripts import TranscriptReader
from raymond.views.questions import open_questions


def attach(project: Project, id: str, follower: Follower, face: Face, greeting: str) -> None:
    """Show `face` the run as if it were driven here, until nobody drives it; what is typed there is an answer."""
    run = follower.run
    face.on_decisions(run, [])
    face.on_note(greeting)
    drawn = 0.0
    records = TranscriptReader(project.run(id).transcripts)
    for decisions in follower.watch(0.0):
        if decisions:
            _show(records, follower, decisions, face)
        drawn += EVERY
        if decisions or drawn >= face.refresh_every:
            face.refresh(run)
            drawn = 0.0
        _listen(project, id, follower, face)


def _show(records: TranscriptReader, follower: Follower, decisions: list[Decision], face: Face) -> None:
    """What was decided, and what the steps that ended had said."""
    for decision in decisions:
        for event in decision.events:
            if isinstance(event, StepEnded):
                for kind, text in said(records, event):
                    face.on_output(event.agent, kind, text)
        face.on_decisions(follower.run, [decision])


def _listen(project: Project, id: str, follower: Follower, face: Face) -> None:
    """Wait a moment; what is typed meanwhile is an answer to the question that was shown."""
    ready, _, _ = select.select([face.stdin] if face.stdin >= 0 else [], [], [], EVERY)
    for agent, answer in face.answers() if ready else ():
        asked = next((one for one in open_questions(follower.run) if one.agent == agent), None)
        # The face compares the files with what it has shown, before it gives an answer.
        seen = {one.path: one.mark for one in files_of(asked)} if asked else {}
        try:
            told = request.answer(project, id, agent, answer, question=asked.number if asked else 0, seen=seen)
        except UsageError as error:
            face.on_note(f"{error}, so it was not taken")
            continue
        if isinstance(told, Refusal):
            face.on_note(f"the answer was not taken: {told.reason}")
