"""Let a person on a terminal choose one of several runs."""

import os
import sys

import click

from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.faces import table
from raymond.faces.foreign_text import width_of
from raymond.faces.table import Column
from raymond.text import visible

_COLUMNS = (Column(right=True), *naming.COLUMNS)
_MOST = 30
"""Runs that are offered."""


def can_ask() -> bool:
    """Whether a person sees what is written and can type."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick(several: SeveralRuns) -> RunRow:
    """The run of the number that is typed; nothing typed, or something else, asks again."""
    offered = several.candidates[:_MOST]
    rows = [(str(number), *cells) for number, cells in enumerate(naming.cells(offered), 1)]
    mark = table.cut_mark(sys.stderr)
    lines = [visible(str(several)), *table.lines(_COLUMNS, rows, width_of(sys.stderr), mark)]
    if several.candidates[_MOST:]:
        lines.append(f"... and {len(several.candidates) - _MOST} more: raymond list --all")
    print("\n".join(lines), file=sys.stderr)
    while True:
        typed = ask(f"which one? 1-{len(offered)} > ")
        if typed.isascii() and typed.isdigit() and 0 < int(typed[:9]) <= len(offered):
            return offered[int(typed) - 1]
        if typed:
            print(f"type a number from 1 to {len(offered)}; Ctrl-C ends this", file=sys.stderr)


def ask(question: str) -> str:
    """What a person types, without blanks around it; what was typed before the question was shown does not count."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    typed = b""
    while not typed.endswith(b"\n"):
        piece = os.read(sys.stdin.fileno(), 4096)
        if not piece:
            raise click.Abort
        typed += piece
    return typed.decode("utf-8", "replace").strip()


def agrees(question: str) -> bool:
    """Whether a person says yes."""
    while True:
        typed = ask(f"{question} [y/n] ").lower()
        if typed in ("y", "yes", "n", "no"):
            return typed.startswith("y")
