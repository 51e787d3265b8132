"""The tutorial, typed from an empty folder as it stands on the page.

What a reader sees other than the page is only what has to differ: times, durations, process numbers, ids of
conversations, the place of the folder. `alike` says what that is; everything else is compared letter by letter.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from raymond.store.home import Home
from raymond.store.project import Project
from running import PATIENCE, Room

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
FENCE = re.compile(r"^(?:`(?P<file>[\w./-]+)`:\n\n)?```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = Project(Home("/home/ada/.local/state/raymond"), "/home/ada/tour")
"""Where the reader of the page works."""
READING = ("raymond status", "raymond list", "raymond logs", "raymond resume --all --dry-run")
"""Commands that change nothing: typed again until what was started in the background has come as far as on the page."""

DIFFERS = (
    (r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\]", "[TIME]"),
    (r"^time: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "time: TIME"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "SESSION"),
    (r"\b(after|for) \d[\w.]*(?: \d\w*)*$", r"\1 DURATION"),
    (r"\brunning {2,}\d[\w.]*(?: \d\w*)*$", "running  DURATION"),
    (r"^(  \d+ steps, \S+ of \S+), .*$", r"\1, DURATION"),
    (r" {2,}(?=(STATUS|AGE|AGENTS|COST)\b)", " "),
    (r"^ *(\S+ +completed) +\d\S*(?: \d+\w)? +(\d+ +\S+)$", r"\1  AGE  \2"),
    (r"\b\d+ scripts$", "N scripts"),
    (r"^raymond \d+\.\d+\.\d+$", "raymond VERSION"),
)


class Typed(NamedTuple):
    """A command of the page, and what it shows."""

    line: str
    shown: str


def blocks() -> list[Typed | tuple[str, str]]:
    """The files to write (name, text) and the commands, in the order of the page."""
    found: list[Typed | tuple[str, str]] = []
    for fence in FENCE.finditer(PAGE):
        if fence["file"]:
            found.append((fence["file"], fence["body"]))
        elif fence["language"] == "console":
            for command in re.split(r"^\$ ", fence["body"], flags=re.MULTILINE)[1:]:
                line, _, shown = command.partition("\n")
                found.append(Typed(line, shown))
    return found


def alike(text: str) -> str:
    """`text` without what differs from reader to reader."""
    return "\n".join(_alike(line) for line in text.rstrip("\n").split("\n"))


def _alike(line: str) -> str:
    for pattern, word in DIFFERS:
        line = re.sub(pattern, word, line)
    return line


class Reader:
    """Somebody who types what stands on the page."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._pids: dict[str, str] = {}
        """Process numbers of the page -> those of the processes here."""

    def writes(self, name: str, text: str) -> None:
        path = self._room.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")

    def types(self, typed: Typed) -> None:
        line = re.sub(r"\b\d{4}$", lambda found: self._pids.get(found[0], found[0]), typed.line)
        deadline = time.monotonic() + PATIENCE
        while True:
            seen = self._placed(self._sees(line, typed.shown))
            if self._same(seen, typed.shown) or not line.startswith(READING) or time.monotonic() > deadline:
                break
        assert alike(self._named(seen)) == alike(typed.shown), f"$ {line}\n{seen}"

    def _placed(self, seen: str) -> str:
        """With the paths of the page."""
        for here, there in ((self._room.project.root, PROJECT.root), (str(self._room.path), PROJECT.tree)):
            seen = seen.replace(here, there)
        return seen

    def _sees(self, line: str, shown: str) -> str:
        before, interrupted, _ = shown.partition("^C\n")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}" if interrupted else line],
            cwd=self._room.path,
            env=self._room.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout
        if not interrupted:
            return process.communicate(timeout=PATIENCE)[0]
        read = "".join(process.stdout.readline() for _ in before.splitlines())
        process.send_signal(signal.SIGINT)
        return f"{read}^C\n{process.communicate(timeout=PATIENCE)[0]}"

    def _same(self, seen: str, shown: str) -> bool:
        """Whether this is what the page shows; the process numbers in it are remembered."""
        here, there = (re.findall(r"\bprocess (\d+)", text) for text in (seen, shown))
        if len(here) == len(there):
            self._pids |= dict(zip(there, here, strict=True))
        return alike(self._named(seen)) == alike(shown)

    def _named(self, seen: str) -> str:
        names = {here: there for there, here in self._pids.items()}
        return re.sub(r"\bprocess (\d+)", lambda found: f"process {names.get(found[1], found[1])}", seen)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """An empty folder, a home of its own, and `raymond` on the path."""
    command = tmp_path / "bin" / "raymond"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n', "utf-8")
    command.chmod(0o755)
    room = Room(tmp_path, PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_in_the_tutorial_happens_as_it_says(room: Room) -> None:
    reader = Reader(room)
    for block in blocks():
        if isinstance(block, Typed):
            reader.types(block)
        else:
            reader.writes(*block)
    room.nothing_runs()


def test_nothing_on_the_page_is_left_out() -> None:
    """Every fence is a file with a name or a block of commands, and every command of the page is in one."""
    fences = list(FENCE.finditer(PAGE))
    assert len(fences) == PAGE.count("\n```\n")
    assert [fence["body"] for fence in fences if not fence["file"] and fence["language"] != "console"] == []
    typed = [block.line for block in blocks() if isinstance(block, Typed)]
    assert len(typed) == len(re.findall(r"^\$ ", PAGE, re.MULTILINE))


def test_what_differs_from_reader_to_reader_is_little() -> None:
    """A comparison that forgives too much proves nothing."""
    assert alike("completed: note after 7ms") == alike("completed: note after 1m 12s")
    assert alike("completed: note after 7ms") != alike("failed: note after 7ms")
    assert alike("[2026-01-17T14:03:23Z] main done") != alike("[2026-01-17T14:03:23Z] main failed")
    assert alike("cost:   $0.03 in 3 steps") != alike("cost:   $0.04 in 3 steps")
