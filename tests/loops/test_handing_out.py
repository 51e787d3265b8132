"""An item is handed out to whoever can read it, and what they say of it is taken however long it is."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inside import DONE, Inside
from raymond.loops import handing
from running import until

pytestmark = pytest.mark.slow
NEXT = [sys.executable, "-m", "raymond", "continuous-session", "next", "--json"]


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def shell(inside: Inside, redirected: str) -> "subprocess.CompletedProcess[str]":
    """`next`, with its standard output like this."""
    argv = ["sh", "-c", f'exec "$@" {redirected}', "sh", *NEXT, "--id", "n"]
    return subprocess.run(
        argv, cwd=inside.path, env=inside.room.environment, capture_output=True, text=True, check=False, stdin=0
    )


@pytest.mark.parametrize(
    ("redirected", "code", "told"),
    [
        (">&-", 2, "error: standard output is closed, so nobody would get the item\nhint: run next with an output\n"),
        (">/dev/full", 1, "error: standard output could not be written: no space left on device\n"),
    ],
)
def test_an_item_that_could_not_be_printed_is_not_handed_out(
    inside: Inside, redirected: str, code: int, told: str
) -> None:
    done = shell(inside, redirected)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert inside.refused("record", said=DONE).startswith("error: no ")
    assert inside.next("--id", "n")["item"]["title"] == "Write the answer"
    assert inside.refused("next", "--json").startswith("error: an item is open: Write the answer\n")
    again = shell(inside, f"--resume {redirected}")
    assert again.returncode == code
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed", "somebody had it before"


def test_an_item_that_nobody_had_is_not_told_to_come_again(inside: Inside) -> None:
    with inside.room.start("continuous-session", "next", "--json", "--id", "n") as live:
        until((inside.room.folder("n") / "journal.jsonl").exists, "the run")
        live.signal(signal.SIGKILL)
        live.process.wait()
        assert live.out == ""
    said = inside.refused("record", "--json")
    assert said == (
        "error: no item is open: run `next` to get it again\nhint: raymond continuous-session next --json\n"
    )
    assert inside.next()["item"]["title"] == "Write the answer"


@pytest.mark.parametrize("long", ["ü" * (1 << 20) + "x", '"\n' * (500 << 10), "x" * (5 << 20)])
def test_the_end_of_a_message_counts_however_long_it_is(inside: Inside, long: str) -> None:
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    done = inside.call("record", "--json", said=f"{long}\n{DONE}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "passed", done.stdout
    assert done.stderr == "the message is too long: only the end of it counts, up to 1 MiB\n"


def test_what_is_kept_of_a_message_is_its_end() -> None:
    assert handing.end_of("short") == "short"
    kept = handing.end_of("a" * (2 << 20) + "end")
    assert kept.endswith("aend")
    assert (1 << 20) - (20 << 10) < len(kept) < 1 << 20
