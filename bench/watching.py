"""What it costs to look at runs: many finished ones, one with many agents, and one that is running."""

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path
from statistics import median

import workflows
from measure import Child, Failed, run
from report import Reading
from workflows import ID, PYTHON, RAYMOND, Folder


def reading(home: Path, runs: int, agents: int, rounds: int) -> dict[str, Reading]:
    """`list` over many finished runs and `status` of one with many agents, against an empty Python."""
    done = _finished(home / "list", runs)
    many = Folder(home / "status", workflows.asleep(agents))
    with many.start() as child:
        child.wait_until(lambda: many.count("sleeping") == agents, "every agent sleeps")
        child.end(signal.SIGTERM)
    floors, lists, states = [], [], []
    for number in range(rounds):
        print(f"reading: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        floors.append(run([PYTHON, "-c", "pass"], home).cpu)
        lists.append(run([RAYMOND, "list", "--limit", str(runs)], done.path).cpu)
        states.append(run([RAYMOND, "status", "--json", ID], many.path).cpu)
    if (done.path / "child.out").read_text().count("completed") != runs:
        raise Failed(f"`raymond list` does not show {runs} completed runs")
    if (many.path / "child.out").read_text().count('"sleeping"') != agents:
        raise Failed(f"`raymond status --json` does not show {agents} sleeping agents")
    floor = 1000 * median(floors)
    return {key: _seconds(floor, 1000 * median(values)) for key, values in (("list", lists), ("status-many", states))}


def watching(home: Path, agents: int, rounds: int) -> dict[str, Reading]:
    """The driver's own CPU while `logs -f` and `attach` watch, against the same run alone."""
    alone, watched = [], []
    for number in range(rounds):
        print(f"watching: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        alone.append(_fan_out(home / f"alone{number}", agents, ()))
        watched.append(_fan_out(home / f"watched{number}", agents, (["logs", "-f", ID], ["attach", ID])))
    floor, ours = median(alone), median(watched)
    return {
        "watching": Reading(
            f"{floor:.2f} s (nobody watches)",
            f"{ours:.2f} s",
            f"{ours / floor:.2f}x",
            ours / floor,
            {"alone": [round(one, 4) for one in alone], "watched": [round(one, 4) for one in watched]},
        )
    }


def _fan_out(path: Path, agents: int, watchers: tuple[list[str], ...]) -> float:
    folder = Folder(path, workflows.fan_out(agents))
    with contextlib.ExitStack() as stack, folder.start() as child:
        child.wait_until(folder.journal.exists, "the run has begun")
        seen = [
            stack.enter_context(Child([RAYMOND, *words], folder.path, name=f"watcher{number}"))
            for number, words in enumerate(watchers)
        ]
        cost = child.end()
        for watcher in seen:
            if watcher.end().code != 0:
                raise Failed(f"{watcher} ended badly: {watcher.last_words()}")
            if "run completed" not in watcher.out.read_text() + watcher.err.read_text():
                raise Failed(f"{watcher} did not see the end of the run")
    folder.check(2 * agents + 2)
    return cost.cpu


def _finished(path: Path, runs: int) -> Folder:
    """A project with many finished runs: one of them real, the others copies of it."""
    folder = Folder(path, workflows.one_step())
    folder.run(result="done", steps=1)
    for number in range(1, runs):
        shutil.copytree(folder.project.run(ID).path, folder.project.run(f"copy-{number}").path)
    os.sync()
    return folder


def _seconds(floor: float, ours: float) -> Reading:
    return Reading(f"{floor:.1f} ms (`python -c pass`)", f"{ours:.0f} ms", f"{ours / 1000:.2f} s", ours / 1000)
