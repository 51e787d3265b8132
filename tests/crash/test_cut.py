"""A journal cut off anywhere is taken up and ends as the unbroken run did."""

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from crash import runs
from crash.runs import RICH, Story, Visit
from pace import mostly_slow
from raymond.errors import JournalError
from raymond.machine import requests
from raymond.machine.events import Decision
from raymond.machine.evolve import fold
from raymond.store import journal
from raymond.store.project import Project

SLICES = 8
"""The cuts are dealt out to this many tests, so that the workers share them and `make test` takes only the first."""
SESSIONS = ("kept", "in flight lost", "all lost")


class Recorded(Struct):
    """The rich run, unbroken."""

    project: Project
    id: str
    data: bytes
    ends: list[int]
    """Where the lines end; the header is line 0."""
    decisions: list[Decision]
    story: Story
    ledger: dict[Visit, str]
    """What every script wrote down for its visit."""

    def upto(self, line: int) -> Story:
        """The story as it was after `line` decisions."""
        return runs.story(self.project, self.id, self.decisions[:line])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEDGER", str(folder / "ledger"))
        patch.chdir(folder)
        project = runs.project_in(folder)
        id = runs.begin(project, RICH, id="rich", input="the world")
        runs.finish(project, id)
        data = Path(project.run(id).journal).read_bytes()
        told = runs.story(project, id)
        yield Recorded(
            project,
            id,
            data,
            runs.boundaries(data),
            journal.decisions(project.run(id)),
            told,
            ledger(told, (folder / "ledger").read_text().splitlines()),
        )


def ledger(told: Story, lines: list[str]) -> dict[Visit, str]:
    """Each line belongs to a visit of a script; the lines of one agent stand in the order of its visits."""
    by_agent: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        by_agent[line.split()[0]].append(line)
    scripts = sorted(visit for visit in told.started if not visit.state.endswith(".md"))
    found = {visit: by_agent[visit.agent].pop(0) for visit in scripts}
    assert not any(by_agent.values()), f"more side effects than visits: {dict(by_agent)}"
    for visit, line in found.items():
        assert line.split()[:2] == [visit.agent, visit.state]
    return found


def test_the_recorded_run_has_everything(recorded: Recorded) -> None:
    types = {type(event).__name__ for decision in recorded.decisions for event in decision.events}
    assert types >= {
        *("RunStarted", "AgentStarted", "StepStarted", "StepFinished", "StepRefused", "StepFailed", "AgentMoved"),
        *("AgentCalled", "AgentReturned", "AgentWoke", "WaitStarted", "WaitEnded", "AskStarted", "AskEnded"),
        *("AgentEnded", "AgentFailed", "RequestTaken", "RunResumed", "RunEnded"),
    }
    assert runs.ending(recorded.story.run) == ("completed", 0)
    assert runs.outcomes(recorded.story.run) == {
        "main_part2": ("PART.sh", "done", "part one, ", ""),
        "main_part3": ("PART.sh", "done", "part two, late for the world", ""),
        "main_part4": ("PART.sh", "failed", "", "ended with exit code 1: no part three in sub"),
        "main_worker1": ("WORK.sh", "done", "alpha in sub: main_worker1 did work for the world", ""),
        "main": ("DONE.sh", "done", "ended with yes in sub", ""),
    }
    assert set(recorded.story.finished.values()) == {1}
    assert not recorded.story.interrupted


