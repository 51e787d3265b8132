"""What programs said, remembered because asking takes a while: agents' programs of their versions, bash about scripts.

A version is remembered by path, size and times of change. A script, or a program too small to be one of these, only
starts another, which can change without it: what it said counts for a few minutes. What bash said is remembered by the
text of the script; beside it, that nothing was found in a workflow.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from raymond.digests import sha256
from raymond.errors import Error
from raymond.store import home
from raymond.system import bash, files, programs

VERSIONS_FILE = "versions.json"
_SMALL_PROGRAM = 1 << 20
"""Bytes; Claude Code and Codex have more."""
_SECONDS_KEPT = 600
"""For which one counts that only starts another."""
_ASKED = "asked"

VERDICTS_FILE = "scripts.json"
_MAX_BYTES = 1 << 20
_MOST_VERDICTS = 2000
_RULES = ("", "language", "language/lint", "redaction")
"""The folders of our own files that decide what is found in a workflow: they import no others."""

_Kept = TypeVar("_Kept")


# The versions of agents' programs, remembered by path, size and times of change: asking one takes a while


def checked_version(path: str, title: str, oldest: tuple[int, ...], without: tuple[str, ...]) -> tuple[str, str]:
    """The version of a program, and why it cannot be used when it tells none or is too old."""
    mark, known = _program_mark(path), _known_versions()
    said = _remembered_version(path, known.get(path, {}), mark)
    if not said:
        said, problem = programs.version(path, without)
        if problem:
            return said, problem
        _remember(VERSIONS_FILE, known | {path: {mark: said, _ASKED: str(int(time.time()))}})
    return said, programs.too_old(path, said, title, oldest)


def forget_versions() -> None:
    """Ask every program anew: for whoever wants to know what is true now."""
    with contextlib.suppress(OSError, Error):
        os.unlink(_path(VERSIONS_FILE))


def _program_mark(path: str) -> str:
    found = os.stat(path)
    return f"{os.path.realpath(path)} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _remembered_version(path: str, kept: dict[str, str], mark: str) -> str:
    """What the program said, if that still counts."""
    said = kept.get(mark, "")
    if not said or not _starts_another(path):
        return said
    asked = kept.get(_ASKED, "")
    return said if asked.isdecimal() and 0 <= time.time() - int(asked) < _SECONDS_KEPT else ""


def _starts_another(path: str) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as opened:
        return os.fstat(opened.fileno()).st_size < _SMALL_PROGRAM or opened.read(2) == b"#!"
    return True


def _known_versions() -> dict[str, dict[str, str]]:
    """Path -> what the file was like -> what it said; and when it was asked."""
    return _remembered(VERSIONS_FILE, dict[str, dict[str, str]])


# What bash said about scripts


def complaints(texts: Mapping[str, str]) -> dict[str, str]:
    """What bash says about each script it does not like; it is asked about those that it has not read yet."""
    known = _verdicts()
    keys = {name: _key(text) for name, text in texts.items()}
    new = bash.verdicts({name: text for name, text in texts.items() if keys[name] not in known})
    if new:
        known |= {keys[name]: said for name, said in new.items()}
        _remember_verdicts(known)
    return {name: said for name, key in keys.items() if (said := known.get(key, ""))}


def are_well(texts: Mapping[str, str]) -> bool:
    """Whether bash has read every one of these scripts before, and liked it."""
    known = _verdicts()
    return all(known.get(_key(text)) == "" for text in texts.values())


def is_clean(facts: tuple[object, ...]) -> bool:
    """Whether nothing was found in a workflow of which these `facts` are everything that decides about that."""
    return _verdicts().get(_facts_key(facts)) == ""


def remember_clean(facts: tuple[object, ...]) -> None:
    """Nothing was found in that workflow."""
    _remember_verdicts(_verdicts() | {_facts_key(facts): ""})


def _verdicts() -> dict[str, str]:
    """What is known, by the hash of a script or of facts; empty for what is well."""
    return _remembered(VERDICTS_FILE, dict[str, str])


def _remember_verdicts(known: Mapping[str, str]) -> None:
    _remember(VERDICTS_FILE, dict(list(known.items())[-_MOST_VERDICTS:]))


def _facts_key(facts: tuple[object, ...]) -> str:
    """With another Python, or after an edit of our own rules, it is another one."""
    ours = (*sys.version_info, *sorted(_own_rules()))
    return _key(f"workflow\0{facts!r}\0{ours!r}")


def _own_rules() -> Iterator[tuple[str, int, int]]:
    for folder in _RULES:
        with os.scandir(os.path.join(os.path.dirname(os.path.dirname(__file__)), folder)) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    yield entry.path, found.st_size, found.st_mtime_ns


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


# Their files, which are only caches: where one cannot be read or written, the program is asked again


def _path(name: str) -> str:
    return f"{home.find().path}/{name}"


def _remembered(name: str, kind: type[_Kept]) -> _Kept:
    try:
        return msgspec.json.decode(files.contents(_path(name), _MAX_BYTES), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, Error):
        return kind()


def _remember(name: str, known: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError, Error):
        if os.path.isdir(os.path.dirname(_path(name))):
            files.replace(_path(name), msgspec.json.encode(known))
