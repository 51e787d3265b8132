"""Patterns of paths, as `seal` and `unseal` have them."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond.verifier import commands, decides
from raymond.verifier.commands import above
from raymond.verifier.decides import SKIPPED, TEST_FOLDERS, Part
from raymond.verifier.private_git import walk

_VIRTUAL = (".venv", "venv", "env")
_SITE = ("site-packages", "dist-packages")
_MODULES = (".py", ".pyc", ".so")
_LOADERS = frozenset(("", *_MODULES, *".js .cjs .mjs .jsx .ts .cts .mts .tsx .json .node .pm .pmc".split()))
"""How files end that Python, node and Perl find without their ending."""
_SAYS_HOW = ("package.json", "__init__.py")
"""What tells node and Python where the modules of a folder are found."""

Listing: TypeAlias = Iterable[tuple[str, list[str], list[str]]]
"""Folders, those above before those below, each with its files and its folders."""


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path matches one of `patterns`.

    One without a slash is compared with the name, one with a slash with the whole path; `**` stands for any folders,
    and a pattern that ends in a slash for everything below a folder.
    """
    if not patterns:
        return lambda _: False
    found = re.compile("|".join(_regex(one) for one in patterns), re.DOTALL)
    return lambda path: found.fullmatch(path) is not None


def _regex(pattern: str) -> str:
    pattern = pattern.removeprefix("./")
    below = pattern.endswith("/")
    pattern = pattern.strip("/")
    anywhere = "/" not in pattern
    parts = "".join(_piece(piece) for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern) if piece)
    return f"(?:{'(?:.*/)?' if anywhere else ''}{parts}{'/.*' if below else '(?:/.*)?'})"


def _piece(piece: str) -> str:
    return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)


# Rules: the table of what decides a check, applied to a tree. Fixed when the work begins, so no agent changes them


class Rules(Struct, frozen=True, kw_only=True):
    """What decides the checks of `top`; all paths are relative to it."""

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
    named = commands.named(lines, top, cwd)
    roots = frozenset({*above(os.path.relpath(cwd, top)), *named.folders})
    known = {*sys.stdlib_module_names, "pytest", "_pytest", *_installed(installed or top, path)}
    return Rules(
        top=top,
        roots=roots,
        files={**dict.fromkeys(named.files, "named"), **dict.fromkeys(named.loaded, "loaded")},
        programs=frozenset(_below(path.split(os.pathsep), installed) if installed else ()),
        targets=frozenset(named.targets),
        modules=frozenset(known - _own(top, roots)),
        tests=frozenset({*_linked_tests(top, roots), *named.suites}),
        skipped=skipped,
        ignored=ignored,
        seal=tuple(seal),
        unseal=tuple(unseal),
    )


def joined(old: Rules, new: Rules, sealed: Iterable[str]) -> Rules:
    """What either of two rules for a tree says: whoever changed it in between cannot make less of it count.

    `sealed` are the files that the old ones have found: a folder with one of them is looked at, ignored or not.
    """
    held = {one for path in sealed for one in above(os.path.dirname(path))}
    return replace(
        new,
        roots=old.roots | new.roots,
        files={**new.files, **old.files},
        targets=old.targets | new.targets,
        modules=old.modules | new.modules,
        tests=old.tests | new.tests,
        skipped=frozenset(folder for folder in new.skipped if folder in old.skipped or folder not in held),
    )


