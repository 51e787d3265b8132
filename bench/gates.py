"""What a gate costs before and beside its commands: sealing a large tree, and a twin of it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from report import Reading

from raymond.language.check import Check
from raymond.verifier import seal
from raymond.verifier.assignment import Assignment
from raymond.verifier.twin import twin_of

_PER_FOLDER = 50
_TESTS = 10
"""Every tenth folder has tests."""
_ME = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


def gates(home: Path, files: int, rounds: int) -> dict[str, Reading]:
    """Our own CPU for a first seal against that of a walk over the same tree, and the wall time of a twin."""
    tree = _tree(home / "tree", files)
    floors: list[float] = []
    sealed: list[float] = []
    bare: list[float] = []
    twins: list[float] = []
    for number in range(rounds):
        floors.append(_cpu(lambda: sum(len(names) for _, _, names in os.walk(tree))))
        given = _given(home / f"seals{number}", number + 1)
        began = time.process_time()
        made = seal.seal_here(given, str(tree))
        sealed.append(time.process_time() - began)
        bare.append(_wall(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)))
        began = time.monotonic()
        with twin_of(made, [], f"{given.folder}/twin") as twin:
            twins.append(time.monotonic() - began)
            assert twin.how == "overlay", f"no overlay here: {twin.how}"
        print(
            f"  floor {floors[-1]:.2f} s, sealing {sealed[-1]:.2f} s, twin {1000 * twins[-1]:.0f} ms", file=sys.stderr
        )
    walk, ours = median(floors), median(sealed)
    start, twin_ms = 1000 * median(bare), 1000 * median(twins)
    return {
        "sealing": Reading(f"{walk:.2f} s (a walk)", f"{ours:.2f} s", f"{ours:.2f} s", ours, {"floors": floors}),
        "twin": Reading(
            f"{start:.0f} ms (`python -S`)", f"{twin_ms:.0f} ms", f"+{twin_ms - start:.0f} ms", twin_ms - start, {}
        ),
    }


def _given(folder: Path, step: int) -> Assignment:
    return Assignment(
        checks=(Check(run="make test"),),
        timeout=60,
        reruns=0,
        environment=dict(os.environ),
        folder=str(folder),
        step=step,
    )


def _tree(path: Path, files: int) -> Path:
    """A repository in which every tenth file is a test, all of them committed."""
    for number in range(files // _PER_FOLDER):
        is_test = number % _TESTS == 0
        folder = path / (f"tests/t{number}" if is_test else f"src/p{number % 40}/m{number}")
        folder.mkdir(parents=True)
        for one in range(_PER_FOLDER):
            (folder / f"{'test_' if is_test else ''}f{one}.py").write_text(f"x = {number * _PER_FOLDER + one}\n" * 100)
    (path / "Makefile").write_text(".PHONY: test\ntest:\n\ttrue\n")
    for args in (("init", "-q"), ("add", "-A"), (*_ME, "commit", "-qm", "all")):
        subprocess.run(["git", *args], cwd=path, check=True)
    return path


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _wall(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
