"""Somebody who reads a page and does what stands on it: writes its files, types its commands, compares what is shown.

What a reader sees other than the page is only what has to differ: times, durations, process numbers, ids of
conversations, the place of the folder. `alike` says what that is; everything else is compared letter by letter.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from raymond.store.home import Home
from raymond.store.project import Project
from running import PATIENCE, Room
from typist import Typist

FENCE = re.compile(r"^(?:`(?P<file>[\w./-]+)`:\n\n)?```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?=(?:raymond|git|kill|touch|rm) )", re.MULTILINE)
"""Where a command begins. What `raymond gate` shows has such marks too, before the commands of others."""
PROJECT = Project(Home("/home/ada/.local/state/raymond"), "/home/ada/tour")
"""Where the reader of the page works."""
READING = ("raymond status", "raymond list", "raymond logs", "raymond resume --all --dry-run")
"""Commands that change nothing: typed again until what was started in the background has come as far as on the page."""
DECIDING = ("raymond accept", "raymond reject")
"""Commands that only a person at a terminal may type."""
ASKED = "[y/n] "

DIFFERS = (
    (r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\]", "[TIME]"),
    (r"^time: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "time: TIME"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "SESSION"),
    (r"\b(after|for) \d[\w.]*(?: \d\w*)*$", r"\1 DURATION"),
    (r"\brunning {2,}\d[\w.]*(?: \d\w*)*$", "running  DURATION"),
    (r"^(  \d+ steps, \S+ of \S+), .*$", r"\1, DURATION"),
    (r" {2,}(?=(STATUS|AGE|WORKFLOW|COST)\b)", " "),
    (r"^ *(\S+ +completed) +\d\S*(?: \d+\w)? +(\w+ +\S+)$", r"\1  AGE  \2"),
    (r"\b\d+ scripts$", "N scripts"),
    (r"^raymond \d+\.\d+\.\d+$", "raymond VERSION"),
    (r"(?<= gate is red \()\d[\w.]*(?: \d\w*)*", "DURATION"),
    (r"(?<= gate passed \()\d[\w.]*(?: \d\w*)*", "DURATION"),
    (r"(?<= gate does not count \(review, )\d[\w.]*(?: \d\w*)*", "DURATION"),
    (r"^(- Run window:) .*$", r"\1 WINDOW"),
    (r"(?<=commit )[0-9a-f]{12}\b", "COMMIT"),
    (r"^(- Commits: \d+) \([0-9a-f, ]+\)", r"\1"),
    (r"^(Commits:  \d+ on \S+): [0-9a-f, ]+$", r"\1"),
    (r"\b\d{8}_\d{4}_session(_\d+)?(?=\.md)", "LOG"),
    (r"(?<=summaries/)([a-z-]+)-\d{8}T\d{6}Z(?=\.md)", r"\1-TIME"),
    (r"\bagents work in (an isolated workspace|a private copy(?: \(.*\))?);", "agents work APART;"),
    (r"^(- Workspace|Agents): +(isolated|copy(?: \(.*\))?)$", r"\1: APART"),
    (r"(?<=, )(\d+h )?(\d+m )?\d+s\b", "DURATION"),
    (r"^(\[TIME\] ralph-loop: Iteration \d+ complete) \(.*\)$", r"\1"),
    (r"^(Elapsed:) .*$", r"\1"),
    (r"^(Per item: +)[^,]+", r"\1DURATION"),
    (r"^(Projected: +)\d{4}-\d\d-\d\d", r"\1DATE"),
    (r"(?<=\*\* true \()\d{4}-\d\d-\d\d", "DATE"),
    (r"^(sealed \d+ files?) in \S+:", r"\1 in DURATION:"),
    (r"^(a twin of this directory takes) \S+ \((overlay|copy|in place)\)$", r"\1 DURATION"),
)


class Typed(NamedTuple):
    """A command of the page, and what it shows."""

    line: str
    shown: str


def blocks(page: str) -> list[Typed | tuple[str, str]]:
    """The files to write (name, text) and the commands, in the order of the page."""
    found: list[Typed | tuple[str, str]] = []
    for fence in FENCE.finditer(page):
        if fence["file"]:
            found.append((fence["file"], fence["body"]))
        elif fence["language"] == "console":
            for command in COMMAND.split(fence["body"])[1:]:
                line, _, shown = command.partition("\n")
                found.append(Typed(line, shown))
    return found


def left_out(page: str) -> list[str]:
    """The fences that are neither a file with a name nor a block that begins with a command."""
    fences = list(FENCE.finditer(page))
    assert len(fences) == page.count("\n```\n")
    unnamed = [fence for fence in fences if not fence["file"]]
    return [one["body"] for one in unnamed if one["language"] != "console" or not COMMAND.match(one["body"])]


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

    def reads(self, page: str) -> None:
        """Do all of it, in order."""
        for block in blocks(page):
            if isinstance(block, Typed):
                self._types(block)
            else:
                self._writes(*block)
        self._room.nothing_runs()

    def _writes(self, name: str, text: str) -> None:
        path = self._room.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def _types(self, typed: Typed) -> None:
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
        if line.startswith(DECIDING):
            return self._decides(line, shown)
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

    def _decides(self, line: str, shown: str) -> str:
        """At a terminal, with the answer that stands on the page after the question."""
        person = Typist(self._room, *shlex.split(line)[1:], columns=200)
        _, asked, answer = shown.partition(ASKED)
        before = ""
        if asked:
            before = person.sees(re.escape(ASKED))
            person.type(answer.partition("\n")[0] + "\n")
        person.end()
        return before + person.said

    def _same(self, seen: str, shown: str) -> bool:
        """Whether this is what the page shows; the process numbers in it are remembered."""
        here, there = (re.findall(r"\bprocess (\d+)", text) for text in (seen, shown))
        if len(here) == len(there):
            self._pids |= dict(zip(there, here, strict=True))
        return alike(self._named(seen)) == alike(shown)

    def _named(self, seen: str) -> str:
        names = {here: there for there, here in self._pids.items()}
        return re.sub(r"\bprocess (\d+)", lambda found: f"process {names.get(found[1], found[1])}", seen)


def room_with_git(path: Path) -> Room:
    """The room of somebody who uses git."""
    room = empty_room(path)
    settings = Path(room.environment["HOME"], ".gitconfig")
    settings.write_text("[user]\nname = Ada\nemail = ada@example.com\n", "utf-8")
    return room


def empty_room(path: Path) -> Room:
    """An empty folder, a home of its own, and `raymond` on the path."""
    command = path / "bin" / "raymond"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n', "utf-8")
    command.chmod(0o755)
    return Room(path, PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}")
