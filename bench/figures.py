"""The figures: each is measured in turns with its floor, and is the median of its rounds."""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import gates
import long_run
import redacting
import slices
import turns
import watching
import workflows
import workspaces
from measure import Child, Failed, environment, interrupted, run
from report import Goal, Reading
from workflows import ID, PYTHON, RAYMOND, Folder

import loops

Readings = dict[str, Reading]


@dataclass(frozen=True)
class Size:
    """How much work is done. Figures of different sizes cannot be compared."""

    chain: int = 1000
    chain_rounds: int = 7
    fan: tuple[int, int, int] = (100, 1000, 10_000)
    fan_rounds: tuple[int, int, int] = (9, 3, 1)
    endings: int = 1000
    live: int = 10_000
    resume_rounds: int = 5
    memory_rounds: int = 3
    start_rounds: int = 15
    runs: int = 1000
    read_rounds: int = 5
    steps: int = 50_000
    look_rounds: int = 5
    watched: int = 1000
    watch_rounds: int = 3
    redaction_rounds: int = 5
    slice_rounds: int = 3
    sealed: int = 50_000
    seal_rounds: int = 5
    loop_rounds: int = 5
    tree: int = 5000
    tree_rounds: int = 15
    turns: int = 10
    turn_rounds: int = 3


FULL = Size()
QUICK = Size(
    chain_rounds=2,
    fan=(100, 300, 1000),
    fan_rounds=(3, 1, 1),
    endings=300,
    live=1000,
    resume_rounds=2,
    memory_rounds=1,
    start_rounds=5,
    runs=200,
    read_rounds=2,
    steps=5000,
    look_rounds=2,
    watched=200,
    watch_rounds=1,
    redaction_rounds=1,
    slice_rounds=1,
    sealed=5000,
    seal_rounds=2,
    loop_rounds=1,
    tree=500,
    tree_rounds=3,
    turns=3,
    turn_rounds=1,
)


def goals(size: Size) -> dict[str, list[Goal]]:
    """Every figure there is, by the group it is measured with."""
    few, _, many = size.fan
    times, more_ms, more_mb = "{:.2f}x", "+{:.0f} ms", "+{:.0f} MB"
    return {
        "chain": [
            Goal("chain", f"chain of {size.chain:,} `.sh` steps, wall", 1.20, 1.10, times),
            Goal("step", "own CPU per step of that chain, without start-up", 0.42, 0.3, "{:.2f} ms"),
        ],
        "fan-out": [
            Goal("fan-out", f"fan-out, own CPU per step with {many:,} agents against {few:,}", 1.2, 1.0, times),
        ],
        "endings": [
            Goal("endings", f"bytes written while {size.endings:,} agents end one by one", 3.0, 1.5, times),
        ],
        "resume": [
            Goal("resume", f"resume with {size.live:,} live agents to the first step, wall", 130, 100, more_ms),
        ],
        "memory": [Goal("memory", f"peak memory with {size.live:,} live agents", 20, 15, more_mb)],
        "start": [
            Goal("version", "CPU of `raymond --version`", 15, 5, more_ms),
            Goal("status", "CPU of `raymond status --json`", 50, 40, more_ms),
            Goal("one-step", "own CPU of a one-step run", 75, 60, more_ms),
        ],
        "reading": [
            Goal("list", f"CPU of `raymond list` over {size.runs:,} finished runs", 0.3, 0.15, "{:.2f} s"),
            Goal("status-many", f"CPU of `raymond status` with {size.live:,} agents", 0.5, 0.25, "{:.2f} s"),
        ],
        "looking back": [
            Goal("logs", f"CPU of `raymond logs` of {size.steps:,} steps", 3.2, 2.5, times),
            Goal("cost", f"CPU of `raymond cost` of {size.steps:,} steps", 6.0, 3.0, times),
        ],
        "watching": [
            Goal(
                "watching",
                f"driver's CPU with {size.watched:,} agents while `logs -f` and `attach` watch",
                1.1,
                1.02,
                times,
            ),
        ],
        "redaction": [
            Goal("redaction", "removing secrets from 1 MB of the worst beginnings of tokens, CPU", 2.0, 1.0, times),
        ],
        "slices": [
            Goal("slices", "the driver's longest piece of work while a script prints 1 MB, CPU", 1.0, 0.5, times),
            Goal("slices-of-turns", "the same while a program answers with 1 MB", 1.0, 0.5, times),
        ],
        "workspaces": [
            Goal("enter", "CPU of entering a workspace", 60, 40, "{:.0f} ms"),
            Goal("harvest", f"CPU of harvesting 20 changed files of {size.tree:,}", 150, 80, "{:.0f} ms"),
            Goal("check", f"CPU of a check of {size.tree:,} files, over its own", 220, 120, more_ms),
            Goal("small check", "CPU of a check of 50 files, over its own", 80, 50, more_ms),
        ],
        "gates": [
            Goal(
                "sealing",
                f"own CPU of a first seal of {size.sealed:,} files, a tenth of them tests",
                1.0,
                0.3,
                "{:.2f} s",
            ),
            Goal("twin", "a twin of that tree by overlay, wall", 100, 30, more_ms),
        ],
        "loops": [
            Goal("iteration", "one iteration of a loop, own CPU beside git and its check", 0.25, 0.2, "{:.2f} s"),
            Goal("picking", "picking from a queue of 10,000 items, CPU", 0.2, 0.05, "{:.3f} s"),
            Goal("tasks", "picking from 10,000 tasks in 100 specs, CPU", 0.35, 0.25, "{:.2f} s"),
            Goal("stories", "picking from 2,000 stories, CPU", 1.0, 0.4, "{:.2f} s"),
        ],
        "turns": [
            Goal("turns", f"own CPU per turn of Claude Code, of {size.turns} in a row", 0.05, 0.02, "{:.0%}"),
        ],
    }


