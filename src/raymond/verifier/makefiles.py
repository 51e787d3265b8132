"""Makefiles and justfiles, as far as targets, what they need, plain variables and recipes go."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from glob import iglob
from itertools import islice

from msgspec import Struct

from raymond.patterns import regex

NAMES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
"""Programs -> the files that they run, in the order in which they look for them."""
_ASSIGNMENT = regex(r"^(?:export\s+|override\s+)?(?P<name>[\w.-]+)\s*(?P<how>:{1,3}|\?|\+)?=(?P<value>[^#]*)")
_VARIABLE = regex(r"\$(?:[({]([\w.-]+|[@<^+])[)}]|([@<^+]))")
_KNOWN = {"CC": "cc", "CXX": "g++", "LD": "ld", "AR": "ar", "MAKE": "make", "SHELL": "sh", "CURDIR": "."}
"""What make itself knows."""
_INCLUDE = regex(r" *[-s]?include[ \t]+(?P<names>[^#]+)")
_RULE = regex(r"(?P<targets>[^\s#:=][^#:=]*)::?(?P<needs>(?!=)[^;]*);?(?P<recipe>.*)")
_DEEPEST = 5
"""How often a variable may stand for others."""
_LONGEST = 10_000
"""Characters of a line, or of the value of a variable, that are expanded."""
_MOST_MATCHING = 1000
_MOST_PARTS = 100
"""Folders in a pattern: each is a level of recursion."""
_MOST_INCLUDED = 100
_MOST = 1 << 20
"""Bytes read of a file."""


class Recipes(Struct):
    """What each target needs, and the lines that make it."""

    needs: dict[str, set[str]] = {}
    lines: dict[str, list[str]] = {}
    included: dict[str, None] = {}
    """What it includes, from its folder, whether or not it is there."""

    def reached(self, asked: Iterable[str]) -> set[str]:
        """The targets that are come to from those that are asked for; all, if none of these is known."""
        found, pending = set[str](), [one for one in asked if one in self.needs] or list(self.needs)
        while pending:
            target = pending.pop()
            if target not in found:
                found.add(target)
                pending += self.needs.get(target, ())
        return {target for target in found if target in self.needs and "$" not in target}

    @property
    def files(self) -> set[str]:
        """The targets that are files to make: one that is there would be up to date."""
        return self.needs.keys() - self.needs.get(".PHONY", set()) - {"", ".PHONY"}


def read(folder: str, program: str = "make") -> Recipes:
    """The recipes that a program would take in a folder."""
    said = next(filter(None, (text(os.path.join(folder, name)) for name in NAMES[program])), "")
    found, targets, variables = Recipes(), list[str](), dict(_KNOWN)
    pending, left = [_lines(said)], _MOST
    while pending:
        line = next(pending[-1], None)
        if line is None:
            pending.pop()
        elif line.startswith("\t") or (program == "just" and line.startswith(" ")):
            for target in targets:
                found.lines.setdefault(target, []).append(line.strip().lstrip("@-+"))
        elif assigned := _ASSIGNMENT.match(line):
            _assign(variables, assigned)
        elif include := _INCLUDE.match(line):
            for path in _included(found, folder, _expanded(include["names"], variables)):
                more = text(os.path.join(folder, path))[:left]
                left -= len(more)
                pending.append(_lines(more))
        elif rule := _RULE.match(_expanded(line, variables)):
            targets = rule["targets"].split()[: 1 if program == "just" else None]
            for target in targets:
                found.needs.setdefault(target, set()).update(rule["needs"].split())
                found.needs.setdefault("", {target})  # the first is made unasked
                found.lines.setdefault(target, []).extend([rule["recipe"].strip(" @-+")] if rule["recipe"] else [])
    for target, lines in found.lines.items():
        needs = " ".join(sorted(found.needs[target]))
        own = {**variables, "@": target, "<": needs, "^": needs, "+": needs}
        found.lines[target] = [_expanded(line, own) for line in lines]
    return found


def _lines(said: str) -> Iterator[str]:
    return iter(said.replace("\r\n", "\n").replace("\\\n", " ").split("\n"))


def _expanded(line: str, variables: Mapping[str, str]) -> str:
    """A line with its variables, as far as they are plain."""
    for _ in range(_DEEPEST):
        said = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), line)
        if said == line or len(said) > _LONGEST:
            break
        line = said
    return line


def _assign(variables: dict[str, str], assigned: "re.Match[str]") -> None:
    name, value = assigned["name"], assigned["value"].strip()
    if assigned["how"] == "+":
        value = f"{variables.get(name, '')} {value}"
    if assigned["how"] != "?" or name not in variables or name in _KNOWN:
        variables[name] = value[:_LONGEST]


def _included(recipes: Recipes, folder: str, names: str) -> Iterator[str]:
    """What a Makefile includes and has not included yet."""
    for path in (path for name in names.split() if "$" not in name for path in matching(name, folder)):
        if path not in recipes.included and len(recipes.included) < _MOST_INCLUDED:
            recipes.included[path] = None
            yield path


def matching(pattern: str, folder: str) -> list[str]:
    """What a pattern of the shell stands for in a folder; a plain path stands for itself, there or not."""
    if "\0" in pattern:
        return []
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    return list(islice(iglob(pattern, root_dir=folder), _MOST_MATCHING)) if pattern.count("/") < _MOST_PARTS else []


def text(path: str) -> str:
    """The beginning of a file; empty when there is none, or it is no plain file: a pipe would keep us waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(fd, "rb") as file:
        return file.read(_MOST).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""
