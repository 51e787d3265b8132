"""The end of a process that is done: to take everything down that it has loaded would be a tenth of its work."""

import contextlib
import os
import sys
from typing import NoReturn


def leave(code: int = 0) -> NoReturn:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
