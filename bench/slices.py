"""How long the driver is busy in one piece while a script prints a megabyte that is slow to search for secrets."""

import re
import sys
import time
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
from raymond.system import polling

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

begin = polling.Poll.__init__
def noted(self):
    begin(self)
    self._poll = Noting(self._poll)
polling.Poll.__init__ = noted
polling.Poll.close = lambda self: None

from raymond import cli
code = cli.main(["run", "flow/", "--id", sys.argv[1]])
cli.flush()
with open("longest", "w") as file:
    file.write(str(Noting.longest))
sys.exit(code)
"""


def slices(home: Path, rounds: int) -> dict[str, Reading]:
    """The longest time between two looks at what else has happened, against a plain search of the same text."""
    floors: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in TEXTS}
    for number in range(rounds):
        print(f"slices: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for name, piece in TEXTS.items():
            text = piece * (SIZE // len(piece))
            floors.append(_floor(text))
            ours[name].append(_longest(home / f"{name.replace(' ', '-')}{number}", text))
    floor, worst = median(floors), max(ours, key=lambda name: median(ours[name]))
    longest = median(ours[worst])
    return {
        "slices": Reading(
            f"{1000 * floor:.0f} ms (a search for letters)",
            f"{1000 * longest:.0f} ms ({worst}); plain: {1000 * median(ours['plain']):.0f} ms",
            f"{longest / floor:.2f}x",
            longest / floor,
            {name: [round(one, 4) for one in seconds] for name, seconds in ours.items()},
        )
    }


def _floor(text: str) -> float:
    began = time.process_time()
    _LETTER.findall(text)
    return time.process_time() - began


def _longest(path: Path, text: str) -> float:
    folder = Folder(path, {"START.sh": "cat text; echo; echo '<result>done</result>'\n"})
    (path / "text").write_text(text)
    run([PYTHON, "-c", _DRIVE, ID], path)
    if (path / "child.out").read_text() != "done\n":
        raise Failed("the run has no result")
    folder.check(1)
    return float((path / "longest").read_text())
