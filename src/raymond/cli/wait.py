"""`raymond wait`: wait for a run to end, or watch it until then."""

import sys
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from raymond.cli import choice, terminal
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import RUN, Value
from raymond.control import left_requests, runs
from raymond.control.follow import Follower
from raymond.control.handle import RunHandle
from raymond.control.settings import duration
from raymond.faces import summary
from raymond.faces.foreign_text import said

if TYPE_CHECKING:
    from raymond import Run

_TIMED_OUT = 124
"""As of timeout(1)."""


@as_command("wait")
@argument("ids", metavar="[ID]...", type=RUN, many=True)
@option("--timeout", type=Value(duration), metavar="TIME", help="Wait no longer than this; then exit with 124.")
@option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(ids: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until nothing runs ID any more; print its result, or the summary of a loop, and exit with its exit code.

    Of several, each is told as soon as those before it are over, and the exit code is the highest one.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    found = [choice.find(id_, "wait") for id_ in dict.fromkeys(ids) or [None]]
    return choice.for_each(found, partial(_wait, until=until, as_json=as_json))


def _wait(found: RunHandle, *, until: float, as_json: bool) -> int:
    left_over = None if until == inf else max(0.0, until - time.monotonic())
    if not Follower(found.project, found.id).rest(left_over):
        print(f"{found.id} is still running: raymond status {found.id}", file=sys.stderr)
        return _TIMED_OUT
    seen = found.read()
    if not as_json:
        return tell_end(found, seen)
    left, whole = left_requests.of(found.project, seen), runs.whole(found.project, found.id)
    return summary.tell_ending(
        seen, runs.undriven_status(seen), as_json=whole, left=left.lines(), then=left.next_command
    )


def tell_end(found: RunHandle, seen: "Run") -> int:
    """Report on a run without a driver, including requests that were never handled; its exit code."""
    left = left_requests.of(found.project, seen)
    if seen.start.loop:
        from raymond.loops import ending
        from raymond.loops import report as loop_summary
        from raymond.loops.loop_run import LoopRun

        for line in left.lines():
            print(said(f"left: {line}", sys.stderr), file=sys.stderr)
        loop = LoopRun(found.project, seen)
        code = ending.show(loop)
        sys.stdout.write(loop_summary.elsewhere(loop))
        return code
    return summary.tell_ending(seen, runs.undriven_status(seen), left=left.lines(), then=left.next_command)


def watch(found: RunHandle) -> int:
    """Watch a run until nobody drives it; its exit code."""
    seen = watch_until_left(found)
    return tell_end(found, seen) if seen else 0


def watch_until_left(found: RunHandle) -> "Run | None":
    """Watch a run until nobody drives it; None when the person left it running."""
    project, id = found.project, found.id
    follower = Follower(project, id)
    follower.look()
    if not follower.pid:
        return follower.run
    from raymond.control.attach import attach

    face = terminal.face(watches=True)
    if follower.run.start.loop:
        from raymond.loops import telling

        telling.dress(face, project)
    try:
        attach(project, id, follower, face, f"watching {id}; Ctrl-C leaves it running")
    except KeyboardInterrupt:
        face.close()
        print(
            f"detached; {id} is still running: raymond attach {id} returns, raymond stop {id} stops it",
            file=sys.stderr,
        )
        return None
    face.close()
    return follower.run
