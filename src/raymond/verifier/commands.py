"""The words of a gate's commands: the files and folders they name, the programs and the targets they start."""

import os
import re
import shlex
from collections.abc import Iterable, Sequence

ALWAYS = ("bash", "sh", "env", "python", "python3", "node", "npm", "npx", "git", "make", "pytest")
"""Programs that checks start without naming them."""
_BETWEEN = re.compile(r"[;&|()`<>\n{}]|\$\(")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=(?P<value>.*)", re.DOTALL)
_RULE = re.compile(r"^(?P<targets>[^\s#:=][^#:=\n]*?)\s*::?(?!=)(?P<needs>[^=\n]*)", re.MULTILINE)
_SCRIPT = re.compile(r"[\w./-]+\.(?:sh|bash)\b")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_SCRIPTED = (*_MAKEFILES, "justfile", "Justfile", ".justfile", "package.json", "tox.ini")
"""Files whose recipes start scripts."""
_MOST = 1 << 20
"""Bytes read of one of them."""


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


def paths(commands: Iterable[str], top: str, cwd: str) -> tuple[set[str], set[str]]:
    """The files and the folders below `top` that the commands name, relative to it."""
    files: set[str] = set()
    folders: set[str] = set()
    for command in commands:
        for word in (word for words in parts(command) for word in words):
            given = assigned["value"] if (assigned := _ASSIGNED.match(word)) else word
            # `pytest tests/test_a.py::test_b`, `--config=x.cfg`
            for one in {given, given.partition("::")[0], given.partition("=")[2]} - {""}:
                path = _inside(os.path.join(cwd, one), top)
                if path is None:
                    continue
                whole = os.path.join(top, path)
                if os.path.isdir(whole):
                    folders.add(path)
                elif os.path.lexists(whole):
                    files.add(path)
    return files, folders


def scripts(folders: Iterable[str], top: str) -> set[str]:
    """The shell scripts that the recipes in these folders name, relative to `top`."""
    found: set[str] = set()
    for folder in folders:
        for name in _SCRIPTED:
            for script in _SCRIPT.findall(_read(os.path.join(top, folder, name))):
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
        text = next(filter(None, (_read(os.path.join(top, folder, name)) for name in _MAKEFILES)), "")
        for rule in _RULE.finditer(text.replace("\\\n", " ")):
            for target in rule["targets"].split():
                needs.setdefault(target, set()).update(rule["needs"].split())
                needs.setdefault("", {target})  # the first rule is what make does unasked
    return frozenset(_reached(asked, needs) - needs.get(".PHONY", set()) - {"", ".PHONY"})


def _reached(asked: set[str], needs: dict[str, set[str]]) -> set[str]:
    found, pending = set[str](), list(asked)
    while pending:
        target = pending.pop()
        if target not in found:
            found.add(target)
            pending += needs.get(target, ())
    return {target for target in found if target in needs and "$" not in target}


def _inside(path: str, top: str) -> str | None:
    """`path` relative to `top`; None when it is not below it."""
    if "\0" in path:
        return None
    found = os.path.relpath(os.path.normpath(path), top)
    return None if found.startswith("..") else "" if found == "." else found


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
