"""The end of a loop, whichever way it came: summary, state file; all of it can be repeated."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from time import time
from typing import Any

from raymond.control import runs
from raymond.loops import state, summary, waiting
from raymond.loops.branch import trailers
from raymond.loops.documents import SUMMARIES, stored
from raymond.loops.formats.state_file import Status
from raymond.loops.ledger import Ledger
from raymond.loops.loop_run import LoopRun
from raymond.loops.outcome import RECORDS
from raymond.loops.settings import RALPH
from raymond.loops.step import TROUBLE, told
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.system import git, processes
from raymond.views.status import exit_code

_CONCLUDING = 60.0
"""Seconds that a process may take to write down how a loop ended."""


def tell(project: Project, run: Run, *, signal: int = 0, as_json: bool = False) -> int:
    """Conclude the loop, and print its summary; its exit code."""
    loop = LoopRun(project, run)
    conclude(loop)
    return show(loop, signal=signal, as_json=as_json)


def show(loop: LoopRun, *, signal: int = 0, as_json: bool = False) -> int:
    """Print the summary of a loop; its exit code."""
    code = code_of(loop, signal)
    sys.stdout.write(json.dumps(document(loop, code)) + "\n" if as_json else summary.text(loop))
    sys.stdout.flush()
    return code


def settle(loop: LoopRun) -> None:
    """Let lists and views of runs tell what a person has decided about what the loop has set aside, and what waits."""
    with loop.branch.alone():  # a decision made meanwhile waits for the lock, then gets here itself
        now, folder = LoopRun(loop.project, runs.look(loop.project, loop.id).run), loop.project.run(loop.id)
        found = [one for one in waiting.of(now.ledger) if git.reference(loop.top, one.saved)]
        waiting.note(folder, now.ledger, found)
        if now.run.is_over and now.ledger.ended:
            waiting.revise(folder, now.ledger)


def conclude(loop: LoopRun) -> None:
    """Write down how it ended."""
    if waiting.decided(loop.project.run(loop.id)):
        settle(loop)
    if loop.ledger.ended == "refused":
        _withdraw(loop)
        return
    if loop.leased or loop.rests:
        return  # another program goes on with it
    if loop.has_branch:
        with _told("the summary was not written to the branch"):
            _write_summary(loop)
        with _told("the branch was not brought into the checkout"):
            _come_home(loop)
    if loop.loop != RALPH or os.path.isdir(loop.checkout.folder):
        # The state file comes last: a loop that it calls running is concluded again.
        path = loop.checkout.state(loop.loop)
        snapshot = tuple(summary.whole(loop))
        status = status_of(loop)
        error = summary.failure(loop.run) if status == "failed" else ""
        with _told("the state file was not written"):
            state.write(path, loop.id, loop.settings, loop.ledger, status, snapshot, pid=os.getpid(), error=error)


def is_concluded(loop: LoopRun) -> bool:
    """Whether it is written down how a loop ended; done here if the process that drove it was killed before."""
    if loop.ledger.ended == "refused":
        conclude(loop)  # its process does the same, and no state file says when it has
        return True
    given = state.told(loop.checkout.state(loop.loop))
    if given.get("workflow_id") != loop.id or given.get("status") not in ("running", "stopping"):
        return True
    pid = given.get("pid")
    is_soon = time() - loop.run.now < _CONCLUDING
    if is_soon and isinstance(pid, int) and processes.alive(pid, processes.start_time(pid)):
        return False
    conclude(loop)
    return True


def _withdraw(loop: LoopRun) -> None:
    """A refused start changes nothing: what it had made for the loop goes."""
    with _told("what the loop had begun was not removed"):
        if loop.has_branch:
            loop.branch.withdraw()
    path = loop.checkout.state(loop.loop)
    if state.is_of(path, loop.id):
        os.unlink(path)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what git did not do: whatever that is, there is a summary."""
    try:
        yield
    except TROUBLE as error:
        print(f"{what}: {told(error)}", file=sys.stderr)


def _write_summary(loop: LoopRun) -> None:
    """One file for each ending: the same ending writes the same file."""
    when = datetime.fromtimestamp(loop.run.now, UTC)
    name = f"{loop.loop}-{when:%Y%m%dT%H%M%SZ}.md"
    branch, text = loop.branch, summary.text(loop)
    with branch.alone():
        tip = branch.tip
        documents = stored(loop.checkout, branch.repository, tip)
        has_folder = loop.loop != RALPH or bool(documents.names())  # the plain loop works without documents
        if has_folder and not documents.exists(SUMMARIES, name):
            documents.write(text, SUMMARIES, name)
            message = f"{RECORDS}\n\n{loop.loop}: {summary.how(loop)}\n\n{trailers(loop.id, '')[0]}\n"
            branch.commit(documents.onto(branch.repository.tree_of(tip)), message, tip)
        branch.follow()


def _come_home(loop: LoopRun) -> None:
    """Let the checkout of a loop that works there have what is on the branch; bring it there if it was asked for."""
    from raymond.loops import home

    if loop.branch.is_here and loop.place.is_there:
        home.follow(loop)
    elif loop.settings.applies and loop.run.is_over:
        print(home.apply(loop), file=sys.stderr)


def status_of(loop: LoopRun) -> Status:
    """The status as state files have it."""
    run, ledger = loop.run, loop.ledger
    if run.final_status == "failed" and not ledger.ended:
        return "failed"
    if not run.is_over:
        return "paused"
    return "paused" if ledger.ended == "limit" and ledger.left else "complete"


def code_of(loop: LoopRun, signal: int = 0) -> int:
    """The exit code of a loop."""
    run, ledger = loop.run, loop.ledger
    if run.is_over and ledger.ended:
        return ledger.exit_code
    return exit_code(run, signal)


def document(loop: LoopRun, code: int) -> dict[str, Any]:
    """The summary for programs."""
    ledger = loop.ledger
    return {
        "workflow_id": loop.id,
        "loop": loop.loop,
        "mode": "internal" if loop.settings.internal else "external",
        "status": status_of(loop),
        "is_running": False,
        "ended": summary.how(loop),
        "exit_code": code,
        "sessions": ledger.sessions,
        "most": loop.settings.most or None,
        "cost": None if loop.settings.internal else round(loop.run.cost, 6),
        "seconds": round(loop.run.now - loop.run.started_at, 3),
        "branch": loop.settings.branch or None,
        "workspace": loop.settings.way,
        "current": _current(ledger),
        "completed": _entries(ledger, is_done=True),
        "failed": _entries(ledger, is_done=False),
        "passed_over": [{"title": title, "reason": why} for title, why in ledger.skipped],
        "remaining": summary.remaining(loop),
        "next": summary.advice(loop),
    }


def _entries(ledger: Ledger, *, is_done: bool) -> list[dict[str, Any]]:
    found = ledger.done if is_done else ledger.failed
    return [json.loads(one.write()) for one in found]


def _current(ledger: Ledger) -> dict[str, Any]:
    opened = ledger.open
    if opened is None:
        return {}
    found = {"iteration": str(opened.number), "title": opened.title, "check": opened.check, "log": opened.log}
    return {name: value for name, value in found.items() if value}
