"""What somebody changes between two items of a loop that is worked through from the inside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planned import SPEC, Planned
from typist import Typist


def ask(night: Planned, verb: str, *args: str, said: str = "", code: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "raymond", "task-loop", verb, "--json", *args],
        cwd=night.path,
        env=night.room.environment,
        capture_output=True,
        text=True,
        check=False,
        input=said,
    )
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one_done(path: Path) -> Planned:
    night = Planned(path)
    assert ask(night, "next", "--id", "n")["changed"] == []
    night.write({"answer.txt": "42\n"})
    assert ask(night, "record", said="ITERATION_COMPLETE")["verdict"] == "passed"
    return night


@pytest.mark.slow
def test_files_that_changed_between_two_items_are_named(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({"check.sh": "exit 0\n", "late.txt": "x\n"})
    assert ask(night, "next")["changed"] == ["check.sh", "late.txt"]
    night.write({"why.txt": "because\n"})
    ask(night, "record", said="ITERATION_COMPLETE")
    told = "`check.sh`, `late.txt` changed before `1.4.2. Explain it` was handed out, when nobody had an item"
    assert told in ask(night, "next")["summary"]


@pytest.mark.slow
def test_a_plan_that_changed_between_two_items_waits_for_a_person(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({SPEC: night.spec.replace("grep -q because why.txt", "true")})
    waits = ask(night, "next", code=3)
    assert (waits["status"], waits["command"]) == ("waiting", "raymond answer n continue")
    assert f"`{SPEC}` changed after the last item had ended" in waits["question"]
    assert ask(night, "next", code=3)["status"] == "waiting", "whoever asks again does not get it"
    assert night.room.raymond("answer", "n", "continue", "--no-resume").returncode == 2, "not without a terminal"
    assert Typist(night.room, "answer", "n", "continue", "--no-resume").end() == 0
    assert ask(night, "next")["item"]["check"] == "true"


@pytest.mark.slow
def test_nothing_is_said_where_nothing_changed(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    assert ask(night, "next")["changed"] == []
