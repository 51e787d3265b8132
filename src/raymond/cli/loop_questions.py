"""The questions of loops to the person at this terminal."""

import sys
from collections.abc import Callable

import click

from raymond.cli import prompt
from raymond.faces.foreign_text import said

_YES, _NO = ("", "y", "yes"), ("n", "no")


def asker() -> Callable[[str, tuple[str, ...]], str] | None:
    """Asks the person at this terminal; None when there is none."""
    return _choose if prompt.can_ask() else None


def _choose(question: str, answers: tuple[str, ...]) -> str:
    while True:
        typed = _ask(f"{question} {', '.join(answers[:-1])} or {answers[-1]}? [{answers[0]}] ")
        fitting = [one for one in answers if one.startswith(typed)] if typed else [answers[0]]
        if len(fitting) == 1:
            return fitting[0]


def agrees(question: str, *, yes: bool) -> bool:
    """Whether a person wants it; without one at a terminal, yes."""
    if yes or not prompt.can_ask():
        print(said(f"{question} yes", sys.stderr), file=sys.stderr)
        return True
    while True:
        typed = _ask(f"{question} ")
        if typed in (*_YES, *_NO):
            return typed in _YES


def wants(question: str) -> bool:
    """Whether the person at this terminal wants it; without a word, no."""
    while True:
        typed = _ask(f"{question} ")
        if typed in ("", *_NO, *_YES):
            return typed in _YES and typed != ""


def _ask(question: str) -> str:
    """What was typed, in small letters; at Ctrl-D and Ctrl-C everything stays as it is."""
    try:
        return prompt.ask(question).strip().casefold()
    except (EOFError, KeyboardInterrupt):
        print("\nnot answered; everything stays as it is", file=sys.stderr)
        raise click.Abort from None
