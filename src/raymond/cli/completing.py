"""What can come next on a command line, for the completion scripts of shells."""

import os
import shlex
import signal
import sys

from click.shell_completion import CompletionItem, ShellComplete

from raymond.cli import COMMANDS, COMPLETE, go_to, group, is_path
from raymond.patterns import regex
from raymond.text import visible

_WORK, _PATIENCE = 2.0, 10.0
"""Seconds of work, and of waiting for a disk or a busy machine, after which a person who pressed Tab gets nothing."""
_SAFE = regex(r"[\w@%+=,./-]+")
"""Words that mean the same in every shell, quoted or not; others are not offered."""


def answer(shell: str, words: list[str]) -> None:
    """Print what can take the place of the last of `words`."""
    for number, timer, seconds in (
        (signal.SIGALRM, signal.ITIMER_REAL, _PATIENCE),
        (signal.SIGPROF, signal.ITIMER_PROF, _WORK),
    ):
        signal.signal(number, lambda *_: os._exit(0))
        signal.setitimer(timer, seconds)
    *typed, current = [_unquoted(word) for word in words] or [""]
    before = ""
    if shell == "bash":
        typed = [word for word in typed if word != "="]  # bash takes --flag=value apart
        current = "" if current == "=" else current
    elif current.startswith("--") and "=" in current:
        before = f"{current.partition('=')[0]}="
    lines = [_line(item, before) for item in items(typed, current)]
    sys.stdout.buffer.write("".join(filter(None, lines)).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def items(typed: list[str], current: str) -> "list[CompletionItem[str]]":
    """What can come after the words that were `typed`, and begins with `current`."""
    if "-C" in typed[:-1:2]:
        typed = go_to([os.path.expanduser(word) for word in typed])
    if typed and typed[0] not in COMMANDS and is_path(typed[0]):
        typed = ["run", *typed]
    return ShellComplete(group, {}, "raymond", COMPLETE).get_completions(typed, current)


def _line(item: "CompletionItem[str]", before: str) -> str:
    if item.type in ("file", "dir"):
        return f"{item.type}\n"
    value = f"{before}{item.value}"
    return f"plain\t{value}\t{visible(item.help or '')}\n" if _SAFE.fullmatch(value) else ""


def _unquoted(word: str) -> str:
    """A word as the shell would understand it, as far as it has been typed."""
    for end in ("", "'", '"'):
        try:
            return "".join(shlex.split(word + end))
        except ValueError:
            continue
    return word


def offered(values: "list[tuple[str, str]]", current: str) -> "list[CompletionItem[str]]":
    """Values with a word about each; one that looks like a flag is never offered as a value."""
    return [
        CompletionItem(value, help=told)
        for value, told in values
        if value.startswith(current) and not value.startswith(("-", "="))
    ]