def listing(paths: Iterable[str]) -> Listing:
    """The folders of these files."""
    found: dict[str, tuple[list[str], dict[str, None]]] = {"": ([], {})}
    for path in paths:
        *over, name = path.split("/")
        if not SKIPPED.isdisjoint(over):
            continue
        folder = "/".join(over)
        found.setdefault(folder, ([], {}))[0].append(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            found.setdefault(folder, ([], {}))[1][name] = None
    return [(folder, files, list(below)) for folder, (files, below) in sorted(found.items())]


def look(rules: Rules, there: Listing | None = None) -> Iterator[tuple[str, Part, bool]]:
    """Every file that decides, with what it is, and whether only a new one counts; of those `there`, or on disk."""
    open_again = matcher(rules.unseal)
    for path, part, only_new in _look(rules, walk(rules.top, rules.skipped) if there is None else there):
        if not open_again(path):
            yield path, part, only_new


def _look(rules: Rules, there: Listing) -> Iterator[tuple[str, Part, bool]]:
    wanted = matcher(rules.seal)
    scripts = {os.path.dirname(path) for path in rules.files if path.endswith(".py")}  # which Python looks at first
    for folder, files, below in there:
        prefix = f"{folder}/" if folder else ""
        of_tests = is_of_tests(rules, folder)
        is_root = folder in rules.roots or "package.json" in files
        for name in files:
            path = prefix + name
            part: Part | None = decides.loaded(name, folder, is_root=is_root, of_tests=of_tests)
            if part is None and folder in rules.programs:
                part = "loaded"
            if part is None:
                part = "target" if is_root and name in rules.targets else rules.files.get(path)
            if part is None and wanted(path):
                part = "named"
            if part is None and (of_tests or decides.is_test(name)) and path not in rules.ignored:
                part = "test"
            if part:
                yield path, part, False
            if part and (part != "test" or decides.is_test(name)) and (led := _led_to(rules, path)):
                yield led, "named", False
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
    return any(one.rpartition("/")[2] in TEST_FOLDERS or one in rules.tests for one in above(folder) if one)


def modules(paths: Iterable[str]) -> frozenset[str]:
    """These files as a loader knows them, and their folders with a slash."""
    found = {module for path in paths if (module := _module(path)) is not None}
    return frozenset(found | {f"{folder}/" for path in paths for folder in above(os.path.dirname(path))})


def _module(path: str) -> str | None:
    """A file without its ending, if a loader finds it so; of an index, its folder."""
    stem, ending = os.path.splitext(path)
    folder, _, name = stem.rpartition("/")
    if ending not in _LOADERS:
        return None
    return folder if name in ("index", "__init__") and folder else stem


def hides(rules: Rules, path: str, paths: Collection[str], known: frozenset[str]) -> bool:
    """Whether a new file could be loaded in the place of one of `paths`, or says how those beside it are: `known`."""
    folder, _, name = path.rpartition("/")
    if path in paths:
        return False
    return _module(path) in known or (name in _SAYS_HOW and f"{folder}/" in known and is_of_tests(rules, folder))


def _led_to(rules: Rules, path: str) -> str:
    """Where in the tree a link leads; empty for a file, and where tools or git leave it out."""
    whole = f"{rules.top}/{path}"
    real = next(_below([os.path.realpath(whole)], os.path.realpath(rules.top)), "") if os.path.islink(whole) else ""
    is_left_out = any(one in rules.skipped or os.path.basename(one) in SKIPPED for one in above(os.path.dirname(real)))
    return "" if is_left_out or real in rules.ignored else real


def _below(paths: Iterable[str], top: str) -> Iterator[str]:
    """Those of the paths that are below `top`, relative to it."""
    for path in paths:
        if path.startswith(f"{top}/"):
            yield os.path.relpath(path, top)


def _linked_tests(top: str, roots: frozenset[str]) -> Iterator[str]:
    """Where links lead that are called like folders of tests."""
    links = (os.path.join(top, root, name) for root in roots for name in TEST_FOLDERS)
    yield from _below((os.path.realpath(link) for link in links if os.path.islink(link)), os.path.realpath(top))


def _installed(top: str, path: str) -> Iterator[str]:
    """The names of the packages that a check's Python finds."""
    prefixes = [f"{top}/{name}" for name in _VIRTUAL]
    for entry in path.split(os.pathsep):
        if os.access(f"{entry}/python3", os.X_OK) or os.access(f"{entry}/python", os.X_OK):
            prefixes.append(os.path.dirname(entry))
    for lib in (f"{prefix}/lib/{version}" for prefix in prefixes for version in _listed(f"{prefix}/lib")):
        for name in (name for site in _SITE for name in _listed(f"{lib}/{site}")):
            yield name.partition(".")[0].partition("-")[0]


def _own(top: str, roots: frozenset[str]) -> set[str]:
    """The modules of the project itself, which may be installed: what takes their place is its work."""
    found: set[str] = set()
    for folder in (os.path.join(top, root) for root in roots):
        for name in _listed(folder):
            if name.endswith(".py") or os.path.isfile(os.path.join(folder, name, "__init__.py")):
                found.add(name.partition(".")[0])
    return found


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
