"""What becomes of a request: taken by the driver, left for it, journaled here, or refused."""

import os
import socket
import threading
from pathlib import Path

import pytest

from crash import runs
from raymond.control import request
from raymond.control.request import Journaled, Left, deliver
from raymond.language.refusal import Refusal
from raymond.machine.agent import RUNNING
from raymond.machine.events import AskEnded, Decision, RequestTaken, StepStarted
from raymond.machine.run import Run
from raymond.store import inbox, journal, lock
from raymond.store.project import Project
from raymond.system import sockets


class Watching(runs.Silent):
    """A face that keeps what it is told, and how long the journal was then."""

    def __init__(self, project: Project, id: str) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []
        self._folder = project.run(id)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        written = len(journal.decisions(self._folder))
        self.seen += [(decision.seq, written) for decision in decisions]


@pytest.fixture
def asking(tmp_path: Path) -> tuple[Project, str]:
    """A run that asks something and that nobody drives."""
    project = runs.project_in(tmp_path)
    flow = runs.workflow(
        tmp_path / "flow",
        START_sh="""echo '<ask next="END.sh">which?</ask>'""",
        END_sh="echo '<result>end</result>'",
    )
    id = runs.begin(project, flow, id="r")
    runs.drive(project, id)
    return project, id


def test_a_request_to_a_run_that_nobody_drives_is_journaled_and_told(asking: tuple[Project, str]) -> None:
    project, id = asking
    face, before = Watching(project, id), journal.read(project.run(id)).run.seq
    done = request.answer(project, id, "main", "blue", face=face)
    assert isinstance(done, Journaled)
    assert [type(event) for event in done.decisions[0].events[:2]] == [RequestTaken, AskEnded]
    assert journal.decisions(project.run(id))[before:] == done.decisions
    assert face.seen == [(before + 1, before + 1)], "a face is told of what is written, not before"


def test_a_refused_request_writes_nothing(asking: tuple[Project, str]) -> None:
    project, id = asking
    before = Path(project.run(id).journal).read_bytes()
    face = Watching(project, id)
    assert request.answer(project, id, "nobody", "blue", face=face) == Refusal(
        "not_asking", "nobody is not waiting for an answer", "these are: main"
    )
    assert (Path(project.run(id).journal).read_bytes(), face.seen) == (before, [])


def test_a_request_refused_after_a_driver_died_leaves_its_step_as_it_was(asking: tuple[Project, str]) -> None:
    project, id = asking
    request.answer(project, id, "", "blue")
    folded = journal.read(project.run(id))
    held = lock.take(project.run(id))
    book = journal.Journal(project.run(id), folded.size, held)
    started = StepStarted(agent="main", step=folded.run.steps + 1, attempt=1, turn=1)
    book.append(Decision(seq=folded.run.seq + 1, time=folded.run.now, events=[started]))
    book.close()
    held.release()
    assert journal.read(project.run(id)).run.agents["main"].status == RUNNING
    before = Path(project.run(id).journal).read_bytes()

    refused = deliver(project, id, runs.request("move", agent="main", state="NOWHERE"))

    assert isinstance(refused, Refusal)
    assert Path(project.run(id).journal).read_bytes() == before
    paused = request.ask(project, id, "pause", agent="main")
    assert paused == Refusal("not_driven", "r is not running: main was interrupted")


def test_a_stop_waits_for_a_process_that_does_not_look(asking: tuple[Project, str]) -> None:
    project, id = asking
    held = lock.take(project.run(id))
    try:
        done = deliver(project, id, runs.request("stop"), within=0.1)
    finally:
        held.release()
    assert isinstance(done, Left)
    assert (done.pid > 0, done.host) == (True, "")
    assert [request.kind for _, request in inbox.pending(project.run(id).inbox) if request] == ["stop"]


def test_an_answer_to_a_process_that_does_not_look_is_not_taken_later(
    asking: tuple[Project, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked has to be there when the driver looks."""
    monkeypatch.setattr(request, "ANSWERED_WITHIN", 0.1)
    project, id = asking
    held = lock.take(project.run(id))
    try:
        done = deliver(project, id, runs.request("answer", text="blue"), within=0.1)
    finally:
        held.release()
    assert isinstance(done, Refusal)
    assert done.kind == "out_of_reach"
    assert done.hint == f"if it hangs: kill -9 {os.getpid()}, then the same command again"
    assert list(inbox.pending(project.run(id).inbox)) == []


@pytest.mark.parametrize("kind", ["stop", "cancel"])
def test_what_was_not_journaled_was_not_taken_whoever_says_so(asking: tuple[Project, str], kind: str) -> None:
    """A step may get hold of the descriptors of the driver, and answer at its door."""
    project, id = asking
    folder = project.run(id)
    held = lock.take(folder)
    held.sign(folder.socket)
    server = sockets.listen(folder.socket)
    server.setblocking(True)
    thread = threading.Thread(target=say_yes, args=(server,))
    thread.start()
    try:
        done = deliver(project, id, runs.request(kind))
    finally:
        held.release()
        thread.join()
    assert isinstance(done, Refusal)
    assert (done.kind, done.reason.partition(", ")[2]) == ("out_of_reach", "but it is not in the journal of r")


def say_yes(server: socket.socket) -> None:
    guest = server.accept()[0]
    guest.recv(1 << 16)
    guest.sendall(b"{}\n")
    guest.close()
    server.close()
