"""What a loop costs beside git and its checks: one iteration, and picking from long queues and plans."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from report import Reading
from workflows import RAYMOND

from raymond.loops.documents import PLANS, RECORDS, Documents, Folder
from raymond.loops.formats import prd, prd_status, queue, task_spec
from raymond.loops.ledger import Ledger
from raymond.loops.settings import STORIES, TASKS, Settings
from raymond.loops.source import select
from raymond.loops.story_source import StorySource
from raymond.loops.task_source import TaskSource

_ITEMS = 6
_FILES = 50
"""Of the project that the loop works on."""
_QUEUED = 10_000
_STORIES = 2_000
_LOG = "docs/session_logs/20260101_0900_session.md"
_TASK = """### 1.{group}.{number}. Write file {number}

**Status:** 🔵 Planned
**Verification:**
- command: `true`
- expected: 0

Write the file. It has a few lines of text, as tasks do.

"""
_GIT = '#!/bin/bash\n{git} "$@"; code=$?; times >> "{log}"; exit $code\n'
"""Runs git, and notes what that and this wrapper cost, but for the end of the wrapper."""
_CALLS = 50
_WORDS = 4
"""What `times` prints for one call."""


def loops(home: Path, rounds: int) -> dict[str, Reading]:
    """Our own CPU for one iteration over that of git and its check, and for picking an item."""
    ours, gits, picks, walks, tasks, stories = [], [], [], [], [], []
    specs, plan = _specs(home / "specs", _QUEUED), _plan(home / "plan")
    for number in range(rounds):
        few, many = (_run(home / f"{number}-{items}", items) for items in (1, _ITEMS))
        gits.append((many[1] - few[1]) / (_ITEMS - 1))
        ours.append((many[0] - few[0]) / (_ITEMS - 1) - gits[-1])
        text = _log(_QUEUED)
        walks.append(_cpu(lambda text=text: [line for line in text.split("\n") if line.lstrip()]))
        picks.append(_cpu(lambda text=text: select(queue.read(text).items, Ledger(), Settings())))
        task_spec.read.cache_clear()
        tasks.append(_cpu(lambda: TaskSource(specs, Settings(loop=TASKS)).look(Ledger())))
        task_spec.read.cache_clear()
        stories.append(_cpu(lambda: StorySource(plan, Settings(loop=STORIES)).look(Ledger())))
        told = f"git {gits[-1]:.2f} s, iteration {ours[-1]:.2f} s, picking {picks[-1]:.3f} s, a task {tasks[-1]:.2f} s"
        print(f"  {told}", file=sys.stderr)
    # Nothing makes a round cheaper than it is: the least of them has the least of what else the machine did.
    git, own, pick, walk = min(gits), min(ours), min(picks), min(walks)
    return {
        "iteration": Reading(f"{git:.2f} s (git)", f"{git + own:.2f} s", f"{own:.2f} s", own, {"gits": gits}),
        "picking": Reading(f"{walk:.3f} s (lines)", f"{pick:.3f} s", f"{pick:.3f} s", pick, {}),
        "tasks": Reading(f"{walk:.3f} s (lines)", f"{min(tasks):.2f} s", f"{min(tasks):.2f} s", min(tasks), {}),
        "stories": Reading("-", f"{min(stories):.2f} s", f"{min(stories):.2f} s", min(stories), {}),
    }


def _specs(folder: Path, count: int) -> Documents:
    """So many tasks, a hundred in each spec."""
    for group in range(count // 100):
        path = folder / f"docs/implementation/1-bench/1.{group}-files.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_TASK.format(group=group, number=one) for one in range(100)), "utf-8")
    return Folder(str(folder), "docs", str(folder), (*RECORDS, *PLANS))


def _plan(folder: Path) -> Documents:
    """Stories with a task each."""
    found = _specs(folder, _STORIES)
    stories = [
        f"### US-{one}: Story {one}\n\n**Verification:** tasks\n**Implemented by:** 1.{one // 100}.{one % 100}\n\n"
        for one in range(_STORIES)
    ]
    text = "## User Stories\n\n" + "".join(stories)
    (folder / "docs/prd.md").write_text(text, "utf-8")
    status = prd_status.merged(prd_status.empty("docs/prd.md"), prd.read(text).stories)
    (folder / "docs/prd-status.json").write_text(prd_status.write(status), "utf-8")
    return found


def _log(items: int) -> str:
    lines = [f"{number}. [VERIFY: true] [PRIORITY: {1 + number % 3}] Write file {number}" for number in range(items)]
    return "\n".join(["# Session: bench", "", "## Next Steps", "", *lines, ""])


def _run(path: Path, items: int) -> tuple[float, float]:
    """The CPU of a loop over so many items, and what of it git and its wrapper took."""
    (path / "room/docs/session_logs").mkdir(parents=True)
    (path / "bin").mkdir()
    room, log = path / "room", path / "times"
    (room / _LOG).write_text(_log(items), "utf-8")
    for number in range(_FILES):
        (room / f"file{number}.txt").write_text(f"{number}\n" * 100, "utf-8")
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
    untold = _untold(path / "bin/git", log)
    before = _seconds(resource.RUSAGE_CHILDREN)
    command = [RAYMOND, "continuous-session", "start", "--id", "b", "--pause", "0s"]
    command += ["--max-sessions", "0", "--replies", str(path / "replies.yaml"), "-q"]
    subprocess.run(command, cwd=room, env=environment, check=True, capture_output=True)
    told = log.read_text("utf-8").split()
    return _seconds(resource.RUSAGE_CHILDREN) - before, _told(told) + len(told) / _WORDS * untold


def _untold(git: Path, log: Path) -> float:
    """The CPU of a call of git that its wrapper does not note."""
    before = _seconds(resource.RUSAGE_CHILDREN)
    for _ in range(_CALLS):
        subprocess.run([str(git), "--version"], stdout=subprocess.DEVNULL, check=True)
    taken = _seconds(resource.RUSAGE_CHILDREN) - before
    told = _told(log.read_text("utf-8").split())
    log.unlink()
    return max(0.0, taken - told) / _CALLS


def _seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _told(words: list[str]) -> float:
    """The sum of what `times` printed: `0m0.010s 0m0.004s` for the shell, then for what it ran."""
    found = 0.0
    for word in words:
        minutes, _, seconds = word.rstrip("s").partition("m")
        found += 60 * float(minutes) + float(seconds)
    return found


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
