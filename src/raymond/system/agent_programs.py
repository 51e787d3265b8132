"""The programs of agents: what one of them starts is not typed by a person, whatever terminal it has."""

import os
from collections.abc import Iterable

from raymond.system import ancestry

_NAMES = frozenset(
    {"claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "copilot", "goose", "crush", "qwen"}
)
_PACKAGES = {"claude-code": "claude", "gemini-cli": "gemini", "qwen-code": "qwen"}
"""Folders that they are started from -> their names."""
_INTERPRETERS = ("node", "bun", "deno", "python")
_VALUED = frozenset("-r --require --import --loader --experimental-loader -C --conditions --env-file -W -X".split())
"""Options of theirs that are followed by a value."""
_SUBCOMMANDS = ("run", "x")
_VARIABLES = {
    "CLAUDECODE": "claude",
    "CODEX_SANDBOX": "codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "GEMINI_CLI": "gemini",
    "OPENCODE": "opencode",
    "CURSOR_AGENT": "cursor-agent",
}
"""What they tell the programs that they start."""


def above(line: Iterable[ancestry.Process], pid: int) -> str:
    """The agent that process `pid` comes from, by its environment and by the `line` above it; empty for none."""
    is_ours = pid == os.getpid()
    for variable, name in _VARIABLES.items():
        if os.environ.get(variable) if is_ours else ancestry.variable(pid, variable):
            return name
    return next(filter(None, (_name(ancestry.command(process.pid)) for process in line)), "")


def _name(command: str) -> str:
    """The agent that a command line starts: the program itself, or the file or module that an interpreter is given."""
    first, *rest = command.split(" ")
    is_interpreter = os.path.basename(first).startswith(_INTERPRETERS)
    for word in (first, _given(rest)) if is_interpreter else (first,):
        *folders, name = word.removesuffix(".js").split("/")
        if name in _NAMES:
            return name
        for folder in folders[-2:]:
            if folder in _PACKAGES:
                return _PACKAGES[folder]
    return ""


def _given(words: Iterable[str]) -> str:
    """What an interpreter runs, among its arguments: after its own options."""
    rest = iter(words)
    for word in rest:
        if word == "-m":
            return next(rest, "").partition(".")[0]
        if word in _VALUED:
            next(rest, "")
        elif not word.startswith("-") and word not in _SUBCOMMANDS:
            return word
    return ""
