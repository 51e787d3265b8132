"""`raymond stop` and `cancel`: stop a run, one agent of it, or all runs; end runs for good."""

import sys
from functools import partial

from raymond import pasted
from raymond.cli import choice, delivery, prompt
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import AGENT, RUN
from raymond.control import handle, inside, left_requests, naming, request, runs
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces.lines import Lines


@as_command("stop")
@argument("ids", metavar="[ID]...", type=RUN, many=True)
@option("--now", is_flag=True, help="Stop the running steps too; they run again on resume.")
@option("--agent", type=AGENT, metavar="A", help="Only agent A: stop its step and pause it; the others continue.")
@option("--all", "every", is_flag=True, help="Every run that is running, in all projects; asks first.")
@option("--here", is_flag=True, help="Every run of this project that is running; asks first.")
@option("--yes", is_flag=True, help="With --all or --here: do not ask.")
def command(ids: tuple[str, ...], now: bool, agent: str | None, every: bool, here: bool, yes: bool) -> int:
    """Let the runs ID finish their running steps and start nothing new."""
    if every or here:
        if ids or agent:
            raise UsageError(
                f"{'--all' if every else '--here'} is for every run, not for one", hint="raymond stop --all"
            )
        return _every(now=now, here=here, yes=yes)
    if yes:
        raise UsageError("--yes goes with --all or --here", hint="raymond stop --all --yes")
    if agent and len(ids) > 1:
        raise UsageError(
            "--agent needs the id of one run",
            hint=f"raymond stop {pasted.word(ids[0], 'ID')} {pasted.flag('--agent', agent, 'A')}",
        )
    return choice.for_each(
        [choice.change(id_, "stop") for id_ in dict.fromkeys(ids) or [None]], partial(_stop, now=now, agent=agent)
    )


def _stop(run: RunHandle, *, now: bool, agent: str | None = None) -> int:
    project, id, face = run.project, run.id, Lines()
    if run.start.loop and not (agent or now):
        from raymond.cli import loop_commands, loop_verbs
        from raymond.loops.loop_run import LoopRun

        return loop_verbs.stop_it(LoopRun(project, run.read()), loop_commands.end_between_items)
    if agent:
        agent = naming.agent_meant(project, id, agent)
        done = request.ask(project, id, "pause", agent=agent, now=now, face=face)
    else:
        done = request.stop(project, id, now=now, face=face)
    what = f"{agent} of {id} is paused" if agent else f"{id} is stopped"
    told = delivery.words(done, id) or f"{what}; {left_requests.onward(project, id)}"
    print("\n".join([told, *delivery.leftovers(done, id, now=now)]), file=sys.stderr)
    return 0


def _every(*, now: bool, here: bool, yes: bool) -> int:
    """Stop what is running, once somebody has seen what that is and agreed."""
    inside.check_person("stop --all")
    rows = [row for row in runs.rows(every=not here) if row.driven and (now or row.status != "stopping")]
    if not rows:
        print("nothing is running", file=sys.stderr)
        return 0
    choice.show(rows)
    if not prompt.agrees_to_all("stop", len(rows), yes=yes, alone=False):
        print("nothing was stopped", file=sys.stderr)
        return 1
    return choice.for_each([handle.from_row(row) for row in rows], partial(_stop, now=now))


@as_command("cancel")
@argument("ids", metavar="[ID]...", type=RUN, many=True)
@option("--force", is_flag=True, help="Even if a process on another machine may still drive it.")
def cancel(ids: tuple[str, ...], force: bool) -> int:
    """End the runs ID and their running steps for good: none can be resumed. What they did stays in their journals."""
    return choice.for_each(
        [choice.change(id_, "cancel") for id_ in dict.fromkeys(ids) or [None]], partial(_cancel, force=force)
    )


def _cancel(found: RunHandle, *, force: bool) -> int:
    id = found.id
    done = request.cancel(found.project, id, force=force, face=Lines())
    told = delivery.words(done, id) or f"{id} is cancelled; to remove it: raymond clean {id}"
    print("\n".join([told, *delivery.leftovers(done, id, now=True)]), file=sys.stderr)
    return 0
