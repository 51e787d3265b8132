"""Only one process drives a run, and what others ask of it is taken once."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from crash import runs, torture
from crash.torture import ID, Place, until
from raymond.control import drive
from raymond.control.request import deliver
from raymond.errors import JournalError, RunBusy
from raymond.language.refusal import Refusal
from raymond.machine.events import AskEnded, RequestTaken, RunStopped
from raymond.machine.requests import Request
from raymond.store import inbox, journal, lock
from raymond.store.lock import Holder
from raymond.store.project import Project

GATED = "cat gate; echo '<result>done</result>'"
TWO_QUESTIONS = {
    "START_sh": """echo '<ask next="AGAIN.sh">first?</ask>'""",
    "AGAIN_sh": """echo "<ask next=\\"END.sh\\">second, after $RAYMOND_INPUT?</ask>" """,
    "END_sh": 'echo "<result>$RAYMOND_INPUT</result>"',
}


class Gated(Place):
    """A run whose only script waits at a gate."""

    def __init__(self, folder: Path, **states: str) -> None:
        super().__init__(folder)
        os.mkfifo(self.room / "gate")
        self.flow = runs.workflow(folder / "flow", **(states or {"START_sh": GATED}))

    def begin(self) -> torture.Command:
        return self.start("run", str(self.flow), "--id", ID)

    def open_gate(self, steps: int = 1) -> None:
        """When so many steps were started: open the pipe for writing; its closing ends the `cat` that reads it."""
        until(lambda: sum(runs.story(self.project, ID).started.values()) == steps, f"step {steps}")
        until(self._opened, "the script at the gate")

    def _opened(self) -> bool:
        try:
            os.close(os.open(self.room / "gate", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True


# --- drivers


@pytest.mark.slow
def test_a_second_driver_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    place = Gated(tmp_path)
    first = place.begin()
    until(place.marked, "the script")
    before = place.journal.read_bytes()
    second = place.resume().wait()
    assert (second.code, second.out) == (1, "")
    assert second.err == (
        f"error: process {first.process.pid} drives r\n"
        "hint: `raymond stop r` stops it; `raymond status r` shows what it does\n"
    )
    assert place.journal.read_bytes() == before
    forced = place.resume("--force").wait()
    assert (forced.code, forced.err) == (1, second.err), "a live holder is not overruled"
    place.open_gate()
    assert first.wait().code == 0


@pytest.mark.slow
def test_many_drivers_at_once_are_one_driver_and_refusals(tmp_path: Path) -> None:
    place = Gated(tmp_path)
    first = place.begin()
    until(place.marked, "the script")
    first.kill()
    drivers = [place.resume() for _ in range(4)]
    until(lambda: sum(driver.ended for driver in drivers) == 3, "three refusals")
    (holder,) = [driver for driver in drivers if not driver.ended]
    assert [driver.wait().code for driver in drivers if driver is not holder] == [1, 1, 1]
    place.open_gate(steps=2)
    done = holder.wait()
    assert (done.code, done.out) == (0, "done\n")
    assert runs.story(place.project, ID).resumed == 1


@pytest.mark.slow
def test_the_lock_of_a_dead_driver_is_taken(tmp_path: Path) -> None:
    place = Gated(tmp_path)
    first = place.begin()
    until(place.marked, "the script")
    first.kill()
    folder = place.project.run(ID)
    assert msgspec.json.decode(Path(folder.driver).read_bytes(), type=Holder).pid == first.process.pid
    assert lock.holder(folder) is None
    resumed = place.resume()
    place.open_gate(steps=2)
    assert resumed.wait().code == 0


def test_the_lock_of_another_host_is_refused_until_forced(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>here</result>'"), id=ID)
    path = Path(project.run(id).driver)
    path.write_bytes(msgspec.json.encode(Holder(4242, "elsewhere", "1")))
    before = Path(project.run(id).journal).read_bytes()

    with pytest.raises(RunBusy) as caught:
        runs.drive(project, id)

    assert str(caught.value) == "process 4242 on elsewhere locked r and did not release it"
    assert caught.value.hint == "make sure that it is gone from elsewhere, then use --force"
    assert (caught.value.pid, caught.value.host, caught.value.exit_code) == (4242, "elsewhere", 1)
    assert Path(project.run(id).journal).read_bytes() == before
    assert msgspec.json.decode(path.read_bytes(), type=Holder).host == "elsewhere", "the refusal left it as it was"

    assert runs.ending(runs.drive(project, id, force=True).run) == ("completed", 0)
    assert not path.exists(), "given back"


def test_a_lock_of_this_host_that_nobody_holds_is_no_obstacle(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>here</result>'"), id=ID)
    for content in (msgspec.json.encode(Holder(1, os.uname().nodename, "1")), b"", b"{torn", b"\0\0\0"):
        Path(project.run(id).driver).write_bytes(content)
        assert runs.ending(runs.drive(project, id).run) == ("completed", 0)


def test_a_lock_that_was_refused_is_not_left_held(tmp_path: Path) -> None:
    """What goes wrong after the lock was taken gives it back."""
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>here</result>'"), id=ID)
    digest = journal.read(project.run(id)).run.start.source
    kept = [Path(project.run(id).source), Path(project.home.sources, f"{digest}.zip")]
    for path in kept:
        path.rename(path.with_suffix(".away"))
    with pytest.raises(JournalError, match="the snapshot of the workflow cannot be read"):
        drive.hold(project, id, runs.Silent())
    for path in kept:
        path.with_suffix(".away").rename(path)
    assert runs.ending(runs.drive(project, id).run) == ("completed", 0)


# --- requests


def taken(project: Project, id: str) -> list[RequestTaken]:
    return [e for d in journal.decisions(project.run(id)) for e in d.events if isinstance(e, RequestTaken)]


def left(project: Project, id: str) -> list[str]:
    """What lies in the inbox."""
    folder = project.run(id).inbox
    return sorted(os.listdir(folder)) if os.path.exists(folder) else []


def question(tmp_path: Path) -> tuple[Project, str]:
    """A run that asks two things, at its first question."""
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", **TWO_QUESTIONS), id=ID)
    runs.drive(project, id)
    assert runs.asking(project, id) == ["main"]
    return project, id


@pytest.mark.usefixtures("no_senders")
def test_a_request_delivered_twice_is_taken_once(tmp_path: Path) -> None:
    project, id = question(tmp_path)
    answer = runs.request("answer", text="one")
    runs.leave(project, id, answer)
    runs.drive(project, id)
    assert left(project, id) == []
    runs.leave(project, id, answer)
    run = runs.drive(project, id).run
    assert run.agents["main"].question == "second, after one?", "the second delivery answers nothing"
    assert left(project, id) == []
    assert [(one.request, one.problem) for one in taken(project, id)] == [(answer.id, "")]


@pytest.mark.usefixtures("no_senders")
def test_a_request_handed_over_and_delivered_too_is_taken_once(tmp_path: Path) -> None:
    project, id = question(tmp_path)
    answer = runs.request("answer", text="one")
    deliver(project, id, answer)
    runs.leave(project, id, answer)
    run = runs.drive(project, id).run
    assert run.agents["main"].question == "second, after one?"
    assert len(taken(project, id)) == 1


@pytest.mark.usefixtures("no_senders")
def test_of_answers_that_lie_there_together_the_last_counts(tmp_path: Path) -> None:
    """Whoever saw nothing follow answered again."""
    project, id = question(tmp_path)
    for number, text in enumerate(("one", "two", "three")):
        runs.leave(project, id, Request(id=f"{9 - number}", kind="answer", text=text))
        os.utime(Path(project.run(id).inbox, f"{9 - number}.json"), (1000 + number, 1000 + number))
    runs.drive(project, id)
    assert [(one.request, one.problem) for one in taken(project, id)] == [
        ("8", "too late: main was answered first"),
        ("9", "too late: main was answered first"),
        ("7", ""),
    ]


@pytest.mark.usefixtures("no_senders")
@pytest.mark.parametrize("journaled", [False, True])
def test_an_answer_that_lay_there_when_the_driver_died_is_taken_once(tmp_path: Path, journaled: bool) -> None:
    """Killed before the request was journaled, or after it and before its file was removed."""
    project, id = question(tmp_path)
    answer = runs.request("answer", text="one")
    if journaled:
        deliver(project, id, answer)
    runs.leave(project, id, answer)

    run = runs.drive(project, id).run

    assert run.agents["main"].question == "second, after one?"
    assert len(taken(project, id)) == 1
    assert left(project, id) == []


@pytest.mark.usefixtures("no_senders")
@pytest.mark.parametrize("now", [False, True])
def test_a_stop_that_was_journaled_before_the_driver_died_does_not_stop_the_next_one(tmp_path: Path, now: bool) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(tmp_path / "flow", START_sh="echo '<goto>END.sh</goto>'", END_sh="echo '<result>end</result>'")
    id = runs.begin(project, flow, id=ID)
    stop = runs.request("stop", now=now)
    deliver(project, id, stop)
    assert runs.ending(journal.read(project.run(id)).run)[0] == "stopped"
    runs.leave(project, id, stop)

    assert runs.ending(runs.drive(project, id).run) == ("completed", 0)
    stops = [e for d in journal.decisions(project.run(id)) for e in d.events if isinstance(e, RunStopped)]
    assert (len(stops), len(taken(project, id))) == (1, 1)


def test_a_stop_that_was_not_journaled_when_the_driver_died_stops_once(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    flow = runs.workflow(tmp_path / "flow", START_sh="echo '<goto>END.sh</goto>'", END_sh="echo '<result>end</result>'")
    id = runs.begin(project, flow, id=ID)
    runs.leave(project, id, runs.request("stop", now=True))
    assert runs.ending(runs.drive(project, id).run)[0] == "stopped"
    assert runs.ending(runs.drive(project, id).run) == ("completed", 0)
    assert len(taken(project, id)) == 1


@pytest.mark.slow
def test_an_answer_to_a_driver_that_is_killed_meanwhile_is_taken_without_it(tmp_path: Path) -> None:
    place = Gated(
        tmp_path,
        START_sh="""echo '<fork>BLOCK.sh</fork><goto>ASK.sh</goto>'""",
        BLOCK_sh=GATED,
        ASK_sh="""echo '<ask next="END.sh">well?</ask>'""",
        END_sh=TWO_QUESTIONS["END_sh"],
    )
    first = place.begin()
    until(lambda: place.lines() > 2 and runs.asking(place.project, ID) and place.marked(), "the question")
    first.process.send_signal(signal.SIGSTOP)
    asking = place.start("answer", ID, "well", "--no-resume")
    first.kill()
    answered = asking.wait()
    assert (answered.code, answered.out) == (0, ""), answered.err
    assert taken(place.project, ID)
    resumed = place.resume()
    place.open_gate(steps=5)
    done = resumed.wait()
    assert (done.code, done.out) == (0, "well\n"), done.err
    ends = [e for d in journal.decisions(place.project.run(ID)) for e in d.events if isinstance(e, AskEnded)]
    assert [one.answer for one in ends] == ["well"]
    assert left(place.project, ID) == []


def test_a_finished_run_says_so_to_every_request(tmp_path: Path) -> None:
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>end</result>'"), id=ID)
    runs.drive(project, id)
    before = Path(project.run(id).journal).read_bytes()
    for kind, message in (
        ("answer", "no agent is waiting for an answer"),
        ("stop", "r has ended"),
        ("retry", "there is no agent main left in r"),
        ("give_up", "there is no agent main left in r"),
    ):
        delivery = deliver(project, id, runs.request(kind, agent="" if kind == "answer" else "main"))
        assert isinstance(delivery, Refusal)
        assert delivery.reason == message
    assert Path(project.run(id).journal).read_bytes() == before
    assert left(project, id) == []


@pytest.mark.usefixtures("no_senders")
@pytest.mark.parametrize("kind", ["answer", "stop", "stop now", "retry", "give_up", "limits"])
def test_a_request_left_on_a_finished_run_does_no_harm(tmp_path: Path, kind: str) -> None:
    project = runs.project_in(tmp_path)
    id = runs.begin(project, runs.workflow(tmp_path / "flow", START_sh="echo '<result>end</result>'"), id=ID)
    runs.drive(project, id)
    runs.leave(project, id, runs.request(kind.split()[0], agent="main", now=kind == "stop now"))
    run = runs.drive(project, id).run
    assert runs.ending(run) == ("completed", 0)
    assert runs.outcomes(run) == {"main": ("START.sh", "done", "end", "")}
    assert left(project, id) == []
    assert runs.ending(journal.read(project.run(id)).run) == ("completed", 0)


def test_a_request_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    project, id = question(tmp_path)
    folder = Path(project.run(id).inbox)
    folder.mkdir()
    (folder / "x.json").write_bytes(b'{"id":"x","kind":"ans')
    (folder / ".y").write_bytes(b"being written")
    face = runs.Silent()
    runs.drive(project, id, face)
    assert face.told == [f"a request that cannot be read was put aside: {folder}/x.json.broken"]
    assert left(project, id) == [".y", "x.json.broken"]
    assert list(inbox.pending(str(folder))) == []
