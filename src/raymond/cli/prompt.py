"""Ask a person at this terminal for a line or a paste; nothing typed before counts."""

import contextlib
import select
import sys

_SETTLED = 0.05
"""Seconds in which the rest of a paste arrives."""


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
        termios.tcflush(0, termios.TCIFLUSH)
