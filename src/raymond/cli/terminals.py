"""The face of this terminal: a live block where it can show one, else plain lines."""

import os
import sys
from typing import TYPE_CHECKING

from raymond.cli.streams import unguarded
from raymond.faces.lines import Lines
from raymond.redaction import Secrets

if TYPE_CHECKING:
    from raymond.faces import Face


def face(*, quiet: bool = False, plain: bool = False, watches: bool = False) -> "Face":
    """What a person sees on stderr; with `plain` always lines, with `quiet` only what steps print.

    It `watches` a run that another process drives.
    """
    if sys.stderr.isatty() and not plain and not quiet:
        from raymond.faces.live import Live, usable

        if usable(sys.stderr):
            stdin = 0 if os.isatty(0) else -1
            refuses = Secrets.of(os.environ).find
            return Live(unguarded(sys.stderr), stdin=stdin, refuses=refuses, watches=watches)
    return Lines(quiet=quiet)
