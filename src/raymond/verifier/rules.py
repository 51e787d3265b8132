"""Rules: which files of a tree decide a check. Fixed when it is sealed, so nothing that an agent sets changes them."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond.verifier import commands, globs, names
from raymond.verifier.names import SKIPPED, Part
from raymond.verifier.tree import walk

_VIRTUAL = (".venv", "venv", "env")
_MODULES = (".py", ".pyc", ".so")
_SAYS_HOW = ("package.json", "__init__.py")
"""What tells node and Python where the modules of a folder are found."""
_SITE = ("site-packages", "dist-packages")


class Rules(Struct, frozen=True, kw_only=True):
    """What is sealed in `top`; all paths are relative to it."""

    top: str
    roots: frozenset[str]
    """Folders where runners start."""
    files: dict[str, Part]
    """Files that a command or a recipe names."""
    programs: frozenset[str] = frozenset()
    """Folders of the tree that are on the PATH of a check in a workspace."""
    targets: frozenset[str] = frozenset()
    """What make would take for done if there were a file of that name."""
    modules: frozenset[str] = frozenset()
    """Modules that a new file beside the tests would hide from Python."""
    tests: frozenset[str] = frozenset()
    """Folders of tests that have another name: links lead there, or a command runs all that is in them."""
    skipped: frozenset[str] = frozenset()
    """Folders that are ignored by git, and hold nothing that it tracks."""
    ignored: frozenset[str] = frozenset()
    """Single files that are."""
    seal: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()


def rules_of(
    top: str,
    cwd: str,
    lines: Sequence[str],
    *,
    path: str,
    seal: Sequence[str],
    unseal: Sequence[str],
    installed: str = "",
    skipped: frozenset[str] = frozenset(),
    ignored: frozenset[str] = frozenset(),
) -> Rules:
    """The rules for commands that run in `cwd`, in the tree `top`, with this PATH.

    Git ignores the folders `skipped` and the files `ignored`. Packages are installed in `installed`, or in the tree.
    """
    named = commands.paths(lines, top, cwd)
    begun = {*_above(os.path.relpath(cwd, top)), *named.folders}
    further, recipes = commands.followed(lines, begun, top)
    named.add(further)
    roots = frozenset({*begun, *named.folders})
    ran = [*lines, *recipes]
    files: dict[str, Part] = dict.fromkeys({*named.files, *commands.scripts(roots, top)}, "named")
    files |= dict.fromkeys(commands.tasks(ran, roots), "named")
    files |= dict.fromkeys(commands.included(roots, top), "loaded")
    return Rules(
        top=top,
        roots=roots,
        files=files,
        programs=frozenset(_on_path(installed, path) if installed else ()),
        targets=commands.targets(ran, roots, top),
        tests=frozenset({*_linked_tests(top, roots), *named.suites}),
        modules=frozenset(
            {*sys.stdlib_module_names, "pytest", "_pytest", *_installed(installed or top, path)} - _own(top, roots)
        ),
        skipped=skipped,
        ignored=ignored,
        seal=tuple(seal),
        unseal=tuple(unseal),
    )


def joined(old: Rules, new: Rules, sealed: Iterable[str]) -> Rules:
    """What either of two rules for a tree says: whoever changed it in between cannot make less of it count.

    `sealed` are the files that the old ones have found: a folder with one of them is looked at, ignored or not.
    """
    held = {above for path in sealed for above in _above(os.path.dirname(path))}
    return replace(
        new,
        roots=old.roots | new.roots,
        files={**new.files, **old.files},
        targets=old.targets | new.targets,
        modules=old.modules | new.modules,
        tests=old.tests | new.tests,
        skipped=frozenset(folder for folder in new.skipped if folder in old.skipped or folder not in held),
    )


Listing: TypeAlias = Iterable[tuple[str, list[str], list[str]]]
"""Folders, those above before those below, each with its files and its folders."""


def listing(paths: Iterable[str]) -> Listing:
    """The folders of these files."""
    found: dict[str, tuple[list[str], dict[str, None]]] = {"": ([], {})}
    for path in paths:
        *above, name = path.split("/")
        if not SKIPPED.isdisjoint(above):
            continue
        folder = "/".join(above)
        found.setdefault(folder, ([], {}))[0].append(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            found.setdefault(folder, ([], {}))[1][name] = None
    return [(folder, files, list(below)) for folder, (files, below) in sorted(found.items())]


def look(rules: Rules, there: Listing | None = None) -> Iterator[tuple[str, Part, bool]]:
    """Every file that is sealed, with what it is, and whether only a new one counts; of those `there`, or on disk."""
    open_again = globs.matcher(rules.unseal)
    for path, part, only_new in _look(rules, walk(rules.top, rules.skipped) if there is None else there):
        if not open_again(path):
            yield path, part, only_new


def _look(rules: Rules, there: Listing) -> Iterator[tuple[str, Part, bool]]:
    wanted = globs.matcher(rules.seal)
    tests = set[str]()
    scripts = {os.path.dirname(path) for path in rules.files if path.endswith(".py")}  # which Python looks at first
    for folder, files, below in there:
        prefix = f"{folder}/" if folder else ""
        above, _, last = folder.rpartition("/")
        # Parents come before their children.
        of_tests = last in names.TEST_FOLDERS or above in tests or folder in rules.tests
        if of_tests:
            tests.add(folder)
        is_root = folder in rules.roots or "package.json" in files
        for name in files:
            path = prefix + name
            is_target = is_root and name in rules.targets
            part = names.loaded(name, folder, is_root=is_root, of_tests=of_tests)
            part = part or ("loaded" if folder in rules.programs else None)
            part = part or ("target" if is_target else rules.files.get(path))
            if part is None and rules.seal and wanted(path):
                part = "named"
            if part is None and (of_tests or names.is_test(name)) and path not in rules.ignored:
                part = "test"
            if part:
                yield path, part, False
        if is_root or of_tests or folder in scripts:
            yield from ((path, "loaded", True) for path in _hiding(rules, prefix, files, below, is_root=is_root))


def _hiding(rules: Rules, prefix: str, files: list[str], below: list[str], *, is_root: bool) -> Iterator[str]:
    """What a runner would take for a target that is done, or Python for a module of its own."""
    if is_root:
        yield from (prefix + name for name in below if name in rules.targets)
    for name in files:
        if name.partition(".")[0] in rules.modules and name.endswith(_MODULES):
            yield prefix + name
    for name in below:
        for ending in _MODULES if name in rules.modules else ():
            path = f"{prefix}{name}/__init__{ending}"
            if os.path.lexists(f"{rules.top}/{path}"):
                yield path


def is_of_tests(rules: Rules, folder: str) -> bool:
    """Whether everything in a folder belongs to tests."""
    return any(os.path.basename(one) in names.TEST_FOLDERS or one in rules.tests for one in _above(folder))


def beside(rules: Rules, paths: Iterable[str]) -> frozenset[str]:
    """What a loader would find instead of these files in folders of tests, and those folders with a slash."""
    found: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        if is_of_tests(rules, folder):
            found |= names.hidden_by(path)
            while folder and f"{folder}/" not in found:
                found.add(f"{folder}/")
                folder = os.path.dirname(folder)
    return frozenset(found)


def hides(rules: Rules, path: str, paths: Collection[str], beside: frozenset[str]) -> bool:
    """Whether a new file could be loaded in the place of one of `paths`, or says how those `beside` it are."""
    folder, _, name = path.rpartition("/")
    if path in beside:
        return True
    if name in _SAYS_HOW and f"{folder}/" in beside and is_of_tests(rules, folder):
        return True
    own = f"{folder}/{name.partition('.')[0]}.py"
    stems = {own, f"{folder}.py"} if name.startswith("__init__.") else {own}
    return name.endswith((".py", ".pyc", ".so")) and any(one in paths and one != path for one in stems)


def is_sealable(rules: Rules, path: str) -> bool:
    """Whether a file is one that may be sealed: nobody unsealed it, and it is none that tools or git leave out."""
    folders = _above(os.path.dirname(path))
    is_left_out = path in rules.ignored or any(one in rules.skipped for one in folders)
    is_of_a_tool = any(os.path.basename(one) in SKIPPED for one in folders)
    return not is_left_out and not is_of_a_tool and not globs.matcher(rules.unseal)(path)


def _above(folder: str) -> list[str]:
    """A folder and those above it, up to the top."""
    found = [""]
    while folder and folder != ".":
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _on_path(top: str, path: str) -> Iterator[str]:
    """The folders of programs in a tree: a new program there hides another."""
    for entry in path.split(os.pathsep):
        if _is_inside(entry, top) and entry != top:
            yield os.path.relpath(entry, top)


def _linked_tests(top: str, roots: frozenset[str]) -> Iterator[str]:
    """Where links lead that are called like folders of tests."""
    for root in roots:
        for name in names.TEST_FOLDERS:
            path = os.path.join(top, root, name)
            if os.path.islink(path) and _is_inside(os.path.realpath(path), os.path.realpath(top)):
                yield os.path.relpath(os.path.realpath(path), os.path.realpath(top))


def _is_inside(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _installed(top: str, path: str) -> Iterator[str]:
    """The names of the packages that a check's Python finds."""
    for entry in path.split(os.pathsep):
        if os.access(f"{entry}/python3", os.X_OK) or os.access(f"{entry}/python", os.X_OK):
            yield from _packages(os.path.dirname(entry))
    for name in _VIRTUAL:
        yield from _packages(f"{top}/{name}")


def _own(top: str, roots: frozenset[str]) -> set[str]:
    """The modules of the project itself, which may be installed: what takes their place is its work."""
    found: set[str] = set()
    for folder in (os.path.join(top, root) for root in roots):
        for name in _listed(folder):
            if name.endswith(".py") or os.path.isfile(os.path.join(folder, name, "__init__.py")):
                found.add(name.partition(".")[0])
    return found


def _packages(prefix: str) -> Iterator[str]:
    for version in _listed(f"{prefix}/lib"):
        if version.startswith("python3"):
            for site in _SITE:
                for name in _listed(f"{prefix}/lib/{version}/{site}"):
                    yield name.partition(".")[0].partition("-")[0]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
