"""`raymond init`: set up a project, so that Claude Code can work through loops from the inside."""

import os
import sys

import click

from raymond import pasted
from raymond.errors import UsageError
from raymond.faces.foreign_text import said
from raymond.loops import claude_files
from raymond.loops.claude_files import COMMANDS, NAME, Written


@click.command("init")
@click.option("--claude", is_flag=True, help="Write slash commands for Claude Code, such as /continuous-session.start.")
@click.option("--dir", "folder", metavar="DIR", help="Its folder of settings (.claude).")
@click.option("--plugin", metavar="DIR", help="Write them to DIR as a plugin: /raymond:continuous-session.start.")
@click.option("--force", is_flag=True, help="Also replace files that were changed.")
def command(claude: bool, folder: str | None, plugin: str | None, force: bool) -> int:
    """Write the slash commands with which Claude Code works through loops; what you have changed in them stays."""
    if not claude and plugin is None:
        hint = "raymond init --claude, or --plugin DIR; a workflow needs no set-up: raymond demo shows one"
        raise UsageError("init needs to know what to set up", hint=hint)
    if folder is not None and not claude:
        raise UsageError("--dir goes with --claude", hint="raymond init --claude --dir DIR")
    for flag, given in (("--dir", folder), ("--plugin", plugin)):
        if given is not None and not given.strip():
            raise UsageError(f"{flag} needs the name of a folder", hint=f"raymond init {flag} DIR")
    if claude:
        if folder is None:
            _check_top()
        where = os.path.join(folder or ".claude", COMMANDS)
        _tell(claude_files.write(where, claude_files.commands(), force=force))
        _say(f"next:   git add {_word(where)} and commit it, then type /continuous-session.start in Claude Code")
    if plugin is not None:
        _tell(claude_files.write(plugin, claude_files.plugin(), force=force))
        path = _word(plugin if os.path.isabs(plugin) else os.path.join(".", plugin))
        _say(f"next:   claude --plugin-dir {path}, and type /{NAME}:continuous-session.start")
        _say(f"to keep it: claude plugin marketplace add {path} && claude plugin install {NAME}@{NAME}")
    return 0


def _check_top() -> None:
    """Refuse a subdirectory of a repository: Claude Code is started at its top, and would not find the commands."""
    here = above = os.getcwd()
    while not os.path.lexists(os.path.join(above, ".git")):
        if above == os.path.dirname(above):
            return
        above = os.path.dirname(above)
    if above != here:
        way = os.path.relpath(above, here)
        hint = f"raymond -C {way} init --claude, or --dir .claude for the commands of this folder alone"
        raise UsageError(f"this is a subdirectory of the repository {above}", hint=hint)


def _word(path: str) -> str:
    return pasted.word(path, "DIR")


def _tell(done: Written) -> None:
    for what, paths in (("wrote", done.new), ("renewed", done.renewed)):
        for path in paths:
            _say(f"{what} {path}")
    if done.same:
        _say(f"{len(done.same)} files are as they should be")
    for path in done.kept:
        _say(f"kept {path}, which was changed: --force replaces it")


def _say(text: str) -> None:
    print(said(text, sys.stdout))
