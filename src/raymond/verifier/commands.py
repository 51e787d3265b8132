"""The words of a gate's commands: the files and folders they name, the programs and the targets they start."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from glob import glob

from msgspec import Struct

from raymond.verifier import makefiles, readers
from raymond.verifier.makefiles import text as _read

ALWAYS = ("bash", "sh", "env", "python", "python3", "node", "npm", "npx", "git", "make", "pytest")
"""Programs that checks start without naming them."""
_BETWEEN = re.compile(r"[;&|()`<>\n{}]|\$\(")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=(?P<value>.*)", re.DOTALL)
_MOST_NAMED = 1000
_WHOLE = ("bats", "mocha", "jasmine", "prove", "run-parts", "phpunit", "node", "busted", "tape")
"""Programs that run whatever is in a folder that they are given."""
_SCRIPT = re.compile(r"(?<![\w./-])[\w./-]+\.(?:sh|bash)\b")
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


def programs(commands: Iterable[str]) -> frozenset[str]:
    """What the commands start, by name."""
    found = set(ALWAYS)
    for command in commands:
        for words in parts(command):
            name = next((word for word in words if not _ASSIGNED.match(word)), "")
            found.add(os.path.basename(name))
    return frozenset(found - {""})


class Paths(Struct):
    """What commands name below a folder, relative to it."""

    files: set[str] = set()
    folders: set[str] = set()
    suites: set[str] = set()
    """Those of the folders that hold nothing but tests."""

    def add(self, more: "Paths") -> None:
        """Take what others name too, but for the folders: they begin nothing."""
        self.files |= more.files
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
            for word in words:
                for path in _meant(word, place, top):
                    if not os.path.isdir(os.path.join(top, path)):
                        found.files |= set() if word in judged else {path}
                        continue
                    found.folders.add(path)
                    found.suites |= {path} if runs_all and path else set()
            if words[0] in ("cd", "pushd") and len(words) > 1:
                place = os.path.join(place, words[1])
    return found


def _meant(word: str, cwd: str, top: str) -> Iterator[str]:
    """What a word may name that exists below `top`: `tests/test_a.py::test_b`, `--config=x.cfg`, `checks/*`."""
    given = assigned["value"] if (assigned := _ASSIGNED.match(word)) else word
    for one in {given, given.partition("::")[0], given.partition("=")[2]} - {""}:
        found = [os.path.join(cwd, one)]
        if any(sign in one for sign in "*?["):
            found = glob(found[0])[:_MOST_NAMED]
        for path in found:
            # What a link leads to is what the shell runs.
            for real in {path, os.path.realpath(path)}:
                inside = _inside(real, top)
                if inside is not None and os.path.lexists(os.path.join(top, inside)):
                    yield inside


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
        for name in makefiles.NAMES:
            for line in makefiles.includes(_read(os.path.join(top, folder, name))):
                paths = (_inside(os.path.join(top, folder, one), top) for one in line.split() if "$" not in one)
                found |= {path for path in paths if path}
    return found


def scripts(folders: Iterable[str], top: str) -> set[str]:
    """The shell scripts that the recipes in these folders name, relative to `top`."""
    found: set[str] = set()
    for folder in folders:
        for name in _SCRIPTED:
            lines = _read(os.path.join(top, folder, name)).splitlines()
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
            if names and os.path.basename(names[0]) in ("make", "gmake"):
                asked |= {word for word in names[1:] if not word.startswith("-")} or {""}
    if not asked:
        return frozenset()
    needs: dict[str, set[str]] = {}
    for folder in folders:
        for target, wanted in makefiles.read(os.path.join(top, folder)).needs.items():
            needs.setdefault(target, set()).update(wanted)
    return frozenset(makefiles.reached(asked, needs) - needs.get(".PHONY", set()) - {"", ".PHONY"})


def _inside(path: str, top: str) -> str | None:
    """`path` relative to `top`; None when it is not below it."""
    if "\0" in path:
        return None
    found = os.path.relpath(os.path.normpath(path), top)
    return None if found.startswith("..") else "" if found == "." else found
