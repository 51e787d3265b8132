"""What a person may set for the agents' programs: the tables `[backends.claude]` and `[backends.codex]`."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from raymond.errors import UsageError

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


class ProgramOptions(Struct, frozen=True, kw_only=True):
    """How a person wants a program to be started."""

    program: str
    args: tuple[str, ...] = ()
    """Passed on before Raymond's own flags."""
    setting_sources: tuple[str, ...] | None = None
    """The only settings that Claude Code uses; None for all."""


def read(name: str, table: Mapping[str, Any]) -> ProgramOptions:
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
