"""What a loop costs beside git and its checks: one iteration, and picking from a long queue."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from report import Reading

from raymond.loops.formats import queue
from raymond.loops.ledger import Ledger
from raymond.loops.selection import select
from raymond.loops.settings import Settings

_ITEMS = 6
_QUEUED = 10_000
_LOG = "docs/session_logs/20260101_0900_session.md"
_GIT = '#!/bin/bash\n{git} "$@"; code=$?; times >> "{log}"; exit $code\n'
"""Runs git, and notes what that and this wrapper cost."""


def loops(home: Path, rounds: int) -> dict[str, Reading]:
    """Our own CPU for one iteration over that of git and its check, and for picking an item."""
    ours, gits, picks, walks = [], [], [], []
    for number in range(rounds):
        few, many = (_run(home / f"{number}-{items}", items) for items in (1, _ITEMS))
        gits.append((many[1] - few[1]) / (_ITEMS - 1))
        ours.append((many[0] - few[0]) / (_ITEMS - 1) - gits[-1])
        text = _log(_QUEUED)
        walks.append(_cpu(lambda text=text: [line for line in text.split("\n") if line.lstrip()]))
        picks.append(_cpu(lambda text=text: select(queue.read(text).items, Ledger(), Settings())))
        print(f"  git {gits[-1]:.2f} s, iteration {ours[-1]:.2f} s, picking {picks[-1]:.3f} s", file=sys.stderr)
    git, own, pick, walk = median(gits), median(ours), median(picks), median(walks)
    return {
        "iteration": Reading(f"{git:.2f} s (git)", f"{git + own:.2f} s", f"{own:.2f} s", own, {"gits": gits}),
        "picking": Reading(f"{walk:.3f} s (lines)", f"{pick:.3f} s", f"{pick:.3f} s", pick, {}),
    }


def _log(items: int) -> str:
    lines = [f"{number}. [VERIFY: true] [PRIORITY: {1 + number % 3}] Write file {number}" for number in range(items)]
    return "\n".join(["# Session: bench", "", "## Next Steps", "", *lines, ""])


def _run(path: Path, items: int) -> tuple[float, float]:
    """The CPU of a loop over so many items, and what of it git and its wrapper took."""
    (path / "room/docs/session_logs").mkdir(parents=True)
    (path / "bin").mkdir()
    room, log = path / "room", path / "times"
    (room / _LOG).write_text(_log(items), "utf-8")
    replies = [f"main_work{one}/WORK: {{text: done, writes: {{f{one}.txt: x}}}}" for one in range(1, items + 1)]
    (path / "replies.yaml").write_text("\n".join(replies), "utf-8")
    for args in (("init", "-q"), ("add", "-A"), ("-c", "user.name=b", "-c", "user.email=b@c", "commit", "-qm", "all")):
        subprocess.run(["git", *args], cwd=room, check=True)
    git = subprocess.run(["bash", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    (path / "bin/git").write_text(_GIT.format(git=git, log=log), "utf-8")
    (path / "bin/git").chmod(0o755)
    who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "bench")
    who |= dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "b@c")
    environment = {**os.environ, **who, "PATH": f"{path}/bin:{os.environ['PATH']}", "RAYMOND_HOME": f"{path}/home"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "raymond", "continuous-session", "start", "--id", "b", "--pause", "0s"]
    command += ["--max-sessions", "0", "--replies", str(path / "replies.yaml"), "-q"]
    subprocess.run(command, cwd=room, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return total, _git_seconds(log.read_text("utf-8"))


def _git_seconds(text: str) -> float:
    """The sum of what `times` printed: `0m0.010s 0m0.004s` for the shell, then for what it ran."""
    found = 0.0
    for word in text.split():
        minutes, _, seconds = word.rstrip("s").partition("m")
        found += 60 * float(minutes) + float(seconds)
    return found


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
