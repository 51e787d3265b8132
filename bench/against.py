"""Measure this tree and another commit in turns: `bench/run.py --against COMMIT`.

Each is measured by the benchmark that it came with, in an environment of the same kind. Nothing is installed, and
neither imports the other's code.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import bare
from measure import Failed

ROOT = Path(__file__).resolve().parent.parent


class Tree:
    """A source tree with an environment that runs it."""

    def __init__(self, name: str, source: Path, home: Path) -> None:
        self.name, self.source = name, source
        self.values: dict[str, list[float]] = {}
        """Figure -> its value in each round."""
        self.python = bare.make(home / f"environment-{name}", source)

    def measure(self, arguments: list[str]) -> None:
        """One round: all figures of the groups asked for."""
        argv = [str(self.python), str(self.source / "bench" / "run.py"), *arguments]
        done = subprocess.run(argv, cwd=self.source, stdout=subprocess.PIPE, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise Failed(f"the benchmark of {self.name} ended with {done.returncode} and without figures")
        for figure in json.loads(lines[-1])["figures"]:
            if figure["value"] is not None:
                self.values.setdefault(figure["key"], []).append(figure["value"])


def compare(commit: str, arguments: list[str], rounds: int, home: Path) -> str:
    """A table of both; the commit is checked out below `home`."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--short", f"{commit}^{{commit}}"]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if not found:
        raise Failed(f"there is no commit {commit}")
    there = home / f"tree-{found}"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(there), found], check=True)
    try:
        old, new = Tree(found, there, home), Tree("here", ROOT, home)
        for number in range(rounds):
            for tree in (old, new) if number % 2 else (new, old):
                print(f"round {number + 1} of {rounds}: {tree.name}", file=sys.stderr, flush=True)
                tree.measure(arguments)
    finally:
        subprocess.run([*git, "remove", "--force", str(there)], check=True)
    return _table(old, new)


def _table(old: Tree, new: Tree) -> str:
    lines = [f"| figure | {old.name} | {new.name} | new / old |", "|---|---|---|---|"]
    for key in [*old.values, *(key for key in new.values if key not in old.values)]:
        before, after = old.values.get(key, []), new.values.get(key, [])
        ratio = f"{median(after) / median(before):.2f}" if before and after and median(before) else "-"
        lines.append(f"| {key} | {_spread(before)} | {_spread(after)} | {ratio} |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})" if values else "-"
