"""Ask the person at this terminal: for a line, for a yes, for one of several runs."""

import contextlib
import os
import select
import sys
from collections.abc import Callable

from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.errors import UsageError
from raymond.faces import table, words
from raymond.faces.foreign_text import said, width_of
from raymond.faces.table import Column
from raymond.text import visible

_SETTLED = 0.05
"""Seconds in which the rest of a paste arrives."""

_RUN_COLUMNS = (Column(right=True), *naming.COLUMNS)
_MAX_RUNS = 30
"""Runs that are offered."""


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(prompt: str) -> str:
    """What was typed; EOFError at Ctrl-D.

    GNU readline takes a paste of several lines as one text. Without it, and on a terminal that does not mark a paste,
    the answer may have one line only: the rest would go to the shell, as commands.
    """
    with contextlib.suppress(ImportError):
        import readline

        readline.set_auto_history(False)
        if "libedit" not in (readline.__doc__ or ""):
            readline.parse_and_bind("set enable-bracketed-paste on")
            readline.parse_and_bind("set disable-completion on")
    while True:
        _forget()
        sys.stderr.flush()
        text = input(prompt)
        if not select.select([0], [], [], _SETTLED)[0]:
            return text
        print("several lines came at once: answer in one line, or with --file FILE; nothing was taken", file=sys.stderr)


def _forget() -> None:
    """Drop what was typed before it was asked for."""
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def asker() -> Callable[[str, tuple[str, ...]], str] | None:
    """Asks the person at this terminal; None when there is none."""
    return _choose if can_ask() else None


def _choose(question: str, answers: tuple[str, ...]) -> str:
    while True:
        typed = _ask_or_abort(f"{question} {', '.join(answers[:-1])} or {answers[-1]}? [{answers[0]}] ")
        fitting = [one for one in answers if one.startswith(typed)] if typed else [answers[0]]
        if len(fitting) == 1:
            return fitting[0]


def agrees(question: str, *, yes: bool) -> bool:
    """Whether a person wants it; without one at a terminal, and without a word, yes."""
    if yes or not can_ask():
        print(said(f"{question} yes", sys.stderr), file=sys.stderr)
        return True
    return _yes_or_no(question, _ask_or_abort, otherwise=True)


def wants(question: str) -> bool:
    """Whether the person at this terminal wants it; without a word, no."""
    return _yes_or_no(question, _ask_or_abort, otherwise=False)


def agrees_on_stderr(question: str) -> bool:
    """Whether a person says yes."""
    return _yes_or_no(f"{question} [y/n]", ask_on_stderr)


def _yes_or_no(question: str, ask: Callable[[str], str], *, otherwise: bool | None = None) -> bool:
    """What a person says; without a word `otherwise`, unless that is None. Anything else is asked again."""
    while True:
        typed = ask(f"{question} ").casefold()
        if typed in ("y", "yes", "n", "no"):
            return typed.startswith("y")
        if not typed and otherwise is not None:
            return otherwise


def _ask_or_abort(question: str) -> str:
    """What was typed, in small letters; at Ctrl-D and Ctrl-C everything stays as it is."""
    try:
        return ask(question).strip().casefold()
    except (EOFError, KeyboardInterrupt):
        print("\nnot answered; everything stays as it is", file=sys.stderr)
        raise KeyboardInterrupt from None


# Several runs


def can_ask_on_stderr() -> bool:
    """Whether a person sees what is written and can type."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick_run(several: SeveralRuns) -> RunRow:
    """The run of the number that is typed; nothing typed, or something else, asks again."""
    offered = several.candidates[:_MAX_RUNS]
    rows = [(str(number), *cells) for number, cells in enumerate(naming.cells(offered), 1)]
    mark = table.cut_mark(sys.stderr)
    lines = [visible(str(several)), *table.lines(_RUN_COLUMNS, rows, width_of(sys.stderr), mark)]
    if several.candidates[_MAX_RUNS:]:
        lines.append(f"... and {len(several.candidates) - _MAX_RUNS} more: raymond list --all")
    print("\n".join(lines), file=sys.stderr)
    while True:
        typed = ask_on_stderr(f"which one? 1-{len(offered)} > ")
        if typed.isascii() and typed.isdigit() and 0 < int(typed[:9]) <= len(offered):
            return offered[int(typed) - 1]
        if typed:
            print(f"type a number from 1 to {len(offered)}; Ctrl-C ends this", file=sys.stderr)


def ask_on_stderr(question: str) -> str:
    """What a person types, without blanks around it; what was typed before the question was shown does not count."""
    _forget()
    sys.stderr.write(question)
    sys.stderr.flush()
    typed = b""
    while not typed.endswith(b"\n"):
        piece = os.read(sys.stdin.fileno(), 4096)
        if not piece:
            raise KeyboardInterrupt
        typed += piece
    return typed.decode("utf-8", "replace").strip()


def agrees_to_all(verb: str, count: int, *, yes: bool, alone: bool) -> bool:
    """Whether to go ahead; `alone` says whether to do so where nobody can be asked."""
    if yes:
        return True
    if can_ask_on_stderr():
        return agrees_on_stderr(f"{verb} {words.many(count, 'run')}?")
    if alone:
        return True
    raise UsageError(f"cannot ask whether to {verb} them without a terminal", hint="add --yes if you mean all of these")
