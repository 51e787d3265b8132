"""`raymond logs`: what happened in a run, and what was said in it."""

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from raymond import amounts
from raymond.cli import choice
from raymond.cli.command import argument, as_command, option
from raymond.cli.values import AGENT, RUN, Value
from raymond.control import history, runs
from raymond.control.follow import Follower
from raymond.errors import UsageError
from raymond.faces.lines import Tail

if TYPE_CHECKING:
    from raymond.control.handle import RunHandle
    from raymond.faces.history import Conversation, JsonHistory, TextHistory


@as_command("logs")
@argument("id_", metavar="[ID]", type=RUN, required=False)
@option("-f", "--follow", is_flag=True, help="Keep printing until the run ends.")
@option("--agent", type=AGENT, metavar="A", help="Only what concerns agent A.")
@option("--agents", "every", is_flag=True, help="Of a loop, every line of its agents.")
@option("--text", "in_full", is_flag=True, help="What was said: each step's prompt, reply, tools and output.")
@option("--step", type=Value(amounts.count), metavar="N", help="What step N was sent and what it said.")
@option("--tail", type=Value(amounts.count), metavar="N", help="The last N lines; with --text, steps.")
@option("--since", metavar="TIME", help="Not what is older: 10m, 14:30, 2026-01-15.")
@option("--debug-dir", metavar="DIR", help="Write every step as files to DIR.")
@option("--json", "as_json", is_flag=True, help="One JSON object per line on stdout.")
def command(
    id_: str | None,
    follow: bool,
    agent: str | None,
    every: bool,
    in_full: bool,
    step: int | None,
    tail: int | None,
    since: str | None,
    debug_dir: str | None,
    as_json: bool,
) -> int:
    """Print every line of run ID, with the numbers of its steps; or, with --text, what was said in it.

    Of a loop it prints what became of its items.
    """
    if in_full and as_json:
        raise UsageError("--text is for people, --json for programs", hint="--step N --json has the texts of a step")
    begin = float("-inf") if since is None else history.moment(since, time.time())
    run = choice.find(id_)
    follower = Follower(run.project, run.id) if follow else None
    by_item = bool(run.start.loop) and not (agent or every or in_full or as_json)
    # What needs them once takes them one by one: those of a long run fill the memory.
    once = not (follower or by_item or agent is not None or step or debug_dir or in_full)
    decisions = follower.look() if follower else [] if once else run.decisions()
    if agent is not None:
        agent = history.agent_of(run.id, decisions, agent)
    if step and in_full:
        history.check_step(run.id, decisions, step, agent or "")
    elif step:
        from raymond.faces.history import turn_in_full

        folder = run.start.scope_dir
        for one in history.step(run.project, run.id, decisions, step, agent or ""):
            print(turn_in_full(one.begun, one.ended, one.transcript, state=one.state, folder=folder, as_json=as_json))
        return 0
    if debug_dir:
        from raymond.faces import debug_folder

        _check_empty(debug_dir)
        debug_folder.Folder(debug_dir, run.transcripts).write(decisions)
        print(f"{debug_dir} holds every step and transition of {run.id}", file=sys.stderr)
        return 0
    if by_item:
        from raymond.loops.telling import LoopLines

        printed: Conversation | TextHistory | JsonHistory | LoopLines = LoopLines(
            run.transcripts, Tail(tail or 0), begin
        )
    else:
        printed = _printer(run, agent or "", step or 0, tail or 0, begin, in_full=in_full, as_json=as_json)
    printed.show(history.each(run.project, run.id) if once else decisions)
    if follower:
        for more in follower.watch():
            printed.show(more)
    return 0


def _printer(
    run: "RunHandle", agent: str, step: int, most: int, since: float, *, in_full: bool, as_json: bool
) -> "Conversation | TextHistory | JsonHistory":
    if in_full:
        from raymond.faces.history import Conversation

        is_driven = partial(runs.is_driven, run.project.run(run.id))
        return Conversation(run.transcripts, Tail(most), agent=agent, step=step, since=since, is_driven=is_driven)
    from raymond.faces.history import JsonHistory, TextHistory

    return JsonHistory(agent, Tail(most), since) if as_json else TextHistory(agent, run.transcripts, Tail(most), since)


def _check_empty(path: str) -> None:
    if os.path.isdir(path) and os.listdir(path):
        raise UsageError(f"{path} is not empty", hint="name a new folder: nothing is overwritten")
