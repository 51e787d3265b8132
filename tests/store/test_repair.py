"""A damaged journal is cut at the bad line; a copy is kept and what was lost is named."""

import shutil
from pathlib import Path

import pytest

from raymond.machine.events import JournalCut, StepStarted
from raymond.store import journal, lock
from raymond.store.run_folder import RunFolder
from running import Room

FLOW = {
    "START.sh": "echo START >> log; echo '<goto>A.sh</goto>'",
    "A.sh": "echo A >> log; echo '<goto>B.sh</goto>'",
    "B.sh": "echo B >> log; echo '<result>end</result>'",
}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A room with a finished run whose fifth line is damaged."""
    room = Room(tmp_path)
    assert room.command(FLOW).code == 0
    path = Path(room.project.run("r").journal)
    lines = path.read_bytes().split(b"\n")
    lines[4] = lines[4].replace(b"StepStarted", b"StepStarred")
    path.write_bytes(b"\n".join(lines))
    return room


def test_a_damaged_journal_is_refused_and_left_alone(room: Room) -> None:
    path = Path(room.project.run("r").journal)
    before = path.read_bytes()
    refused = room.raymond("resume", "r")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: line 5 of {path} is damaged and good lines follow it\n"
        "hint: `raymond doctor --repair r` keeps a copy, cuts the journal there and lists the lost steps\n"
    )
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_repair_keeps_a_copy_names_the_steps_lost_and_lets_the_run_go_on(room: Room) -> None:
    before = Path(room.project.run("r").journal).read_bytes()
    mended = room.raymond("doctor", "--repair", "r")
    assert mended.returncode == 0
    assert mended.stderr.startswith("cut at line 5;")
    assert "  step 2 of main (A.sh) had finished and will run again\n" in mended.stderr
    copies = [*room.folder().glob("journal.jsonl.*.damaged")]
    assert [copy.read_bytes() for copy in copies] == [before]
    assert journal.read(room.project.run("r")).run.iterations == 1
    resumed = room.resume()
    assert (resumed.code, resumed.out) == (0, "end\n")
    assert (room.path / "log").read_text().split() == ["START", "A", "B", "A", "B"]


def numbered(room: Room) -> list[int]:
    """The steps that the journal has, in order."""
    happened = [event for one in journal.decisions(room.project.run("r")) for event in one.events]
    return [event.step for event in happened if isinstance(event, StepStarted)]


@pytest.mark.slow
def test_no_step_has_the_number_of_one_that_was_lost(room: Room) -> None:
    """Sessions and marks of processes are named after steps: a reply or a process of the lost time must not fit."""
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    (cut,) = journal.decisions(room.project.run("r"))[-1].events
    assert isinstance(cut, JournalCut)
    assert cut.steps > 3
    assert room.resume().code == 0
    assert numbered(room)[0] == 1
    assert [number - cut.steps for number in numbered(room)[1:]] == [1, 2]


@pytest.mark.slow
def test_what_a_repair_says_goes_beyond_lines_that_are_missing(room: Room) -> None:
    """Of lines that nobody can read, those after them tell what they were; the others are counted by their length."""
    path = Path(room.project.run("r").journal)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:4], b"", *lines[7:]]))
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    (cut,) = journal.decisions(room.project.run("r"))[-1].events
    assert isinstance(cut, JournalCut)
    assert cut.steps > 3
    assert cut.decisions >= len(lines) - 1 - 4


@pytest.mark.slow
def test_a_second_repair_does_not_come_back_to_the_numbers_of_the_first(room: Room) -> None:
    path = Path(room.project.run("r").journal)
    damaged = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(damaged[:5] + damaged[5:-1] * 100 + [b""]))
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    (first,) = journal.decisions(room.project.run("r"))[-1].events
    assert isinstance(first, JournalCut)
    path.write_bytes(path.read_bytes().replace(b'"seq":3', b'"seq":4', 1))
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    (second,) = journal.decisions(room.project.run("r"))[-1].events
    assert isinstance(second, JournalCut)
    assert second.steps > first.steps > 100


@pytest.mark.slow
def test_a_torn_line_may_have_begun_a_step_whose_number_is_not_used_again(room: Room) -> None:
    """What is taken for torn may have been whole once, and something may have followed from it."""
    path = Path(room.project.run("r").journal)
    lines = path.read_bytes().replace(b"StepStarred", b"StepStarted").split(b"\n")
    path.write_bytes(b"\n".join(lines[:4]) + b"\n" + lines[4][:-20])
    assert room.resume().code == 0
    assert numbered(room)[0] == 1
    assert min(numbered(room)[1:]) > 2


@pytest.mark.slow
def test_a_request_that_cuts_off_a_torn_line_keeps_its_numbers_from_coming_again(room: Room) -> None:
    path = Path(room.project.run("r").journal)
    lines = path.read_bytes().replace(b"StepStarred", b"StepStarted").split(b"\n")
    path.write_bytes(b"\n".join(lines[:4]) + b"\n" + lines[4][:-20])
    assert room.raymond("stop", "r").returncode == 0
    assert journal.read(room.project.run("r")).run.steps > 2


@pytest.mark.slow
def test_a_journal_that_is_not_damaged_is_not_repaired(room: Room) -> None:
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    again = room.raymond("doctor", "--repair", "r")
    assert again.returncode == 2
    assert again.stderr == "error: the journal of r is not damaged\nhint: `raymond resume r` continues the run\n"
    assert room.project.ids() == ["r"]


@pytest.mark.slow
def test_doctor_without_a_flag_examines_the_machine_and_mends_nothing(room: Room) -> None:
    before = Path(room.project.run("r").journal).read_bytes()
    asked = room.raymond("doctor")
    assert asked.stderr == ""
    examined = [line.split()[1] for line in asked.stdout.splitlines() if not line.startswith(" ")]
    assert examined[:6] == ["raymond:", "programs:", "processes:", "home:", "disk:", "project:"]
    assert Path(room.project.run("r").journal).read_bytes() == before


def snap(folder: RunFolder) -> None:
    """Take a snapshot now."""
    held = lock.take(folder)
    read = journal.read(folder)
    book = journal.Journal(folder, read.size, held)
    book.snapshot(read.run, force=True)
    book.close()
    held.release()


@pytest.mark.slow
def test_a_run_whose_snapshot_was_taken_after_the_damage_is_not_cut(room: Room) -> None:
    folder = room.project.run("r")
    path = Path(folder.journal)
    damaged = path.read_bytes()
    path.write_bytes(damaged.replace(b"StepStarred", b"StepStarted"))
    snap(folder)
    path.write_bytes(damaged)
    assert room.raymond("status", "r").returncode == 0
    refused = room.raymond("doctor", "--repair", "r")
    assert refused.returncode == 2
    assert "the run is whole" in refused.stderr
    assert path.read_bytes() == damaged


LONG_ASK = {
    "START.sh": "printf '<fork>ASK.sh</fork><fork>ASK.sh</fork><fork>ASK.sh</fork><wait>END.sh</wait>'",
    "ASK.sh": "printf '<ask next=\"END.sh\">%020000d</ask>' $$",
    "END.sh": "echo '<result/>'",
}
"""Three questions, each too long for its line."""


def asked(room: Room) -> list[int]:
    """The numbers of the questions that are open."""
    run = journal.read(room.project.run("r")).run
    return sorted(agent.asks for agent in run.agents.values() if agent.asks)


@pytest.mark.slow
def test_no_question_has_the_number_of_one_whose_text_was_lost(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.command(LONG_ASK).code == 3
    before = asked(room)
    assert len(before) == 3
    shutil.rmtree(room.project.run("r").blobs)
    mended = room.raymond("doctor", "--repair", "r")
    assert mended.returncode == 0
    assert "0 good decision" not in mended.stderr
    assert mended.stderr.count("had finished and will run again") == 3
    assert room.resume().code == 3
    assert min(asked(room)) > max(before)


@pytest.mark.slow
def test_what_lost_turns_have_cost_stays_spent(tmp_path: Path) -> None:
    """Also after a second repair: a budget is not given twice."""
    room = Room(tmp_path)
    room.clear()
    turns = {
        "START.md": "",
        "A.md": "",
        "replies.yaml": "{START: {text: <goto>A</goto>, cost: 0.25}, A: {text: <result>x</result>, cost: 0.5}}",
    }
    assert room.command(turns).run.cost == 0.75
    path = Path(room.project.run("r").journal)
    for paid in (0.75, 1.5):
        lines = path.read_bytes().split(b"\n")
        at = next(number for number, line in enumerate(lines) if b"StepStarted" in line)
        lines[at] = lines[at].replace(b"StepStarted", b"StepStarred")
        path.write_bytes(b"\n".join(lines))
        mended = room.raymond("doctor", "--repair", "r")
        assert "their cost still counts: $0.75*\n" in mended.stderr
        assert journal.read(room.project.run("r")).run.cost == paid
        assert room.resume().run.cost == paid + 0.75


COLLECTS = {
    "START.sh": "echo '<fork>LONG.sh</fork><wait>ASK.sh</wait>'",
    "LONG.sh": "printf '<result>%020000d</result>' 7",
    "ASK.sh": "echo '<ask next=\"END.sh\">Go on?</ask>'",
    "END.sh": "echo '<result>end</result>'",
}


@pytest.mark.slow
def test_a_run_whose_snapshot_refers_to_a_text_that_is_lost_is_cut(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.command(COLLECTS).code == 3
    folder = room.project.run("r")
    snap(folder)
    shutil.rmtree(folder.blobs)
    mended = room.raymond("doctor", "--repair", "r")
    assert mended.returncode == 0, mended.stderr
    asks = room.resume()
    assert asks.code == 3, asks.err


@pytest.mark.slow
def test_a_cancelled_run_is_not_brought_back_by_a_repair(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.command(COLLECTS).code == 3
    assert room.raymond("cancel", "r").returncode == 0
    path = Path(room.project.run("r").journal)
    path.write_bytes(path.read_bytes().replace(b"StepStarted", b"StepStarred", 1))
    mended = room.raymond("doctor", "--repair", "r")
    assert mended.stderr.endswith("still holds: cancelled on request\nnext: raymond logs r\n")
    assert room.raymond("resume", "r").returncode == 1
    assert journal.read(room.project.run("r")).run.final_status == "cancelled"


@pytest.mark.slow
def test_a_turn_whose_reply_is_read_again_after_a_repair_is_paid_for_once(tmp_path: Path) -> None:
    room = Room(tmp_path)
    flow = {
        "START.sh": "echo '<fork>X.md</fork><fork>Y.sh</fork><wait>END.sh</wait>'",
        "X.md": "",
        "Y.sh": "echo '<result>y</result>'",
        "END.sh": "echo '<result>y</result>'",
        "replies.yaml": "{X: {text: <result>x</result>, cost: 4.0, delay: 600ms}}",
    }
    assert room.command(flow).run.cost == 4.0
    path = Path(room.project.run("r").journal)
    lines = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(lines) if b'"StepFinished","agent":"main_y2"' in line)
    lines[at] = lines[at].replace(b"StepFinished", b"StepFinishes")
    path.write_bytes(b"\n".join(lines))
    assert "their cost still counts: $4.00*\n" in room.raymond("doctor", "--repair", "r").stderr
    resumed = room.resume()
    assert (resumed.code, resumed.run.cost) == (0, 4.0), resumed.err
