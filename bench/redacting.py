"""What it costs to look for secrets in texts that are made to be slow to search."""

import re
import sys
import time
from collections.abc import Callable
from statistics import median

from report import Reading

from raymond.redaction import Secrets, shapes

SIZE = 1_000_000
_MORE = (
    "https://a:",
    "https://a:b@",
    "xoxb-11111a",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "eyJaaaa.eyJaaaaaaaa.",
    "\\n",
)
_LETTER = re.compile("[A-Za-z0-9]")


def redaction(rounds: int) -> dict[str, Reading]:
    """The slowest of all beginnings of tokens, against a plain search for letters in the same text."""
    secrets = Secrets.of({"BENCH_TOKEN": "q7Zr2LmX9vTb4KpW1sNd8H"})
    begins = [begin for shape in shapes.SHAPES for begin in shape.begins]
    texts = {begin: (begin * SIZE)[:SIZE] for begin in (*begins, *_MORE)}
    ours: dict[str, list[float]] = {begin: [] for begin in texts}
    floors: list[float] = []
    for number in range(rounds):
        print(f"redaction: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for begin, text in texts.items():
            floors.append(_seconds(lambda text=text: _LETTER.findall(text)))  # type: ignore[misc]
            ours[begin].append(_seconds(lambda text=text: secrets.clean(text)))  # type: ignore[misc]
    floor, worst = median(floors), max(ours, key=lambda begin: median(ours[begin]))
    slowest = median(ours[worst])
    return {
        "redaction": Reading(
            f"{1000 * floor:.0f} ms (a search for letters)",
            f"{1000 * slowest:.0f} ms (`{worst.strip()}`)",
            f"{slowest / floor:.2f}x",
            slowest / floor,
            {begin: [round(one, 4) for one in seconds] for begin, seconds in ours.items()},
        )
    }


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
