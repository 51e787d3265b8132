"""What a workspace costs: its tree, once; entering it and harvesting it, for every step."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from report import Reading

from raymond.language.check import Check
from raymond.system.processes import fork
from raymond.verifier import process
from raymond.verifier.assignment import Assignment, Work
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
    checked, done = (
        _checks(place, home / "seals", environment, rounds),
        _cpu(lambda: subprocess.run(["bash", "-c", "true"], check=True)),
    )
    floor, walk = 1000 * median(bare), 1000 * median(walks)
    enter, harvest = 1000 * (median(entered) - median(bare)), 1000 * median(harvests)
    numbers: dict[str, object] = {"tree": round(made, 2)}
    return {
        "enter": Reading(f"{floor:.0f} ms (`true`)", f"{enter + floor:.0f} ms", f"{enter:.0f} ms", enter, numbers),
        "harvest": Reading(f"{walk:.0f} ms (a walk)", f"{harvest:.0f} ms", f"{harvest:.0f} ms", harvest, {}),
        "check": _over("`bash -c true`", done, checked),
        "small check": _small(home, rounds, done),
    }


def _over(what: str, floor: float, spent: float) -> Reading:
    over = 1000 * (spent - floor)
    return Reading(f"{1000 * floor:.0f} ms ({what})", f"{1000 * spent:.0f} ms", f"+{over:.0f} ms", over, {})


def _small(home: Path, rounds: int, floor: float) -> Reading:
    """The same for a project of 50 files."""
    top = _project(home / "small", _PER_FOLDER)
    place = Place(str(home / "small run"), str(top), "bench", str(home), "isolated")
    place.open([], lambda _: None, 0.0)
    return _over("`bash -c true`", floor, _checks(place, home / "small seals", os.environb, rounds))


def _checks(place: Place, folder: Path, environment: Mapping[bytes, bytes], rounds: int) -> float:
    """CPU of a check that does nothing, once its checkout stands, with some files changed before each."""
    folder.mkdir()
    work = Work(place.folder, place.top, place.run, place.raymond, "isolated", (), "on")
    known = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    given = Assignment(
        checks=(Check(run="true"),),
        timeout=60,
        reruns=0,
        environment=known,
        cwd=place.top,
        key="bench",
        step=1,
        folder=str(folder),
        work=work,
    )
    spent = []
    for number in range(rounds + 1):
        for at in range(_CHANGED):
            Path(place.slot.tree, "p0", f"f{at}.py").write_text(f"check {number}\n")
        spent.append(_cpu(lambda: _check(given)))
        print(f"  check {1000 * spent[-1]:.0f} ms", file=sys.stderr)
    return median(spent[1:])


def _check(given: Assignment) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        pid = fork(process.ready(given), {b"PATH": os.environb[b"PATH"]}, "/", stdout=theirs.fileno())
    with ours, ours.makefile("rb") as told:
        said = told.read()
    os.waitpid(pid, 0)
    if b'"verdict":"passed"' not in said:
        raise RuntimeError(said.decode())


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
