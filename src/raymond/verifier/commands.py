"""What a check's commands lead to: the files and folders they name, the recipes they run, and what these name."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from raymond.patterns import regex
from raymond.verifier import build_files, decides

_BETWEEN = regex(r"[;&|()`<>\n{}]|\$\(")
_ASSIGNED = regex(r"[A-Za-z_]\w*=(?P<value>.*)", re.DOTALL)
_WHOLE = ("bats", "mocha", "jasmine", "prove", "run-parts", "phpunit", "node", "busted", "tape")
"""Programs that run whatever is in a folder that they are given."""
_PUTS = frozenset({"mkdir", "rmdir", "rm", "cp", "mv", "ln", "touch", "install", "chmod", "tar", "echo", "printf"})
"""Programs that start nothing in a folder that they are given."""
_PROGRAMS = {"make": "make", "gmake": "make", "just": "just"}
_SCRIPTED = ("npm", "pnpm", "yarn", "bun", "run-s", "run-p", "npm-run-all")
"""Programs that run the scripts of a package.json."""
_TASKS = {"invoke": "tasks.py", "inv": "tasks.py", "doit": "dodo.py", "fab": "fabfile.py"}
"""Programs -> the file that they run; any other program may have one of that name."""
_RUNNERS = frozenset({*_PROGRAMS, *_SCRIPTED, *_TASKS})
_TAKES_VALUE = ("-C", "-f", "-I", "-o", "--directory", "--file", "--justfile", "--working-directory")
_BEFORE = 6
"""Words before which a runner may stand: `do`, `env X=1`, `timeout 60`."""
_LEAVES = regex(r"(?:^|[\s(;&])(?:cd|pushd|-C|--directory|--prefix|--cwd)\b")
"""In a line that starts a runner in another folder."""
_IMPORTED = regex(
    r"^[ \t]*(?:import|from)[ \t]+(?P<module>\w[\w.]*)|(?:\brequire\(|\bfrom|^import)[ \t]*[\"']\./(?P<path>[^\"'\n]+)"
    r"|^[ \t]*(?:\.|source)[ \t]+(?P<script>[^;&|\n]+)",
    re.MULTILINE,
)
_ENDINGS = ("", ".py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js")
_ROUNDS = 5
"""How far recipes that lead to others are followed."""
_MOST = 1000
"""Lines of recipes, and files that scripts import."""


class Named(Struct):
    """What commands lead to below the top of a tree, relative to it."""

    files: set[str] = set()
    loaded: set[str] = set()
    """Files of recipes that others include, whether or not they are there."""
    folders: set[str] = set()
    suites: set[str] = set()
    """Those of the folders that hold nothing but tests."""
    targets: set[str] = set()
    """What make would take for done if there were a file of that name."""


def named(commands: Iterable[str], top: str, cwd: str) -> Named:
    """What commands in `cwd` lead to: what they name, then what their recipes name, from one folder to the next."""
    found, known = Named(), set[tuple[str, str]]()
    here = _inside(cwd, top) or ""
    pending = [(here, line) for line in commands]
    for _ in range(_ROUNDS + 1):
        fresh = [one for one in dict.fromkeys(pending) if one not in known][: _MOST - len(known)]
        known.update(fresh)
        pending = []
        for folder, line in fresh:
            places = _add_words(found, line, top, os.path.join(top, folder))
            places |= set() if _LEAVES.search(line) else {folder}
            for words in _runs(line):
                further = above(folder) if words[0] in _SCRIPTED else ()  # as npm looks for its package.json
                pending += [one for place in sorted({*places, *further}) for one in _recipes(found, words, place, top)]
    found.files |= _imported(found.files, top, here)
    return found


def parts(command: str) -> list[list[str]]:
    """The simple commands of a line, each as words."""
    found = []
    for piece in _BETWEEN.split(command):
        try:
            words = shlex.split(piece, comments=True)
        except ValueError:  # a quote that spans the pieces
            words = piece.replace('"', " ").replace("'", " ").split()
        if words:
            found.append(words)
    return found


def above(folder: str) -> list[str]:
    """A folder and those above it, up to the top."""
    found = [""]
    while folder and folder != ".":
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _add_words(found: Named, command: str, top: str, place: str) -> set[str]:
    """Add what the words of a command name that is there; the folders among it."""
    simple, folders = parts(command), set[str]()
    compares = build_files.compares(simple)
    for words in simple:
        judged = frozenset[str]() if compares else build_files.judged_files(words)
        runs_all = any(os.path.basename(word) in _WHOLE for word in words[:3])  # also after `npx` or `env X=1`
        found.files |= _module(words, place, top)
        for word in words:
            for path in _meant(word, place, top):
                if not os.path.isdir(os.path.join(top, path)):
                    found.files |= set() if word in judged else {path}
                    continue
                folders |= set() if words[0] in _PUTS else {path}
                found.suites |= {path} if runs_all and path else set()
        if words[0] in ("cd", "pushd") and len(words) > 1:
            place = os.path.join(place, words[1])
    found.folders |= folders
    return folders


def _meant(word: str, cwd: str, top: str) -> Iterator[str]:
    """What a word may name that exists below `top`: `tests/test_a.py::test_b`, `--config=x.cfg`, `checks/*`."""
    given = assigned["value"] if (assigned := _ASSIGNED.match(word)) else word
    for one in {given, given.partition("::")[0], given.partition("=")[2], given.removeprefix("-C")} - {""}:
        for path in (os.path.join(cwd, found) for found in build_files.matching(one, cwd)):
            # What a link leads to is what the shell runs.
            for real in {path, os.path.realpath(path)}:
                inside = _inside(real, top)
                if inside is not None and os.path.lexists(os.path.join(top, inside)):
                    yield inside


def _module(words: Sequence[str], cwd: str, top: str) -> set[str]:
    """The files that `python -m` may take for a module that is there: one that is not could hide the others."""
    at = next((at for at, word in enumerate(words[:-1]) if word == "-m"), 0)
    if not any(os.path.basename(word).startswith(("python", "coverage")) for word in words[:at]):
        return set()
    path = os.path.join(cwd, words[at + 1].replace(".", "/"))
    meant = (_inside(f"{path}{end}", top) for end in (".py", "/__init__.py", "/__main__.py"))
    found = {one for one in meant if one}
    return found if any(os.path.isfile(os.path.join(top, one)) for one in found) else set()


def _runs(line: str) -> Iterator[list[str]]:
    """The simple commands of a line that run recipes, each from its program on."""
    for words in parts(line):
        names = [os.path.basename(word) for word in words[:_BEFORE]]
        if at := next((at + 1 for at, name in enumerate(names) if name in _RUNNERS), 0):
            yield [names[at - 1], *words[at:]]


def _recipes(found: Named, words: Sequence[str], folder: str, top: str) -> Iterator[tuple[str, str]]:
    """The lines that a program runs in a folder, each with that folder; what is known of its files is added."""
    place, program = os.path.join(top, folder), words[0]
    if program in _SCRIPTED:
        yield from ((folder, line) for line in _scripts(words, build_files.text(os.path.join(place, "package.json"))))
    elif program in _TASKS:
        found.loaded.add(os.path.join(folder, _TASKS[program]))
    else:
        recipes = build_files.read_recipes(place, _PROGRAMS[program])
        reached = recipes.reached(_asked(words) or {""})
        found.targets |= reached & recipes.files if program != "just" else set()
        found.loaded |= {path for one in recipes.included if (path := _inside(os.path.join(place, one), top))}
        yield from ((folder, line) for target in sorted(reached) for line in recipes.lines.get(target, ()))


def _asked(words: Sequence[str]) -> set[str]:
    """The targets that a program is asked for."""
    given = [word for before, word in pairwise(words) if before not in _TAKES_VALUE]
    return {word for word in given if not word.startswith("-") and not _ASSIGNED.match(word)}


def _scripts(words: Sequence[str], package: str) -> list[str]:
    """The scripts of a package.json that the words run, with those before and after them."""
    try:
        known = json.loads(package).get("scripts", {}) if package else {}
        found = [known.get(f"{when}{word}") for word in words for when in ("pre", "", "post")]
    except (ValueError, AttributeError):
        return []
    return [line for line in found if isinstance(line, str)]


def _imported(files: Iterable[str], top: str, here: str) -> set[str]:
    """What scripts source or import from their own folder, unless that holds the work: it is where the check runs.

    What a test imports is the work too, or a part of the tests.
    """
    found, pending = set[str](), list(files)
    while pending and len(found) < _MOST:
        path = pending.pop()
        folder, name = os.path.split(path)
        if folder in ("", here) or decides.is_test(name) or not decides.TEST_FOLDERS.isdisjoint(folder.split("/")):
            continue
        for one in _IMPORTED.finditer(build_files.text(os.path.join(top, path))):
            for candidate in {os.path.normpath(f"{folder}/{name}{end}") for name in _imports(one) for end in _ENDINGS}:
                is_new = candidate.startswith(f"{folder}/") and candidate not in found and candidate != path
                if is_new and os.path.isfile(os.path.join(top, candidate)):
                    found.add(candidate)
                    pending.append(candidate)
    return found


def _imports(found: "re.Match[str]") -> list[str]:
    """What an import may mean in the folder of its file: `a.b` also `a`, and `"$(dirname "$0")/x.sh"` is `x.sh`."""
    if module := found["module"]:
        names = module.split(".")
        return ["/".join(names[: at + 1]) for at in range(len(names))]
    return [found["path"]] if found["path"] else [found["script"].strip("\"' \t").rpartition("/")[2]]


def _inside(path: str, top: str) -> str | None:
    """`path` relative to `top`; None when it is not below it."""
    if "\0" in path:
        return None
    found = os.path.relpath(os.path.normpath(path), top)
    return None if found.startswith("..") else "" if found == "." else found
