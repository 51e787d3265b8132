"""Faults of the machine: it has no room at the moment, whatever is asked of it."""

import errno
import os
from typing import TypeGuard

_FAULTS = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY}
"""Too many processes or open files, no memory, a program that is just being written: all of them pass."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""No room on a disk: that does not pass unless somebody makes some."""
_KEPT = 30
"""Descriptors that a driver may yet need for itself."""
_OF_A_STEP = 3
"""Descriptors of a running step: its output, its errors, and its end."""


def is_passing(error: BaseException | None) -> TypeGuard[OSError]:
    """Whether waiting helps: the same may work later, although nobody changes it."""
    return isinstance(error, OSError) and error.errno in _FAULTS


def has_room(files: int = 4) -> bool:
    """Whether this process may open so many more files at the moment."""
    opened: list[int] = []
    try:
        while len(opened) < files:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return not is_passing(error)
    finally:
        for fd in opened:
            os.close(fd)
    return True


def most_steps() -> int:
    """How many steps this process can watch at once with the files it may still open."""
    most = os.sysconf("SC_OPEN_MAX")
    try:
        taken = len(os.listdir("/dev/fd"))
    except OSError:
        taken = 10
    return max(1, (most - taken - _KEPT) // _OF_A_STEP) if most > 0 else 1 << 30
