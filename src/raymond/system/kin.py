"""Processes that belong together: what others have started, and whole sessions of theirs."""

import os
from collections.abc import Callable, Iterable

from raymond.system import ancestry
from raymond.system.ancestry import Process


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


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _by(every: dict[int, Process], key: Callable[[Process], int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in every.values():
        found.setdefault(key(one), []).append(one.pid)
    return found
