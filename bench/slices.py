"""How long the driver is busy in one piece while a step says a megabyte that is slow to search for secrets."""

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from measure import Failed, run
from report import Reading
from workflows import ID, PYTHON, Folder

SIZE = 1 << 20
_LETTER = re.compile("[A-Za-z0-9]")
_LINE = "MIIEpAIBAAKCAQEAq7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtUeVwBxCyDzEiF\n"
TEXTS = {
    "plain": "The quick brown fox jumps over 13 lazy dogs near http://example.com/x/y\n",
    "JSON": '{"type": "text", "text": "one \\"two\\"\\nthree", "path": "C:\\\\x", "id": "01AbCdEfGh"}\n',
    "escapes": "\\n",
    "numbered escapes": "\\u00e9",
    "private keys": f"-----BEGIN PRIVATE KEY-----\n{_LINE * 25}-----END PRIVATE KEY-----\n",
    "headers of keys": "-----BEGIN PRIVATE KEY-----\n",
    "beginnings of tokens": "xoxb-11111a",
    "tokens": "ghp_q7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtU ",
    "passwords": "https://me:hunter2x@host\n",
}
_DRIVE = """
import sys, time
from raymond.system import processes

class Noting:
    longest, last = 0.0, None
    def __init__(self, poll):
        self._poll = poll
    def __getattr__(self, name):
        return getattr(self._poll, name)
    def poll(self, *timeout):
        if Noting.last is not None:
            Noting.longest = max(Noting.longest, time.thread_time() - Noting.last)
        found = self._poll.poll(*timeout)
        Noting.last = time.thread_time()
        return found

begin = processes.Poll.__init__
def noted(self):
    begin(self)
    self._poll = Noting(self._poll)
processes.Poll.__init__ = noted
processes.Poll.close = lambda self: None

from raymond import cli
code = cli.main(["run", "flow/", "--id", *sys.argv[1:]])
cli.flush()
with open("longest", "w") as file:
    file.write(str(Noting.longest))
sys.exit(code)
"""


def both(home: Path, rounds: int) -> dict[str, Reading]:
    """What a script prints, and what a program answers."""
    return slices(home, rounds) | slices_of_turns(home, rounds)


def slices(home: Path, rounds: int) -> dict[str, Reading]:
    """The longest time between two looks at what else has happened, against a plain search of the same text."""
    return _measured(home, rounds, "slices", _script)


def slices_of_turns(home: Path, rounds: int) -> dict[str, Reading]:
    """The same for the answer of a program."""
    config = home / "config" / "raymond"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[backends.says]\ncommand = ["cat", "text"]\n')
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(home / "config")
    try:
        return _measured(home, rounds, "slices-of-turns", _turn)
    finally:
        if before is None:
            del os.environ["XDG_CONFIG_HOME"]
        else:
            os.environ["XDG_CONFIG_HOME"] = before


def _measured(home: Path, rounds: int, figure: str, longest: Callable[[Path, str], float]) -> dict[str, Reading]:
    floors: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in TEXTS}
    for number in range(rounds):
        print(f"{figure}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for name, piece in TEXTS.items():
            text = piece * (SIZE // len(piece))
            floors.append(_floor(text))
            ours[name].append(longest(home / f"{figure}-{name.replace(' ', '-')}{number}", text))
    floor, worst = median(floors), max(ours, key=lambda name: median(ours[name]))
    most = median(ours[worst])
    return {
        figure: Reading(
            f"{1000 * floor:.0f} ms (a search for letters)",
            f"{1000 * most:.0f} ms ({worst}); plain: {1000 * median(ours['plain']):.0f} ms",
            f"{most / floor:.2f}x",
            most / floor,
            {name: [round(one, 4) for one in seconds] for name, seconds in ours.items()},
        )
    }


def _floor(text: str) -> float:
    began = time.process_time()
    _LETTER.findall(text)
    return time.process_time() - began


def _script(path: Path, text: str) -> float:
    folder = Folder(path, {"START.sh": "cat text; echo; echo '<result>done</result>'\n"})
    return _longest(folder, text)


def _turn(path: Path, text: str) -> float:
    folder = Folder(path, {"START.md": "Say it.\n"})
    return _longest(folder, f"{text}\n<result>done</result>\n", "--backend", "says")


def _longest(folder: Folder, text: str, *options: str) -> float:
    path = folder.path
    (path / "text").write_text(text)
    run([PYTHON, "-c", _DRIVE, ID, *options], path)
    if (path / "child.out").read_text() != "done\n":
        raise Failed("the run has no result")
    folder.check(1)
    return float((path / "longest").read_text())