# --- chain


def chain(home: Path, size: Size) -> Readings:
    """A chain of scripts against the same scripts in a loop; and the CPU that the runtime itself uses."""
    states, started = workflows.chain(size.chain), workflows.chain_that_ends(size.chain)
    floors, walls, cpus, starts = [], [], [], []
    for number in _rounds("chain", size.chain_rounds):
        ours, alone = (Folder(home / f"chain-{kind}{number}", of) for kind, of in (("run", states), ("one", started)))
        floors.append(run(workflows.loop(ours.path), ours.path).wall)
        cost = ours.run(result="done", steps=size.chain)
        walls.append(cost.wall)
        cpus.append(cost.cpu)
        starts.append(alone.run(result="done", steps=1).cpu)
        _tell(f"  floor {floors[-1]:.2f} s, ours {walls[-1]:.2f} s, own CPU {cpus[-1]:.2f} s")
    floor, wall = median(floors), median(walls)
    each = 1000 * median(cpus) / size.chain
    without = _without_start(cpus, starts, size.chain)
    return {
        "chain": Reading(
            f"{floor:.2f} s (bash loop)",
            f"{wall:.2f} s",
            f"{wall / floor:.2f}x",
            wall / floor,
            {"floors": _short(floors), "walls": _short(walls)},
        ),
        "step": Reading(
            "-",
            f"{each:.2f} ms with start-up",
            f"{without:.2f} ms",
            without,
            {"without_start": round(without, 4), "cpus": _short(cpus), "start_cpus": _short(starts)},
        ),
    }


# --- fan-out


def fan_out(home: Path, size: Size) -> Readings:
    """What a step costs must not depend on the number of agents, with and without the start-up."""
    cpus: dict[int, list[float]] = {agents: [] for agents in size.fan}
    starts = []
    for number, agents in enumerate(_in_turns(size)):
        states = workflows.fan_out(agents)
        cost = Folder(home / f"fan-{number}", states).run(result="done", steps=2 * agents + 2)
        starts.append(Folder(home / f"fan-one{number}", states).run("B.sh", result="ok", steps=1).cpu)
        cpus[agents].append(cost.cpu)
        _tell(f"fan-out of {agents:,}: {cost.wall:.2f} s, own CPU {cost.cpu:.2f} s")
    few, some, many = size.fan
    each = {agents: 1000 * median(cpus[agents]) / (2 * agents + 2) for agents in size.fan}
    without = {agents: _without_start(cpus[agents], starts, 2 * agents + 2) for agents in size.fan}
    ratio, honest = each[many] / each[few], without[many] / without[few]
    return {
        "fan-out": Reading(
            f"{each[few]:.2f} ms ({without[few]:.2f} without start-up)",
            f"{each[many]:.2f} ms ({without[many]:.2f}); {some:,}: {each[some]:.2f} ({without[some]:.2f})",
            f"{ratio:.2f}x ({honest:.2f}x without start-up)",
            max(ratio, honest),
            {
                "ratio": round(ratio, 4),
                "ratio_without_start": round(honest, 4),
                "ms_per_step": {agents: round(each[agents], 4) for agents in size.fan},
                "ms_per_step_without_start": {agents: round(without[agents], 4) for agents in size.fan},
                "cpus": {agents: _short(cpus[agents]) for agents in size.fan},
                "start_cpus": _short(starts),
            },
        )
    }


