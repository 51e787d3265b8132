"""A record that is damaged, forged or of another version is an error with its line, in every command; nothing is thrown away."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from crash import record
from running import GO
from trust.places import Place, contents, kill, no_traceback

LONG = {
    "START.sh": "printf '<goto input=\"%s\">ASK</goto>' $(printf 'x%.0s' {1..20000})",
    "ASK.sh": 'echo "$RAYMOND_STATE" >> ../ledger; echo "<ask next=\\"END\\">Which?</ask>"',
    "END.sh": 'echo "<result>told $RAYMOND_INPUT</result>"',
}
"""Hands on a text that is too long for the journal."""
COMMANDS = [("status", "r"), ("resume", "r"), ("logs", "r"), ("answer", "r", "main", "yes"), ("clean", "r")]


def line_with(room: Place, text: bytes) -> int:
    """The number of the first line of the journal that has this text."""
    return next(number for number, line in enumerate(room.lines(), 1) if text in line)


def refused(room: Place, args: tuple[str, ...], number: int) -> subprocess.CompletedProcess[str]:
    done = room.raymond(*args)
    said = no_traceback(done)
    assert done.returncode == 1, (args, said)
    assert f"line {number}" in said, (args, said)
    return done


# --- long texts


def edited(path: Path) -> None:
    path.write_text("FORGED" + "x" * 20000)


def missing(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def a_link(path: Path) -> None:
    path.rename(path.parent.parent / "moved")
    path.symlink_to(path.parent.parent / "moved")


@pytest.mark.slow
@pytest.mark.parametrize("harm", [edited, missing, cut, a_link])
def test_a_long_text_that_is_not_what_was_kept_is_damage_of_its_line(room: Place, harm: Callable[[Path], None]) -> None:
    room.ask(files=LONG)
    (blob,) = [path for path in room.part("blobs").iterdir() if path.is_file()]
    number = line_with(room, b"blob:")
    harm(blob)
    before = room.journal().read_bytes()
    for args in COMMANDS[:4]:
        done = refused(room, args, number)
        assert "doctor --repair r" in done.stderr
        assert "FORGED" not in done.stdout + done.stderr
    assert room.journal().read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("harm", [edited, missing])
def test_damage_of_a_long_text_can_be_repaired(room: Place, harm: Callable[[Path], None]) -> None:
    """The step that said it runs again."""
    room.ask(files=LONG)
    (blob,) = [path for path in room.part("blobs").iterdir() if path.is_file()]
    harm(blob)
    repaired = room.raymond("doctor", "--repair", "r")
    assert repaired.returncode == 0, repaired.stderr
    assert room.raymond("resume", "r").returncode == 3
    assert room.ledger() == ["ASK.sh", "ASK.sh"]
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    assert room.resume().out == "told yes\n"


@pytest.mark.parametrize("form", ["relative", "absolute", "hash and more"])
def test_a_long_text_cannot_be_a_file_from_elsewhere(room: Place, form: str) -> None:
    secret = room.path.parent / "secret"
    secret.write_text("the secret")
    room.ask(files={"START.sh": "echo '<ask next=\"END\">Which one?</ask>'", "END.sh": "true"})
    blobs = room.part("blobs")
    blobs.mkdir(mode=0o700, exist_ok=True)
    path = {
        "relative": os.path.relpath(secret, blobs),
        "absolute": str(secret),
        "hash and more": "0" * 64 + "/../" + os.path.relpath(secret, blobs),
    }[form]
    if form == "hash and more":
        (blobs / ("0" * 64)).mkdir()
    number = line_with(room, b"Which one?")
    forged = [line.replace(b"Which one?", b"\\u0000blob:" + path.encode()) for line in room.lines()]
    data = room.rewrite(forged)
    room.part("state.json").unlink(missing_ok=True)
    for args in COMMANDS[:4]:
        done = refused(room, args, number)
        assert "the secret" not in done.stdout + done.stderr
    assert room.journal().read_bytes() == data


# --- of another version


def foreign(room: Place, seq: int) -> bytes:
    line = {"seq": seq, "time": "2026-01-17T14:03:23.120Z", "events": [{"type": "AgentDreamt", "agent": "main"}]}
    return record.line(json.dumps(line, separators=(",", ":")).encode())


def test_repair_leaves_a_journal_of_another_version_alone(room: Place) -> None:
    room.ask()
    with room.journal().open("ab") as file:
        file.write(foreign(room, len(room.lines())))
    before = contents(room.folder())
    done = room.raymond("doctor", "--repair", "r")
    assert done.returncode == 1, no_traceback(done)
    assert "another version of Raymond" in done.stderr
    assert contents(room.folder()) == before


def test_repair_leaves_a_damaged_journal_alone_when_another_version_went_on_with_it(room: Place) -> None:
    room.ask()
    lines = room.journal().read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"seq":', b'"sep":')
    room.journal().write_bytes(b"".join([*lines, foreign(room, len(lines))]))
    before = contents(room.folder())
    done = room.raymond("doctor", "--repair", "r")
    assert done.returncode == 1, no_traceback(done)
    assert "another version of Raymond" in done.stderr
    assert contents(room.folder()) == before


def test_repair_keeps_what_it_cuts(room: Place) -> None:
    room.ask()
    lines = room.journal().read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"seq":', b'"sep":')
    damaged = b"".join(lines)
    room.journal().write_bytes(damaged)
    assert room.raymond("doctor", "--repair", "r").returncode == 0
    assert damaged in contents(room.folder()).values()
    assert room.raymond("resume", "r").returncode == 3


# --- the end of a journal


def test_a_whole_last_line_with_a_flipped_bit_is_damage(room: Place) -> None:
    room.ask()
    path = room.journal()
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(bytes(data))
    room.part("state.json").unlink(missing_ok=True)
    number = len(data.splitlines())
    for args in COMMANDS[:4]:
        done = refused(room, args, number)
        assert "doctor --repair r" in done.stderr
    assert path.read_bytes() == bytes(data)
    repaired = room.raymond("doctor", "--repair", "r")
    assert repaired.returncode == 0, repaired.stderr
    assert bytes(data) in contents(room.folder()).values()
    assert room.raymond("resume", "r").returncode == 3


@pytest.mark.parametrize("torn", [b'{"seq":5,"time":"2026-01-17T14', b"\0" * 300, b"\0" * 40 + b"\n"])
def test_what_is_torn_off_the_end_of_a_journal_is_kept_aside(room: Place, torn: bytes) -> None:
    """A line that was cut off, or the zeros that a power failure leaves, cannot be followed and is not lost either."""
    room.ask()
    with room.journal().open("ab") as file:
        file.write(torn)
    assert room.status()["status"] == "waiting"
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    assert room.resume().out == "told yes\n"
    assert torn not in room.journal().read_bytes()
    assert torn in contents(room.folder()).values()


# --- what cannot be

IMPOSSIBLE = {
    "a step of nobody": {"type": "StepFinished", "agent": "ghost", "step": 99},
    "a move of nobody": {"type": "AgentMoved", "agent": "ghost", "tag": "goto", "state": "END.sh"},
    "an end of nobody": {"type": "AgentEnded", "agent": "ghost", "result": "boo"},
    "a return from no call": {"type": "AgentReturned", "agent": "main", "state": "END.sh", "result": "boo"},
}


@pytest.fixture
def impossible(room: Place, request: pytest.FixtureRequest) -> Place:
    """A run whose last line has a good checksum and says what cannot be, beside a good run."""
    assert room.command({"START.sh": "echo '<result>fine</result>'"}, id="good").code == 0
    room.ask()
    line = {"seq": len(room.lines()), "time": "2026-01-17T14:03:23.120Z", "events": [IMPOSSIBLE[request.param]]}
    with room.journal().open("ab") as file:
        file.write(record.line(json.dumps(line, separators=(",", ":")).encode()))
    return room


every_impossible = pytest.mark.parametrize("impossible", IMPOSSIBLE, indirect=True)


@every_impossible
def test_an_event_that_cannot_be_is_an_error_with_its_line(impossible: Place) -> None:
    number = len(impossible.lines())
    before = impossible.journal().read_bytes()
    for args in [*COMMANDS, ("stop", "r"), ("wait", "r")]:
        if args[0] != "logs":
            refused(impossible, args, number)
    assert impossible.journal().read_bytes() == before


@every_impossible
def test_what_the_journal_says_can_be_read_although_it_cannot_be(impossible: Place) -> None:
    """Nothing follows from it, and somebody wants to find out what happened."""
    assert no_traceback(impossible.raymond("logs", "r", "--json")).count("\n") >= len(impossible.lines())
    assert impossible.raymond("cost", "r").returncode == 0


@every_impossible
def test_list_shows_the_other_runs_and_what_is_wrong_with_this_one(impossible: Place) -> None:
    rows = {row["workflow_id"]: row for row in impossible.rows()}
    assert rows["good"]["status"] == "completed"
    assert rows["r"]["status"] == "unreadable"
    assert f"line {len(impossible.lines())}" in rows["r"]["error"]


@every_impossible
def test_clean_removes_the_other_runs_and_leaves_this_one(impossible: Place) -> None:
    no_traceback(impossible.raymond("clean", "--keep", "0s"))
    assert [row["workflow_id"] for row in impossible.rows()] == ["r"]


@every_impossible
def test_repair_names_the_line_of_an_event_that_cannot_be_and_cuts_it(impossible: Place) -> None:
    number = len(impossible.lines())
    before = impossible.journal().read_bytes()
    done = impossible.raymond("doctor", "--repair", "r")
    said = no_traceback(done)
    assert done.returncode == 0, said
    assert f"line {number}" in said
    assert before in contents(impossible.folder()).values()
    assert impossible.status()["status"] == "waiting"


SHAPES = {
    "nested too deeply": b'{"seq":%d,"more":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "no events": b'{"seq":%d}',
    "an event that is none": b'{"seq":%d,"time":"2026-01-17T14:03:23.120Z","events":[5]}',
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_line_of_another_shape_keeps_no_command_from_the_other_runs(room: Place, shape: bytes) -> None:
    room.command({"START.sh": "echo '<result>fine</result>'"}, id="good")
    room.ask()
    with room.journal().open("ab") as file:
        file.write(record.line(shape % len(room.lines())))
    room.part("state.json").unlink()
    number = len(room.lines())
    for args in COMMANDS:
        refused(room, args, number)
    assert {row["workflow_id"]: row["status"] for row in room.rows()} == {"good": "completed", "r": "unreadable"}
    for args in (("resume", "--all"), ("cost", "--all"), ("clean", "--keep", "0s")):
        no_traceback(room.raymond(*args))
    assert [row["workflow_id"] for row in room.rows()] == ["r"]


# --- the state file is a cache

STATES = {
    "no counters": lambda size: {"journal_bytes": size, "status": "completed"},
    "nothing": lambda size: {"journal_bytes": size},
    "wrong kinds": lambda size: {"journal_bytes": size, "status": 5, "fork_counters": [], "total_cost_usd": "much"},
    "a list": lambda size: [size],
    "deep": lambda size: {"journal_bytes": size, "fork_counters": {"main": {"main": 1}}},
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_list_takes_what_it_can_use_of_a_state_file(room: Place, state: Callable[[int], object]) -> None:
    room.ask()
    room.part("state.json").write_text(json.dumps(state(room.journal().stat().st_size)))
    (row,) = room.rows()
    assert row["workflow_id"] == "r"
    assert row["agents"] == 1
    no_traceback(room.raymond("list"))


# --- a write that failed

FAULT = '''
"""Python imports this at its start: once, the disk has an error where the test says so."""

import os

TEXT = os.environ.get("FAULT_TEXT", "").encode()
CALL = os.environ.get("FAULT_CALL", "")
LOG = os.environ.get("FAULT_LOG", "")


def is_journal(fd):
    path = os.readlink(f"/proc/self/fd/{fd}")
    return path.endswith(".jsonl") and "transcripts" not in path


def watched(name):
    real = getattr(os, name)

    def call(fd, *args):
        if is_journal(fd):
            said = TEXT in b"".join(args[0] if name == "writev" else args[:1])
            failed = os.path.exists(LOG)
            if failed or (CALL in name and said):
                with open(LOG, "a") as log:
                    log.write(f"{name}\\n")
                if not failed:
                    raise OSError(5, "Input/output error")
        return real(fd, *args)

    return call


if LOG:
    for name in ("write", "pwrite", "writev", "fsync", "fdatasync"):
        setattr(os, name, watched(name))
'''


def faulty(room: Place, call: str, text: str) -> Callable[[], list[str]]:
    """Let the first such call on a journal fail; what was called on it from then on."""
    folder = room.path.parent / "fault"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULT)
    log = folder / "log"
    room.environment |= {"PYTHONPATH": str(folder), "FAULT_CALL": call, "FAULT_TEXT": text, "FAULT_LOG": str(log)}
    return lambda: log.read_text().split() if log.exists() else []


TWO = {"START.sh": "echo '<goto>END.sh</goto>'", "END.sh": "echo '<result>done</result>'"}


@pytest.mark.parametrize("text", ["RunEnded", "AgentMoved"])
def test_a_write_that_failed_is_not_repeated(room: Place, text: str) -> None:
    """Nobody followed what it said; the run goes on from what is on the disk."""
    calls = faulty(room, "write", text)
    done = room.command(TWO)
    assert done.code == 1, done.err
    assert "input/output error" in done.err.lower()
    assert [call for call in calls()[1:] if "write" in call] == [], "nothing was written after the error"
    assert text.encode() not in room.journal().read_bytes()
    for name in ("PYTHONPATH", "FAULT_LOG"):
        del room.environment[name]
    again = room.resume()
    assert (again.code, again.out) == (0, "done\n"), again.err
    room.nothing_runs()


def test_nothing_is_written_after_a_sync_that_failed(room: Place) -> None:
    """What the disk has is unknown from then on; a second sync would say that all is well."""
    calls = faulty(room, "sync", "")
    states = {"START.sh": f"{GO}\necho '<result>done</result>'"}
    room.go()
    done = room.command(states)
    assert done.code == 1, done.err
    assert len(calls()) == 1


# --- killed while it is read


def test_a_journal_can_be_read_by_all_commands_while_its_driver_is_dead(room: Place) -> None:
    with room.start("run", room.flow({"START.sh": f"echo s >> ../ledger; {GO}"}), "--id", "r") as live:
        room.noted(live, "s")
        kill(live)
    for args in (("status", "r"), ("logs", "r"), ("list",), ("cost", "r")):
        done = room.raymond(*args)
        assert done.returncode == 0, (args, no_traceback(done))


@pytest.mark.parametrize("last", [b'"]', b"x}", b"'}"])
def test_a_line_whose_last_bytes_are_wrong_is_damaged_and_not_from_the_future(room: Place, last: bytes) -> None:
    assert room.command({"START.sh": "echo '<result>done</result>'"}).code == 0
    lines = room.journal().read_bytes().split(b"\n")
    lines[3] = lines[3][:-2] + last
    room.journal().write_bytes(b"\n".join(lines))
    assert "line 4" in no_traceback(room.raymond("status", "r"))
    done = room.raymond("doctor", "--repair", "r")
    assert done.returncode == 0, done.stderr
