"""What a workspace costs: its tree, once; entering it and harvesting it, for every step."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from report import Reading

from raymond.workspace.place import Place

_PER_FOLDER = 50
_CHANGED = 20
_ME = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


def workspaces(home: Path, files: int, rounds: int) -> dict[str, Reading]:
    """CPU of entering and harvesting a tree of so many files, beside a bare command and a walk of that tree."""
    top = _project(home / "project", files)
    place = Place(str(home / "run"), str(top), "bench", str(home), "isolated")
    began = _spent()
    place.open([], lambda _: None, 0.0)
    made = _spent() - began
    bare: list[float] = []
    entered: list[float] = []
    walks: list[float] = []
    harvests: list[float] = []
    environment = {name: value for name, value in os.environb.items() if not name.startswith(b"RAYMOND_")}
    argv, cwd = place.entered(
        ["/bin/true"], way="isolated", cwd=str(top), name="bench", environment=environment, aside=str(home / "plan")
    )
    tree = place.slot.tree
    for number in range(rounds):
        bare.append(_cpu(lambda: subprocess.run(["/bin/true"], check=True)))
        entered.append(_cpu(lambda: subprocess.run(argv, cwd=cwd, env=environment, check=True)))
        walks.append(_cpu(lambda: _walk(tree)))
        for at in range(_CHANGED):
            Path(tree, f"p{at % 10}", f"f{at}.py").write_text(f"round {number}\n")
        with place.alone():
            harvests.append(_cpu(place.harvest))
        print(f"  enter {1000 * entered[-1]:.0f} ms, harvest {1000 * harvests[-1]:.0f} ms", file=sys.stderr)
    floor, walk = 1000 * median(bare), 1000 * median(walks)
    enter, harvest = 1000 * (median(entered) - median(bare)), 1000 * median(harvests)
    numbers: dict[str, object] = {"tree": round(made, 2)}
    return {
        "enter": Reading(f"{floor:.0f} ms (`true`)", f"{enter + floor:.0f} ms", f"{enter:.0f} ms", enter, numbers),
        "harvest": Reading(f"{walk:.0f} ms (a walk)", f"{harvest:.0f} ms", f"{harvest:.0f} ms", harvest, {}),
    }


def _project(path: Path, files: int) -> Path:
    for number in range(files // _PER_FOLDER):
        folder = path / f"p{number}"
        folder.mkdir(parents=True)
        for one in range(_PER_FOLDER):
            (folder / f"f{one}.py").write_text(f"x = {number * _PER_FOLDER + one}\n" * 100)
    (path / "node_modules" / "left-pad").mkdir(parents=True)
    (path / ".gitignore").write_text("node_modules\n")
    for args in (("init", "-q"), ("add", "-A"), (*_ME, "commit", "-qm", "all")):
        subprocess.run(["git", *args], cwd=path, check=True)
    return path


def _walk(tree: str) -> int:
    return sum(os.lstat(os.path.join(above, name)).st_size for above, _, names in os.walk(tree) for name in names)


def _spent() -> float:
    """CPU of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _cpu(work: Callable[[], object]) -> float:
    began = _spent()
    work()
    return _spent() - began