def _in_turns(size: Size) -> Iterator[int]:
    """The sizes one after another, until each has had its rounds."""
    for number in range(max(size.fan_rounds)):
        yield from (agents for agents, rounds in zip(size.fan, size.fan_rounds, strict=True) if number < rounds)


# --- endings


def endings(home: Path, size: Size) -> Readings:
    """Bytes written while agents end, against the size of the journal."""
    folder = Folder(home / "endings", workflows.endings(size.endings))
    _tell(f"endings: {size.endings:,} agents end {workflows.APART} ms after each other")
    with folder.start() as child:
        child.wait_until(lambda: folder.count("sleeping") == size.endings, "every agent sleeps")
        if folder.state()["iteration_count"] > 2:
            raise Failed("agents ended before all of them were alive; forking took too long")
        before = _written(child, folder)
        began = time.monotonic()
        cost = child.end(within=60 + size.endings * workflows.APART / 1000)
        lasted = time.monotonic() - began
        after = _sizes(child, folder, cost.wrote)
    folder.check(size.endings + 2)
    if lasted < size.endings * workflows.APART / 1000:
        raise Failed(f"the agents ended within {lasted:.1f} s, all at once")
    floor, ours = after[0] - before[0], after[1] - before[1]
    return {
        "endings": Reading(
            f"{floor / 1000:.0f} kB (journal)",
            f"{ours / 1000:.0f} kB",
            f"{ours / floor:.2f}x",
            ours / floor,
            {"journal_bytes": floor, "written_bytes": ours, "seconds": round(lasted, 2)},
        )
    }


def _written(child: Child, folder: Folder) -> tuple[int, int]:
    return _sizes(child, folder, child.wrote())


def _sizes(child: Child, folder: Folder, wrote: int) -> tuple[int, int]:
    """Bytes of the journal, and bytes written to anything but the terminal."""
    said = child.out.stat().st_size + child.err.stat().st_size
    return folder.journal.stat().st_size, wrote - said


# --- resume


def resume(home: Path, size: Size) -> Readings:
    """From the command to the first step of a run whose driver was killed, against an empty Python."""
    folder = Folder(home / "resume", workflows.held(size.live))
    os.mkfifo(folder.path / "first")
    _tell(f"resume: forking {size.live:,} agents, then kill -9")
    _kill_after_forks(folder, size.live)
    (folder.path / "go").touch()
    place, kept = folder.project.run(ID).path, home / "resume-kept"
    shutil.move(place, kept)
    floors, walls = [], []
    for _ in _rounds("resume", size.resume_rounds):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place, ignore=shutil.ignore_patterns("socket"))  # the killed driver left it
        floors.append(run([PYTHON, "-c", "pass"], home).wall)
        walls.append(_first_step(folder))
        _tell(f"  floor {1000 * floors[-1]:.0f} ms, ours {1000 * walls[-1]:.0f} ms")
    return {"resume": _more(floors, walls, 1000, "ms", "`python -c pass`")}


def _kill_after_forks(folder: Folder, agents: int) -> None:
    with folder.start() as child:
        child.wait_until(lambda: _forked(folder, agents), "every agent is forked")
        child.end(signal.SIGKILL)
    # The steps notice that their driver is gone; they must have ended before the measurement.
    time.sleep(0.5)


def _forked(folder: Folder, agents: int) -> bool:
    return len(folder.state().get("agents", ())) == agents + 1 and folder.count("running") > 0


def _first_step(folder: Folder) -> float:
    """Seconds from the command to the first output of a step; then the run is stopped."""
    os.sync()
    # Open for writing too, so that a reader without a writer does not see the end of the file.
    pipe = os.open(folder.path / "first", os.O_RDWR | os.O_NONBLOCK)
    try:
        with Child([RAYMOND, "resume", ID], folder.path) as child:
            if pipe not in select.select([pipe, child.fd], [], [], 60)[0]:
                raise Failed(f"no step began: {child.last_words()}")
            wall = time.monotonic() - child.began
            cost = child.end(signal.SIGTERM)
            if not interrupted(cost.code):
                raise Failed(f"a stopped resume ended with {cost.code}: {child.last_words()}")
    finally:
        os.close(pipe)
    return wall


# --- memory


def memory(home: Path, size: Size) -> Readings:
    """The peak of a run with many sleeping agents, against that of a run with one."""
    floors, peaks = [], []
    for number in _rounds("memory", size.memory_rounds):
        floors.append(_peak(home / f"memory-one{number}", 0))
        peaks.append(_peak(home / f"memory-all{number}", size.live))
        _tell(f"  floor {floors[-1] / 1e6:.1f} MB, ours {peaks[-1] / 1e6:.1f} MB")
    return {"memory": _more(floors, peaks, 1e-6, "MB", "run with one agent")}


