"""The words of a gate's commands: the files and folders they name, the programs and the targets they start."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from raymond.patterns import regex
from raymond.verifier import makefiles, readers
from raymond.verifier.makefiles import text as _read

_BETWEEN = regex(r"[;&|()`<>\n{}]|\$\(")
_ASSIGNED = regex(r"[A-Za-z_]\w*=(?P<value>.*)", re.DOTALL)
_WHOLE = ("bats", "mocha", "jasmine", "prove", "run-parts", "phpunit", "node", "busted", "tape")
"""Programs that run whatever is in a folder that they are given."""
_PUTS = frozenset({"mkdir", "rmdir", "rm", "cp", "mv", "ln", "touch", "install", "chmod", "tar", "echo", "printf"})
"""Programs that start nothing in a folder that they are given."""
_MAKE = ("make", "gmake")
_RUNNERS = (*_MAKE, "npm", "pnpm", "yarn", "bun")
"""Programs that run the recipes of a folder."""
_LEAVES = regex(r"(?:^|[\s(;&])(?:cd|pushd|-C|--directory|--prefix|--cwd)\b")
"""In a line that starts a runner in another folder."""
_ROUNDS = 5
"""How far recipes that lead to others are followed."""
_MOST_RECIPES = 1000
_MOST_FOLDERS = 100
_TASKS = {"invoke": "tasks.py", "inv": "tasks.py", "doit": "dodo.py", "fab": "fabfile.py"}
"""Programs -> the file that they run; any other program may have one of that name."""
_SCRIPT = regex(r"(?<![\w./-])[\w./-]+\.(?:sh|bash)\b")
_SCRIPTED = (*makefiles.NAMES, "justfile", "Justfile", ".justfile", "package.json", "tox.ini")
"""Files whose recipes start scripts."""


def parts(command: str) -> list[list[str]]:
    """The simple commands of a line, each as words; assignments lose their name."""
    found = []
    for piece in _BETWEEN.split(command):
        try:
            words = shlex.split(piece, comments=True)
        except ValueError:  # a quote that spans the pieces
            words = piece.replace('"', " ").replace("'", " ").split()
        if words:
            found.append(words)
    return found


class Paths(Struct):
    """What commands name below a folder, relative to it."""

    files: set[str] = set()
    folders: set[str] = set()
    suites: set[str] = set()
    """Those of the folders that hold nothing but tests."""

    def add(self, more: "Paths") -> None:
        """Take what others name too."""
        self.files |= more.files
        self.folders |= more.folders
        self.suites |= more.suites


def paths(commands: Iterable[str], top: str, cwd: str) -> Paths:
    """The files and the folders below `top` that the commands name."""
    found = Paths()
    for command in commands:
        place, simple = cwd, parts(command)
        compares = readers.compares(simple)
        for words in simple:
            judged = frozenset[str]() if compares else readers.judged(words)
            runs_all = any(os.path.basename(word) in _WHOLE for word in words[:3])  # also after `npx` or `env X=1`
            found.files |= _module(words, place, top)
            for word in words:
                for path in _meant(word, place, top):
                    if not os.path.isdir(os.path.join(top, path)):
                        found.files |= set() if word in judged else {path}
                        continue
                    found.folders |= set() if words[0] in _PUTS else {path}
                    found.suites |= {path} if runs_all and path else set()
            if words[0] in ("cd", "pushd") and len(words) > 1:
                place = os.path.join(place, words[1])
    return found


def _meant(word: str, cwd: str, top: str) -> Iterator[str]:
    """What a word may name that exists below `top`: `tests/test_a.py::test_b`, `--config=x.cfg`, `checks/*`."""
    given = assigned["value"] if (assigned := _ASSIGNED.match(word)) else word
    for one in {given, given.partition("::")[0], given.partition("=")[2], given.removeprefix("-C")} - {""}:
        for path in (os.path.join(cwd, found) for found in makefiles.matching(one, cwd)):
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


def followed(commands: Sequence[str], folders: Iterable[str], top: str) -> tuple[Paths, list[str]]:
    """What the recipes name that the commands lead to, from one folder to the next; and their lines."""
    found, known = Paths(), dict[tuple[str, str], None]()
    pending = recipes(commands, folders, top)
    for _ in range(_ROUNDS):
        fresh = [one for one in dict.fromkeys(pending) if one not in known][: _MOST_RECIPES - len(known)]
        known |= dict.fromkeys(fresh)
        asked: dict[str, list[str]] = {}
        for folder, line in fresh:
            named = paths([line], top, os.path.join(top, folder))
            found.add(named)
            for place in named.folders | (set() if _LEAVES.search(line) else {folder}):
                asked.setdefault(place, []).extend(_runs(line))
        some = [(place, runs) for place, runs in asked.items() if runs][:_MOST_FOLDERS]
        pending = [one for place, runs in some for one in recipes(runs, [place], top)]
    return found, [line for _, line in known]


def _runs(line: str) -> list[str]:
    """The simple commands of a line that run the recipes of a folder."""
    simple = parts(line)
    return [shlex.join(words) for words in simple if any(os.path.basename(one) in _RUNNERS for one in words[:3])]


def tasks(commands: Iterable[str], folders: Iterable[str]) -> set[str]:
    """The files of tasks that the commands run, there or not."""
    words = {os.path.basename(word) for command in commands for part in parts(command) for word in part[:3]}
    return {os.path.join(folder, name) for program, name in _TASKS.items() if program in words for folder in folders}


def recipes(commands: Sequence[str], folders: Iterable[str], top: str) -> list[tuple[str, str]]:
    """The lines that make and npm run for the commands, each with its folder."""
    found: list[tuple[str, str]] = []
    words = [word for command in commands for part in parts(command) for word in part]
    for folder in folders:
        rules = makefiles.read(os.path.join(top, folder))
        reached = makefiles.reached(
            {word for word in words if word in rules.needs} | ({""} if "make" in words else set()), rules.needs
        )
        found += [(folder, line) for target in reached for line in rules.lines.get(target, ())]
        found += [(folder, line) for line in _npm(words, _read(os.path.join(top, folder, "package.json")))]
    return found


def _npm(words: Sequence[str], package: str) -> list[str]:
    """The scripts of a package.json that the words run, and those that these run."""
    try:
        known = json.loads(package).get("scripts", {}) if package else {}
        pending = [word for word in words if word in known] if isinstance(known, dict) else []
    except (ValueError, AttributeError):
        return []
    found: dict[str, str] = {}
    while pending:
        name = pending.pop()
        for one in (f"pre{name}", name, f"post{name}"):
            if one not in found and isinstance(known.get(one), str):
                found[one] = known[one]
                pending += [word for part in parts(known[one]) for word in part if word in known]
    return list(found.values())


def included(folders: Iterable[str], top: str) -> set[str]:
    """What Makefiles include, whether or not it is there."""
    found: set[str] = set()
    for folder in folders:
        named = makefiles.read(os.path.join(top, folder)).included
        found |= {path for one in named if (path := _inside(os.path.join(top, folder, one), top))}
    return found


def scripts(folders: Iterable[str], top: str) -> set[str]:
    """The shell scripts that the recipes in these folders name, relative to `top`."""
    found: set[str] = set()
    for folder in folders:
        for name in _SCRIPTED:
            lines = _read(os.path.join(top, folder, name)).replace("\r\n", "\n").split("\n")
            started = (line for line in lines if not any(map(readers.judged, parts(line.lstrip("\t @-+")))))
            for script in _SCRIPT.findall("\n".join(started)):
                path = _inside(os.path.join(top, folder, script), top)
                if path and os.path.isfile(os.path.join(top, path)):
                    found.add(path)
    return found


def targets(commands: Sequence[str], folders: Iterable[str], top: str) -> frozenset[str]:
    """The targets that make is asked for, with what they need: a file of that name would be up to date."""
    asked: set[str] = set()
    for command in commands:
        for words in parts(command):
            names = [word for word in words if not _ASSIGNED.match(word)]
            at = next((at for at, word in enumerate(names[:3]) if os.path.basename(word) in _MAKE), None)
            if at is not None:  # also after `do` or `env`
                asked |= {word for word in names[at + 1 :] if not word.startswith("-")} or {""}
    found: set[str] = set()
    for folder in folders if asked else ():
        needs = makefiles.read(os.path.join(top, folder)).needs
        found |= makefiles.reached(asked, needs) - needs.get(".PHONY", set())
    return frozenset(found - {"", ".PHONY"})


def _inside(path: str, top: str) -> str | None:
    """`path` relative to `top`; None when it is not below it."""
    if "\0" in path:
        return None
    found = os.path.relpath(os.path.normpath(path), top)
    return None if found.startswith("..") else "" if found == "." else found
