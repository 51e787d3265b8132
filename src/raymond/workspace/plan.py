"""What a step sees that works isolated: the plan that `enter.py` carries out.

Everything is read-only but for what is lent. Some places are empty: `/tmp`, `/run`, the home and RAYMOND_HOME. What a
step needs from there is shown again: its tree, the programs on its PATH, its program's own folder, what `lend:` names.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from raymond.workspace.slot import Origin, Slot
from raymond.workspace.tree import OBJECTS

_PREFIXES = ("bin", "sbin", "shims", "scripts")
"""What the folder of programs is called in the folder that they belong to."""
_CACHES = (".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository", ".gradle/caches")
"""Below the home: what tools download once. They may write there, to a layer that goes with the workspace."""
_TOOLCHAINS = (".rustup",)
"""Below the home: what programs on the PATH need and do not lie beside."""
_BROAD = (".local", ".config", ".cache")
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
    only_reads: bool = False,
    net: str,
    name: str,
) -> dict[str, Any]:
    """The plan for a step called `name`; `raymond` is RAYMOND_HOME, `shown` are paths of the step's own.

    `written` are other places that it may write, by the path at which it finds each. If it `only_reads`, it may not
    write the tree.
    """
    home, raymond, top = (os.path.realpath(path) for path in (home, raymond, base.top))
    hidden = [_empty("/tmp", write=True, options="mode=1777"), _empty("/run"), _empty(raymond)]
    if home != "/" and os.path.isdir(home):
        hidden.append(_empty(home, write=True, options="mode=700"))
    hidden += [_empty(path) for place in (top, home, raymond) for path in _elsewhere(place)]
    covered = [one["at"] for one in hidden]
    path = os.fsdecode(environment.get(b"PATH", b""))
    caches = [cache for cache in _CACHES if os.path.isdir(os.path.join(home, cache))]
    read_only = [one for one in _programs(path, home) if _is_below(one, covered)]
    read_only = [one for one in read_only if not _is_below(top, [one]) or one == top]
    binds = [_bind(one, one) for one in _outermost(read_only)]
    binds += [_bind("/dev/null", one) for prefix in _outermost(read_only) for one in _private_files(prefix)]
    binds += [_bind(one, one, write=write) for one, write in shown.items()]
    binds += [_bind(source, one, write=True) for one, source in written.items()]
    objects = os.path.join(_common(base.top), "objects")
    binds += [_bind(objects, OBJECTS), _bind(slot.tree, top, write=not only_reads)]
    binds += [_bind(os.path.join(top, one), os.path.join(top, one)) for one in base.data]
    unique = {one["at"]: one for one in [*hidden, *binds]}
    return {
        "lock": slot.lock,
        "inside": f"{slot.inside}/{name}",
        "report": f"{slot.path}/report.{name}",
        "net": net,
        "cwd": cwd,
        "mounts": list(unique.values()),
        "overlays": [
            *_layer(slot, "installed", top, base.installed),
            *_layer(slot, "caches", home, caches),
        ],
    }


def _empty(path: str, *, write: bool = False, options: str = "mode=755") -> dict[str, Any]:
    return {"kind": "empty", "at": path, "write": write, "options": options}


def _bind(source: str, at: str, *, write: bool = False) -> dict[str, Any]:
    return {"kind": "bind", "source": source, "at": at, "write": write, "is_file": not os.path.isdir(source)}


def _layer(slot: Slot, name: str, lower: str, folders: list[str]) -> list[dict[str, Any]]:
    """Folders below `lower` that a step may write to, without changing them: one overlay for all of them."""
    if not folders:
        return []
    upper, work = f"{slot.layer}/{name}/upper", f"{slot.layer}/{name}/work"
    for path in (upper, work):
        os.makedirs(path, mode=0o700, exist_ok=True)
    return [
        {
            "lowerdir": lower,
            "upperdir": upper,
            "workdir": work,
            "folders": {one: os.path.join(lower, one) for one in folders},
        }
    ]


def _programs(path: str, home: str) -> Iterator[str]:
    """Where the programs on a PATH are, and what they need."""
    yield from (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(__file__)))
    yield os.path.realpath("/etc/resolv.conf")
    yield from (os.path.join(home, one) for one in _TOOLCHAINS)
    for folder in dict.fromkeys(path.split(":")):
        if os.path.isabs(folder) and os.path.isdir(folder):
            yield from _belongings(os.path.realpath(folder), home)


def _belongings(folder: str, home: str) -> Iterator[str]:
    """A folder of programs, what it belongs to, and where links in it lead."""
    yield _prefix(folder, home)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        whole = os.path.join(folder, name)
        if os.path.islink(whole):
            target = os.path.realpath(whole)
            if os.path.exists(target) and not _is_below(target, [folder]):
                yield _prefix(os.path.dirname(target), home) if os.path.isfile(target) else target


def _prefix(folder: str, home: str) -> str:
    """The folder that a folder of programs belongs to, unless that holds other things too."""
    above, name = os.path.split(folder)
    broad = [home, *(os.path.join(home, one) for one in _BROAD)]
    return above if name in _PREFIXES and above not in broad and not _is_below(home, [above]) else folder


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
    device, root, at = max(holding, key=lambda one: len(one[2]))
    inside = os.path.normpath(f"{root}/{os.path.relpath(path, at)}")
    for other_device, other_root, other_at in mounts:
        if other_device != device or other_at == at:
            continue
        if _is_below(inside, [other_root]):
            seen = os.path.normpath(f"{other_at}/{os.path.relpath(inside, other_root)}")
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


def _common(top: str) -> str:
    from raymond.system import git

    return git.directories(top)[1]