def _peak(path: Path, agents: int) -> float:
    folder = Folder(path, workflows.asleep(agents))
    with folder.start() as child:
        child.wait_until(lambda: folder.count("sleeping") == max(agents, 1), "every agent sleeps")
        # The state file may be written once more after a quiet second.
        time.sleep(1.5)
        cost = child.end_watched(signal.SIGTERM)
        if not interrupted(cost.code):
            raise Failed(f"a stopped run ended with {cost.code}: {child.last_words()}")
    return float(cost.peak)


# --- start


def start(home: Path, size: Size) -> Readings:
    """What every command costs before it does anything, against an empty Python."""
    done = Folder(home / "status", workflows.one_step())
    done.run(result="done", steps=1)
    commands: dict[str, Callable[[int], float]] = {
        "floor": lambda _: run([PYTHON, "-c", "pass"], home).cpu,
        "version": lambda _: _version(home),
        "status": lambda _: _status(done),
        "one-step": lambda number: (
            Folder(home / f"start-{number}", workflows.one_step()).run(result="done", steps=1).cpu
        ),
    }
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    for number in _rounds("start", size.start_rounds):
        for name, measured in commands.items():
            cpus[name].append(measured(number))
    floors = cpus.pop("floor")
    modules = {
        "status": _modules(done.path, "status"),
        "one-step": _modules(done.path, "run", "flow", "--id", "modules"),
    }
    found = {name: _more(floors, values, 1000, "ms", "`python -c pass`") for name, values in cpus.items()}
    return {name: one.noted(modules.get(name, "")) for name, one in found.items()}


def _modules(folder: Path, *words: str) -> str:
    """How many modules a command imports."""
    argv = [PYTHON, "-X", "importtime", "-m", "raymond", *words]
    told = subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}
    ours = [name for name in names if name.partition(".")[0] == "raymond"]
    return f"{len(ours)} + {len(names) - len(ours)} modules"


def _version(home: Path) -> float:
    cpu = run([RAYMOND, "--version"], home).cpu
    if not (home / "child.out").read_text().startswith("raymond "):
        raise Failed("`raymond --version` does not print its version")
    return cpu


def _status(folder: Folder) -> float:
    cpu = run([RAYMOND, "status", "--json", ID], folder.path).cpu
    if '"status":"completed"' not in (folder.path / "child.out").read_text():
        raise Failed("`raymond status --json` does not say that the run is completed")
    return cpu


# --- all of them


MEASURES: dict[str, Callable[[Path, Size], Readings]] = {
    "chain": chain,
    "fan-out": fan_out,
    "endings": endings,
    "resume": resume,
    "memory": memory,
    "start": start,
    "reading": lambda home, size: watching.reading(home, size.runs, size.live, size.read_rounds),
    "watching": lambda home, size: watching.watching(home, size.watched, size.watch_rounds),
    "redaction": lambda _, size: redacting.redaction(size.redaction_rounds),
    "looking back": lambda home, size: long_run.looking_back(home, size.steps, size.look_rounds),
    "slices": lambda home, size: slices.both(home, size.slice_rounds),
    "loops": lambda home, size: loops.loops(home, size.loop_rounds),
    "workspaces": lambda home, size: workspaces.workspaces(home, size.tree, size.tree_rounds),
    "gates": lambda home, size: gates.gates(home, size.sealed, size.seal_rounds),
    "turns": lambda home, size: turns.turns(home, size.turns, size.turn_rounds),
}


def _without_start(cpus: list[float], starts: list[float], steps: int) -> float:
    """Milliseconds per step without the first, which includes the start-up."""
    return 1000 * (median(cpus) - median(starts)) / (steps - 1)


def _more(floors: list[float], values: list[float], scale: float, unit: str, name: str) -> Reading:
    """How much more the median of the values is than that of the floors."""
    floor, ours = scale * median(floors), scale * median(values)
    numbers: dict[str, object] = {"floors": _short(floors), "values": _short(values)}
    return Reading(
        f"{floor:.1f} {unit} ({name})", f"{ours:.1f} {unit}", f"+{ours - floor:.1f} {unit}", ours - floor, numbers
    )


def _rounds(name: str, number: int) -> Iterator[int]:
    for at in range(number):
        _tell(f"{name}: round {at + 1} of {number}")
        yield at


def _short(values: list[float]) -> list[float]:
    return [round(value, 4) for value in values]


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
