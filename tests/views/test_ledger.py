"""The ledger: every turn that was paid for, and its sums by state, agent, model, day and run."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from builders import Play
from raymond.faces import words
from raymond.machine.events import Decision, JournalCut
from raymond.machine.evolve import evolve
from raymond.machine.inputs import Spending
from raymond.views import cost
from raymond.views.cost import Sum
from running import Room

FILES = {"START.md": "", "A.md": "---\nmodel: small\n---\n", "S.sh": ""}
DAY = 86400.0
PAID = {
    "START.md": "first",
    "NEXT.md": "second",
    "replies.yaml": """
        START: {text: <goto>NEXT</goto>, cost: 0.31, tokens: {in: 1200, out: 30}}
        NEXT: [[{fail: crash, cost: 0.02}, {text: <result>done</result>, cost: 0.05}]]
        """,
}


def played() -> Play:
    """Four turns that count, one of which failed; a script between them."""
    play = Play(FILES, backend="claude", model="large")
    play.say("<goto>A</goto>", cost=0.50)
    play.fail("crash", spent=Spending(cost=0.25))
    play.now += DAY
    play.say("<fork>A</fork><goto>S</goto>", cost=0.10)
    play.say("<result>s</result>")
    play.say("<result>a</result>", "main_a1", cost=0.05)
    return play


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("state", {"START.md": (1, 0.50, 0), "A.md": (3, 0.40, 1)}),
        ("agent", {"main": (3, 0.85, 1), "main_a1": (1, 0.05, 0)}),
        ("model", {"large": (1, 0.50, 0), "small": (3, 0.40, 1)}),
        ("run", {"r": (4, 0.90, 1)}),
    ],
)
def test_the_sums_by_each_way_count_every_turn_once(by: str, expected: dict[str, tuple[int, float, int]]) -> None:
    found = cost.sums(cost.entries("r", played().decisions), by)
    assert {name: (one.turns, round(one.cost_usd, 2), one.failed_turns) for name, one in found.items()} == expected


def test_what_cost_most_comes_first_and_the_total_is_what_the_run_says() -> None:
    play = played()
    entries = cost.entries("r", play.decisions)
    assert [*cost.sums(entries, "state")] == ["START.md", "A.md"]
    whole = cost.total(entries)
    assert (round(whole.cost_usd, 6), whole.failed_cost_usd) == (round(play.run.cost, 6), 0.25)
    assert len(cost.sums(entries, "day")) == 2


def test_a_backend_that_chooses_its_model_is_named() -> None:
    play = Play(FILES, backend="claude")
    play.say("<result>x</result>", cost=1.0)
    assert [*cost.sums(cost.entries("r", play.decisions), "model")] == ["claude's own"]
    assert cost.total([]) == Sum()


def test_what_a_repair_has_lost_is_an_entry_and_the_total_stays_what_the_run_says() -> None:
    play = Play(FILES, backend="claude")
    play.begin()
    play.commit([JournalCut(steps=5, cost=4.5, paid={1: 4.0})])
    play.say("<goto>A</goto>", cost=4.25)
    entries = cost.entries("r", play.decisions)
    for by in ("state", "agent", "model"):
        lost = cost.sums(entries, by)["lost in a repair"]
        assert (lost.turns, lost.cost_usd, lost.failed_turns) == (0, 4.5, 0)
    whole = cost.total(entries)
    assert (whole.turns, whole.cost_usd, play.run.cost) == (1, 4.75, 4.75)


def test_a_torn_end_is_no_entry() -> None:
    play = Play(FILES, backend="claude")
    play.commit([JournalCut(steps=5)])
    assert cost.entries("r", play.decisions) == []


@pytest.mark.slow
def test_cost_shows_the_ledger_of_a_run_with_what_failed(room: Room) -> None:
    room.command(PAID)
    done = room.raymond("cost", "r")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "STATE     TURNS   COST   FAILED  TOKENS IN  OUT  SCRIPTED*\n"
        "START.md      1  $0.00        -      1,200   30     $0.31*\n"
        "NEXT.md       2  $0.00  1 $0.00          0    0     $0.07*\n"
        "total         3  $0.00  1 $0.00      1,200   30     $0.38*\n"
    )


@pytest.mark.slow
def test_cost_shows_what_scripted_turns_that_a_repair_lost_are_said_to_have_cost(room: Room) -> None:
    room.command(PAID)
    journal = Path(room.project.run("r").journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], b"damaged\n", *lines[3:]]))
    assert "their cost still counts: $0.38*" in room.raymond("doctor", "--repair", "r").stderr
    assert room.raymond("cost", "r").stdout == (
        "STATE             TURNS   COST  FAILED  TOKENS IN  OUT  SCRIPTED*\n"
        "lost in a repair      0  $0.00       -          0    0     $0.38*\n"
        "total                 0  $0.00       -          0    0     $0.38*\n"
    )


@pytest.mark.slow
def test_cost_of_all_runs_is_by_run_and_leaves_out_what_cannot_be_read(room: Room) -> None:
    room.command(PAID, id="one")
    room.command(PAID, id="two")
    journal = Path(room.project.run("two").journal)
    journal.write_bytes(journal.read_bytes()[:10])
    done = room.raymond("cost", "--all", "--json")
    found = json.loads(done.stdout)
    assert (found["by"], [*found["sums"]], found["total"]["turns"]) == ("run", ["one"], 3)
    assert done.stderr.startswith("two is left out: ")


@pytest.mark.slow
def test_cost_of_one_run_and_of_all_is_refused(room: Room) -> None:
    room.command(PAID)
    done = room.raymond("cost", "r", "--all")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --all is for every run, not for one\nhint: raymond cost --all\n",
    )


def test_of_several_runs_a_state_is_told_with_its_workflow_and_an_agent_with_its_run() -> None:
    entries = [entry for run in ("r", "s") for entry in cost.entries(run, played().decisions)]
    assert {*cost.sums(entries, "state", several=True)} == {"test/START.md", "test/A.md"}
    assert {*cost.sums(entries, "agent", several=True)} == {
        f"{run}/{name}" for run in "rs" for name in ("main", "main_a1")
    }
    assert {*cost.sums(entries, "model", several=True)} == {"large", "small"}


def test_dollars_of_scripted_replies_are_never_added_to_real_ones() -> None:
    play = Play({**FILES, "REAL.md": "---\nbackend: claude\n---\n"}, backend="scripted", budget=1.0)
    play.say("<goto>REAL</goto>", cost=0.1)
    play.say("<goto>A</goto>", cost=0.25)
    play.say("<goto>A</goto>", cost=0.2)
    found = cost.total(cost.entries("r", play.decisions))
    assert (found.cost_usd, found.scripted_cost_usd, found.turns, found.scripted_turns) == (0.25, 0.3, 3, 2)
    assert (round(play.run.billed, 9), round(play.run.scripted, 9)) == (0.25, 0.3)
    assert words.money(play.run) == "$0.25 and $0.30*"
    play.say("<goto>A</goto>", cost=0.5)
    assert play.run.stop is not None, "a budget counts both"


@pytest.mark.parametrize(("scripted", "counted"), [(0.5, (0.25, 0.5)), (0.0, (0.75, 0.0))])
def test_what_a_repair_has_lost_stays_scripted_or_paid(scripted: float, counted: tuple[float, float]) -> None:
    play = Play({**FILES, "REAL.md": "---\nbackend: claude\n---\n"}, backend="scripted")
    cut = JournalCut(cost=0.75, scripted=scripted)
    evolve(play.run, cut)
    decisions = [*play.decisions, Decision(seq=9, time=9.0, events=[cut])]
    found = cost.total(cost.entries("r", decisions))
    assert (found.cost_usd, found.scripted_cost_usd) == counted
    assert (play.run.billed, play.run.scripted) == counted


def test_a_model_is_called_what_the_program_reported() -> None:
    """Also for a turn that reported none, and asked for the same."""
    play = Play(FILES, backend="claude")
    play.fail("crash", spent=Spending(cost=0.25))
    play.say("<goto>A</goto>", cost=0.5, model="claude-opus-5-5")
    play.say("<result>x</result>", cost=0.1)
    assert {*cost.sums(cost.entries("r", play.decisions), "model")} == {"claude-opus-5-5", "small"}


def test_workflows_of_one_name_in_two_folders_are_told_apart() -> None:
    here = cost.entries("r", played().decisions)
    there = [replace(entry, run="s", folder="/other/test") for entry in here]
    found = cost.sums([*here, *there], "state", several=True)
    assert len(found) == 4
    assert "test/A.md (/other/test)" in found