def test_every_turn_of_the_recorded_run_sees_what_it_should(recorded: Recorded) -> None:
    """A callee sees its caller, a function sees nothing, a caller does not see its callee, a reset forgets."""
    prompts = {}
    for session, visit in recorded.story.sessions.items():
        said = runs.talk(recorded.project, recorded.id, session)
        prompts[visit.state, visit.entered] = [prompt.split()[0].rstrip(",") for prompt, _ in said]
    caller = ["Say", "The"]  # START, GATHER
    assert prompts == {
        ("START.md", 1): ["Say"],
        ("WORKER.md", 1): ["You"],
        ("GATHER.md", 3): ["Say", "The"],
        ("VERDICT.md", 5): [*caller, "You"],
        ("JUDGE.md", 6): [*caller, "The", "I", "I"],  # and two reminders
        ("OUTER.md", 7): ["You"],
        ("INNER.md", 8): ["You", "Two"],
        ("LOOP.md", 11): ["Visit"],
        ("LOOP.md", 12): ["Visit", "Visit"],
        ("ANSWERED.md", 15): ["Visit", "Visit", "A"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("slice_", mostly_slow(range(SLICES)))
def test_cut_after_any_decision_the_run_ends_the_same(
    slice_: int, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in range(1 + slice_, len(recorded.ends), SLICES):
        for sessions in SESSIONS if os.environ.get("MATRIX") == "whole" else SESSIONS[line % len(SESSIONS) :][:1]:
            take_up_cut(recorded, line, b"", sessions, tmp_path / f"{line} {sessions}", monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("slice_", mostly_slow(range(SLICES // 2)))
def test_torn_inside_any_line_the_run_ends_as_if_cut_before_it(
    slice_: int, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in range(1 + slice_, len(recorded.ends) - 1, SLICES // 2):
        whole = recorded.data[recorded.ends[line] : recorded.ends[line + 1]]
        torn = whole[: 1 + (line * 37) % (len(whole) - 1)]
        take_up_cut(recorded, line, torn, SESSIONS[line % len(SESSIONS)], tmp_path / f"{line}", monkeypatch)


def take_up_cut(
    recorded: Recorded, line: int, torn: bytes, sessions: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut after `line` decisions, resume to the end, and compare with the unbroken run."""
    id, before = recorded.id, recorded.upto(line)
    project = runs.copy(recorded.project, folder)
    Path(project.run(id).journal).write_bytes(recorded.data[: recorded.ends[line]] + torn)
    found = lose(project, id, before, sessions)
    monkeypatch.setenv("LEDGER", str(folder / "ledger"))
    where = f"cut after decision {line} of {len(recorded.decisions)}, sessions {sessions}"

    face = runs.Silent()
    runs.drive(project, id, face)
    runs.finish(project, id)
    after = runs.story(project, id)

    assert face.told == (
        [f"{len(torn)} bytes of an incomplete last line were cut off the journal and kept beside it"] if torn else []
    )
    assert [path.read_bytes() for path in Path(project.run(id).path).glob("*.torn")] == ([torn] if torn else []), where
    assert Path(project.run(id).journal).read_bytes().startswith(recorded.data[: recorded.ends[line]]), where
    assert runs.ending(after.run) == ("completed", 0), where
    assert runs.outcomes(after.run) == runs.outcomes(recorded.story.run), where
    assert after.finished == recorded.story.finished, where
    assert after.refused == recorded.story.refused, where
    # A failed agent that nobody collected tries again when its driver had left in order.
    known = fold(recorded.decisions[:line])
    known.is_cut = bool(torn)
    stuck = [] if requests.driver_died(known) else runs.failed(known)
    again = Counter(visit for visit in before.failed if visit.agent in stuck)
    assert after.failed == recorded.story.failed + again, where
    assert after.interrupted == Counter(visit for visit in in_flight(before) if visit not in found), where
    assert round(after.run.cost, 9) == round(recorded.story.run.cost, 9), where

    not_ended = Counter(recorded.ledger.keys() - ended(before)) + again
    expected = Counter({recorded.ledger[visit]: times for visit, times in not_ended.items()})
    assert Counter((folder / "ledger").read_text().split("\n")[:-1] if expected else ()) == expected, where
    if sessions != "all lost":
        assert talks(project, id, after) == talks(recorded.project, id, recorded.story), where


def in_flight(told: Story) -> list[Visit]:
    """The visits whose step was started and not ended."""
    agents = (told.run.agents[name] for name in runs.running(told.run))
    return [Visit(agent.id, agent.entered, agent.state) for agent in agents]


def ended(told: Story) -> set[Visit]:
    """The visits whose step was journaled to its end."""
    return {*told.finished, *told.failed}


def lose(project: Project, id: str, before: Story, sessions: str) -> set[Visit]:
    """Take conversations away as a crash might have; the visits in flight whose reply is still to be found."""
    folder = project.run(id).sessions
    if sessions == "all lost":
        shutil.rmtree(folder)
        return set()
    flying = {before.run.agents[name].turn_session: name for name in runs.running(before.run)}
    found = set()
    for name in os.listdir(folder):
        session = name.removesuffix(".json")
        if session in flying and sessions == "kept":
            agent = before.run.agents[flying[session]]
            found.add(Visit(agent.id, agent.entered, agent.state))
        elif sessions == "in flight lost" and (session in flying or session not in before.sessions):
            os.unlink(os.path.join(folder, name))
    return found


def talks(project: Project, id: str, told: Story) -> dict[Visit, list[tuple[str, str]]]:
    """For every visit the conversation its finished turn could see: none is polluted by a callee or a lost turn."""
    return {visit: runs.talk(project, id, session) for session, visit in told.sessions.items()}


@pytest.mark.parametrize("slice_", mostly_slow(range(SLICES)))
def test_every_byte_of_a_torn_line_folds_to_the_run_before_it(slice_: int, recorded: Recorded, tmp_path: Path) -> None:
    project, path = lone_journal(recorded, tmp_path)
    for line in range(1 + slice_, len(recorded.ends) - 1, SLICES):
        run = runs.exactly(fold(recorded.decisions[:line]))
        start, stop = recorded.ends[line], recorded.ends[line + 1]
        for cut in range(start, stop):
            path.write_bytes(recorded.data[:cut])
            read = journal.read(project.run(recorded.id))
            assert runs.exactly(read.run) == run, f"cut at byte {cut}, line {line}"
            assert (read.size, read.torn) == (start, cut - start)


def test_a_torn_line_of_any_garbage_is_dropped(recorded: Recorded, tmp_path: Path) -> None:
    """What a disk may leave after a loss of power: zeros, half a block of something else, a line without its sum."""
    project, path = lone_journal(recorded, tmp_path)
    good = recorded.data[: recorded.ends[20]]
    run = runs.exactly(fold(recorded.decisions[:20]))
    line = recorded.data[recorded.ends[20] : recorded.ends[21]]
    for rest in (
        b"\0" * 512,
        b"\n",
        b"\n\n\n",
        b"{}\n",
        os.urandom(300),
        line[:-30] + b"\n",
        line[40:-3] + b'0"}\n',
        line[:100] + b"\0" * 50 + line[150:],
        line[:-1],
    ):
        path.write_bytes(good + rest)
        read = journal.read(project.run(recorded.id))
        assert runs.exactly(read.run) == run, rest
        assert (read.size, read.torn) == (len(good), len(rest))


def test_a_journal_torn_before_its_first_decision_says_that_nothing_was_run(recorded: Recorded, tmp_path: Path) -> None:
    project, path = lone_journal(recorded, tmp_path)
    for cut in range(recorded.ends[1]):
        path.write_bytes(recorded.data[:cut])
        with pytest.raises(JournalError) as caught:
            journal.read(project.run(recorded.id))
        folder = project.run(recorded.id).path
        hint = f"nothing was run: delete {folder}, then `{recorded.id}` can be an id again"
        assert caught.value.hint == hint, f"cut at byte {cut}"


def lone_journal(recorded: Recorded, folder: Path) -> tuple[Project, Path]:
    project = runs.project_in(folder)
    path = Path(project.run(recorded.id).journal)
    path.parent.mkdir()
    return project, path


@pytest.mark.slow
def test_the_decisions_of_a_resumed_run_go_on_counting(recorded: Recorded, tmp_path: Path) -> None:
    """Several cuts in a row: what was written by each driver stays, numbers have no gap and no double."""
    id, folder = recorded.id, tmp_path
    project = runs.copy(recorded.project, folder)
    path = Path(project.run(id).journal)
    for line in (4, 9, 15, 22, 30):
        data = path.read_bytes()
        path.write_bytes(data[: runs.boundaries(data)[line]] + b'{"seq":')
        runs.drive(project, id)
    runs.finish(project, id)
    told = runs.story(project, id)
    assert [one.seq for one in journal.decisions(project.run(id))] == list(range(1, told.run.seq + 1))
    assert runs.outcomes(told.run) == runs.outcomes(recorded.story.run)
    assert told.finished == recorded.story.finished
