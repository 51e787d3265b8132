"""`raymond init`: the slash commands with which Claude Code works through loops, alone or as a plugin."""

import json
import os
import sys
from collections.abc import Iterator, Mapping

from raymond import __version__, pasted
from raymond.cli.command import as_command, option
from raymond.cli.loop_verbs import name_of
from raymond.control import config
from raymond.errors import Error, UsageError
from raymond.faces.foreign_text import said
from raymond.loops import documents, starting
from raymond.loops.settings import SESSION, STORIES, TASKS

_NAME = "raymond"
"""Of the plugin, and so the word before the colon in its commands."""
_WORK = os.path.join(os.path.dirname(starting.WORKFLOW), "slash_command.md")
_LOOPS = {
    SESSION: ("the next steps of this project", "--max-sessions"),
    TASKS: ("the tasks of this project", "--max-iterations"),
    STORIES: ("the user stories of this project", "--max-stories"),
}
"""What each loop works through, and the flag that limits it."""
_START = """\
Arguments: $ARGUMENTS

Begin with `raymond {loop} next --json --start`. If there is a number above, add `{most} NUMBER`; add flags such as \
`--max-time 2h` as they are."""


@as_command("init")
@option("--claude", is_flag=True, help="Write slash commands for Claude Code, such as /continuous-session.start.")
@option("--dir", "folder", metavar="DIR", help="Its folder of settings (.claude).")
@option("--plugin", metavar="DIR", help="Write them to DIR as a plugin: /raymond:continuous-session.start.")
@option("--force", is_flag=True, help="Also replace files that differ.")
def command(claude: bool, folder: str | None, plugin: str | None, force: bool) -> int:
    """Write the slash commands with which Claude Code works through loops."""
    if not claude and plugin is None:
        hint = "raymond init --claude, or --plugin DIR; a workflow needs no set-up: raymond demo shows one"
        raise UsageError("init needs to know what to set up", hint=hint)
    if folder is not None and not claude:
        raise UsageError("--dir goes with --claude", hint="raymond init --claude --dir DIR")
    for given, hint in ((folder, "raymond init --claude --dir DIR"), (plugin, "raymond init --plugin DIR")):
        if given is not None and not given.strip():
            raise UsageError(f"{hint.split()[-2]} needs the name of a folder", hint=hint)
    if claude:
        if folder is None:
            _check_top()
        where = os.path.join(folder or ".claude", "commands")
        _write(where, dict(commands()), force=force)
        path = pasted.word(where, "DIR")
        _say(f"next:   git add {path} and commit it, then type /{SESSION}.start in Claude Code")
    if plugin is not None:
        _write(plugin, dict(_plugin()), force=force)
        path = pasted.word(plugin if os.path.isabs(plugin) else os.path.join(".", plugin), "DIR")
        _say(f"next:   claude --plugin-dir {path}, and type /{_NAME}:{SESSION}.start")
        _say(f"to keep it: claude plugin marketplace add {path} && claude plugin install {_NAME}@{_NAME}")
    return 0


def commands() -> Iterator[tuple[str, str]]:
    """The slash commands: name of the file and text."""
    with open(_WORK, encoding="utf-8") as file:
        work = file.read()
    for loop, (queue, most) in _LOOPS.items():
        name, verbs = name_of(loop), ("next", "record", "status", "stop")
        tools = [*(f"raymond {loop} {verb}" for verb in verbs), "raymond apply"]
        start = work.format(loop=loop, queue=queue, first=_START.format(loop=loop, most=most))
        about = f"Work through {queue}, one item per fresh sub-agent; Raymond checks and commits each"
        yield f"{loop}.start.md", _command(about, tools, start, "[MAX]")
        resume = work.format(loop=loop, queue=queue, first=f"Begin with `raymond {loop} next --json --resume`.")
        yield f"{loop}.resume.md", _command(f"Continue the {name} that was interrupted here", tools, resume)
        about = f"Show what the {name} is doing, what it did and what is left"
        yield f"{loop}.status.md", _simple(about, f"raymond {loop} status")
        yield f"{loop}.stop.md", _simple(f"Let the {name} end after the item it is at", f"raymond {loop} stop")
    yield (
        "prd.status-init.md",
        _simple("Make docs/prd-status.json from docs/prd.md", "raymond prd status-init", "[flags]"),
    )


def _simple(about: str, told: str, hint: str = "") -> str:
    given = f"{told} $ARGUMENTS" if hint else told
    return _command(
        about, [told], f"Run `{given}` and show the user what it prints, as it is. Do nothing else.\n", hint
    )


def _command(about: str, told: list[str], text: str, hint: str = "") -> str:
    """A command that may tell Raymond these things; one that may tell it several has agents, too."""
    tools = [*(f"Bash({one}:*)" for one in told), *(["Agent"] if told[1:] else [])]
    head = [f"description: {about}", *([f'argument-hint: "{hint}"'] if hint else [])]
    head += [f"allowed-tools: {', '.join(tools)}", "disable-model-invocation: true"]
    return "\n".join(["---", *head, "---", text])


def _plugin() -> Iterator[tuple[str, str]]:
    """All files of the plugin, which is also a marketplace with nothing else in it."""
    says = "Work through the next steps, tasks and stories of a project, each checked and committed by Raymond."
    about, author = {"name": _NAME, "description": says}, {"name": "The Raymond authors"}
    plugin = {**about, "version": __version__, "author": author, "license": "MIT"}
    market = {**about, "owner": author, "plugins": [{"name": _NAME, "source": "./"}]}
    for name, one in (("plugin", plugin), ("marketplace", market)):
        yield f".claude-plugin/{name}.json", json.dumps(one, indent=2) + "\n"
    for name, text in commands():
        yield f"commands/{name}", text


def _write(folder: str, files: Mapping[str, str], *, force: bool) -> None:
    """Write files below a folder; existing files that differ stay, unless `force`."""
    paths = {os.path.join(folder, name): text for name, text in files.items()}
    try:
        for below in dict.fromkeys(map(os.path.dirname, paths)):
            documents.check_inside(below)
        for path, text in paths.items():
            is_new, there = not os.path.lexists(path), documents.beginning(path)
            if is_new or (force and there != text):
                documents.write(path, text)
                _say(f"wrote {path}")
            elif there != text:
                _say(f"kept {path}, which differs: --force replaces it")
    except OSError as error:
        what = f"{error.filename or folder} cannot be written: {(error.strerror or '').lower()}"
        raise UsageError(what, hint="name another folder, or move it away") from None
    except Error as error:
        raise UsageError(str(error), hint="make it a folder, or run this in the project that it leads to") from None


def _check_top() -> None:
    """Refuse a subdirectory of a repository: Claude Code is started at its top, and would not find the commands."""
    here, top = os.path.realpath(os.getcwd()), config.tree_of(os.getcwd())
    if os.path.realpath(top) != here:
        hint = f"raymond -C {pasted.word(os.path.relpath(top, here), 'DIR')} init --claude"
        what = f"this is a subdirectory of the repository {top}"
        raise UsageError(what, hint=f"{hint}, or --dir .claude for the commands of this folder alone")


def _say(text: str) -> None:
    print(said(text, sys.stdout))
