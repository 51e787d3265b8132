"""What agents' programs have in common: what a person may set for them, who pays, and the JSON that they print."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raymond.errors import UsageError
from raymond.patterns import regex
from raymond.store.trust import top_of
from raymond.system import files

SOURCES = ("user", "project", "local")
_KEYS = {"claude": ("program", "args", "setting_sources"), "codex": ("program", "args")}
_RIGHTS = "rights are given at the start of a run: --permission-mode, --allow-tool, --dangerously-skip-permissions"
_OURS = "Raymond sets it for each turn"
_GIVING = {
    "claude": (
        *("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--permission-mode"),
        *("--permission-prompts", "--permission-prompt-tool", "--allowedTools", "--allowed-tools"),
        *("--disallowedTools", "--disallowed-tools"),
    ),
    "codex": (
        *("--sandbox", "--approve-for-me", "--full-auto", "--yolo", "--ask-for-approval"),
        *("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"),
    ),
}
"""Flags that give rights, or take back those that Raymond keeps from agents."""
_OWN = {
    "claude": (
        *("--print", "--output-format", "--input-format", "--verbose", "--include-partial-messages", "--settings"),
        *("--setting-sources", "--session-id", "--resume", "--continue", "--fork-session", "--from-pr", "--teleport"),
        *("--no-session-persistence", "--model", "--effort", "--max-budget-usd", "--append-system-prompt"),
        *("--append-system-prompt-file", "--system-prompt-snapshot", "--bg", "--background", "--cloud", "--desktop"),
        *("--environment", "--remote-control", "--worktree", "--tmux", "--json-schema", "--help", "--version"),
    ),
    "codex": (
        *("--json", "--skip-git-repo-check", "--model", "--cd", "--worktree", "--ephemeral", "--output-schema"),
        *("--output-last-message", "--help", "--version"),
    ),
}
_SETTINGS = frozenset(
    (
        *("approval_policy", "approvals_reviewer", "default_permissions", "permissions", "projects", "sandbox_mode"),
        *("sandbox_workspace_write", "developer_instructions", "model", "model_reasoning_effort"),
    )
)
"""Settings of Codex that are Raymond's to give."""
_SHORT = {"claude": (), "codex": ("-c", "-i", "-p")}

_DIGITS = 6

_LONE = regex(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a surrogate pair; the other half may have been cut off."""
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


# What a person may set for the agents' programs: the tables `[backends.claude]` and `[backends.codex]`


class ProgramOptions(Struct, frozen=True, kw_only=True):
    """How a person wants a program to be started."""

    program: str
    args: tuple[str, ...] = ()
    """Passed on before Raymond's own flags."""
    setting_sources: tuple[str, ...] | None = None
    """The only settings that Claude Code uses; None for all."""


def read_options(name: str, table: Mapping[str, Any]) -> ProgramOptions:
    """The options in the table of the program `name`; refused when they make no sense."""
    unknown = [key for key in table if key not in _KEYS[name]]
    if unknown:
        known = ", ".join(f"`{key}`" for key in _KEYS[name])
        hint = "to define a backend of your own, give it another name"
        raise UsageError(f"[backends.{name}] accepts only {known}, not `{unknown[0]}`", hint=hint)
    sources = table.get("setting_sources")
    if sources is not None and not set(texts := _texts(name, "setting_sources", sources)) <= set(SOURCES):
        wrong = next(one for one in texts if one not in SOURCES)
        hint = f"some of: {', '.join(SOURCES)}"
        raise UsageError(f"[backends.{name}] `setting_sources` has no `{wrong}`", hint=hint)
    return ProgramOptions(
        program=str(table.get("program", name)),
        args=_args(name, table.get("args", [])),
        setting_sources=None if sources is None else tuple(sources),
    )


def _texts(name: str, key: str, value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) and "\0" not in one for one in value):
        return value
    raise UsageError(f"[backends.{name}] `{key}` must be a list of texts")


