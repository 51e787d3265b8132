"""A long answer is read the same in slices as in one, and the driver looks around between them."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raymond.backends.guard import Guarded
from raymond.language.reading import read
from raymond.redaction import Secrets
from raymond.steps.output import SLICE, Answer, glimpse
from running import Ran, Room, until, zombie

TOKEN = "q7Zr2LmX9vTb4KpW"
SECRETS = Secrets.of({"MY_TOKEN": TOKEN})
END = "\n<print>b</print><result>done</result>\n"
TEXTS = {
    "short": f"<print>a {TOKEN}</print>{END}",
    "empty": "",
    "one slice": "x" * SLICE,
    "a slice and a character": "x" * (SLICE + 1),
    "long": f"<print>a {TOKEN}</print>" + "ghp_q7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtU " * 4000 + END,
    "a secret over the end of a slice": "." * (SLICE - 5) + TOKEN + "." * SLICE + END,
    "a tag over the end of a slice": "." * (SLICE - 3) + "<goto>NEXT</goto>" + "." * SLICE,
    "two transitions": "<goto>A</goto>" + "." * 3 * SLICE + "<goto>B</goto>",
}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("script", [False, True])
def test_an_answer_is_the_same_in_slices(text: str, script: bool) -> None:
    answer = Answer(SECRETS, text, script=script)
    taken = 1
    while not answer.go_on():
        taken += 1
    cleaned = SECRETS.clean(text)
    assert (answer.text, answer.reading) == (cleaned, read(cleaned, script=script))
    assert taken == max(1, -(-len(text) // SLICE))


def test_what_is_shown_of_a_long_text_ends_before_a_secret_that_would_be_cut() -> None:
    assert glimpse(SECRETS, f"a {TOKEN}") == "a [secret MY_TOKEN]"
    text = "." * (SLICE - 5) + TOKEN + "." * SLICE
    assert glimpse(SECRETS, text) == "." * (SLICE - 5) + f" … ({len(text) - SLICE:,} more characters)"


PIECE, TIMES = "nothing but words; ", 9_000
LONG = PIECE * TIMES
REPLY = {"START.md": "Go.", "replies.yaml": f"START.md: |\n  {LONG} <result>done</result>\n"}
SCRIPT = f"import os\nopen(os.environ['RAYMOND_OUT'], 'w').write({PIECE!r} * {TIMES} + ' <result>done</result>')"
ANSWERS: dict[str, tuple[dict[str, str], str]] = {
    "a script": ({"START.py": SCRIPT}, ""),
    "a reply": (REPLY, "scripted"),
    "a program": (REPLY, "scripted-program"),
}


class Between:
    """Counts how often a function is called between two looks at what else has happened."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._code = function.__code__
        self.calls = [0]

    def __call__(self, frame: Any, event: str, what: object) -> None:
        if event == "c_call" and getattr(what, "__name__", "") == "poll":
            self.calls.append(0)
        elif event == "call" and frame.f_code is self._code:
            self.calls[-1] += 1

    def drive(self, room: Room, files: dict[str, str], **options: Any) -> Ran:
        sys.setprofile(self)
        try:
            return room.drive(files, **options)
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_driver_looks_around_between_the_slices_of_an_answer(room: Room, kind: str) -> None:
    files, backend = ANSWERS[kind]
    between = Between(Answer.go_on)
    assert between.drive(room, files, backend=backend).result == "done"
    assert sum(between.calls) >= len(LONG) // SLICE
    assert max(between.calls) <= 2


DECIDES = f"""
import os
open("times", "a").write("x")
open("pid", "w").write(str(os.getpid()))
while not os.path.exists("go"): pass
open(os.environ["RAYMOND_OUT"], "w").write({PIECE!r} * 50_000 + "<goto>NEXT</goto>")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "pause"])
def test_a_decision_counts_that_was_made_before_the_run_was_stopped(room: Room, how: str) -> None:
    """The script has ended, and is still being read when the driver hears of the stop."""
    flow = room.flow({"START.py": DECIDES, "NEXT.sh": "echo '<result>done</result>'"})
    with room.start("run", flow, "--id", "r") as live:
        until(lambda: (room.path / "pid").exists() and (room.path / "pid").read_text(), "the script")
        live.signal(signal.SIGSTOP)
        room.go()
        until(lambda: zombie(int((room.path / "pid").read_text())), "the end of the script")
        if how == "pause":
            room.raymond("stop", "r", "--agent", "main")
        else:
            live.signal(signal.SIGTERM)
        live.signal(signal.SIGCONT)
        live.wait()
    assert room.raymond("resume", "r").returncode == 0
    assert (room.path / "times").read_text() == "x"


@pytest.mark.slow
def test_a_driver_looks_around_between_many_short_lines(room: Room) -> None:
    says = ["bash", "-c", "seq 3000; echo '<result>done</result>'"]
    room.settings(f"[backends.mine]\ncommand = {json.dumps(says)}\n")
    between = Between(Guarded.feed)
    assert between.drive(room, {"START.md": "Go."}, backend="mine", tables={"mine": {"command": says}}).result == "done"
    assert sum(between.calls) > 3000
    assert max(between.calls) < 1000
