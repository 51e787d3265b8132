"""Measure the runtime against a floor measured at the same time: `make bench`.

Prints a table and one line of JSON. The exit code is 1 when a figure misses its reach or could not be measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import against
import bare
import workflows
from figures import FULL, MEASURES, QUICK, Readings, Size, goals
from measure import Failed, environment, foreign_cpu, run
from report import FAILED, MISSED, Goal, Row, heading, machine, table
from workflows import ID, PYTHON, RAYMOND, Folder

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"


def main() -> int:
    """The exit code."""
    options = _options()
    if options.against:
        return _against(options)
    if not bare.is_bare():
        return _in_bare(options)
    size = QUICK if options.quick else FULL
    groups = list(dict.fromkeys(options.only or MEASURES))
    where = machine(options.home.parent)
    began, others = time.monotonic(), foreign_cpu()
    rows = _measure(groups, size, options.home)
    seconds = time.monotonic() - began
    where["cores_used_by_others"] = round((foreign_cpu() - others) / seconds, 2)
    print(heading(where, _note(options)))
    print(f"\n{table(rows)}\n")
    for row in rows:
        if row.problem:
            print(f"{FAILED}: {row.goal.key}: {row.problem}")
    print(f"It took {seconds:.0f} s.\n")
    document = {**where, "quick": options.quick, "only": options.only, "seconds": round(seconds)}
    print(json.dumps({**document, "figures": [row.document() for row in rows]}))
    return int(any(row.verdict in (FAILED, MISSED) for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the runtime against a plain shell loop and an empty Python.")
    parser.add_argument("--only", action="append", choices=list(MEASURES), help="one group of figures; may be repeated")
    parser.add_argument("--quick", action="store_true", help="smaller and less exact: only checks that it works")
    parser.add_argument("--against", metavar="COMMIT", help="measure a commit and this tree in turns, and compare")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="with --against: how often each (5)")
    parser.add_argument("--home", type=Path, default=CACHE, metavar="DIR", help="where to work (.cache/bench)")
    return parser.parse_args()


def _in_bare(options: argparse.Namespace) -> int:
    """Measure from an environment as a user has it."""
    options.home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.home) as home:
        python = bare.make(Path(home) / "environment", ROOT)
        return subprocess.run([python, *sys.argv], check=False).returncode


def _against(options: argparse.Namespace) -> int:
    options.home.mkdir(parents=True, exist_ok=True)
    only = [word for group in options.only or () for word in ("--only", group)]
    arguments = [*only, *(["--quick"] if options.quick else [])]
    with tempfile.TemporaryDirectory(dir=options.home) as home:
        try:
            print(against.compare(options.against, arguments, options.rounds, Path(home)))
        except Failed as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 1
    return 0


def _note(options: argparse.Namespace) -> str:
    only = f", only {', '.join(options.only)}" if options.only else ""
    return (", QUICK: smaller sizes, not for the record" if options.quick else "") + only


def _measure(groups: list[str], size: Size, cache: Path) -> list[Row]:
    cache.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=cache))
    os.environ["XDG_STATE_HOME"] = str(home / "state")
    try:
        problem = _try(lambda: _warm(home))[1]
        return [row for group in groups for row in _rows(group, home, size, problem)]
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if not any(cache.iterdir()):
            cache.rmdir()


def _rows(group: str, home: Path, size: Size, problem: str) -> list[Row]:
    """A row for every goal of the group: a goal that was not measured has failed."""
    readings: Readings = {}
    if not problem:
        folder = home / group
        folder.mkdir()
        readings, problem = _try(lambda: MEASURES[group](folder, size))
    return [_row(goal, readings, problem) for goal in goals(size)[group]]


def _row(goal: Goal, readings: Readings, problem: str) -> Row:
    reading = readings.get(goal.key)
    return Row(goal, reading, "" if reading else problem or "it was not measured")


def _try(measured: Callable[[], Readings | None]) -> tuple[Readings, str]:
    """What was measured, or why it was not."""
    try:
        return measured() or {}, ""
    except Failed as failure:
        return {}, str(failure)
    except Exception as error:  # the other figures are still worth having
        return {}, f"{type(error).__name__}: {error}"


def _warm(home: Path) -> None:
    """Compile all files, and read everything that a start needs into memory."""
    compiling = [PYTHON, "-m", "compileall", "-q", str(ROOT / "src")]
    subprocess.run(compiling, env=environment(), stdout=subprocess.DEVNULL, check=True)
    run([PYTHON, "-c", "pass"], home)
    run([RAYMOND, "--version"], home)
    folder = Folder(home / "warm", workflows.one_step())
    folder.run(result="done", steps=1)
    run([RAYMOND, "status", "--json", ID], folder.path)


if __name__ == "__main__":
    sys.exit(main())
