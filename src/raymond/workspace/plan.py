"""What a step sees that works isolated: the plan that `enter.py` carries out.

Everything is read-only but for what is lent. Some places are empty: `/tmp`, `/run`, the home and RAYMOND_HOME. What a
step needs from there is shown again: its tree, the programs on its PATH, its program's own folder, what `lend:` names.
"""

import contextlib
import marshal
import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from raymond.system import git
from raymond.system.files import contents, replace
from raymond.workspace.slot import Origin, Slot
from raymond.workspace.tree import object_folders, objects_at

_PREFIXES = ("bin", "sbin", "shims")
"""What the folder of programs is called in an installation."""
_BESIDE = ("lib", "lib64", "libexec", "share", "versions", "package.json")
"""What is beside it there."""
_CACHES = (".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".gradle/caches")
"""Below the home: what tools download once. They may write there, to a layer that goes with the workspace."""
_TOOLCHAINS = (".rustup",)
"""Below the home: what programs on the PATH need and do not lie beside."""
INSTALLED = "installed"
"""The layer over installed packages."""
_BROAD = (".local", ".local/share", ".local/state", ".config", ".cache")
"""Folders of the home that hold what belongs to many programs."""


def make(
    slot: Slot,
    base: Origin,
    *,
    cwd: str,
    home: str,
    raymond: str,
    environment: Mapping[bytes, bytes],
    shown: Mapping[str, bool],
    written: Mapping[str, str] = {},
    installed: str = "",
    only_reads: bool = False,
    net: str,
    name: str,
) -> dict[str, Any]:
    """The plan for a step called `name`; `raymond` is RAYMOND_HOME, `shown` are paths of the step's own.

    `written` are other places that it may write, by the path at which it finds each. `installed` is a layer that lies
    over the person's packages, below what the step writes to them. If it `only_reads`, it may not write the tree.
    """
    home, raymond, top = (os.path.realpath(path) for path in (home, raymond, base.top))
    common = git.directories(base.top)[1]
    hidden = [_empty("/tmp", write=True, options="mode=1777"), _empty("/run"), _empty(raymond, options="mode=700")]
    # Root may have set HOME to that of another user.
    homes = {_home_of_user(): False, home: True}
    hidden += [_empty(one, write=write, options="mode=700") for one, write in homes.items() if _is_home(one)]
    if not _is_below(common, [top]):
        hidden.append(_empty(common))  # that of a linked worktree
    hidden += [_empty(path) for place in (top, raymond, common, *filter(_is_home, homes)) for path in _elsewhere(place)]
    covered = [one["at"] for one in hidden]
    path = os.fsdecode(environment.get(b"PATH", b""))
    mixed = (*covered, top, *(os.path.join(home, one) for one in _BROAD))
    found = _programs(slot, path, home, mixed)
    programs = [one for one in found if _is_below(one, covered) and not _is_below(one, [top])]
    read_only = _outermost(one for one in programs if not _holds(one, mixed))
    binds = [_bind(one, one, optional=True) for one in read_only]
    binds += [_bind(slot.empty, one) for prefix in read_only for one in _private_files(prefix)]
    binds += [_bind(one, one, write=write) for one, write in shown.items()]
    for one, source in written.items():
        binds.append(_bind(source, one, write=True, optional=_is_below(one, [top])))
    for number, folder in enumerate([*object_folders(common), *base.objects]):
        binds.append(_bind(folder, objects_at(number)))
        if os.path.exists(f"{folder}/info/alternates"):
            binds.append(_bind(slot.empty, f"{objects_at(number)}/info/alternates"))  # they are all named by the tree
    binds.append(_bind(slot.tree, top, write=not only_reads))
    binds += [_bind(os.path.join(top, one), os.path.join(top, one), optional=True) for one in base.data]
    unique = {one["at"]: one for one in [*hidden, *binds]}
    return {
        "lock": slot.lock,
        "inside": f"{slot.inside}/{name}",
        "report": f"{slot.path}/report.{name}",
        "net": net,
        "cwd": cwd,
        "mounts": list(unique.values()),
        "overlays": [
            *_layer(slot, name, INSTALLED, top, {one: os.path.join(top, one) for one in base.installed}, installed),
            *_caches(slot, name, home),
        ],
    }


def hides(path: str, place: str) -> bool:
    """Whether a plan that was written to `path` shows nothing of what is at `place` outside."""
    made = marshal.loads(contents(path))
    layered = [folder for one in made["overlays"] for folder in one["folders"].values()]
    over = [one for one in made["mounts"] if _is_below(place, [one["at"]])]
    is_empty = bool(over) and max(over, key=lambda one: len(one["at"]))["kind"] == "empty"
    return is_empty and not _is_below(place, layered)


def _home_of_user() -> str:
    """The home that the system knows of this user; the root where it knows none."""
    try:
        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return "/"


def _is_home(path: str) -> bool:
    return path != "/" and os.path.isdir(path)


def _empty(path: str, *, write: bool = False, options: str = "mode=755") -> dict[str, Any]:
    return {"kind": "empty", "at": path, "write": write, "options": options}


def _bind(source: str, at: str, *, write: bool = False, optional: bool = False) -> dict[str, Any]:
    about = {"kind": "bind", "source": source, "at": at, "write": write, "optional": optional}
    return {**about, "is_file": not os.path.isdir(source)}


def _layer(
    slot: Slot, step: str, name: str, lower: str, folders: Mapping[str, str], between: str = ""
) -> list[dict[str, Any]]:
    """Folders below `lower`, and where a step may write to them without changing them: one overlay for all of them."""
    if not folders:
        return []
    # What steps have written is for all of them. What the kernel works with is for one: the next one that enters would
    # take it away from a step that is inside. Two that are inside may not both make the same folder in the layer.
    upper, work = slot.upper(name), f"{slot.work(step)}/{name}"
    os.makedirs(upper, mode=0o700, exist_ok=True)
    for one in folders:
        whole, made = os.path.join(lower, one), os.path.join(upper, one)
        if os.path.isdir(whole) and not os.path.isdir(made):
            os.makedirs(made, mode=0o700)
            shutil.copystat(whole, made)
    lowers = [between, lower] if between else [lower]
    return [{"lower": lowers, "upper": upper, "work": work, "folders": dict(folders)}]


def _caches(slot: Slot, step: str, home: str) -> Iterator[dict[str, Any]]:
    """The layers over what tools have downloaded."""
    real = {one: os.path.realpath(path) for one in _CACHES if os.path.isdir(path := os.path.join(home, one))}
    places = {one: os.path.join(home, one) for one in real}
    yield from _layer(slot, step, "caches", home, {one: places[one] for one in real if real[one] == places[one]})
    for one, path in real.items():
        if path != places[one]:
            # Through an overlay of the home, a link would lead to the person's own folder.
            yield from _layer(slot, step, f"cache-{one.replace('/', '-')}", path, {".": places[one]})


def _programs(slot: Slot, path: str, home: str, mixed: tuple[str, ...]) -> list[str]:
    """Where the programs on a PATH are, and what they need; `mixed` are places with other things in them.

    It takes milliseconds, so it is kept until somebody installs something.
    """
    kept = f"{slot.path}/programs.found"
    folders = [one for one in path.split(":") if os.path.isdir(one)]
    about = (path, home, mixed, sys.prefix, tuple(os.stat(one).st_mtime_ns for one in folders))
    with contextlib.suppress(FileNotFoundError):
        known, found = marshal.loads(contents(kept))
        if known == about:
            return list(found)
    found = list(_found_programs(path, home, mixed))
    replace(kept, marshal.dumps((about, found)))
    return found


def _found_programs(path: str, home: str, mixed: tuple[str, ...]) -> Iterator[str]:
    yield from (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(__file__)))
    yield os.path.realpath("/etc/resolv.conf")
    yield from (os.path.join(home, one) for one in _TOOLCHAINS)
    for folder in dict.fromkeys(path.split(":")):
        if os.path.isabs(folder) and os.path.isdir(folder):
            yield from _belongings(os.path.realpath(folder), mixed)


