"""What people decided in lines that a repair cuts off still holds, and what those lines cost is counted once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from raymond import amounts
from raymond.faces import history
from raymond.machine.events import (
    AgentMoved,
    AgentStarted,
    Decision,
    Event,
    JournalCut,
    LimitsChanged,
    RunResumed,
    RunStarted,
    RunStopped,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
)
from raymond.machine.evolve import evolve
from raymond.machine.run import Run
from raymond.store import journal
from raymond.store import repair as repairing
from raymond.store.home import Home
from raymond.store.project import Project
from raymond.store.repair import LostCost, Repair, repair
from raymond.store.run_folder import RunFolder
from raymond.store.transcripts import Transcripts

STARTED = RunStarted(
    workflow_id="r",
    key="k",
    name="n",
    scope_dir="",
    source="s",
    entry="A.sh",
    cwd="/",
    budget=100.0,
    budget_from="",
    version="0.1.0",
)
FIRST: list[Event] = [STARTED, AgentStarted(agent="main", state="A.sh")]
RUNNING: list[Event] = [StepStarted(agent="main", step=1)]
STOP = RunStopped(kind="stop", at_once=True)
CANCELLED = RunStopped(kind="cancelled", at_once=True)


def written(folder: RunFolder, seq: int, decisions: Sequence[list[Event]]) -> bytes:
    """The lines of decisions, numbered from `seq`."""
    numbered = [Decision(seq=seq + count, time=9.0 + count, events=events) for count, events in enumerate(decisions)]
    return b"".join(journal.line(folder, one) for one in numbered)


def damage(folder: RunFolder, kept: Sequence[list[Event]], lost: Sequence[list[Event]]) -> None:
    """Add decisions to the journal, with a line between them that nobody can read."""
    run = journal.read(folder).run
    with open(folder.journal, "ab") as file:
        file.write(written(folder, run.seq + 1, kept) + b"?" * 100 + b"\n")
        file.write(written(folder, run.seq + len(kept) + 2, lost))


def begun(path: Path) -> RunFolder:
    """A run that has only begun."""
    project = Project(Home(f"{path}/home"), f"{path}/tree")
    project.make()
    folder = project.run("r")
    journal.create(folder, Decision(seq=1, time=8.0, events=FIRST), lambda new: Path(new.source).write_bytes(b"zip"))
    return folder


def cut(folder: RunFolder, kept: Sequence[list[Event]], lost: Sequence[list[Event]]) -> tuple[Repair, Run]:
    """What a repair of such a journal says, and the run after it."""
    damage(folder, kept, lost)
    done = repair(folder)
    return done, journal.read(folder).run


def test_a_run_that_was_cancelled_stays_cancelled_and_nothing_runs_in_it(tmp_path: Path) -> None:
    done, run = cut(begun(tmp_path), [RUNNING], [[CANCELLED]])
    assert done.standing == [CANCELLED]
    assert (run.final_status, run.is_over, run.stop) == ("cancelled", True, CANCELLED)
    assert run.statuses["running"] == 0


def test_a_run_that_was_stopped_stays_stopped_and_its_steps_are_left_to_the_next_driver(tmp_path: Path) -> None:
    done, run = cut(begun(tmp_path), [RUNNING], [[STOP]])
    assert done.standing == [STOP]
    assert run.stop == STOP
    assert run.statuses["running"] == 1


@pytest.mark.parametrize("lost", [[[STOP], [RunResumed(version="0.1.0")]], [[RunResumed(version="0.1.0")]]])
def test_a_stop_that_was_lifted_is_not_said_again(tmp_path: Path, lost: list[list[Event]]) -> None:
    done, run = cut(begun(tmp_path), [], lost)
    assert done.standing == []
    assert run.stop is None


def test_limits_that_were_changed_hold_each_as_it_was_set_last(tmp_path: Path) -> None:
    first = LimitsChanged(budget=50.0, max_turns=9, allowed_tools=["Read"], roots=["/a"])
    last = LimitsChanged(budget=5.0, max_time=60.0, allowed_tools=["Read", "Edit"], roots=["/b"])
    done, run = cut(begun(tmp_path), [], [[first], [last]])
    assert (run.limits.budget, run.limits.max_turns, run.limits.max_time) == (5.0, 9, 60.0)
    assert (run.rights.allowed, run.start.roots) == (("Read", "Edit"), ["/a", "/b"])
    told = "budget $5.00, max_turns 9, max_time 1m, --allow-tool Read, --allow-tool Edit, --root /a, --root /b"
    assert [*history.repair_lines(done)][-1] == f"still holds: {told}"


def test_that_there_is_no_limit_is_said_in_words(tmp_path: Path) -> None:
    done, _ = cut(begun(tmp_path), [], [[LimitsChanged(budget=0.0, max_iterations=0, max_time=0.0)]])
    assert [*history.repair_lines(done)][-1] == "still holds: no budget, max_iterations unlimited, max_time unlimited"


def test_a_second_repair_says_it_again(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    damage(folder, [], [[LimitsChanged(budget=5.0)], [STOP]])
    repair(folder)
    path = Path(folder.journal)
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*before, b"?" * 100 + b"\n", last]))
    again = repair(folder)
    assert again.standing == [LimitsChanged(budget=5.0), STOP]


# --- which steps were lost


def moved(state: str) -> AgentMoved:
    return AgentMoved(agent="main", tag="goto", state=state)


def told(done: Repair) -> list[str]:
    """What the repair says of steps."""
    return [line.strip() for line in history.repair_lines(done) if line.startswith("  step ")]


AGAIN = "will run again"
FOUND = "unless its reply is found"


def test_a_step_whose_end_cannot_be_read_is_named(tmp_path: Path) -> None:
    done, _ = cut(begun(tmp_path), [RUNNING], [[StepStarted(agent="main", step=2)]])
    assert told(done) == [
        f"step 1 of main (A.sh) had begun and {AGAIN}, {FOUND}",
        f"step 2 of main had begun and {AGAIN}",
    ]


def test_steps_that_began_and_ended_after_the_cut_are_named_with_their_states(tmp_path: Path) -> None:
    more: list[list[Event]] = [[turn(1, 0.0), moved("B.sh")], [StepStarted(agent="main", step=2)]]
    done, _ = cut(begun(tmp_path), [], [*more, [turn(2, 0.0), moved("C.sh")], [StepStarted(agent="main", step=3)]])
    assert told(done) == [
        f"step 1 of main (A.sh) had finished and {AGAIN}",
        f"step 2 of main (B.sh) had finished and {AGAIN}",
        f"step 3 of main (C.sh) had begun and {AGAIN}",
    ]


def test_a_state_that_was_entered_in_a_line_nobody_can_read_is_found_in_the_transcript(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    record = Transcripts(folder.transcripts).step("main", step=2, state="B.sh")
    end = StepInterrupted(agent="main", step=2, offset=record.end())
    done, _ = cut(folder, [RUNNING], [[StepStarted(agent="main", step=2)], [end]])
    assert told(done)[1] == f"step 2 of main (B.sh) had begun and {AGAIN}"


@pytest.mark.parametrize("agent", ["main", "../main"])
@pytest.mark.parametrize("text", ["", "{", "[" * 2000, '{"step":3,"state":"X.sh"}'])
def test_a_transcript_that_does_not_fit_is_not_believed(tmp_path: Path, text: str, agent: str) -> None:
    folder = begun(tmp_path)
    for path in (folder.transcripts, folder.path):
        Path(path).mkdir(exist_ok=True)
        Path(path, "main.jsonl").write_text(text if agent == "main" else '{"step":2,"state":"X.sh"}')
    done, _ = cut(folder, [RUNNING], [[StepFinished(agent=agent, step=2, offset=0)]])
    assert told(done)[1] == f"step 2 of {agent} had finished and {AGAIN}"


@pytest.mark.parametrize("kept", [[RUNNING], [RUNNING, [CANCELLED]]])
def test_of_a_cancelled_run_nothing_runs_again(tmp_path: Path, kept: list[list[Event]]) -> None:
    interrupted: list[Event] = [StepInterrupted(agent="main", step=1)]
    done, run = cut(begun(tmp_path), kept, [[CANCELLED] if len(kept) == 1 else interrupted])
    assert done.is_over
    assert (told(done), run.statuses["running"]) == ([], 0)


# --- what lost lines have cost


def turn(step: int, cost: float) -> StepFinished:
    return StepFinished(agent="main", step=step, cost=cost)


def ended(folder: RunFolder, end: Event) -> float:
    """What the run has cost after its running step has ended again."""
    run = journal.read(folder).run
    evolve(run, end)
    return run.cost


@pytest.mark.parametrize(
    ("again", "total"),
    [(turn(1, 4.0), 4.0), (turn(1, 4.5), 4.5), (StepInterrupted(agent="main", step=1), 4.0)],
    ids=["its reply is read again", "it cost more", "it is cut off"],
)
def test_a_turn_whose_end_was_lost_is_paid_for_once(tmp_path: Path, again: Event, total: float) -> None:
    folder = begun(tmp_path)
    done, run = cut(folder, [RUNNING], [[turn(1, 4.0)]])
    assert (done.cost, run.cost, run.paid) == (4.0, 4.0, {1: 4.0})
    assert ended(folder, again) == total


def test_another_turn_of_the_same_step_is_paid_for_when_it_comes_again(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    refused = StepRefused(agent="main", step=1, cost=4.0)
    more = StepStarted(agent="main", step=1, turn=2)
    _, run = cut(folder, [RUNNING], [[refused], [more], [turn(1, 3.0)]])
    assert (run.cost, run.paid) == (7.0, {1: 4.0})
    for event in (refused, more, turn(1, 3.0)):
        evolve(run, event)
    assert run.cost == 10.0


def test_a_turn_whose_end_cannot_be_read_is_not_taken_for_the_next_one_of_its_step(tmp_path: Path) -> None:
    _, run = cut(begun(tmp_path), [RUNNING], [[StepStarted(agent="main", step=1, turn=2)], [turn(1, 3.0)]])
    assert (run.cost, run.paid) == (3.0, {})


def test_a_turn_that_two_repairs_have_lost_is_paid_for_once(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    cut(folder, [RUNNING], [[turn(1, 4.0)]])
    done, run = cut(folder, [], [[turn(1, 5.0)]])
    assert (done.cost, run.cost, run.paid) == (1.0, 5.0, {1: 5.0})
    assert ended(folder, turn(1, 5.0)) == 5.0


def test_what_a_repair_has_paid_is_not_forgotten_when_the_next_one_cuts_before_it(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    cut(folder, [RUNNING], [[turn(1, 4.0)]])
    path = Path(folder.journal)
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*before, b"?" * 100 + b"\n", last]) + written(folder, 4, [[turn(1, 4.0)]]))
    assert repair(folder).cost == 4.0
    assert ended(folder, turn(1, 4.0)) == 4.0


def test_a_cut_beside_a_long_text_can_be_read(tmp_path: Path) -> None:
    _, run = cut(begun(tmp_path), [RUNNING], [[turn(1, 4.0)], [LimitsChanged(roots=["/" * 20_000])]])
    assert run.paid == {1: 4.0}


@pytest.mark.parametrize("forged", [-100.0, 2e10])
def test_what_no_turn_can_have_cost_is_not_counted(tmp_path: Path, forged: float) -> None:
    folder = begun(tmp_path)
    ends: list[Event] = [turn(1, forged), turn(2, 0.5), JournalCut(cost=forged, paid={3: forged}), turn(3, 0.25)]
    lines = [Decision(seq=3, time=9.0, events=[event]) for event in ends]
    assert repairing.lost_cost(journal.read(folder).run, lines) == LostCost(0.75, 0.75, {})


def test_all_that_was_lost_is_no_more_than_there_can_be() -> None:
    lines = [Decision(seq=9, time=9.0, events=[turn(step, amounts.MOST)]) for step in (1, 2)]
    assert repairing.lost_cost(Run(), lines).cost == amounts.MOST


@pytest.mark.parametrize(("backend", "scripted"), [("scripted", 4.0), ("claude", 0.0)])
def test_a_repair_notes_what_of_the_lost_cost_nobody_paid(tmp_path: Path, backend: str, scripted: float) -> None:
    folder = begun(tmp_path)
    done, _ = cut(folder, [], [[StepStarted(agent="main", step=1, backend=backend)], [turn(1, 4.0)]])
    assert (done.cost, done.scripted) == (4.0, scripted)
    assert [line for line in history.repair_lines(done) if "cost" in line] == [
        f"their cost still counts: $4.00{'*' if scripted else ''}"
    ]
