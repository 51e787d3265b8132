"""Python's search for garbage in cycles, which costs a third of the time where very much is read that stays."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Within it, nothing is searched: for work that makes no cycles and ends soon."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
