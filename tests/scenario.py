"""Scenarios as folders: what is typed there, what a terminal shows of it, and what a loop leaves.

A line of `commands.txt` is a command of raymond. One that begins with `! ` is for a shell: what a person does besides.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import raymond
from looping import Repository
from running import Room

_SOURCE = str(Path(raymond.__file__).parent)
FOLDER = Path(__file__).parent / "scenarios"
LOOPS = FOLDER / "loops"

_OF_A_RUN = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"(gate (?:passed|is red) )\(\d+(\.\d)?(ms|s)\b", r"\1(SPAN"),
    (r"(after |for |, )\d+(\.\d)?(ms|s)\b", r"\1SPAN"),
)
_YEAR = r"20(?:2[6-9]|[3-8]\d)"
"""A year in which these tests may run: dates in the files of a scenario are of an earlier one, or of 2099."""
_OF_A_LOOP = (
    (rf"\b{_YEAR}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)", "TIME"),
    (rf"\b{_YEAR}-\d\d-\d\d \d\d:\d\d\b", "TIME"),
    (rf"\b{_YEAR}-\d\d-\d\d\b", "DAY"),
    (r"\b(?=[a-f]*\d)[0-9a-f]{12}(?:[0-9a-f]{28})?\b", "COMMIT"),
    (r"(\(|in |, |Elapsed: +|Per item: +)(\d+m )?\d+(\.\d+)?m?s\b", r"\1SPAN"),
    (r"(?m)^(>   \S+ +\w+) +\d+s ", r"\1 AGE "),
    (r'("(?:pid|duration|seconds|began|age)": )[\d.]+', r"\1NUMBER"),
    (r'("host": )"[^"]*"', r'\1"HOST"'),
)
_NAMES = (
    (re.compile(rf"\b{_YEAR}\d{{4}}_\d{{4}}_session(?:_\d+)?\b"), "LOG"),
    (re.compile(rf"\b{_YEAR}\d{{4}}T\d{{6}}Z\b"), "TIME"),
)
"""Times in names of files: those of one command, or of one loop, are numbered in their order."""


def _replaced(text: str, patterns: Iterable[tuple[str, str]]) -> str:
    for pattern, instead in patterns:
        text = re.sub(pattern, instead, text)
    return text


def plain(text: str) -> str:
    """What a loop told or left, without what differs from run to run."""
    for pattern, kind in _NAMES:
        names = sorted(set(pattern.findall(text)), key=_order)
        for at, name in sorted(enumerate(names, 1), reverse=True):
            text = text.replace(name, f"{kind}{at}")
    return _replaced(text.replace(f" on {os.uname().nodename},", " on HOST,"), _OF_A_LOOP)


def _order(name: str) -> tuple[str, int]:
    stamp, _, rest = name.partition("_session")
    return stamp, int(rest.strip("_") or 1)


def shown(room: Room, command: str, workflow: str = "WORKFLOW") -> str:
    """What a terminal shows of one line: stderr as it is, stdout after `> `, and the exit code."""
    typed = command.replace("WORKFLOW", workflow)
    if command.startswith("! "):
        name, done = command.removeprefix("! "), room.execute("sh", "-c", typed.removeprefix("! "))
    else:
        name, done = f"raymond {command}", room.raymond(*shlex.split(typed))
    told = "".join(f"> {line}\n" for line in done.stdout.splitlines())
    text = f"$ {name}\n{done.stderr}{told}exit {done.returncode}\n"
    for path, name in (
        (str(room.path), "ROOM"),
        (workflow, "WORKFLOW"),
        (str(room.path.parent), "ROOM/.."),
        (_SOURCE, "SOURCE"),
    ):
        text = text.replace(path, name)
    return _replaced(text, _OF_A_RUN)


def compare(path: Path, found: str) -> None:
    """Whether this is what a file expects; with UPDATE_SCENARIOS the file is written anew."""
    if os.environ.get("UPDATE_SCENARIOS"):
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8"), f"{path} says something else"


class LoopScenario(Repository):
    """The repository of a scenario of a loop."""

    def __init__(self, name: str, path: Path) -> None:
        self.folder = LOOPS / name
        super().__init__(path, (self.folder / "agent.sh").read_text("utf-8"))
        shutil.copytree(self.folder / "files", self.path, dirs_exist_ok=True)
        self.commit("start")
        self.commands = (self.folder / "commands.txt").read_text("utf-8").splitlines()
        program = path / "bin" / "raymond"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m raymond "$@"\n', "utf-8")
        program.chmod(0o755)
        self.room.environment["PATH"] = f"{program.parent}:{self.room.environment['PATH']}"

    def left(self) -> str:
        """What is there at the end, without empty lines: the commits of loops, what they change, checkout, references, states."""
        tips = self._lines("for-each-ref", "--sort=creatordate", "--format=%(refname)", "refs/raymond/*/tip")
        loops = ["\0".join(self._loop(tip, ["main", *tips[:at]])) for at, tip in enumerate(tips)]
        parts = [f"== checkout\n{self.git('status', '--short', '--branch')}\n", f"== references\n{self._references()}"]
        for state in sorted(self.path.glob("**/.*-state.json")):
            parts.append(f"== {state.relative_to(self.path)}\n{state.read_text('utf-8')}")
        plained = [part for text in [*loops, *parts] for part in plain(text).split("\0")]
        return "\n".join(re.sub(r"\n{2,}", "\n", part) for part in plained)

    def _loop(self, tip: str, before: list[str]) -> list[str]:
        """What a loop has added to the last of those before it that it continues."""
        log = ("log", "--reverse", "--name-status", "--format=* %w(0,0,2)%B%w(0,0,0)")
        told = "".join(f"{line}\n" for line in self._lines(*log, tip, "--not", *before) if line.strip())
        start = [one for one in before if self.git("merge-base", one, tip) == self.git("rev-parse", one)][-1:]
        since = start[0] if start else self.git("merge-base", "main", tip)
        names = self._lines("diff", "--name-only", "--no-renames", "--diff-filter=d", since, tip)
        files = [f"== {name}\n{self.text_at(tip, name)}" for name in names]
        return [f"== {tip}\n{told}", *files]

    def _lines(self, *args: str) -> list[str]:
        return self.git(*args).splitlines()

    def _references(self) -> str:
        """Every reference with the subject of its commit; of those that keep work, how that differs from main."""
        told = ""
        for name in self._lines("for-each-ref", "--format=%(refname)"):
            told += f"{name}: {self.git('for-each-ref', '--format=%(contents:subject)', name)}\n"
            if re.search(r"/\d", name):
                lines = self._lines("diff", "--unified=0", "--no-renames", "main", name, "--", ".", ":!docs")
                told += "".join(f"  {line}\n" for line in lines if line.startswith(("+", "-")))
        return told