def _args(name: str, value: object) -> tuple[str, ...]:
    args = _texts(name, "args", value)
    if args and not args[0].startswith("-"):
        raise UsageError(f"[backends.{name}] `args` must begin with a flag, not `{args[0]}`")
    for flag, why in _refused(name, args):
        raise UsageError(f"[backends.{name}] `args` cannot have `{flag}`", hint=why)
    return tuple(args)


def _refused(name: str, args: list[str]) -> Iterable[tuple[str, str]]:
    """Flags that are not a person's to pass on, and why."""
    before = ""
    for arg in args:
        flag, _, value = arg.partition("=")
        if flag in _GIVING[name]:
            yield flag, _RIGHTS
        elif flag in _OWN[name]:
            yield flag, _OURS
        elif not flag.startswith("--") and flag.startswith("-") and flag not in _SHORT[name]:
            yield flag, "write it out: --flag, and a value that begins with - as --flag=VALUE"
        elif flag == "--":
            yield flag, _OURS
        setting = value if flag == "--config" else arg if before in ("-c", "--config") else ""
        if _root(setting) in _SETTINGS:
            yield f"{_root(setting)}=", _RIGHTS if "model" not in setting else _OURS
        before = arg


def _root(setting: str) -> str:
    return re.split(r"[.=]", setting)[0].strip(" \t\"'")


# The instructions that a project keeps for agents: handed on where its settings are not used. They are only text


def read_instructions(cwd: str, name: str, most: int) -> str:
    """What the file `name` says at the top level of the project and in `cwd`, at most `most` bytes of each."""
    return "\n\n".join(_sections(cwd, name, most))


def _sections(cwd: str, name: str, most: int) -> Iterator[str]:
    top = top_of(cwd)
    for folder in dict.fromkeys((top, os.path.realpath(cwd))):
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        if os.path.commonpath([top, real]) != top:
            continue  # a link that leads out of the project could name any file of the person's
        with contextlib.suppress(OSError):
            said = files.contents(real, most).decode("utf-8", "ignore").strip()
            if said:
                yield f"Contents of {path} (project instructions, checked into the codebase):\n\n{said}"


# Who pays for turns, told apart without telling a key


class Payer(Struct, frozen=True, kw_only=True):
    """Who pays for turns, and where they are sent."""

    name: str = ""
    """Empty when nobody seems to be logged in."""
    key: str = ""
    """A fingerprint of the key that pays."""
    host: str = ""
    """Where turns are sent, if somebody has set that."""
    account: str = ""
    """A fingerprint of the account, and of everything else that chooses one."""
    needs: tuple[str, ...] = ()
    """Beginnings of the names of the variables that pay."""
    login: str = ""
    """The file of the login that pays, if one does."""


def fingerprint(environment: Mapping[str, str], names: Iterable[str]) -> str:
    """A few digits of the hash of the first of these variables that is set; empty when none is."""
    return digest([next((environment[name] for name in names if name and environment.get(name)), "")])


def chosen_payer(environment: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Those of these variables that are set, with their values."""
    return [f"{name}={environment[name]}" for name in names if environment.get(name)]


def digest(parts: Iterable[str]) -> str:
    """A few digits of the hash of what of this is not empty; empty when all of it is."""
    given = "\0".join(filter(None, parts))
    if not given:
        return ""
    import hashlib

    return hashlib.sha256(given.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def host(address: str) -> str:
    """The host in an address, without anything that could be a password."""
    return address.rpartition("//")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]


# Lines of JSON from a program that may print anything


def decode(line: bytes) -> dict[str, Any]:
    """The table in a line; an empty one when there is none."""
    try:
        found = msgspec.json.decode(line)
    except _BAD:
        try:
            found = msgspec.json.decode(_LONE.sub(r"\1\\ufffd", line.decode("utf-8", "replace")))
        except _BAD:
            return {}
    return found if isinstance(found, dict) else {}


def as_table(value: object) -> dict[str, Any]:
    """A value that may be a table; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def number(value: object) -> float:
    """A number that is not negative; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return 0.0
    return float(value)
