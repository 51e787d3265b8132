"""What others send is bounded before it is held in memory or on disk."""

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raymond.backends import Setup, Trouble
from raymond.backends.command import CommandBackend
from raymond.errors import WorkflowError
from raymond.steps import probe
from raymond.store import transcripts, zips
from raymond.store.transcripts import Transcripts
from running import PATIENCE
from trust.places import Place

MIB = 1 << 20
CUT = "more than 64 MiB of output: the rest is not recorded\n"


def folders(count: int) -> bytes:
    """A zip that lists this many folders, and nothing else."""
    body, index = bytearray(), bytearray()
    for number in range(count):
        name = b"%d/" % number
        about = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0)
        index += b"PK\x01\x02\x14\0" + about + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        body += b"PK\x03\x04" + about + name
    return bytes(body + index + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, len(index), len(body), 0))


def test_a_zip_is_refused_for_what_it_lists_before_any_of_it_is_read() -> None:
    with pytest.raises(WorkflowError, match="more than 10,000 entries"):
        zips.read(folders(10_001), file="many.zip")
    with pytest.raises(WorkflowError, match="there is nothing in this zip"):
        zips.read(folders(100), file="some.zip")


LITTLE_MEMORY = """
import os, pkgutil, resource, sys
import raymond
for module in pkgutil.walk_packages(raymond.__path__, "raymond."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
from raymond import cli
taken = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20),) * 2)
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_what_memory_does_not_suffice_for_is_said_in_words_and_keeps_no_other_run_from_being_shown(room: Place) -> None:
    def said(*args: str) -> tuple[int, str, str]:
        command = [sys.executable, "-c", LITTLE_MEMORY, *args]
        done = subprocess.run(
            command, cwd=room.path, env=room.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return done.returncode, done.stdout, done.stderr

    for id in ("large", "other"):
        assert room.command({"START.sh": "echo '<result>done</result>'"}, id=id).code == 0
    large = room.project.run("large").journal
    for path in (large, str(room.home / "trusted.json")):
        Path(path).touch()
        os.truncate(path, 120 * MIB)
    lacking = f"there is not enough memory to read {large}"
    code, out, err = said("list")
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines() if line.startswith((" ", "ID"))] == [
        ["ID", "STATUS"],
        ["large", "unreadable"],
        ["other", "completed"],
    ]
    assert said("cost", "--all")[::2] == (0, f"large is left out: {lacking}\n")
    assert said("status", "large") == (1, "", f"error: {lacking}\nhint: give this command more memory\n")
    lost = "hint: nothing already written is lost: fix this, then try again"
    assert said("trust", "--list") == (1, "", f"error: there is not enough memory\n{lost}\n")


@pytest.mark.slow
def test_a_line_without_end_is_trouble_of_its_turn(room: Place) -> None:
    program = room.path.parent / "my-agent"
    program.write_text("#!/bin/sh\nhead -c 70000000 /dev/zero | tr '\\0' x\nexec sleep 600\n")
    program.chmod(0o755)
    room.settings(f'[backends.mine]\ncommand = ["{program}"]\n')
    ran = room.command({"START.md": "---\nretries: 0\n---\nBegin."}, "--backend", "mine")
    assert ran.code == 1
    assert ran.run.agents["main"].error == "the program wrote a line of more than 64 MiB"
    room.nothing_runs()


@pytest.mark.slow
def test_a_long_answer_is_trouble_of_its_turn() -> None:
    backend = CommandBackend(Setup(name="mine", options={"command": ["mine"]}))
    reader = backend.reader(probe.turn("hi", cwd="/", session="s"))
    line = b"x" * MIB
    for _ in range(63):
        reader.feed(line)
    assert not reader.ending
    reader.feed(line)
    reader.feed(b"raymond-s 0")
    ending = reader.close(0, "")
    assert isinstance(ending, Trouble)
    assert ending.error == "the program answered with more than 64 MiB"


@pytest.mark.slow
def test_a_transcript_ends_where_it_is_long_enough_and_says_so(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    record = kept.step("main", step=1, state="START.sh")
    for _ in range(70):
        record.add("out", "x" * MIB)
    offset = record.end(exit=0)
    kept.close()
    lines: list[dict[str, Any]] = transcripts.read_record(str(tmp_path), "main", offset)
    assert sum(len(line.get("out", "")) for line in lines) == 64 * MIB
    assert [line["note"] for line in lines if "note" in line] == [CUT]
    assert lines[-1]["exit"] == 0


@pytest.mark.slow
def test_the_tag_after_what_is_not_recorded_counts(room: Place) -> None:
    ran = room.command(
        {"START.sh": "yes '                    .' | head -c 67200000; echo '<result>at the end</result>'"}
    )
    assert (ran.code, ran.result) == (0, "at the end"), ran.err
    lines = transcripts.read_record(room.project.run(ran.id).transcripts, "main", 0)
    assert [line["note"] for line in lines if "note" in line] == [CUT]


PEAK = """import resource, sys
from raymond import cli
code = cli.main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
sys.exit(code)"""
FORKS = 20
COLLECTS = {
    "START.sh": "echo '<fork>WORK.py</fork>'\n" * FORKS + "echo '<wait>END.sh</wait>'",
    "END.sh": 'echo "<result>$(wc -c < "$RAYMOND_INPUT_FILE")</result>"',
}


def peak(room: Place, size: int) -> int:
    """Megabytes that the driver needed at most, for results of this many bytes."""
    flow = room.flow(COLLECTS | {"WORK.py": f"print('<result>' + 'x' * {size} + '</result>')"}, f"flow{size}")
    command = [sys.executable, "-c", PEAK, "run", flow, "--id", f"r{size}", "--quiet"]
    done = subprocess.run(command, cwd=room.path, env=room.environment, capture_output=True, text=True, check=True)
    collected, most = map(int, done.stdout.split())
    assert collected >= FORKS * size
    return most


@pytest.mark.slow
def test_what_was_collected_is_held_three_times_at_most(room: Place) -> None:
    """As the text that is made of the results, while it is made and handed over; it was ten times."""
    more = peak(room, 2 * MIB) - peak(room, 1)
    assert more < 4.5 * FORKS * 2
    state = room.part("state.json", f"r{2 * MIB}")
    assert state.stat().st_size < FORKS * (4 << 10)
    results = msgspec.json.decode(state.read_bytes())["results"]
    note = f"[{2 * MIB - 1000:,} more characters: `raymond status --json` has them]"
    assert {text.partition("\n")[2] for name, text in results.items() if name != "main"} == {note}
