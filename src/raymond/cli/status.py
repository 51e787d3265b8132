"""`raymond status`: what a run is doing."""

import sys

from raymond.cli import choice
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import RUN
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.control.runs import Seen
from raymond.faces import documents
from raymond.faces.foreign_text import MARGIN, hung, told, width_of
from raymond.text import visible

_INDENT = "        "


@as_command("status")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@option("--agents", "every", is_flag=True, help="Show every agent, not only the most urgent.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, every: bool, as_json: bool) -> int:
    """Show run ID: every agent, its state, its last line, and the command to run next; of a loop, its items."""
    found = choice.find(id_)
    seen = runs.look(found.project, found.id)
    if as_json:
        whole = runs.whole(found.project, found.id)
        sys.stdout.buffer.write(documents.state_file(seen.run, status=seen.status, pid=seen.pid, whole=whole))
        sys.stdout.flush()
    elif found.start.loop and not every:
        from raymond.loops import finding, loop_status
        from raymond.loops.loop_run import LoopRun

        print(loop_status.text(finding.shown(LoopRun(found.project, seen.run)), sys.stdout), end="")
    else:
        _show(found, seen, every=every)
    if seen.note:
        print("\n".join(told(seen.note, MARGIN, width_of(sys.stderr))), file=sys.stderr)
    return 0


def _show(found: RunHandle, seen: Seen, *, every: bool) -> None:
    """Show a run to a person: programs that ask for JSON, which many do often, need none of this."""
    from raymond.control import history
    from raymond.faces import overview, words

    about = (seen.run, seen.status, seen.pid, found.transcripts)
    with words.times_for(sys.stdout):
        unheard, then = _unheard(found, seen)
        more, width = [*_workspace(found, seen), *_left(found, seen), *unheard], width_of(sys.stdout)
        gates = history.gate_progress(found.project, seen.run)
        checks = {agent: (one.command, one.tries) for agent, one in gates.items()}
        lines = overview.run_lines(
            *about, every=every, host=seen.host, width=width, more=more, then=then, checks=checks
        )
    print("\n".join(lines))


def _workspace(found: RunHandle, seen: Seen) -> list[str]:
    """Where its agents work, if not here."""
    if seen.run.tree is None:
        return []
    from raymond.control import workspaces

    return hung(visible(workspaces.describe(found.project, seen.run)), _INDENT, width_of(sys.stdout))


def _left(found: RunHandle, seen: Seen) -> list[str]:
    """The processes that a driver which was killed has left."""
    if seen.pid or not runs.may_have_left(found.project, seen.run):
        return []
    from raymond.cli import delivery
    from raymond.control import leftovers

    return delivery.still_running(leftovers.find(found.project.run(found.id), seen.run), found.id)


def _unheard(found: RunHandle, seen: Seen) -> tuple[list[str], str]:
    """What was asked of a driver that died, and the command to run next if it is another one because of it."""
    if seen.pid or seen.host or seen.run.is_over:
        return [], ""
    from raymond.control import left_requests

    left = left_requests.of(found.project, seen.run)
    lines = [part for one in left.lines() for part in hung(visible(f"left: {one}"), _INDENT, width_of(sys.stdout))]
    return lines, left.next_command