def _belongings(folder: str, mixed: tuple[str, ...]) -> Iterator[str]:
    """A folder of programs, what it belongs to, and where links in it lead; of a mixed one, the programs alone."""
    is_mixed = _holds(folder, mixed)
    if not is_mixed:
        yield _prefix(folder, mixed)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        whole = os.path.join(folder, name)
        if is_mixed and os.path.isfile(whole) and os.access(whole, os.X_OK):
            yield whole
        if os.path.islink(whole):
            target = os.path.realpath(whole)
            if os.path.exists(target) and not _is_below(target, [folder]):
                yield _holder(target, mixed) if os.path.isfile(target) else target


def _holder(program: str, mixed: tuple[str, ...]) -> str:
    """What to show of where a program lies: its folder with what that belongs to, unless it has other things, too."""
    before, packages, _ = program.partition("/node_modules/")
    if packages and not _holds(f"{before}/node_modules", mixed):
        return f"{before}/node_modules"  # what a package needs lies beside it
    folder = os.path.dirname(program)
    return program if _holds(folder, mixed) else _prefix(folder, mixed)


def _prefix(folder: str, mixed: tuple[str, ...]) -> str:
    """The installation that a folder of programs belongs to, unless that holds other things too."""
    above, name = os.path.split(folder)
    # `~/.cargo` is one by its name: what people keep themselves is not hidden.
    beside = os.path.basename(above).startswith(".") or any(os.path.exists(f"{above}/{one}") for one in _BESIDE)
    return above if name in _PREFIXES and beside and not _holds(above, mixed) else folder


def _holds(folder: str, places: Iterable[str]) -> bool:
    """Whether a folder is one of these places, or one of them is in it."""
    return any(_is_below(one, [folder]) for one in places)


def _private_files(folder: str) -> Iterator[str]:
    """The files right in a folder of programs that only their owner may read: those are credentials."""
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and not entry.stat().st_mode & 0o077:
                    yield entry.path


def _outermost(paths: Iterable[str]) -> list[str]:
    found: list[str] = []
    for path in sorted({os.path.normpath(one) for one in paths if os.path.exists(one)}):
        if not _is_below(path, found):
            found.append(path)
    return found


def _is_below(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of these places, or in one."""
    return any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in places)


def _elsewhere(path: str) -> Iterator[str]:
    """Other places where the same folder, or a part of it, can be seen: file systems that are mounted twice."""
    mounts = [(one[2], _plain(one[3]), _plain(one[4])) for one in _mountinfo()]
    holding = [one for one in mounts if _is_below(path, [one[2]])]
    if not holding:
        return
    # Of several that are mounted there, the last one is on top.
    device, root, at = max(reversed(holding), key=lambda one: len(one[2]))
    inside = os.path.normpath(os.path.join(root, os.path.relpath(path, at)))
    for other_device, other_root, other_at in mounts:
        if other_device != device or other_at == at:
            continue
        if _is_below(inside, [other_root]):
            seen = os.path.normpath(os.path.join(other_at, os.path.relpath(inside, other_root)))
            if os.path.isdir(seen) and os.path.samefile(seen, path):
                yield seen
        elif _is_below(other_root, [inside]) and os.path.isdir(other_at):
            yield other_at


def _mountinfo() -> list[list[str]]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return [line.split(" ") for line in file]


def _plain(path: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, sign)
    return path
