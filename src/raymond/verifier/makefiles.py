"""Makefiles, as far as targets, what they need, plain variables and recipes go."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from glob import iglob
from itertools import islice

from msgspec import Struct

from raymond.patterns import regex

NAMES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make looks for them."""
_ASSIGNMENT = regex(r"^(?:export\s+|override\s+)?(?P<name>[\w.-]+)\s*(?P<how>:{1,3}|\?|\+)?=(?P<value>[^#]*)")
_VARIABLE = regex(r"\$(?:[({]([\w.-]+|[@<^+])[)}]|([@<^+]))")
_VARIABLES = {"CC": "cc", "CXX": "g++", "LD": "ld", "AR": "ar", "MAKE": "make", "SHELL": "sh", "CURDIR": "."}
"""What make itself knows."""
_DEEPEST = 5
"""How often a variable may stand for others."""
_LONGEST = 10_000
"""Characters of a line, or of the value of a variable, that are expanded."""
_INCLUDE = regex(r" *[-s]?include[ \t]+(?P<names>[^#]+)")
_MOST_MATCHING = 1000
_MOST_PARTS = 100
"""Folders in a pattern: each is a level of recursion."""
_MOST_INCLUDED = 100
"""Files that a Makefile includes, with those that they include."""
_MOST = 1 << 20
"""Bytes read of a file."""


class Rules(Struct):
    """The rules of a Makefile: what each target needs, and the lines that make it."""

    needs: dict[str, set[str]] = {}
    lines: dict[str, list[str]] = {}
    included: dict[str, None] = {}
    """What it includes, from its folder, whether or not it is there."""
    left: int = _MOST
    """Characters that are still read of that."""

    def recipe(self, target: str, variables: Mapping[str, str]) -> list[str]:
        """The lines of a target as make would run them; what it needs stands also where only the first is meant."""
        needs = " ".join(sorted(self.needs.get(target, ())))
        own = {**variables, "@": target, "<": needs, "^": needs, "+": needs}
        return [_expanded(line, own) for line in self.lines.get(target, ())]


def _expanded(line: str, variables: Mapping[str, str]) -> str:
    """A line with its variables, as far as they are plain."""
    for _ in range(_DEEPEST):
        said = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), line)
        if said == line or len(said) > _LONGEST:
            break
        line = said
    return line


def read(folder: str) -> Rules:
    """The rules of the Makefile that make would take in a folder."""
    said = next(filter(None, (text(os.path.join(folder, name)) for name in NAMES)), "")
    found, targets, variables = Rules(), list[str](), dict(_VARIABLES)
    pending = [_lines(said)]
    while pending:
        line = next(pending[-1], None)
        if line is None:
            pending.pop()
        elif line.startswith("\t"):
            for target in targets:
                found.lines.setdefault(target, []).append(line.strip().lstrip("@-+"))
        elif assigned := _ASSIGNMENT.match(line):
            _assign(variables, assigned)
        elif include := _INCLUDE.match(line):
            pending += _included(found, folder, _expanded(include["names"], variables))
        elif rule := _rule(_expanded(line, variables)):
            targets, (needs, _, recipe) = rule[0].split(), rule[1].partition(";")
            for target in targets:
                found.needs.setdefault(target, set()).update(needs.split())
                found.needs.setdefault("", {target})  # the first rule is what make does unasked
                found.lines.setdefault(target, []).extend([recipe] if recipe else [])
    found.lines = {target: found.recipe(target, variables) for target in found.lines}
    return found


def _lines(said: str) -> Iterator[str]:
    return iter(said.replace("\r\n", "\n").replace("\\\n", " ").split("\n"))


def _assign(variables: dict[str, str], assigned: "re.Match[str]") -> None:
    name, value = assigned["name"], assigned["value"].strip()
    if assigned["how"] == "+":
        value = f"{variables.get(name, '')} {value}"
    if assigned["how"] != "?" or name not in variables or name in _VARIABLES:
        variables[name] = value[:_LONGEST]


def _included(rules: Rules, folder: str, names: str) -> Iterator[Iterator[str]]:
    """The lines of what a Makefile includes, each file once."""
    for name in names.split():
        if len(rules.included) >= _MOST_INCLUDED or "$" in name:
            continue
        for path in matching(name, folder):
            if path not in rules.included and len(rules.included) < _MOST_INCLUDED:
                rules.included[path] = None
                said = text(os.path.join(folder, path))[: rules.left]
                rules.left -= len(said)
                yield _lines(said)


def matching(pattern: str, folder: str) -> list[str]:
    """What a pattern of the shell stands for in a folder; a plain path stands for itself, there or not."""
    if "\0" in pattern:
        return []
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    return list(islice(iglob(pattern, root_dir=folder), _MOST_MATCHING)) if pattern.count("/") < _MOST_PARTS else []


def _rule(line: str) -> tuple[str, str] | None:
    """What stands before and after the colon of a rule."""
    targets, colon, needs = line.partition(":")
    is_rule = colon and targets.strip() and targets[0] not in " #" and not any(sign in targets for sign in "=#")
    needs = needs.removeprefix(":")
    return (targets, needs) if is_rule and not needs.startswith("=") else None


def reached(asked: set[str], needs: dict[str, set[str]]) -> set[str]:
    """The targets that make comes to from those that it is asked for."""
    found, pending = set[str](), list(asked)
    while pending:
        target = pending.pop()
        if target not in found:
            found.add(target)
            pending += needs.get(target, ())
    return {target for target in found if target in needs and "$" not in target}


def text(path: str) -> str:
    """The beginning of a file; empty when there is none, or it is no plain file: a pipe would keep us waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(fd, "rb") as file:
        return file.read(_MOST).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""
