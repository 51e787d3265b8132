"""Times as people read them: on their own clock where they look at a terminal, UTC in files, pipes and documents.

What is shown is put together far from where it is written. So whoever writes says for whom, and the words below follow.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import TextIO

from raymond.views import times

_local = False


@contextlib.contextmanager
def of(stream: TextIO | None) -> Iterator[None]:
    """Within it, times are shown as fits `stream`; None is a terminal that somebody draws on."""
    global _local
    before, _local = _local, stream is None or stream.isatty()
    try:
        yield
    finally:
        _local = before


def instant(at: float) -> str | None:
    """A time with its seconds; on a terminal with the day only where it is not today. None for no time."""
    if not _local or not at:
        return times.instant(at)
    then, today = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)
