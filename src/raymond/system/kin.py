"""Processes that belong together: what others have started, and whole sessions of theirs."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from raymond.system import ancestry
from raymond.system.ancestry import Process

LOOKS = 5
"""How often no child must be seen until there is none: the kernel may pass over one while others end."""


def of(roots: Iterable[int], *, sessions: bool = True) -> set[int]:
    """Those of `roots` that exist, and all that come from them; with `sessions`, also what shares one that they began.

    A session is theirs when one of them leads it, or nobody does any more. This process is never among them.
    """
    every = {process.pid: process for process in map(ancestry.look, _pids()) if process}
    every.pop(os.getpid(), None)
    children = _by(every, lambda one: one.parent)
    members = _by(every, lambda one: one.session) if sessions else {}
    # Our own is not theirs, nor is 0, which stands for all those that began outside of this namespace.
    led = {0, os.getsid(0), *every}
    found, todo = set[int](), [pid for pid in roots if pid in every]
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        found.add(pid)
        todo += children.get(pid, ())
        session = every[pid].session
        if session == pid or session not in led:
            todo += members.get(session, ())
    return found


def descent(roots: Iterable[int]) -> Iterator[int]:
    """Those of `roots` and all that come from them, each before it is asked what it has started.

    It takes a fraction of the time, but may pass over one whose parent ends meanwhile.
    """
    seen, todo = set[int](), list(roots)
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            todo += children(pid)


def children(pid: int | str = "self") -> list[int]:
    """The children of a process; none where the kernel does not say."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, ancestry.whole(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _by(every: dict[int, Process], key: Callable[[Process], int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in every.values():
        found.setdefault(key(one), []).append(one.pid)
    return found
