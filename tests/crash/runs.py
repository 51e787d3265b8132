"""Runs for the crash tests: begin one, drive it in this process, cut its journal, and say what became of it."""

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import msgspec
from msgspec import Struct

from raymond.backends import scripted
from raymond.control import start
from raymond.control.drive import hold
from raymond.control.request import deliver
from raymond.control.start import Choices
from raymond.drivers.face import Quiet
from raymond.drivers.local import Driver
from raymond.machine import requests
from raymond.machine.agent import ASKING, FAILED, RUNNING
from raymond.machine.events import (
    Decision,
    RunResumed,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
)
from raymond.machine.evolve import evolve
from raymond.machine.prompts import INTERRUPTED
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.store import inbox, journal, loader
from raymond.store import project as projects
from raymond.store.home import Home
from raymond.store.project import Project
from raymond.views.status import exit_code, run_status

RICH = Path(__file__).resolve().parent.parent / "scenarios" / "rich"


class Silent(Quiet):
    """A face that keeps what a person would have been told."""

    def __init__(self, decided: Callable[[Run, list[Decision]], None] | None = None) -> None:
        self.told: list[str] = []
        self._decided = decided

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        if self._decided:
            self._decided(run, decisions)

    def on_note(self, text: str) -> None:
        self.told.append(text)


def project_in(folder: Path, home: Path | None = None) -> Project:
    """A project of its own, as commands in the folder find it; in a home of its own if that is given."""
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    project = Project(Home(str(home)), str(folder)) if home else projects.at(str(folder))
    project.make()
    return project


def workflow(folder: Path, **states: str) -> Path:
    """A workflow of these texts; START_sh is START.sh, and `replies` is replies.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in states.items():
        file = "replies.yaml" if name == "replies" else ".".join(name.rsplit("_", 1))
        (folder / file).write_text(text, "utf-8")
    return folder


def begin(project: Project, path: Path, **options: Any) -> str:
    """A new run in the folder of the project."""
    os.chdir(project.tree)
    return start.begin(project, loader.load(str(path)), Choices(**options))


def drive(
    project: Project,
    id: str,
    face: Silent | None = None,
    *,
    clock: Callable[[], float] = time,
    restart: bool = False,
    force: bool = False,
) -> Driver:
    """Take a run up and drive it until it has nothing more to do here."""
    held = hold(project, id, face or Silent(), clock=clock, force=force)
    try:
        held.driver.drive(restart=restart)
    finally:
        held.close()
    return held.driver


def finish(project: Project, id: str, answer: str = "yes") -> Run:
    """Drive a run to its end, answering what is asked."""
    while True:
        run = drive(project, id).run
        asking = [agent.id for agent in run.agents.values() if agent.status == ASKING]
        if not asking:
            return run
        for agent in asking:
            deliver(project, id, request("answer", agent=agent, text=answer))


def request(kind: str, **fields: object) -> Request:
    """A request with an id of its own."""
    return msgspec.convert({"id": str(uuid.uuid4()), "kind": kind, **fields}, Request)


def leave(project: Project, id: str, asked: Request) -> None:
    """Put a request into the inbox, as a command does when the process that drives the run can have no socket."""
    inbox.leave(project.run(id).inbox, asked)


def asking(project: Project, id: str) -> list[str]:
    """The agents that ask something."""
    return [agent.id for agent in requests.asking(journal.read(project.run(id)).run)]


# --- what a journal says


class Visit(Struct, frozen=True, order=True):
    """One stay of an agent in a state; `entered` counts the visits of its life."""

    agent: str
    entered: int
    state: str


class Story(Struct):
    """What became of every visit."""

    run: Run
    started: Counter[Visit]
    finished: Counter[Visit]
    refused: Counter[Visit]
    failed: Counter[Visit]
    interrupted: Counter[Visit]
    resumed: int
    sessions: dict[str, Visit]
    """Every conversation a turn was started to write."""
    attempts: dict[Visit, int]
    """The number of the last attempt."""


def story(project: Project, id: str, decisions: list[Decision] | None = None) -> Story:
    """Read a journal as a list of visits."""
    told = Story(Run(), Counter(), Counter(), Counter(), Counter(), Counter(), 0, {}, {})
    for decision in journal.decisions(project.run(id)) if decisions is None else decisions:
        told.run.seq, told.run.now = decision.seq, decision.time
        for event in decision.events:
            _note(told, event)
            evolve(told.run, event)
    return told


def _note(told: Story, event: object) -> None:
    told.resumed += isinstance(event, RunResumed)
    lists: dict[type, Counter[Visit]] = {
        StepStarted: told.started,
        StepFinished: told.finished,
        StepRefused: told.refused,
        StepFailed: told.failed,
        StepInterrupted: told.interrupted,
    }
    if not isinstance(event, StepStarted | StepFinished | StepRefused | StepFailed | StepInterrupted):
        return
    agent = told.run.agents[event.agent]
    visit = Visit(agent.id, agent.entered, agent.state)
    lists[type(event)][visit] += 1
    if isinstance(event, StepStarted) and not event.phase:
        told.attempts[visit] = event.attempt
    if isinstance(event, StepStarted) and event.session:
        told.sessions[event.session] = visit


def outcomes(run: Run) -> dict[str, tuple[str, str, str, str]]:
    """How every agent ended."""
    left = {agent.id: (agent.state, agent.status, "", agent.error) for agent in run.agents.values()}
    return left | {one.agent: (one.state, one.status, one.result, one.error) for one in run.outcomes.values()}


def exactly(run: Run) -> bytes:
    """Everything in a run, the order of its agents too."""
    return msgspec.json.encode(run, enc_hook=list)


def ending(run: Run) -> tuple[str, int]:
    """The status of a run and its exit code."""
    return run_status(run), exit_code(run)


def in_state(run: Run, status: str) -> list[str]:
    """The agents of this status."""
    return sorted(agent.id for agent in run.agents.values() if agent.status == status)


def running(run: Run) -> list[str]:
    """The agents whose step was started and not ended."""
    return in_state(run, RUNNING)


def failed(run: Run) -> list[str]:
    """The agents that failed and that nobody collected."""
    return in_state(run, FAILED)


def talk(project: Project, id: str, session: str) -> list[tuple[str, str]]:
    """A conversation: what was said and answered, without the line that tells of an interruption."""
    turns = scripted.conversation(project.run(id).sessions, session)
    return [(turn.prompt.removeprefix(f"{INTERRUPTED}\n\n"), turn.reply) for turn in turns]


# --- cutting


def copy(project: Project, to: Path) -> Project:
    """The same runs in another home; their directory stays where it was."""
    to.mkdir(exist_ok=True)
    copied = Project(Home(f"{to}/home"), project.tree)
    copied.home.make()
    shutil.copytree(project.root, copied.root)
    return copied


def boundaries(data: bytes) -> list[int]:
    """Where the lines of a journal end."""
    return [at + 1 for at, byte in enumerate(data) if byte == 10]
