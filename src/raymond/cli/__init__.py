"""The command line: one file per command, or for a few that belong together, loaded on demand."""

import contextlib
import errno
import io
import os
import sys
from importlib import import_module
from typing import Any

from raymond.cli import terminal
from raymond.cli.command import Command
from raymond.errors import Error, UsageError
from raymond.text import visible

GROUPS = {
    "Start": {
        "run": "start a workflow (raymond PATH is the same)",
        "ralph": "send a prompt file to a fresh agent again and again, until it is done",
        "continuous-session": "work through the next steps of a project, each in a fresh session",
        "task-loop": "work through the tasks of implementation specs, each in a fresh session",
        "story-loop": "work through the stories of a PRD that do not pass",
        "demo": "watch a whole workflow run; no account needed",
    },
    "Watch": {
        "list": "list the runs of this project, or of all projects",
        "status": "show what a run is doing",
        "summary": "tell what a run came to, or all runs of a night",
        "logs": "show what happened, and what each step said",
        "attach": "watch a run that another process is running",
        "wait": "wait for a run to end",
        "cost": "show what the turns of a run cost",
    },
    "Decide": {
        "inbox": "list the questions that wait for an answer",
        "answer": "answer an agent's question",
        "review": "decide about changes of tests and checks, and about items that a loop set aside",
        "apply": "bring the work of a run with a workspace into your checkout",
    },
    "Steer": {
        "resume": "continue a run that was stopped, paused or killed",
        "stop": "stop a run, or one agent of it",
        "cancel": "end a run for good",
        "shell": "open a shell in the workspace of a run",
    },
    "Plans": {
        "prd": "keep the status of the stories of a project, or import some",
    },
    "Write": {
        "gate": "run the checks of a workflow now",
        "init": "write the slash commands with which Claude Code works through loops",
    },
    "Upkeep": {
        "docs": "show a page of the documentation",
        "doctor": "check this machine, or repair a damaged journal",
        "clean": "remove finished runs",
        "trust": "let agents' programs use the settings of a project",
        "config": "show settings and where they come from",
    },
}
HIDDEN = {
    "start": "start a workflow in the background, once per --id (for events)",
    "accept": "let a check count that a person has to see (review does the same)",
    "reject": "refuse such a change, with a reason",
    "completion": "print the completion script for your shell",
}
"""Commands for programs, and shorter ways to what others do: `--help` does not list them."""
COMMANDS = {name: says for group in (*GROUPS.values(), HIDDEN) for name, says in group.items()}
SHARED = {
    "accept": "review",
    "reject": "review",
    "cancel": "stop",
    "continuous-session": "item_loops",
    "task-loop": "item_loops",
    "story-loop": "item_loops",
}
"""Commands that have no file of their own, and the file that each is in, under its name."""
COMPLETE = "_RAYMOND_COMPLETE"
"""Set by the script of `raymond completion` when the shell asks for completions."""
REPORT = "the issue tracker named in `pip show raymond-orchestrator`"
_MACHINE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN),
)
"""Errors that are the machine's, whatever call they come from; most name no file."""


def command_named(name: str) -> Any:
    """The command in the file of its name, or in the one that it shares with others; or a group of click."""
    known = name.replace("-", "_")
    module = import_module(f"raymond.cli.{SHARED.get(name, known)}")
    return getattr(module, known if name in SHARED else "command")


def main(args: list[str]) -> int:
    """Run one command; its exit code."""
    _open_streams()
    if COMPLETE in os.environ:
        with contextlib.suppress(Exception):  # whoever presses Tab wants no error
            from raymond.cli import completion

            completion.print_completions(os.environ[COMPLETE], args)
        return 0
    typed = args
    try:
        _check_text(args)
        args = go_to(args)
        if args[:1] == ["help"] and not is_path("help"):
            args = [*args[1:], "--help"]
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and is_path(args[0]):
            args = ["run", *args]
        _check_directory(args)
        done = _run(args)
        sys.stdout.flush()
        return done if isinstance(done, int) else 0
    except UsageError as error:
        from raymond.cli import usage_errors
        from raymond.faces import errors

        return _say(errors.error(usage_errors.with_commands(error, typed)), error.exit_code)
    except Error as error:
        from raymond.faces import errors

        return _say(errors.error(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        refused = _refused(error)
        if refused:
            then = "".join(getattr(error, "__notes__", [])) or "try again"
            return _say(_told(refused, f"nothing already written is lost: fix this, then {then}"), 1)
        import traceback

        traceback.print_exc()
        what = "error: this is a bug in Raymond; what was journaled is safe and the run can be resumed"
        return _say(f"{what}\nhint: please report the lines above to {REPORT}", 70)


def _run(args: list[str]) -> Any:
    """Run a command; click is asked only where it is needed, because importing it takes long."""
    found = command_named(args[0]) if args and args[0] in COMMANDS else None
    if isinstance(found, Command):
        given = found.read(args[1:])
        if given is not None:
            return found.run(**given)
    from raymond.cli import by_click

    return by_click.run(args)


def _told(message: str, hint: str) -> str:
    """An error that is not one of ours, as one of ours is shown, if the machine can do that much."""
    try:
        from raymond.faces import errors

        return errors.error(Error(message, hint=hint))
    except (ImportError, MemoryError, OSError):
        return f"{visible(f'error: {message}')}\n{visible(f'hint: {hint}')}"


def _refused(error: Exception) -> str:
    """What the machine refused, in words; nothing when the error has another reason."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, terminal.Unwritten):
        return f"standard output could not be written: {(error.strerror or '').lower()}"
    if isinstance(error, OSError) and (error.filename or error.errno in _MACHINE):
        return f"{error.filename or 'the system refused a call'}: {(error.strerror or '').lower()}"
    crowded = [os.strerror(number) for number in (errno.EMFILE, errno.ENFILE)]
    if isinstance(error, ImportError) and any(one in str(error) for one in crowded):
        return f"{error.name or 'a module'} cannot be loaded: too many open files"
    return ""


def go_to(args: list[str]) -> list[str]:
    """Change to the directories of every -C at the beginning; what comes after them."""
    while args and args[0] == "-C":
        if len(args) < 2:
            raise UsageError("-C needs a directory", hint="raymond -C DIR list")
        where = args[1]
        try:
            os.chdir(where)
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise UsageError(f"-C {where}: {reason}", hint="name a directory that exists") from None
        args = args[2:]
    return args


def _check_directory(args: list[str]) -> None:
    """Every command looks for the project it is in."""
    if args and args[0] in COMMANDS:
        try:
            os.getcwd()
        except OSError:
            raise UsageError("this directory was deleted", hint="cd elsewhere, or raymond -C DIR ...") from None


def flush() -> None:
    """Flush both streams; there may be nobody left to read them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):  # the exit code says it too
        print(text, file=sys.stderr, flush=True)
    return code


def _open_streams() -> None:
    """Reopen streams that were closed when we were started: the next file must not get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(fd, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character must not cost us the result.
        sys.stdout.reconfigure(errors="backslashreplace")


def _check_text(args: list[str]) -> None:
    for arg in args:
        if not arg.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in arg):
            shown = arg.encode("utf-8", "replace").decode()
            raise UsageError(f"`{shown}` is not UTF-8", hint="rename the file in UTF-8, or pass the text as @FILE")


def is_path(word: str) -> bool:
    """Whether a word in the place of a command is a workflow."""
    return os.path.exists(word) or "/" in word or "." in word
