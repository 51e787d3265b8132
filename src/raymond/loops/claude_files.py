"""Files for Claude Code: the slash commands that work through a loop from the inside, alone or as a plugin."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

from raymond import __version__
from raymond.digests import sha256
from raymond.errors import UsageError
from raymond.loops import documents

COMMANDS = "commands"
"""The folder of slash commands, in `.claude` and in a plugin."""
PLUGIN = ".claude-plugin"
NAME = "raymond"
"""Of the plugin, and so the word before the colon in its commands."""
NOTED = ".raymond-files"
"""The file that says what Raymond wrote beside it: a digest and a name on each line, as sha256sum has them."""
_TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slash_commands")
_WORKS = ("next", "record", "status", "stop")
"""What a command that works through a loop may ask of Raymond."""


class _Loop(Struct, frozen=True):
    """What the texts say about a loop."""

    loop: str
    name: str
    queue: str
    most: str


_LOOPS = (
    _Loop("continuous-session", "continuous session", "the next steps of this project", "--max-sessions"),
    _Loop("task-loop", "task loop", "the tasks of this project", "--max-iterations"),
    _Loop("story-loop", "story loop", "the user stories of this project", "--max-stories"),
)


class Written(Struct, frozen=True):
    """What became of the files: their paths."""

    new: tuple[str, ...]
    renewed: tuple[str, ...]
    same: tuple[str, ...]
    kept: tuple[str, ...]
    """Changed by a person, so they were left as they are."""


def commands() -> dict[str, str]:
    """The slash commands: name of the file -> its text."""
    found = {f"{loop.loop}.{verb}.md": text for loop in _LOOPS for verb, text in _of(loop)}
    return {**found, "prd.status-init.md": _text("status-init", {"tools": _tools("prd", "status-init")})}


def plugin() -> dict[str, str]:
    """All files of the plugin, which is also a marketplace with nothing else in it."""
    says = "Work through the next steps, tasks and stories of a project, each checked and committed by Raymond."
    author = {"name": "The Raymond authors"}
    about = {"name": NAME, "version": __version__, "description": says, "author": author, "license": "MIT"}
    market = {"name": NAME, "description": says, "owner": author, "plugins": [{"name": NAME, "source": "./"}]}
    return {
        os.path.join(PLUGIN, "plugin.json"): _json(about),
        os.path.join(PLUGIN, "marketplace.json"): _json(market),
        **{os.path.join(COMMANDS, name): text for name, text in commands().items()},
    }


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _of(loop: _Loop) -> Iterator[tuple[str, str]]:
    """The verbs of a loop, and the texts of their commands."""
    given = {"loop": loop.loop, "name": loop.name, "queue": loop.queue, "most": loop.most}
    works = {**given, "protocol": _text("protocol", given), "tools": f"{_tools(loop.loop, *_WORKS)}, Agent"}
    yield "start", _text("start", works)
    yield "status", _text("status", {**given, "tools": _tools(loop.loop, "status")})
    yield "stop", _text("stop", {**given, "tools": _tools(loop.loop, "stop")})
    yield "resume", _text("resume", works)


def _tools(command: str, *verbs: str) -> str:
    """The rights to use exactly these verbs of a command of Raymond."""
    return ", ".join(f"Bash(raymond {command} {verb}:*)" for verb in verbs)


def _text(name: str, given: Mapping[str, str]) -> str:
    with open(os.path.join(_TEXTS, f"{name}.md"), encoding="utf-8") as file:
        text = file.read()
    for key, value in given.items():
        text = text.replace("{" + key + "}", value)
    return text


def write(folder: str, files: Mapping[str, str], *, force: bool = False) -> Written:
    """Write files below a folder; what a person has changed stays, unless `force`."""
    _check(folder, files)
    real, noted = os.path.realpath(folder), _noted(folder)
    found: dict[str, list[str]] = {"new": [], "renewed": [], "same": [], "kept": []}
    for name, text in files.items():
        path = os.path.join(real, name)
        became = _became(path, text, noted.get(name, ""), force=force)
        if became in ("new", "renewed"):
            documents.write(path, text)
        if became != "kept":
            noted[name] = _digest(text.encode())
        found[became].append(os.path.join(folder, name))
    lines = [f"{digest}  {name}\n" for name, digest in sorted(noted.items())]
    documents.write(os.path.join(real, NOTED), "".join(lines))
    return Written(**{key: tuple(paths) for key, paths in found.items()})


def _became(path: str, text: str, noted: str, *, force: bool) -> str:
    """What becomes of one file: it is new, renewed, the same, or kept as a person has it."""
    if not os.path.lexists(path):
        return "new"
    content = documents.content(path)
    if content == text.encode() and not os.path.islink(path):
        return "same"
    return "renewed" if force or (noted and _digest(content) == noted) else "kept"


def _check(folder: str, files: Mapping[str, str]) -> None:
    """Refuse a folder in which they cannot be written, before anything is."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(folder)  # a path that the system does not take at all would be walked for minutes
    for below in dict.fromkeys(os.path.join(folder, os.path.dirname(name)) for name in files):
        _check_links(folder, os.path.abspath(below))
    for name in ("", *files):
        path = os.path.join(folder, name)
        if name and os.path.isdir(path):
            raise UsageError(f"{path} is a folder, and a file of Raymond has that name", hint="move it away")
        above = os.path.dirname(path) if name else path
        while above and not os.path.lexists(above):
            above = os.path.dirname(above)
        above = above or "."
        if not os.path.isdir(above):
            raise UsageError(f"{above} is not a folder", hint="name another one, or move it away")
        if not os.access(above, os.W_OK | os.X_OK):
            raise UsageError(f"nothing can be written in {above}", hint="name a folder that is yours")


def _check_links(folder: str, path: str) -> None:
    """Refuse a link on the way to a folder of this project that leads out of it: the files are for this project."""
    here = os.getcwd()
    top = here if _is_within(path, here) else os.path.abspath(folder)
    while path != top:
        real = os.path.realpath(path)
        if os.path.islink(path) and not _is_within(real, os.path.realpath(top)):
            what = f"{os.path.relpath(path) if top == here else path} is a link to {real}, which is elsewhere"
            raise UsageError(what, hint="make it a folder, or run this in the project that it leads to")
        path = os.path.dirname(path)


def _is_within(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


def _noted(folder: str) -> dict[str, str]:
    """What Raymond wrote below a folder before: name -> digest."""
    lines = documents.beginning(os.path.join(os.path.realpath(folder), NOTED)).split("\n")
    pairs = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in pairs if name}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
