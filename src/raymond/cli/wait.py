"""`raymond wait`: wait for a run to end."""

import sys
from typing import TYPE_CHECKING

import click

from raymond.cli import choice
from raymond.cli.names import RUN
from raymond.control import left_requests, runs
from raymond.control.follow import Follower
from raymond.control.handle import RunHandle
from raymond.faces import summary
from raymond.faces.foreign_text import said

if TYPE_CHECKING:
    from raymond import Run


@click.command("wait")
@click.argument("id_", metavar="[ID]", type=RUN, required=False)
@click.option("--json", "as_json", is_flag=True, help="How it ended, as one JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Wait until nothing runs ID any more; print its result, or the summary of a loop, and exit with its exit code."""
    found = choice.find(id_, "wait")
    follower = Follower(found.project, found.id)
    for _ in follower.watch():
        pass
    seen = found.read()
    if not as_json:
        return tell(found, seen)
    left, whole = left_requests.of(found.project, seen), runs.whole(found.project, found.id)
    return summary.tell(seen, runs.left(seen), as_json=whole, left=left.lines(), then=left.next_command)


def tell(found: RunHandle, seen: "Run") -> int:
    """Report on a run without a driver, including requests that were never handled; its exit code."""
    left = left_requests.of(found.project, seen)
    if seen.start.loop:
        from raymond.loops import ending
        from raymond.loops import summary as loop_summary
        from raymond.loops.loop_run import LoopRun

        for line in left.lines():
            print(said(f"left: {line}", sys.stderr), file=sys.stderr)
        loop = LoopRun(found.project, seen)
        code = ending.show(loop)
        sys.stdout.write(loop_summary.elsewhere(loop))
        return code
    return summary.tell(seen, runs.left(seen), left=left.lines(), then=left.next_command)
